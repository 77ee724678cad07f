#pragma once

#include <cstdint>
#include <span>

#include "hardwood/grow/class_split.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

struct ClassTreeOptions {
  SplitRules rules;
  std::int32_t max_depth = -1;     ///< -1: no limit
  std::size_t max_leaf_nodes = 0;  ///< 0: no limit
  std::size_t min_samples_split = 2;
  double min_weight_fraction_leaf = 0;  ///< share of all weight each child needs
  std::size_t max_features = 0;         ///< features tried a node; 0: all of them
  std::uint64_t seed = 0;               ///< for the choice of features
  int n_threads = 1;
};

/// Grow the robust classification tree of Algorithm 1.
///
/// x: n_rows x n_features, finite or NaN; label in [0, n_classes); weight > 0, or empty for one
/// each, as Inner::kPaper needs it; reach and monotonic: one a feature (monotonic may be empty).
/// Rows are routed where they go when nobody attacks: the adversary's choices only judge a split.
/// Leaves hold class shares. Same bytes for any n_threads.
GrownTree grow_class_tree(Matrix<const double> x, std::span<const std::int32_t> label,
                          std::int32_t n_classes, std::span<const double> weight,
                          std::span<const Reach> reach, std::span<const std::int8_t> monotonic,
                          const ClassTreeOptions& options);

}  // namespace hardwood::grow
