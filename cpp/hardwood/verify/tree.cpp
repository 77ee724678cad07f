#include "hardwood/verify/tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
        label_(model::leaf_labels(trees, boxes_)),
        x_float32_(trees.x_float32),
        has_categories_(static_cast<std::size_t>(trees.n_features), 0) {
    for (std::size_t at = 0; trees.has_categories() && at < trees.n_nodes(); ++at) {
      if (trees.categories(at).empty()) continue;
      has_categories_[static_cast<std::size_t>(trees.feature[at])] = 1;
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
      const auto feature = static_cast<std::size_t>(condition.feature);
      if (!passes(condition, x[feature])) x_adv[feature] = change(condition, x[feature]).value;
    }
    return best;
  }

 private:
  struct Change {
    double step = kInfinity;
    double value = 0;
  };

  bool passes(const model::Condition& condition, double x) const {
    if (std::isnan(x)) return condition.missing;
    if (!condition.interval.contains(x)) return false;
    const model::Categories& categories = condition.categories;
    if (categories.all_but && categories.listed.empty()) return true;
    const bool listed = std::ranges::binary_search(categories.listed, category_of(x));
    return listed != categories.all_but;
  }
  std::int32_t category_of(double x) const {
    return model::category_of(x_float32_ ? static_cast<float>(x) : x);
  }

  /// The least change of a value that makes it pass, if the adversary may make one.
  Change change(const model::Condition& condition, double x) const {
    const auto f = static_cast<std::size_t>(condition.feature);
    Change best;
    if (std::isnan(x)) return best;
    if (has_categories_[f]) {
      for (const std::int32_t code : budget_.changes.of(f, category_of(x))) {
        if (!passes(condition, code)) continue;
        best = {budget_.counted_change(), static_cast<double>(code)};
        break;
      }
    } else if (!condition.interval.empty()) {
      const double z = budget_.nearest(f, x, condition.interval);
      if (!std::isnan(z)) best = {budget_.counted(f, x, z), z};
    }
    if (condition.missing && budget_.can_blank(f) && budget_.counted_change() < best.step) {
      best = {budget_.counted_change(), std::numeric_limits<double>::quiet_NaN()};
    }
    return best;
  }

  /// Distance from x to the leaf's box within the budget; infinity if there is no way or if it is
  /// no shorter than `bar`.
  double distance_to(std::size_t leaf, std::span<const double> x, double bar) const {
    cells::Length length{budget_.norm};
    int n_changes = 0;
    for (const model::Condition& condition : boxes_.of(leaf)) {
      const double value = x[static_cast<std::size_t>(condition.feature)];
      if (passes(condition, value)) continue;
      if (budget_.max_changes > 0 && ++n_changes > budget_.max_changes) return kInfinity;
      const double step = change(condition, value).step;
      if (step == kInfinity) return kInfinity;
      length.add(step);
      if (length.total >= bar) return kInfinity;
    }
    return length.total <= budget_.radius ? length.total : kInfinity;
  }

  const Budget& budget_;
  model::LeafBoxes boxes_;
  std::vector<std::int32_t> label_;  // of each leaf
  bool x_float32_;
  std::vector<std::uint8_t> has_categories_;  // per feature
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
