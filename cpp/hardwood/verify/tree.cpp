#include "hardwood/verify/tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardwood/cells/conditions.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kBlock = 256;

class TreeSearch {
 public:
  TreeSearch(const model::Trees& trees, const Budget& budget)
      : budget_(budget),
        conditions_(trees, budget),
        boxes_(model::leaf_boxes(trees, 0)),
        label_(model::leaf_labels(trees, boxes_)) {}

  /// The nearest leaf of another label than y, or infinity.
  double nearest(std::span<const double> x, std::int32_t y, std::span<double> x_adv) const {
    double best = kInfinity;
    std::size_t best_leaf = 0;
    for (std::size_t leaf = 0; leaf < boxes_.n_leaves(); ++leaf) {
      if (label_[leaf] == y) continue;
      const double distance = distance_to(leaf, x, best);
      if (distance < best) best = distance, best_leaf = leaf;
    }
    if (best == kInfinity) {
      std::ranges::fill(x_adv, std::numeric_limits<double>::quiet_NaN());
      return best;
    }
    std::ranges::copy(x, x_adv.begin());
    for (const model::Condition& condition : boxes_.of(best_leaf)) {
      const auto feature = static_cast<std::size_t>(condition.feature);
      if (conditions_.passes(condition, x[feature])) continue;
      x_adv[feature] = conditions_.change(condition, x[feature]).value;
    }
    return best;
  }

 private:
  /// Distance from x to the leaf's box within the budget; infinity if there is no way or if it is
  /// no shorter than `bar`.
  double distance_to(std::size_t leaf, std::span<const double> x, double bar) const {
    cells::Length length{budget_.norm};
    int n_changes = 0;
    for (const model::Condition& condition : boxes_.of(leaf)) {
      const double value = x[static_cast<std::size_t>(condition.feature)];
      if (conditions_.passes(condition, value)) continue;
      if (budget_.max_changes > 0 && ++n_changes > budget_.max_changes) return kInfinity;
      const double step = conditions_.change(condition, value).step;
      if (step == kInfinity) return kInfinity;
      length.add(step);
      if (length.total >= bar) return kInfinity;
    }
    return length.total <= budget_.radius ? length.total : kInfinity;
  }

  const Budget& budget_;
  cells::Conditions conditions_;
  model::LeafBoxes boxes_;
  std::vector<std::int32_t> label_;  // of each leaf
};

}  // namespace

Nearest nearest_in_tree(const model::Trees& trees, Matrix<const double> x,
                        std::span<const std::int32_t> y, const Budget& budget, int n_threads,
                        Watch& watch) {
  const TreeSearch search(trees, budget);
  Nearest result{std::vector<double>(x.n_rows, kInfinity),
                 std::vector<double>(x.n_rows * x.n_cols, std::numeric_limits<double>::quiet_NaN()),
                 std::vector<std::uint8_t>(x.n_rows)};
  const Matrix<double> x_adv{result.x_adv.data(), x.n_rows, x.n_cols};
  parallel_blocks(x.n_rows, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end && !watch.over(); ++i) {
      result.distance[i] = search.nearest(x.row(i), y[i], x_adv.row(i));
      result.answered[i] = 1;
      ++watch.n_done;
    }
  });
  return result;
}

}  // namespace hardwood::verify
