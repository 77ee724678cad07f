#pragma once

#include <cstddef>

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

/// A split between bins; whoever knows the edges fills in the threshold.
template <class S>
struct BinSplitOf : SplitOf<S> {
  std::size_t bin = 0;       ///< bins below it go left
  bool saw_missing = false;  ///< the node has missing values, and the gain tells their sides apart
};

}  // namespace hardwood::grow
