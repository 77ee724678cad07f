#pragma once

#include "hardwood/box.hpp"
#include "hardwood/threat.hpp"

namespace hardwood {

/// The ambiguity set of a threshold, stated once.
///
///     sure_left        ambiguous        sure_right
///   ─────────────┤ t-eps   t   t+eps ├──────────────
///
/// A row is sure on a side when every point of its ball is there. With x < t going left and a
/// closed ball, the rows between are t - eps <= x < t + eps: the set is half-open, and an
/// adversarial example lives exactly on its ends. Values are rounded to the model's precision
/// first, because that is what the model will compare.
template <class X>
struct BallEnds {
  X lowest = 0, highest = 0;

  BallEnds() = default;
  BallEnds(const Reach& reach, double x)
      : lowest(static_cast<X>(reach.lowest(x))), highest(static_cast<X>(reach.highest(x))) {}

  bool sure_left(X threshold) const { return goes_left(highest, threshold); }
  bool sure_right(X threshold) const { return !goes_left(lowest, threshold); }
};

template <class X>
bool sure_left(const Reach& reach, double x, X threshold) {
  return BallEnds<X>(reach, x).sure_left(threshold);
}

template <class X>
bool sure_right(const Reach& reach, double x, X threshold) {
  return BallEnds<X>(reach, x).sure_right(threshold);
}

}  // namespace hardwood
