#pragma once

#include <cmath>
#include <limits>

#include "hardwood/threat.hpp"

namespace hardwood {

/// The comparison of every tree: a row goes left when its value is below the threshold.
/// Both sides are in the model's own precision, `x_dtype`.
template <class X>
constexpr bool goes_left(X x, X threshold) {
  return x < threshold;
}

/// Where a threshold of precision X cuts the doubles: the smallest double that, rounded to X, does
/// not go left. For every double x, `goes_left(X(x), threshold)` is the same as `x < edge`, so
/// boxes can be kept in double and no rounding is left to think about.
inline double edge_of(double threshold) { return threshold; }
inline double edge_of(float threshold) {
  // Halfway between the threshold and the float below it; ties go to the even float. Past the
  // largest float, "halfway" is where rounding starts to give infinity.
  constexpr double kOverflow = 0x1.ffffffp127;
  const float below = std::nextafter(threshold, -std::numeric_limits<float>::infinity());
  double halfway = below + (static_cast<double>(threshold) - below) / 2;
  if (std::isinf(threshold)) halfway = threshold > 0 ? kOverflow : threshold;
  if (std::isinf(below) && !std::isinf(threshold)) halfway = -kOverflow;
  if (static_cast<float>(halfway) >= threshold) return halfway;
  return std::nextafter(halfway, std::numeric_limits<double>::infinity());
}

/// A threshold t with below < t <= above, halfway where floats allow.
inline float between(float below, float above) {
  const auto middle =
      static_cast<float>((static_cast<double>(below) + static_cast<double>(above)) / 2);
  return middle > below ? middle : above;
}

/// One side of a leaf box: low <= x < high.
struct Interval {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool empty() const { return !(low < high); }
  bool contains(double x) const { return low <= x && x < high; }

  /// Reachability, the one line attack and proof share: does the ball around x meet the interval?
  bool meets(const Reach& reach, double x) const {
    return reach.lowest(x) < high && low <= reach.highest(x);
  }

  /// The value of the (non-empty) interval that is nearest to x.
  double nearest(double x) const {
    if (x < low) return low;
    if (x >= high) return std::nextafter(high, -std::numeric_limits<double>::infinity());
    return x;
  }
};

}  // namespace hardwood
