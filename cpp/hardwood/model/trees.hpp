#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/box.hpp"
#include "hardwood/model/decision.hpp"
#include "hardwood/types.hpp"

namespace hardwood::model {

inline constexpr std::int32_t kMostFeatures = 1 << 27;    ///< so that 32 bits address a row twice
inline constexpr std::int32_t kMostCategories = 1 << 24;  ///< so that a float32 holds each of them
inline constexpr std::int32_t kNoCategory = -1;

/// The category that a value stands for: its whole part, if that can be one.
inline std::int32_t category_of(double x) {
  return x >= 0 && x < kMostCategories ? static_cast<std::int32_t>(x) : kNoCategory;
}

/// Trees as flat arrays, the one form of a model that every room speaks.
///
/// Nodes of tree k are [tree_start[k], tree_start[k + 1]); `left` and `right` are positions inside
/// the tree, so trees can be cut off or put together by slicing. A node with `feature == kLeaf` is
/// a leaf. A row goes left when x < threshold, x rounded to the model's precision first; a missing
/// value goes where `missing_left` says. A node with a set of categories has no use for its
/// threshold: a row goes right when its category is in the set. Tree k adds its leaf's values to
/// the outputs [tree_output[k], tree_output[k] + n_values) of the margin, which starts at `base`.
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
  /// The set of node i is [category_start[i], category_start[i + 1]) of `category`, increasing; it
  /// is empty for other splits and for leaves. No node has one: both vectors are empty.
  std::vector<std::int64_t> category_start;
  std::vector<std::int32_t> category;
  Decision decision{};

  std::size_t n_trees() const { return tree_start.size() - 1; }
  std::size_t n_nodes() const { return feature.size(); }
  std::size_t n_outputs() const { return base.size(); }
  bool has_categories() const { return !category.empty(); }

  /// The set of a node; an empty one means that the node compares with its threshold.
  std::span<const std::int32_t> categories(std::size_t node) const {
    if (!has_categories()) return {};
    const auto first = static_cast<std::size_t>(category_start[node]);
    return {category.data() + first, static_cast<std::size_t>(category_start[node + 1]) - first};
  }

  /// The one door: throws std::invalid_argument naming tree and node unless the arrays describe
  /// proper trees (every node reached once from its root, finite thresholds of the right precision,
  /// features in range). Everything else in the core relies on it.
  void check() const;

  /// Which side a value of a split's feature takes.
  bool sends_left(std::size_t node, double x) const {
    if (std::isnan(x)) return missing_left[node] != 0;
    const auto set = categories(node);
    if (set.empty()) return goes_left(x, edge(node));
    return !std::ranges::binary_search(set, category_of(x_float32 ? static_cast<float>(x) : x));
  }

  /// Where the node's threshold cuts the doubles (see edge_of).
  double edge(std::size_t node) const {
    return x_float32 ? edge_of(static_cast<float>(threshold[node])) : edge_of(threshold[node]);
  }
};

}  // namespace hardwood::model
