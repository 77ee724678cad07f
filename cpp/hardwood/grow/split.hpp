#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hardwood/grow/columns.hpp"
#include "hardwood/grow/inner.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

enum class Impurity : std::uint8_t { kEntropy, kGini };

/// Where thresholds are tried: halfway between neighbouring values, as in the paper, or in the
/// intervals where the robust gain can have its maximum (an end x + eps below, an end x - eps
/// above).
enum class Candidates : std::uint8_t { kMidpoints, kIntervals };

/// The best split of a node found so far. No split yet: `feature == kLeaf`.
struct Split {
  Feature feature = kLeaf;
  float threshold = 0;
  bool missing_left = false;
  double gain = 0;
  std::size_t n_left = 0;            ///< rows that go left when nobody attacks
  std::vector<double> left_weights;  ///< their weight, class by class

  /// Larger gain; on equal gain the earlier feature, so that the order of threads cannot matter.
  bool beats(const Split& other) const {
    if (feature == kLeaf || other.feature == kLeaf) return feature != kLeaf;
    return gain > other.gain || (gain == other.gain && feature < other.feature);
  }
};

/// What a split of one node must respect, and how it is judged.
struct SplitRules {
  Impurity impurity = Impurity::kEntropy;
  Inner inner = Inner::kExact;
  Candidates candidates = Candidates::kMidpoints;
  double min_split_gain = 0;
  std::size_t min_samples_leaf = 1;
};

/// The node as the split search sees it.
struct SplitNode {
  std::span<const double> total;   ///< class weights
  std::span<const double> weight;  ///< of all rows of the data; empty means one each
  double value_low =
      -std::numeric_limits<double>::infinity();  ///< bounds that monotonicity puts on
  double value_high = std::numeric_limits<double>::infinity();  ///< the share of class 1
};

/// Try every candidate threshold of one column of a node; keep in `best` what beats it.
/// `monotonic` is +1 or -1 if the share of class 1 must not fall or rise along the feature, else 0.
void search_column(std::span<const Entry> column, Feature feature, const Reach& reach,
                   int monotonic, const SplitNode& node, const SplitRules& rules, Split& best);

}  // namespace hardwood::grow
