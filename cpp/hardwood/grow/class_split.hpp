#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hardwood/grow/inner.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

enum class Impurity : std::uint8_t { kEntropy, kGini };

/// Where thresholds are tried: halfway between neighbouring values, as in the paper, or in the
/// intervals where the robust gain can have its maximum (an end x + eps below, an end x - eps
/// above).
enum class Candidates : std::uint8_t { kMidpoints, kIntervals };

/// One value of one row of a class tree.
struct ClassEntry {
  double x;
  std::uint32_t row;
  std::uint32_t label;
};

struct ClassSplit : Split {
  std::vector<double> left_weights;  ///< of the rows that go left, class by class
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
  double min_weight_leaf = 0;      ///< weight each child needs when nobody attacks
  double value_low =
      -std::numeric_limits<double>::infinity();  ///< bounds that monotonicity puts on
  double value_high = std::numeric_limits<double>::infinity();  ///< the share of class 1
};

/// Try every candidate threshold of one column of a node; keep in `best` what beats it.
/// `monotonic` is +1 or -1 if the share of class 1 must not fall or rise along the feature, else 0.
void search_column(std::span<const ClassEntry> column, Feature feature, const Reach& reach,
                   int monotonic, const SplitNode& node, const SplitRules& rules, ClassSplit& best);

}  // namespace hardwood::grow
