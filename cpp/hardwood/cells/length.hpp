#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hardwood::cells {

enum class Norm : std::uint8_t { kInf, kOne, kTwo, kZero };

/// The distance from x to z, rounded up until the ball of that size contains z in floating point:
/// x + step >= z or x - step <= z.
inline double step_between(double x, double z) {
  double step = std::abs(z - x);
  while (z > x ? x + step < z : x - step > z) {
    step = std::nextafter(step, std::numeric_limits<double>::infinity());
  }
  return step;
}

/// In what costs up to that of a length are counted: a power of two, so nothing is rounded, and so
/// near that squares of what matters neither overflow nor vanish.
inline double unit_of(double length) {
  return length > 0 && std::isfinite(length) ? std::ldexp(1.0, std::ilogb(length)) : 1.0;
}

/// What one step adds to the total of a norm that sums: steps, squares, or one each.
inline double cost_of(Norm norm, double step, double unit) {
  if (norm == Norm::kZero) return 1;
  const double counted = step / unit;
  return norm == Norm::kTwo ? counted * counted : counted;
}

/// The length of steps that cost so much together.
inline double length_of(Norm norm, double cost, double unit) {
  if (norm == Norm::kZero) return cost;
  return unit * (norm == Norm::kTwo ? std::sqrt(cost) : cost);
}

/// Steps summed up in one norm; `total` grows with every step, so a search may stop early.
struct Length {
  Norm norm;
  double total = 0;

  void add(double step) {
    switch (norm) {
      case Norm::kInf:
        total = std::max(total, step);
        break;
      case Norm::kOne:
        total += step;
        break;
      case Norm::kTwo:
        total = std::hypot(total, step);  // squares of tiny steps would be 0
        break;
      case Norm::kZero:
        total += 1;
        break;
    }
  }
};

}  // namespace hardwood::cells
