#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/model/leaf_boxes.hpp"

namespace hardwood::cells {

/// What the adversary must change for a row to meet the conditions of a leaf, one by one.
class Conditions {
 public:
  struct Change {
    double step = std::numeric_limits<double>::infinity();
    double value = 0;
  };

  Conditions(const model::Trees& trees, const Budget& budget)
      : budget_(budget),
        x_float32_(trees.x_float32),
        has_categories_(static_cast<std::size_t>(trees.n_features), 0) {
    for (std::size_t at = 0; trees.has_categories() && at < trees.n_nodes(); ++at) {
      if (trees.categories(at).empty()) continue;
      has_categories_[static_cast<std::size_t>(trees.feature[at])] = 1;
    }
  }

  bool passes(const model::Condition& condition, double x) const {
    if (std::isnan(x)) return condition.missing;
    if (!condition.interval.contains(x)) return false;
    const model::Categories& categories = condition.categories;
    if (categories.all_but && categories.listed.empty()) return true;
    const bool listed = std::ranges::binary_search(categories.listed, category_of(x));
    return listed != categories.all_but;
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
      const Budget::Axis axis = budget_.axis(f, x);
      const double z = axis.nearest(condition.interval);
      if (!std::isnan(z)) best = {axis.counted(z), z};
    }
    if (condition.missing && budget_.can_blank(f) && budget_.counted_change() < best.step) {
      best = {budget_.counted_change(), std::numeric_limits<double>::quiet_NaN()};
    }
    return best;
  }

 private:
  std::int32_t category_of(double x) const {
    return model::category_of(x_float32_ ? static_cast<float>(x) : x);
  }

  const Budget& budget_;
  bool x_float32_;
  std::vector<std::uint8_t> has_categories_;  // per feature
};

}  // namespace hardwood::cells
