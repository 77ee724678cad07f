#include "hardwood/grow/class_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hardwood/box.hpp"
#include "hardwood/grow/columns.hpp"
#include "hardwood/grow/driver.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kWorthThreads = 1 << 15;  // entries below which one thread is faster

struct Node {
  std::size_t begin = 0, end = 0;  // its rows in the columns
  std::int32_t depth = 0;
  std::vector<double> weights;  // class by class
  double value_low = -std::numeric_limits<double>::infinity();
  double value_high = std::numeric_limits<double>::infinity();
  ClassSplit split;
  std::size_t left = 0, right = 0;  // 0: a leaf

  std::size_t n_rows() const { return end - begin; }
  double cover() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }
  bool pure() const {
    return std::ranges::count_if(weights, [](double weight) { return weight > 0; }) < 2;
  }
};

/// Weights counted in steps of a grid, and the step: a power of two so coarse that every sum of
/// weights is a whole number below 2^53, exact in any order. So the rows of a column, sorted or
/// not, weigh the same, a child that has no rows of a class has no weight of it, and whatever the
/// unit of the weights, no product of them overflows.
struct GridWeights {
  std::vector<double> n_steps;  // empty: one a row
  double step = 1;

  explicit GridWeights(std::span<const double> weight) : n_steps(weight.begin(), weight.end()) {
    if (n_steps.empty()) return;
    const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
    const int exponent = std::ilogb(sum) + 1 - 52;
    step = std::ldexp(1.0, exponent);
    for (double& n : n_steps) n = std::max(std::nearbyint(std::ldexp(n, -exponent)), 1.0);
  }
};

