#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "hardwood/ambiguity.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::model {

/// Call `visit(node)` for every leaf of a tree that the adversary can push a row to, taking each
/// split by itself: a leaf that two splits of one feature shut off together is visited, too.
/// Thresholds only; `open` is memory to reuse.
template <class X, class Visit>
void visit_reached(const Trees& trees, std::size_t tree, std::span<const X> x,
                   std::span<const Reach> reach, std::vector<std::size_t>& open, Visit&& visit) {
  const auto first = static_cast<std::size_t>(trees.tree_start[tree]);
  open.assign(1, first);
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (trees.feature[node] == kLeaf) {
      visit(node);
      continue;
    }
    const auto f = static_cast<std::size_t>(trees.feature[node]);
    const auto value = static_cast<double>(x[f]);
    bool left = trees.missing_left[node] != 0, right = !left;
    if (!std::isnan(value)) {
      if (trees.x_float32) {
        const auto threshold = static_cast<float>(trees.threshold[node]);
        left = !sure_right(reach[f], value, threshold);
        right = !sure_left(reach[f], value, threshold);
      } else {
        left = !sure_right(reach[f], value, trees.threshold[node]);
        right = !sure_left(reach[f], value, trees.threshold[node]);
      }
    }
    if (right) open.push_back(first + static_cast<std::size_t>(trees.right[node]));
    if (left) open.push_back(first + static_cast<std::size_t>(trees.left[node]));
  }
}

}  // namespace hardwood::model
