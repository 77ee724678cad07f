#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "hardwood/box.hpp"
#include "hardwood/cells/length.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/threat.hpp"

namespace hardwood::cells {

/// What the categories of each feature may become.
///
/// The codes of feature f are [code_start[f], code_start[f + 1]); the last of them stands for all
/// codes that the model does not know. Code i may become becomes[becomes_start[i]] and so on, up to
/// becomes_start[i + 1]. A feature without codes does not change.
struct Changes {
  std::span<const std::int64_t> code_start;
  std::span<const std::int64_t> becomes_start;
  std::span<const std::int32_t> becomes;

  std::span<const std::int32_t> of(std::size_t feature, std::int32_t code) const {
    if (feature + 1 >= code_start.size()) return {};
    const std::int64_t n_codes = code_start[feature + 1] - code_start[feature];
    if (n_codes == 0) return {};
    const bool known = code >= 0 && code < n_codes - 1;
    const auto at = static_cast<std::size_t>(code_start[feature] + (known ? code : n_codes - 1));
    return becomes.subspan(static_cast<std::size_t>(becomes_start[at]),
                           static_cast<std::size_t>(becomes_start[at + 1] - becomes_start[at]));
  }
};

/// How a move is measured and what bounds it.
///
/// A step of s down in feature f counts s / down_scale[f], a step up s / up_scale[f] (scales of 1:
/// the plain norm), where the step is a share of the value this share instead of s. A change of
/// category and a blank count `unit`. Every value must stay inside its `reach`, the norm of the
/// counted steps inside `radius`, and at most `max_changes` features may change (0: any number).
struct Budget {
  Norm norm = Norm::kInf;
  double radius = 0;
  std::span<const Reach> reach;
  std::span<const double> down_scale;
  std::span<const double> up_scale;
  Changes changes = {};
  std::span<const std::uint8_t> blank = {};  ///< features whose value can be removed
  double unit = 1;
  int max_changes = 0;

  bool can_blank(std::size_t feature) const { return feature < blank.size() && blank[feature]; }

  /// One value, and where it may go.
  struct Axis {
    double x;
    double lowest;
    double highest;
    double down_scale;
    double up_scale;
    double radius;
    bool whole;

    /// The value of a (non-empty) interval nearest to x that the adversary may choose; NaN if there
    /// is none.
    double nearest(const Interval& interval) const {
      double z = interval.nearest(x);
      if (z == x) return x;
      if (whole) {
        z = z > x ? std::ceil(z) : std::floor(z);
        if (!interval.contains(z)) return std::numeric_limits<double>::quiet_NaN();
      }
      return lowest <= z && z <= highest ? z : std::numeric_limits<double>::quiet_NaN();
    }
    /// What the step to a value within reach counts. Such a step alone never leaves the ball: what
    /// exceeds the radius is rounding.
    double counted(double z) const {
      return std::min(step_between(x, z) / (z < x ? down_scale : up_scale), radius);
    }
  };
  Axis axis(std::size_t feature, double x) const {
    const Reach& mine = reach[feature];
    const auto scale = [&](double one, double share) {
      return share > 0 ? one * std::abs(x) : one;
    };
    return {x,
            mine.lowest(x),
            mine.highest(x),
            scale(down_scale[feature], mine.down_share),
            scale(up_scale[feature], mine.up_share),
            radius,
            mine.whole};
  }
  /// What a change of category or a blank counts.
  double counted_change() const { return std::min(unit, radius); }
};

}  // namespace hardwood::cells
