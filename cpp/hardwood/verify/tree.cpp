#include "hardwood/verify/tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "hardwood/model/leaf_boxes.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kBlock = 256;

class TreeSearch {
 public:
  TreeSearch(const model::Trees& trees, const Budget& budget)
      : budget_(budget),
        boxes_(model::leaf_boxes(trees, 0)),
        label_(model::leaf_labels(trees, boxes_)) {
    if (trees.has_categories()) {
      throw std::invalid_argument("The search cannot bound categories; decide their nodes first.");
    }
  }

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
      double& z = x_adv[static_cast<std::size_t>(condition.feature)];
      if (!std::isnan(z)) z = condition.interval.nearest(z);
    }
    return best;
  }

 private:
  /// Distance from x to the leaf's box within the budget; infinity if there is no way or if it is
  /// no shorter than `bar`.
  double distance_to(std::size_t leaf, std::span<const double> x, double bar) const {
    Length length{budget_.norm};
    for (const model::Condition& condition : boxes_.of(leaf)) {
      const auto feature = static_cast<std::size_t>(condition.feature);
      const double value = x[feature];
      if (std::isnan(value)) {
        if (!condition.missing) return kInfinity;
        continue;
      }
      if (condition.interval.contains(value)) continue;
      if (condition.interval.empty() || !condition.interval.meets(budget_.reach[feature], value)) {
        return kInfinity;
      }
      const double z = condition.interval.nearest(value);
      const auto scale = (z < value ? budget_.down_scale : budget_.up_scale)[feature];
      // Within reach, a step alone never leaves the ball: what exceeds the radius is rounding.
      length.add(std::min(step_between(value, z) / scale, budget_.radius));
      if (length.total >= bar) return kInfinity;
    }
    return length.total <= budget_.radius ? length.total : kInfinity;
  }

  const Budget& budget_;
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
