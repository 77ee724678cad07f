#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace hardwood::grow {

/// Which node is split next. Without a limit on the leaves the order does not change the tree, so
/// nodes are taken depth first; with one, the node whose split gains most goes first (equal gains:
/// the older node).
class Driver {
 public:
  explicit Driver(std::size_t max_leaf_nodes) : max_leaf_nodes_(max_leaf_nodes) {}

  void push(std::size_t node, double priority) {
    open_.push_back({node, priority});
    if (best_first()) std::push_heap(open_.begin(), open_.end(), later);
  }

  /// Whether a node may still be split; each split adds one leaf.
  bool wants_more() const {
    return !open_.empty() && (!best_first() || n_leaves_ < max_leaf_nodes_);
  }

  std::size_t pop() {
    if (best_first()) std::pop_heap(open_.begin(), open_.end(), later);
    const std::size_t node = open_.back().node;
    open_.pop_back();
    ++n_leaves_;
    return node;
  }

  /// All nodes whose order cannot matter: the open ones, or with a limit only the next one.
  std::vector<std::size_t> pop_level() {
    std::vector<std::size_t> level;
    do {
      level.push_back(pop());
    } while (!best_first() && wants_more());
    std::ranges::sort(level);
    return level;
  }

 private:
  struct Open {
    std::size_t node;
    double priority;
  };
  static bool later(const Open& a, const Open& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.node > b.node;
  }
  bool best_first() const { return max_leaf_nodes_ > 0; }

  std::size_t max_leaf_nodes_;  // 0: no limit
  std::size_t n_leaves_ = 1;
  std::vector<Open> open_;
};

}  // namespace hardwood::grow
