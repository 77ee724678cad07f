#pragma once

#include <vector>

#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/newton.hpp"

namespace hardwood::grow {

/// The Newton criterion as the grower sees it; sums are in double or on a grid.
class NewtonTree {
 public:
  explicit NewtonTree(const NewtonRules& rules, const Grid& grid = {})
      : rules_(rules), grid_(grid) {}

  const NewtonRules& rules() const { return rules_; }
  const Grid& grid() const { return grid_; }

  template <class Sum>
  bool may_gain(const Sum& total) const {
    return real(total).h >= 2 * rules_.min_child_weight;
  }
  template <class Node>
  double value(const Node& node) const {
    const Sums total = real(node.total);
    return NewtonCriterion(total, rules_, node.value_low, node.value_high).value(total);
  }
  template <class Node>
  double priority(const Node& node) const {
    return node.split.gain;
  }
  template <class Node>
  void describe(const Node& node, GrownTree& tree) const {
    tree.value.push_back(static_cast<float>(value(node)));
    tree.cover.push_back(real(node.total).h);
  }

 private:
  static Sums real(const Sums& sums) { return sums; }
  Sums real(const GridSum& sum) const { return grid_.real(sum); }

  const NewtonRules& rules_;
  Grid grid_;
};

}  // namespace hardwood::grow
