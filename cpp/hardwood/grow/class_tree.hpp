#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/grow/split.hpp"
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

/// One grown tree, nodes in pre-order; the arrays of model::Trees plus what training knew.
struct ClassTree {
  std::vector<Feature> feature;
  std::vector<float> threshold;
  std::vector<NodeId> left;
  std::vector<NodeId> right;
  std::vector<std::uint8_t> missing_left;
  std::vector<float> value;   ///< n_nodes x n_classes, class shares
  std::vector<double> gain;   ///< robust gain of the split, 0 for leaves
  std::vector<double> cover;  ///< weight of the training rows
  std::vector<std::int64_t> n_samples;
};

/// Grow the robust classification tree of Algorithm 1.
///
/// x: n_rows x n_features, finite or NaN; label in [0, n_classes); weight > 0, or empty for one
/// each, as Inner::kPaper needs it; reach and monotonic: one a feature (monotonic may be empty).
/// Rows are routed where they go when nobody attacks: the adversary's choices only judge a split.
/// Same bytes for any n_threads.
ClassTree grow_class_tree(Matrix<const double> x, std::span<const std::int32_t> label,
                          std::int32_t n_classes, std::span<const double> weight,
                          std::span<const Reach> reach, std::span<const std::int8_t> monotonic,
                          const ClassTreeOptions& options);

}  // namespace hardwood::grow
