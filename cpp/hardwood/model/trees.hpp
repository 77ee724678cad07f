#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/box.hpp"
#include "hardwood/types.hpp"

namespace hardwood::model {

inline constexpr std::int32_t kMostFeatures = 1 << 27;  ///< so that 32 bits address a row twice

/// Trees as flat arrays, the one form of a model that every room speaks.
///
/// Nodes of tree k are [tree_start[k], tree_start[k + 1]); `left` and `right` are positions inside
/// the tree, so trees can be cut off or put together by slicing. A node with `feature == kLeaf` is
/// a leaf. A row goes left when x < threshold, x rounded to the model's precision first; a missing
/// value goes where `missing_left` says. Tree k adds its leaf's values to the outputs
/// [tree_output[k], tree_output[k] + n_values) of the margin, which starts at `base`.
struct Trees {
  std::vector<Feature> feature;
  std::vector<double> threshold;  ///< exactly representable in the model's precision
  std::vector<NodeId> left;
  std::vector<NodeId> right;
  std::vector<std::uint8_t> missing_left;
  std::vector<double> value;  ///< n_nodes x n_values
  std::vector<std::int64_t> tree_start;
  std::vector<std::int32_t> tree_output;
  std::vector<double> base;  ///< one a margin output
  std::int32_t n_features = 0;
  std::int32_t n_values = 1;  ///< values a leaf holds
  bool x_float32 = true;      ///< precision in which x is compared
  bool sum_float32 = true;    ///< precision in which leaf values are added, in tree order

  std::size_t n_trees() const { return tree_start.size() - 1; }
  std::size_t n_nodes() const { return feature.size(); }
  std::size_t n_outputs() const { return base.size(); }

  /// The one door: throws std::invalid_argument naming tree and node unless the arrays describe
  /// proper trees (every node reached once from its root, finite thresholds of the right precision,
  /// features in range). Everything else in the core relies on it.
  void check() const;

  /// Where the node's threshold cuts the doubles (see edge_of).
  double edge(std::size_t node) const {
    return x_float32 ? edge_of(static_cast<float>(threshold[node])) : edge_of(threshold[node]);
  }
};

/// The label of a margin: the sign for one output, else the largest output, the first one on ties.
template <class V>
std::int32_t label_of(std::span<const V> margin) {
  if (margin.size() == 1) return margin[0] > V{0} ? 1 : 0;
  std::int32_t best = 0;
  for (std::size_t k = 1; k < margin.size(); ++k) {
    if (margin[k] > margin[static_cast<std::size_t>(best)]) best = static_cast<std::int32_t>(k);
  }
  return best;
}

}  // namespace hardwood::model
