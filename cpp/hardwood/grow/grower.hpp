#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/grow/driver.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/rules.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// A node of a tree that grows. Its rows are a range, in whatever order the table keeps them.
template <class S>
struct Node {
  using Split = S;

  std::size_t number = 0;  ///< nodes are numbered as they are made
  std::size_t begin = 0, end = 0;
  /// Rows that other parts of the table have of it. Less than 0 if the number of all its rows is
  /// known, and the range is still the parent's.
  std::ptrdiff_t n_elsewhere = 0;
  bool has_rows = true;  ///< false: they lie somewhere in this range, among the sibling's
  bool stays = false;    ///< a leaf: the tree may have no more of them
  std::int32_t depth = 0;
  typename S::Sum total{};
  double value_low = -std::numeric_limits<double>::infinity();  ///< bounds that monotone features
  double value_high = std::numeric_limits<double>::infinity();  ///< put on the value
  S split{};
  std::size_t left = 0, right = 0;  ///< numbers of the children; 0: a leaf

  /// Rows of all parts.
  std::size_t n_rows() const { return end - begin + static_cast<std::size_t>(n_elsewhere); }
};

/// Whether a node is worth a search. The table asks this, too: rows of leaves need no moving.
template <class Criterion, class S>
bool may_split(const Criterion& criterion, const Node<S>& node) {
  const TreeRules& rules = criterion.rules();
  return !node.stays && (rules.max_depth < 0 || node.depth < rules.max_depth) &&
         node.n_rows() >= rules.min_samples_split &&
         node.n_rows() >= 2 * std::max<std::size_t>(rules.min_samples_leaf, 1) &&
         criterion.may_gain(node.total);
}

/// A node that is split, and its children.
template <class Table>
struct Family {
  typename Table::Node parent, left, right;
  typename Table::Kept kept, left_kept{}, right_kept{};
};

/// Grows one tree, the same way for all tables and criteria: which node is next, what its children
/// may hold, how the tree is written down. Where rows go is the table's: where they go when nobody
/// attacks, or (see certified_tree.hpp) wherever the adversary can send them.
///
/// The table has the rows, sorted or in bins, and finds splits:
///
///     Node, Kept                    Kept: what it remembers of a node until that is split
///     criterion()                   see below
///     monotonic(feature)            a sign, or 0
///     order(), most_together()      in which it likes to see nodes, and how many at a time
///     plant(root, kept)             the root, with its sums, and its best split
///     split(families, n_threads)    move rows to the children and find their best splits
///     in_parts()                    whether others have rows of the same nodes
///     give_back(kept)               of a node that stays a leaf
///     trim(nodes)                   optional: take splits back before the tree is written
///     finish(nodes, id_of, tree)    whatever only the table knows about the tree
///
/// The criterion knows what sums over rows mean:
///
///     rules()                       the tree's
///     may_gain(total)               false if no split of such a node can be good
///     value(node)                   what the node predicts; monotone features order these values
///     priority(node)                of its split
///     describe(node, tree)          append value and cover
template <class Table>
class Grower {
 public:
  using Node = typename Table::Node;
  using Kept = typename Table::Kept;

  /// `poll` is called now and then, on the calling thread; it stops the work by throwing.
  Grower(Table& table, const std::function<void()>& poll) : table_(table), poll_(poll) {}

