#pragma once

#include <algorithm>

namespace hardwood {

/// How far the adversary can move the value of one feature: the ball, seen from one axis.
///
/// The value x may become anything in the closed interval [lowest(x), highest(x)]. These two lines
/// are the definition of the ball; training, attack and proof all call them. Both ends are
/// non-decreasing in x, so a column sorted by x is sorted by its ends too. The valid range
/// [low, high] limits the adversary, it does not push a row that already lies outside of it.
/// A missing value (NaN) has NaN ends: the adversary does not move it.
struct Reach {
  double down;  ///< largest step down, >= 0
  double up;    ///< largest step up, >= 0
  double low;   ///< smallest value the adversary may choose
  double high;  ///< largest value the adversary may choose

  double lowest(double x) const { return std::min(x, std::max(x - down, low)); }
  double highest(double x) const { return std::max(x, std::min(x + up, high)); }
};

}  // namespace hardwood
