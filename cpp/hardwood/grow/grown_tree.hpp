#pragma once

#include <cstdint>
#include <vector>

#include "hardwood/grow/split.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// One grown tree, nodes in pre-order; the arrays of model::Trees plus what training knew.
struct GrownTree {
  std::vector<Feature> feature;
  std::vector<float> threshold;
  std::vector<NodeId> left;
  std::vector<NodeId> right;
  std::vector<std::uint8_t> missing_left;
  std::vector<float> value;   ///< n_nodes x values a leaf
  std::vector<double> gain;   ///< robust gain of the split, 0 for leaves
  std::vector<double> cover;  ///< weight of the training rows; the sum of h in a boosted tree
  std::vector<std::int64_t> n_samples;
  /// Bins of categories that go right: those of node i lie from category_start[i] on; none where
  /// the threshold decides.
  std::vector<std::int64_t> category_start{0};
  std::vector<std::int32_t> category;
};

/// Write grown nodes down in pre-order. `Node` has `split.feature`, `split.threshold`,
/// `split.missing_left`, `split.gain` and the positions `left` and `right` of its children, 0 for a
/// leaf, and may have a set `split.right_bins`; `describe(tree, node)` adds value, cover and
/// n_samples. Returns where each node went.
template <class Node, class Describe>
std::vector<NodeId> in_preorder(const std::vector<Node>& nodes, GrownTree& tree,
                                Describe&& describe) {
  struct Visit {
    std::size_t node;
    NodeId parent;
    bool is_right;
  };
  std::vector<NodeId> id_of(nodes.size());
  std::vector<Visit> open{{0, -1, false}};
  while (!open.empty()) {
    const Visit visit = open.back();
    open.pop_back();
    const Node& node = nodes[visit.node];
    const auto id = static_cast<NodeId>(tree.feature.size());
    id_of[visit.node] = id;
    if (visit.parent >= 0) {
      (visit.is_right ? tree.right : tree.left)[static_cast<std::size_t>(visit.parent)] = id;
    }
    const bool is_leaf = node.left == 0;
    tree.feature.push_back(is_leaf ? kLeaf : node.split.feature);
    tree.threshold.push_back(is_leaf ? 0 : node.split.threshold);
    tree.missing_left.push_back(!is_leaf && node.split.missing_left);
    tree.left.push_back(-1);
    tree.right.push_back(-1);
    tree.gain.push_back(is_leaf ? 0 : node.split.gain);
    if constexpr (requires { node.split.right_bins; }) {
      for (std::int32_t bin = 0; !is_leaf && bin < BinSet::kSize; ++bin) {
        if (node.split.right_bins.has(static_cast<std::size_t>(bin))) tree.category.push_back(bin);
      }
    }
    tree.category_start.push_back(static_cast<std::int64_t>(tree.category.size()));
    describe(tree, node);
    if (!is_leaf) {
      open.push_back({node.right, id, true});
      open.push_back({node.left, id, false});
    }
  }
  return id_of;
}

}  // namespace hardwood::grow
