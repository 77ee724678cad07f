#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hardwood::verify {

enum class Norm : std::uint8_t { kInf, kOne, kTwo, kZero };

/// The smallest step whose ball, in floating point, contains z: x + step >= z and x - step <= z.
inline double step_between(double x, double z) {
  double step = std::abs(z - x);
  while (z > x ? x + step < z : x - step > z) {
    step = std::nextafter(step, std::numeric_limits<double>::infinity());
  }
  return step;
}

/// What one step adds to the total of a norm. Totals are added up (the maximum is taken, in the
/// maximum norm) in the order of features, so equal moves have equal lengths, to the last bit.
inline double cost_of(Norm norm, double step) {
  if (norm == Norm::kTwo) return step * step;
  if (norm == Norm::kZero) return 1;
  return step;
}

/// Steps summed up in one norm; `total` grows with every step, so a search may stop early.
struct Length {
  Norm norm;
  double total = 0;

  void add(double step) {
    total = norm == Norm::kInf ? std::max(total, step) : total + cost_of(norm, step);
  }
  double value() const { return norm == Norm::kTwo ? std::sqrt(total) : total; }
};

}  // namespace hardwood::verify
