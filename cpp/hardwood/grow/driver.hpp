#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "hardwood/parallel.hpp"

namespace hardwood::grow {

/// In which order nodes are taken while the number of leaves is not limited. The tree does not
/// depend on it; speed and memory do.
enum class Order {
  kOneByOne,  ///< the newest first
  kLevels,    ///< all open nodes together, or as many of the newest as may be
  kTasks,     ///< large nodes one by one, with all threads; small ones by whoever is free
};

/// Which node is split next. With a limit on the leaves, the node whose split gains most goes first
/// (equal gains: the older node); without one, nodes are taken in the order that suits the table.
///
/// `Open` is a node that can be split; it has `number`, `priority` and `n_rows`.
template <class Open>
class Driver {
 public:
  /// `most_together`: nodes that are taken at a time in `Order::kLevels`.
  Driver(std::size_t max_leaf_nodes, Order order,
         std::size_t most_together = std::numeric_limits<std::size_t>::max())
      : max_leaf_nodes_(max_leaf_nodes), order_(order), most_together_(most_together) {}

  void push(Open open) {
    open_.push_back(std::move(open));
    if (best_first()) std::push_heap(open_.begin(), open_.end(), later);
  }

  /// Whether a node may still be split; each split adds one leaf.
  bool wants_more() const {
    return !open_.empty() && (!best_first() || n_leaves_ < max_leaf_nodes_);
  }

  /// Whether the nodes taken so far make as many leaves as there may be.
  bool is_full() const { return best_first() && n_leaves_ >= max_leaf_nodes_; }

  Open pop() {
    if (best_first()) std::pop_heap(open_.begin(), open_.end(), later);
    Open open = std::move(open_.back());
    open_.pop_back();
    ++n_leaves_;
    return open;
  }

  /// Call `expand(nodes, n_threads, more)` until no node may be split; what can be split next is
  /// put into `more`. `poll` is called now and then on the calling thread and may throw.
  template <class Poll, class Expand>
  void run(int n_threads, Poll&& poll, Expand&& expand) {
    if (!best_first() && order_ == Order::kTasks) return run_tasks(n_threads, poll, expand);
    while (wants_more()) {
      poll();
      std::vector<Open> nodes, more;
      do {
        nodes.push_back(pop());
      } while (!best_first() && order_ == Order::kLevels && nodes.size() < most_together_ &&
               wants_more());
      std::ranges::sort(nodes, {}, &Open::number);
      expand(std::move(nodes), n_threads, more);
      for (Open& open : more) push(std::move(open));
    }
  }

  /// The nodes that a limit on the leaves has left open.
  std::vector<Open> rest() { return std::exchange(open_, {}); }

 private:
  static constexpr std::size_t kWorthThreads = 4096;  // rows below which a node stays on one thread

  template <class Poll, class Expand>
  void run_tasks(int n_threads, Poll&& poll, Expand&& expand) {
    const auto one = [](Open open) {
      std::vector<Open> nodes;
      nodes.push_back(std::move(open));
      return nodes;
    };
    std::vector<Open> small;
    std::size_t large = 0;
    while (n_threads > 1 && !open_.empty()) {
      Open next = pop();
      if (large == 0) {  // the root
        large = std::max(next.n_rows / (2 * static_cast<std::size_t>(n_threads)), kWorthThreads);
      }
      if (next.n_rows < large) {
        small.push_back(std::move(next));
        continue;
      }
      poll();
      expand(one(std::move(next)), n_threads, open_);
    }
    for (Open& next : small) open_.push_back(std::move(next));
    parallel_tasks(rest(), n_threads, [&](Open next, int thread, std::vector<Open>& more) {
      if (thread == 0) poll();
      expand(one(std::move(next)), 1, more);
    });
  }

  static bool later(const Open& a, const Open& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.number > b.number;
  }
  bool best_first() const { return max_leaf_nodes_ > 0; }

  std::size_t max_leaf_nodes_;  // 0: no limit
  Order order_;
  std::size_t most_together_;
  std::size_t n_leaves_ = 1;
  std::vector<Open> open_;
};

}  // namespace hardwood::grow
