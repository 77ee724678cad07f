#pragma once

#include <vector>

#include "array.hpp"
#include "hardwood/cells/budget.hpp"
#include "reach.hpp"

namespace hardwood::bind {

/// What Python holds of a threat: a budget and what it refers to.
struct OwnedBudget {
  std::vector<Reach> reach;
  std::vector<double> down_scale;
  std::vector<double> up_scale;
  std::vector<std::int64_t> code_start;
  std::vector<std::int64_t> becomes_start;
  std::vector<std::int32_t> becomes;
  std::vector<std::uint8_t> blank;
  cells::Norm norm;
  double radius;
  double unit;
  int max_changes;

  cells::Budget view() const {
    return {norm,  radius, reach,      down_scale, up_scale, {code_start, becomes_start, becomes},
            blank, unit,   max_changes};
  }
};

}  // namespace hardwood::bind
