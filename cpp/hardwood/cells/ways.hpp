#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "hardwood/cells/ensemble.hpp"

namespace hardwood::cells {

/// Ways down trees of any layout: `trees.node(at)` is a node, `trees.goes_left(at, cell)` says
/// where it sends a point by its cell. Points have a cell of every feature.

/// The leaf that a point gets to from a node.
template <class Trees>
std::int32_t leaf_of(const Trees& trees, std::int32_t at, std::span<const std::int32_t> point) {
  while (trees.node(at).feature != kLeaf) {
    const auto& node = trees.node(at);
    at =
        trees.goes_left(at, point[static_cast<std::size_t>(node.feature)]) ? node.left : node.right;
  }
  return at;
}

/// Call `see(leaf, cells)` for the leaves that a point gets to from a node if its cell of one
/// feature, which has ranges, were one of `cells`.
template <class Trees, class See>
void each_leaf_beside(const Trees& trees, std::int32_t at, std::span<const std::int32_t> point,
                      std::int32_t feature, Cells cells, See&& see) {
  while (trees.node(at).feature != kLeaf) {
    const auto& node = trees.node(at);
    if (node.feature != feature) {
      const std::int32_t cell = point[static_cast<std::size_t>(node.feature)];
      at = trees.goes_left(at, cell) ? node.left : node.right;
    } else if (cells.hi <= node.rank) {
      at = node.left;
    } else if (cells.lo > node.rank) {
      at = node.right;
    } else {
      each_leaf_beside(trees, node.left, point, feature, {cells.lo, node.rank}, see);
      cells.lo = node.rank + 1;
      at = node.right;
    }
  }
  see(at, cells);
}

/// Call `see(feature, leaf, cells)` for the other leaves that a point gets to from a node if one
/// feature changes; only features with `trees.can_change(feature)` do. `stays` has all cells of
/// every feature: on the way it is narrowed to those that stay with the point.
template <class Trees, class See>
void each_leaf_one_change_away(const Trees& trees, std::int32_t at,
                               std::span<const std::int32_t> point, std::span<Cells> stays,
                               See&& see) {
  const auto& node = trees.node(at);
  if (node.feature == kLeaf) return;
  const auto f = static_cast<std::size_t>(node.feature);
  const bool left = trees.goes_left(at, point[f]);
  const Cells before = stays[f];
  if (trees.can_change(f)) {
    const Cells below{before.lo, std::min(before.hi, node.rank)};
    const Cells above{std::max(before.lo, node.rank + 1), before.hi};
    const Cells leaves = left ? above : below;
    if (leaves.lo <= leaves.hi) {
      each_leaf_beside(trees, left ? node.right : node.left, point, node.feature, leaves,
                       [&](std::int32_t leaf, Cells cells) { see(node.feature, leaf, cells); });
    }
    stays[f] = left ? below : above;
  }
  each_leaf_one_change_away(trees, left ? node.left : node.right, point, stays, see);
  stays[f] = before;
}

}  // namespace hardwood::cells
