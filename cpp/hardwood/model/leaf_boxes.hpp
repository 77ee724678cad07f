#pragma once

#include <cstdint>
#include <vector>

#include "hardwood/box.hpp"
#include "hardwood/model/trees.hpp"

namespace hardwood::model {

/// Categories that pass: those that are listed, or all but those.
struct Categories {
  bool all_but = true;
  std::vector<std::int32_t> listed;  ///< increasing
};

/// What a leaf asks of one feature.
struct Condition {
  Feature feature;
  Interval interval;
  bool missing;  ///< whether a missing value passes every split of this feature on the path
  Categories categories = {};
};

/// The leaves of one tree, each with the conditions of its path: a box, kept sparse because a path
/// touches few features. Leaf boxes of a tree are disjoint and cover the space.
struct LeafBoxes {
  std::vector<NodeId> node;        ///< the leaf's position in its tree, left to right
  std::vector<std::size_t> start;  ///< conditions of leaf i are [start[i], start[i + 1])
  std::vector<Condition> conditions;

  std::size_t n_leaves() const { return node.size(); }
  std::span<const Condition> of(std::size_t leaf) const {
    return {conditions.data() + start[leaf], start[leaf + 1] - start[leaf]};
  }
};

LeafBoxes leaf_boxes(const Trees& trees, std::size_t tree);

/// The label that each leaf gives to a model of one tree.
std::vector<std::int32_t> leaf_labels(const Trees& trees, const LeafBoxes& boxes);

}  // namespace hardwood::model