  GrownTree grow() {
    const auto& criterion = table_.criterion();
    Node root;
    Kept kept{};
    table_.plant(root, kept);
    nodes_.push_back(root);
    Driver<Open> driver(criterion.rules().max_leaf_nodes, table_.order(), table_.most_together());
    std::vector<Open> first;
    keep(root, std::move(kept), first);
    for (Open& open : first) driver.push(std::move(open));
    driver.run(std::max(criterion.rules().n_threads, 1), poll_,
               [&](std::vector<Open> batch, int n_threads, std::vector<Open>& more) {
                 expand(std::move(batch), n_threads, more, driver.is_full());
               });
    for (Open& open : driver.rest()) table_.give_back(std::move(open.kept));
    if constexpr (requires { table_.trim(nodes_); }) table_.trim(nodes_);
    GrownTree tree;
    const std::vector<NodeId> id_of =
        in_preorder(nodes_, tree, [&](GrownTree& to, const Node& node) {
          criterion.describe(node, to);
          to.n_samples.push_back(static_cast<std::int64_t>(node.n_rows()));
        });
    table_.finish(nodes_, id_of, tree);
    return tree;
  }

 private:
  struct Open {
    std::size_t number;
    double priority;
    std::size_t n_rows;
    Kept kept;
  };

  /// `last`: the children will not be split.
  void expand(std::vector<Open> batch, int n_threads, std::vector<Open>& more, bool last) {
    std::vector<Family<Table>> families;
    families.reserve(batch.size());
    {
      const std::lock_guard guard(lock_);
      for (Open& open : batch) {
        Family<Table>& family = families.emplace_back();
        family.parent = nodes_[open.number];
        family.kept = std::move(open.kept);
        make_children(family);
        family.left.stays = family.right.stays = last;
        nodes_.push_back(family.left);
        nodes_.push_back(family.right);
      }
    }
    table_.split(std::span(families), n_threads);
    {
      const std::lock_guard guard(lock_);
      for (const Family<Table>& family : families) {
        for (const Node* node : {&family.parent, &family.left, &family.right}) {
          nodes_[node->number] = *node;
        }
      }
    }
    for (Family<Table>& family : families) {
      // The last one is often taken first: of two that wait with their histograms, the smaller.
      const bool left_last = Table::kSmallFirst && family.left.n_rows() <= family.right.n_rows();
      if (left_last) keep(family.right, std::move(family.right_kept), more);
      keep(family.left, std::move(family.left_kept), more);
      if (!left_last) keep(family.right, std::move(family.right_kept), more);
    }
  }

  void make_children(Family<Table>& family) {
    Node &parent = family.parent, &left = family.left, &right = family.right;
    left.number = parent.left = nodes_.size();
    right.number = parent.right = nodes_.size() + 1;
    left.begin = right.begin = parent.begin;
    left.end = right.end = parent.end;
    left.has_rows = right.has_rows = false;
    left.n_elsewhere = right.n_elsewhere = parent.n_elsewhere;
    if (const std::size_t n_left = parent.split.n_left; n_left != Split::kUnknown) {
      if (table_.in_parts()) {
        left.n_elsewhere -= static_cast<std::ptrdiff_t>(parent.n_rows() - n_left);
        right.n_elsewhere -= static_cast<std::ptrdiff_t>(n_left);
      } else {
        left.end = right.begin = parent.begin + n_left;
      }
    }
    left.depth = right.depth = parent.depth + 1;
    left.total = parent.split.left;
    right.total = parent.total - parent.split.left;
    left.value_low = right.value_low = parent.value_low;
    left.value_high = right.value_high = parent.value_high;
    if (const int sign = table_.monotonic(parent.split.feature); sign != 0) {
      const double middle = (table_.criterion().value(left) + table_.criterion().value(right)) / 2;
      (sign > 0 ? left : right).value_high = middle;
      (sign > 0 ? right : left).value_low = middle;
    }
  }

  void keep(const Node& node, Kept kept, std::vector<Open>& more) {
    if (node.split.feature == kLeaf) return table_.give_back(std::move(kept));
    more.push_back(
        {node.number, table_.criterion().priority(node), node.n_rows(), std::move(kept)});
  }

  Table& table_;
  const std::function<void()>& poll_;
  std::mutex lock_;          // of the nodes: the table may split several at a time
  std::vector<Node> nodes_;  // by number; the tree is written in preorder
};

}  // namespace hardwood::grow
