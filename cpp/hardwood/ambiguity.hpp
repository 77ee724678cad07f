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
bool sure_left(const Reach& reach, double x, X threshold) {
  return goes_left(static_cast<X>(reach.highest(x)), threshold);
}

template <class X>
bool sure_right(const Reach& reach, double x, X threshold) {
  return !goes_left(static_cast<X>(reach.lowest(x)), threshold);
}

}  // namespace hardwood
