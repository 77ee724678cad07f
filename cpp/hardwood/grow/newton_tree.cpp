#include "hardwood/grow/newton_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hardwood/box.hpp"
#include "hardwood/grow/driver.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kWorthThreads = 1 << 14;  // entries below which one thread is faster

struct Node {
  std::size_t begin = 0, end = 0;  // its rows in the columns
  std::int32_t depth = 0;
  Sums total;
  double value_low = -std::numeric_limits<double>::infinity();
  double value_high = std::numeric_limits<double>::infinity();
  NewtonSplit split;
  std::size_t left = 0, right = 0;  // 0: a leaf

  std::size_t n_rows() const { return end - begin; }
  NewtonCriterion criterion(const NewtonRules& rules) const {
    return {total, rules, value_low, value_high};
  }
};

/// The place of every row in the order of g / h.
std::vector<std::uint32_t> ranks(std::span<const Sums> gradient) {
  std::vector<std::uint32_t> order(gradient.size()), rank(gradient.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto ratio = [&](std::uint32_t row) { return gradient[row].g / gradient[row].h; };
  std::ranges::stable_sort(order, {}, ratio);
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

class NewtonTreeGrower {
 public:
  NewtonTreeGrower(Columns<NewtonEntry>& columns, std::span<const Sums> gradient,
                   const NewtonSample& sample, const NewtonRules& rules)
      : columns_(columns),
        gradient_(gradient),
        sample_(sample),
        rules_(rules),
        rank_of_row_(rules.inner == Inner::kExact ? ranks(gradient) : std::vector<std::uint32_t>{}),
        row_goes_left_(gradient.size()),
        driver_(rules.max_leaf_nodes),
        threads_(static_cast<std::size_t>(std::max(rules.n_threads, 1)),
                 {NewtonSearch(gradient, rank_of_row_, rules), {}, {}}) {}

  GrownTree grow(const std::function<void()>& between_levels) {
    Node root;
    root.end = columns_.n_rows();
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      if (sample_.rows.empty() || sample_.rows[i]) root.total += gradient_[i];
    }
    nodes_.push_back(root);
    search_level({}, 0);
    while (driver_.wants_more()) {
      between_levels();
      const std::vector<std::size_t> level = driver_.pop_level();
      const std::size_t first_child = nodes_.size();
      for (const std::size_t parent : level) add_children(parent);
      search_level(level, first_child);
    }
    GrownTree tree;
    in_preorder(nodes_, tree, [&](GrownTree& to, const Node& node) {
      to.value.push_back(static_cast<float>(node.criterion(rules_).value(node.total)));
      to.cover.push_back(node.total.h);
      to.n_samples.push_back(static_cast<std::int64_t>(node.n_rows()));
    });
    return tree;
  }

 private:
  struct Thread {
    NewtonSearch search;
    std::vector<NewtonEntry> put_aside;
    std::vector<NewtonSplit> best;  // of every node that is searched
  };

  bool may_split(const Node& node) const {
    return (rules_.max_depth < 0 || node.depth < rules_.max_depth) &&
           node.n_rows() >= 2 * std::max<std::size_t>(rules_.min_samples_leaf, 1) &&
           node.total.h >= 2 * rules_.min_child_weight;
  }

  int monotonic(Feature feature) const {
    return sample_.monotonic.empty() ? 0 : sample_.monotonic[static_cast<std::size_t>(feature)];
  }

  void add_children(std::size_t parent) {
    const Node& node = nodes_[parent];
    Node left, right;
    left.begin = node.begin;
    left.end = right.begin = node.begin + node.split.n_left;
    right.end = node.end;
    left.depth = right.depth = node.depth + 1;
    left.total = node.split.left;
    right.total = node.total - left.total;
    left.value_low = right.value_low = node.value_low;
    left.value_high = right.value_high = node.value_high;
    if (const int sign = monotonic(node.split.feature); sign != 0) {
      const NewtonCriterion criterion = node.criterion(rules_);
      const double middle = (criterion.value(left.total) + criterion.value(right.total)) / 2;
      (sign > 0 ? left : right).value_high = middle;
      (sign > 0 ? right : left).value_low = middle;
    }
    nodes_[parent].left = nodes_.size();
    nodes_[parent].right = nodes_.size() + 1;
    nodes_.push_back(left);
    nodes_.push_back(right);
  }

  /// Move the rows of the split nodes to their children and find the children's splits: a column is
  /// read again while it is still in the cache.
  void search_level(const std::vector<std::size_t>& parents, std::size_t first_child) {
    std::vector<std::size_t> wanted;  // nodes to be searched
    std::size_t n_rows = 0;
    for (std::size_t child = first_child; child < nodes_.size(); ++child) {
      if (!may_split(nodes_[child])) continue;
      wanted.push_back(child);
      n_rows += nodes_[child].n_rows();
    }
    if (wanted.empty()) return;
    const int n_threads =
        n_rows * columns_.n_columns() < kWorthThreads ? 1 : std::max(rules_.n_threads, 1);
    std::vector<std::size_t> moved;  // leaves for sure need their sums only, not their rows
    for (const std::size_t parent : parents) {
      const Node& node = nodes_[parent];
      if (may_split(nodes_[node.left]) || may_split(nodes_[node.right])) moved.push_back(parent);
    }
    parallel_for(moved.size(), n_threads,
                 [&](std::size_t i, int) { mark_sides(nodes_[moved[i]]); });

    std::vector<NewtonCriterion> criteria;
    for (const std::size_t node : wanted) criteria.push_back(nodes_[node].criterion(rules_));
    for (Thread& thread : threads_) thread.best.assign(wanted.size(), {});
    parallel_for(columns_.n_columns(), n_threads, [&](std::size_t column, int id) {
      Thread& thread = threads_[static_cast<std::size_t>(id)];
      for (const std::size_t parent : moved) {
        columns_.partition(column, nodes_[parent].begin, nodes_[parent].end, row_goes_left_,
                           thread.put_aside);
      }
      const Feature feature = sample_.features[column];
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const Node& node = nodes_[wanted[i]];
        thread.search.search(columns_.entries(column, node.begin, node.end), feature,
                             monotonic(feature), node.total, criteria[i], thread.best[i]);
      }
    });
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      NewtonSplit& best = nodes_[wanted[i]].split;
      for (const Thread& thread : threads_) {
        if (thread.best[i].beats(best)) best = thread.best[i];
      }
      if (best.feature != kLeaf) driver_.push(wanted[i], best.gain);
    }
  }

  void mark_sides(const Node& node) {
    const auto column = static_cast<std::size_t>(
        std::ranges::lower_bound(sample_.features, node.split.feature) - sample_.features.begin());
    for (const NewtonEntry& entry : columns_.entries(column, node.begin, node.end)) {
      row_goes_left_[entry.row] =
          std::isnan(entry.x) ? node.split.missing_left : goes_left(entry.x, node.split.threshold);
    }
  }

  Columns<NewtonEntry>& columns_;
  std::span<const Sums> gradient_;
  const NewtonSample& sample_;
  const NewtonRules& rules_;
  std::vector<std::uint32_t> rank_of_row_;
  std::vector<std::uint8_t> row_goes_left_;
  Driver driver_;
  std::vector<Thread> threads_;
  std::vector<Node> nodes_;
};

}  // namespace

