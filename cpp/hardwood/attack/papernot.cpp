#include "hardwood/attack/papernot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "hardwood/cells/conditions.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::attack {
namespace {

constexpr std::size_t kBlock = 256;

class Climb {
 public:
  Climb(const model::Trees& trees, const cells::Budget& budget)
      : conditions_(trees, budget),
        max_changes_(budget.max_changes),
        boxes_(model::leaf_boxes(trees, 0)),
        label_(model::leaf_labels(trees, boxes_)) {
    std::vector<NodeId> parent(trees.n_nodes(), -1);
    for (std::size_t at = 0; at < trees.n_nodes(); ++at) {
      if (trees.feature[at] == kLeaf) continue;
      parent[static_cast<std::size_t>(trees.left[at])] = static_cast<NodeId>(at);
      parent[static_cast<std::size_t>(trees.right[at])] = static_cast<NodeId>(at);
    }
    for (const NodeId leaf : boxes_.node) {
      std::vector<NodeId> path;
      for (NodeId at = leaf; at >= 0; at = parent[static_cast<std::size_t>(at)]) path.push_back(at);
      std::ranges::reverse(path);
      path_.push_back(std::move(path));
    }
  }

  void attack(std::span<const double> x, std::int32_t y, std::span<double> x_adv) const {
    std::ranges::fill(x_adv, std::numeric_limits<double>::quiet_NaN());
    const std::size_t home = leaf_of(x);
    std::pair<std::size_t, std::size_t> best{std::numeric_limits<std::size_t>::max(), 0};
    for (std::size_t leaf = 0; leaf < boxes_.n_leaves(); ++leaf) {
      if (label_[leaf] == y) continue;
      const auto way = way_between(home, leaf);
      if (way < best && move(leaf, x, x_adv)) best = way;
    }
  }

 private:
  std::size_t leaf_of(std::span<const double> x) const {
    std::size_t leaf = 0;
    while (std::ranges::any_of(boxes_.of(leaf), [&](const model::Condition& condition) {
      return !conditions_.passes(condition, x[static_cast<std::size_t>(condition.feature)]);
    })) {
      ++leaf;
    }
    return leaf;
  }

  /// Steps up from one leaf to the first node above both, and down to the other.
  std::pair<std::size_t, std::size_t> way_between(std::size_t from, std::size_t to) const {
    const auto [at, other] = std::ranges::mismatch(path_[from], path_[to]);
    return {static_cast<std::size_t>(path_[from].end() - at),
            static_cast<std::size_t>(path_[to].end() - other)};
  }

  /// The point of the leaf's box nearest to x; false (and x_adv as it was) if it is out of reach.
  /// Features above the common node already agree, so only those on the way move.
  bool move(std::size_t leaf, std::span<const double> x, std::span<double> x_adv) const {
    int n_changes = 0;
    for (const model::Condition& condition : boxes_.of(leaf)) {
      const double value = x[static_cast<std::size_t>(condition.feature)];
      if (conditions_.passes(condition, value)) continue;
      if (!std::isfinite(conditions_.change(condition, value).step)) return false;
      ++n_changes;
    }
    if (max_changes_ > 0 && n_changes > max_changes_) return false;
    std::ranges::copy(x, x_adv.begin());
    for (const model::Condition& condition : boxes_.of(leaf)) {
      const auto f = static_cast<std::size_t>(condition.feature);
      if (conditions_.passes(condition, x[f])) continue;
      x_adv[f] = conditions_.change(condition, x[f]).value;
    }
    return true;
  }

  cells::Conditions conditions_;
  int max_changes_;
  model::LeafBoxes boxes_;
  std::vector<std::int32_t> label_;
  std::vector<std::vector<NodeId>> path_;  // of each leaf, from the root
};

}  // namespace

std::vector<double> papernot(const model::Trees& trees, Matrix<const double> x,
                             std::span<const std::int32_t> y, const cells::Budget& budget,
                             int n_threads, Watch& watch) {
  const Climb climb(trees, budget);
  std::vector<double> x_adv(x.n_rows * x.n_cols, std::numeric_limits<double>::quiet_NaN());
  const Matrix<double> out{x_adv.data(), x.n_rows, x.n_cols};
  parallel_blocks(x.n_rows, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end && !watch.over(); ++i) {
      climb.attack(x.row(i), y[i], out.row(i));
      ++watch.n_done;
    }
  });
  return x_adv;
}

}  // namespace hardwood::attack
