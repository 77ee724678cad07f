#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardwood/types.hpp"

namespace hardwood::grow {

/// The best split of a node found so far. No split yet: `feature == kLeaf`.
struct Split {
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);

  Feature feature = kLeaf;
  float threshold = 0;
  bool missing_left = false;
  double gain = 0;
  std::size_t n_left = kUnknown;  ///< rows that go left when nobody attacks, if they were counted

  /// Larger gain; on equal gain the earlier feature, so that the order of threads cannot matter.
  bool beats(const Split& other) const {
    if (feature == kLeaf || other.feature == kLeaf) return feature != kLeaf;
    return gain > other.gain || (gain == other.gain && feature < other.feature);
  }
};

/// A split, and what its criterion adds up over rows.
template <class S>
struct SplitOf : Split {
  using Sum = S;

  S left{};  ///< of the rows that go left when nobody attacks
};

/// Of some splits the one that beats the others.
template <class S>
S best_of(const std::vector<S>& splits) {
  return *std::ranges::max_element(splits, [](const S& a, const S& b) { return b.beats(a); });
}

/// Some of the 256 bins that a feature can have.
class BinSet {
 public:
  static constexpr std::int32_t kSize = 256;

  bool has(std::size_t bin) const { return words_[bin / 64] >> bin % 64 & 1; }
  void put(std::size_t bin) { words_[bin / 64] |= std::uint64_t{1} << bin % 64; }
  bool empty() const { return words_ == std::array<std::uint64_t, 4>{}; }

 private:
  std::array<std::uint64_t, 4> words_{};
};

/// A split between bins; whoever knows the edges fills in the threshold.
///
/// Bins of categories are split by a set: its bins go right, all others left, missing values among
/// them. So a category that training never saw goes where missing values go.
template <class S>
struct BinSplitOf : SplitOf<S> {
  std::size_t bin = 0;       ///< bins below it go left; with a set, only the number of a candidate
  bool saw_missing = false;  ///< the node has missing values, and the gain tells their sides apart
  BinSet right_bins;         ///< of categories; empty: bins are compared
};

}  // namespace hardwood::grow