ExactTable::ExactTable(Matrix<const double> x, std::span<const Reach> reach, int n_threads)
    : n_features_(x.n_cols),
      x_(x.data, x.data + x.n_rows * x.n_cols),
      sorted_(x, n_threads, [&](std::size_t feature, double value, std::uint32_t row) {
        return NewtonEntry{static_cast<float>(value), BallEnds<float>(reach[feature], value), row};
      }) {}

NewtonTrees ExactTable::grow(Matrix<const float> gradient, Matrix<const float> hessian,
                             std::span<const float> weight, const NewtonSample& sample,
                             const NewtonRules& rules,
                             const std::function<void()>& between_levels) {
  const std::size_t n_rows = gradient.n_rows, n_outputs = gradient.n_cols;
  NewtonTrees out;
  out.leaf.resize(n_rows * n_outputs);
  std::vector<Sums> of_row(n_rows);
  for (std::size_t k = 0; k < n_outputs; ++k) {
    for (std::size_t i = 0; i < n_rows; ++i) {  // in double, so that a weight loses nothing
      of_row[i] = (weight.empty() ? 1.0 : weight[i]) * Sums{gradient(i, k), hessian(i, k)};
    }
    columns_.take(sorted_, sample.features, sample.rows, rules.n_threads);
    out.trees.push_back(NewtonTreeGrower(columns_, of_row, sample, rules).grow(between_levels));
    apply(out.trees.back(), std::span(out.leaf).subspan(k), n_outputs, rules.n_threads);
  }
  return out;
}

void ExactTable::apply(const GrownTree& tree, std::span<NodeId> leaf, std::size_t stride,
                       int n_threads) const {
  parallel_blocks(n_rows(), 4096, n_threads, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* row = x_.data() + i * n_features_;
      std::size_t node = 0;
      while (tree.feature[node] != kLeaf) {
        const float x = row[tree.feature[node]];
        const bool left =
            std::isnan(x) ? tree.missing_left[node] != 0 : goes_left(x, tree.threshold[node]);
        node = static_cast<std::size_t>(left ? tree.left[node] : tree.right[node]);
      }
      leaf[i * stride] = static_cast<NodeId>(node);
    }
  });
}

}  // namespace hardwood::grow
