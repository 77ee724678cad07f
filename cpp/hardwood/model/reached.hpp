#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "hardwood/ambiguity.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::model {

/// Where a row may go at a node.
struct Sides {
  bool left;
  bool right;
};

/// Call `visit(node)` for every leaf of a tree that the adversary can move a row to, taking each
/// split by itself, as `sides(node, feature)` says: a leaf that two splits of one feature shut off
/// together is visited, too. `open` is memory to reuse.
template <class SidesOf, class Visit>
void visit_reached(const Trees& trees, std::size_t tree, std::vector<std::size_t>& open,
                   SidesOf&& sides, Visit&& visit) {
  const auto first = static_cast<std::size_t>(trees.tree_start[tree]);
  open.assign(1, first);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (trees.feature[node] == kLeaf) {
      visit(node);
      continue;
    }
    const auto [left, right] = sides(node, static_cast<std::size_t>(trees.feature[node]));
    if (right) open.push_back(first + static_cast<std::size_t>(trees.right[node]));
    if (left) open.push_back(first + static_cast<std::size_t>(trees.left[node]));
  }
}

/// The same for a row of values; thresholds only.
template <class X, class Visit>
void visit_reached(const Trees& trees, std::size_t tree, std::span<const X> x,
                   std::span<const Reach> reach, std::vector<std::size_t>& open, Visit&& visit) {
  const auto sides = [&](std::size_t node, std::size_t f) -> Sides {
    const auto value = static_cast<double>(x[f]);
    if (std::isnan(value)) return {trees.missing_left[node] != 0, trees.missing_left[node] == 0};
    const auto by = [&](auto threshold) -> Sides {
      return {!sure_right(reach[f], value, threshold), !sure_left(reach[f], value, threshold)};
    };
    return trees.x_float32 ? by(static_cast<float>(trees.threshold[node]))
                           : by(trees.threshold[node]);
  };
  visit_reached(trees, tree, open, sides, visit);
}

}  // namespace hardwood::model
