#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace hardwood {

/// How far the adversary can move the value of one feature: the ball, seen from one axis.
///
/// The value x may become anything in the closed interval [lowest(x), highest(x)], or any whole
/// number in it if `whole` (and x may always stay). These two functions are the definition of the
/// ball; training, attack and proof all call them. The valid range [low, high] limits the
/// adversary, it does not push a row that already lies outside of it. A missing value (NaN) has NaN
/// ends: the adversary does not move it.
///
/// Both ends are non-decreasing in x, so a column sorted by x is sorted by its ends too, as long as
/// no share is above 1. For x > 0 the lower end is x - share * x: to the next double, x grows by
/// one spacing u, and the rounded product by less than u plus its own spacing, thus by at most u,
/// which is a multiple of that spacing. For x < 0 and the upper end it is the same mirrored; the
/// other two products only push outwards. Rounding a sum, ceil, floor, min and max keep the order.
/// A share above 1 moves a value past zero: 3 may then sink deeper than 2.
///
/// Categories that were put in an order are their ranks, 0, 1, ...; what one can become lies
/// between two ranks, which `ranks` lists. Their ends need not keep the order of the values.
struct Reach {
  double down;  ///< largest step down, >= 0
  double up;    ///< largest step up, >= 0
  double low;   ///< smallest value the adversary may choose
  double high;  ///< largest value the adversary may choose

  double down_share = 0;  ///< step down as a share of |x|, on top of `down`
  double up_share = 0;    ///< step up as a share of |x|, on top of `up`
  bool whole = false;     ///< only whole numbers can be chosen

  /// Of categories in an order: the least rank that rank 0 can become, the largest, those of 1, ...
  std::span<const double> ranks = {};

  double step_down(double x) const { return down + share_of(down_share, x); }
  double step_up(double x) const { return up + share_of(up_share, x); }

  double lowest(double x) const {
    if (!ranks.empty()) return end_of_rank(x, 0);
    const double end = std::max(x - step_down(x), low);
    return std::min(x, whole ? std::ceil(end) : end);
  }
  double highest(double x) const {
    if (!ranks.empty()) return end_of_rank(x, 1);
    const double end = std::min(x + step_up(x), high);
    return std::max(x, whole ? std::floor(end) : end);
  }

  /// The same range, and nobody moves.
  Reach still() const { return {0, 0, low, high, 0, 0, whole}; }

 private:
  /// A share of zero is zero, also an infinite one.
  static double share_of(double share, double x) { return x == 0 ? 0 : share * std::abs(x); }

  double end_of_rank(double x, std::size_t side) const {
    return std::isnan(x) ? x : ranks[2 * static_cast<std::size_t>(x) + side];
  }
};

}  // namespace hardwood