/// splitmix64: a whole generator in one line of state, the same everywhere.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class ClassTreeGrower {
 public:
  ClassTreeGrower(Matrix<const double> x, std::span<const std::int32_t> label,
                  std::int32_t n_classes, std::span<const double> weight,
                  std::span<const Reach> reach, std::span<const std::int8_t> monotonic,
                  const ClassTreeOptions& options)
      : weights_(weight),
        reach_(reach),
        monotonic_(monotonic),
        options_(options),
        columns_(x, options.n_threads,
                 [&](std::size_t, double value, std::uint32_t row) {
                   return ClassEntry{value, row, static_cast<std::uint32_t>(label[row])};
                 }),
        put_aside_(static_cast<std::size_t>(std::max(options.n_threads, 1))),
        row_goes_left_(x.n_rows),
        driver_(options.max_leaf_nodes) {
    Node root;
    root.end = x.n_rows;
    root.weights.resize(static_cast<std::size_t>(n_classes));
    for (std::size_t i = 0; i < x.n_rows; ++i) {
      root.weights[static_cast<std::size_t>(label[i])] +=
          weights_.n_steps.empty() ? 1.0 : weights_.n_steps[i];
    }
    min_weight_leaf_ = options.min_weight_fraction_leaf * root.cover();
    add(std::move(root));
  }

  GrownTree grow() {
    while (driver_.wants_more()) split(driver_.pop());
    GrownTree tree;
    in_preorder(nodes_, tree, [&](GrownTree& to, const Node& node) {
      const double cover = node.cover();
      to.cover.push_back(cover * weights_.step);
      to.n_samples.push_back(static_cast<std::int64_t>(node.n_rows()));
      for (const double weight : node.weights) {
        to.value.push_back(static_cast<float>(weight / cover));
      }
    });
    return tree;
  }

 private:
  void add(Node node) {
    if (may_split(node)) node.split = best_split(node);
    if (node.split.feature != kLeaf) driver_.push(nodes_.size(), node.split.gain * node.cover());
    nodes_.push_back(std::move(node));
  }

  bool may_split(const Node& node) const {
    return (options_.max_depth < 0 || node.depth < options_.max_depth) &&
           node.n_rows() >= options_.min_samples_split &&
           node.n_rows() >= 2 * options_.rules.min_samples_leaf && !node.pure();
  }

  int threads_for(const Node& node) const {
    return node.n_rows() * columns_.n_columns() < kWorthThreads ? 1 : options_.n_threads;
  }

  int monotonic(std::size_t feature) const { return monotonic_.empty() ? 0 : monotonic_[feature]; }

  ClassSplit best_split(const Node& node) const {
    std::vector<Feature> order(columns_.n_columns());
    std::iota(order.begin(), order.end(), 0);
    std::size_t n_tried = order.size();
    if (options_.max_features > 0 && options_.max_features < order.size()) {
      n_tried = options_.max_features;
      std::uint64_t state = options_.seed + nodes_.size() * 0x9e3779b97f4a7c15u;
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        std::swap(order[i], order[i + next_random(state) % (order.size() - i)]);
      }
      // In order, so that on equal gains every thread prefers the earlier feature.
      std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n_tried));
    }
    ClassSplit best = best_split_among(node, std::span(order).first(n_tried));
    // As in scikit-learn, keep drawing until some feature can be split at all.
    for (std::size_t i = n_tried; best.feature == kLeaf && i < order.size(); ++i) {
      best = best_split_among(node, std::span(order).subspan(i, 1));
    }
    return best;
  }

  ClassSplit best_split_among(const Node& node, std::span<const Feature> features) const {
    const SplitNode view{node.weights, weights_.n_steps, min_weight_leaf_, node.value_low,
                         node.value_high};
    const int n_threads = threads_for(node);
    std::vector<ClassSplit> best(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(features.size(), n_threads, [&](std::size_t i, int thread) {
      const auto feature = static_cast<std::size_t>(features[i]);
      search_column(columns_.entries(feature, node.begin, node.end), features[i], reach_[feature],
                    monotonic(feature), view, options_.rules,
                    best[static_cast<std::size_t>(thread)]);
    });
    return *std::ranges::max_element(best,
                                     [](const Split& a, const Split& b) { return b.beats(a); });
  }

  void split(std::size_t parent) {
    const auto [left, right] = children_of(nodes_[parent]);
    // Leaves for sure need their weights only, not their rows.
    if (may_split(left) || may_split(right)) partition(nodes_[parent]);
    nodes_[parent].left = nodes_.size();
    add(left);
    nodes_[parent].right = nodes_.size();
    add(right);
  }

  std::pair<Node, Node> children_of(const Node& node) const {
    Node left, right;
    left.begin = node.begin;
    left.end = right.begin = node.begin + node.split.n_left;
    right.end = node.end;
    left.depth = right.depth = node.depth + 1;
    left.weights = node.split.left_weights;
    right.weights = node.weights;
    for (std::size_t k = 0; k < right.weights.size(); ++k) right.weights[k] -= left.weights[k];
    left.value_low = right.value_low = node.value_low;
    left.value_high = right.value_high = node.value_high;
    if (const int sign = monotonic(static_cast<std::size_t>(node.split.feature)); sign != 0) {
      const double middle = (left.weights[1] / left.cover() + right.weights[1] / right.cover()) / 2;
      (sign > 0 ? left : right).value_high = middle;
      (sign > 0 ? right : left).value_low = middle;
    }
    return {std::move(left), std::move(right)};
  }

  void partition(const Node& node) {
    const auto feature = static_cast<std::size_t>(node.split.feature);
    for (const ClassEntry& entry : columns_.entries(feature, node.begin, node.end)) {
      row_goes_left_[entry.row] =
          std::isnan(entry.x) ? node.split.missing_left
                              : goes_left(static_cast<float>(entry.x), node.split.threshold);
    }
    parallel_for(columns_.n_columns(), threads_for(node), [&](std::size_t column, int thread) {
      columns_.partition(column, node.begin, node.end, row_goes_left_,
                         put_aside_[static_cast<std::size_t>(thread)]);
    });
  }

  GridWeights weights_;
  std::span<const Reach> reach_;
  std::span<const std::int8_t> monotonic_;
  const ClassTreeOptions& options_;
  Columns<ClassEntry> columns_;
  std::vector<std::vector<ClassEntry>> put_aside_;  // one buffer a thread
  std::vector<std::uint8_t> row_goes_left_;
  Driver driver_;
  double min_weight_leaf_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace

GrownTree grow_class_tree(Matrix<const double> x, std::span<const std::int32_t> label,
                          std::int32_t n_classes, std::span<const double> weight,
                          std::span<const Reach> reach, std::span<const std::int8_t> monotonic,
                          const ClassTreeOptions& options) {
  return ClassTreeGrower(x, label, n_classes, weight, reach, monotonic, options).grow();
}

}  // namespace hardwood::grow
