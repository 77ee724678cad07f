#pragma once

#include <cmath>

namespace hardwood::ensemble {

/// Brings terms to multiples of a power of two, so that doubles add them up without any rounding:
/// the sum depends on neither order nor threads, and a row of weight 2 is two rows.
class ExactSum {
 public:
  /// `total`: about what the terms add up to, signs left aside; up to 64 times as much is exact.
  explicit ExactSum(double total = 1)
      : shift_(std::ldexp(1.5, std::ilogb(total > 0 ? total : 1.0) + 7)) {}

  /// x to the nearest multiple: adding the large number cuts off what is smaller.
  double term(double x) const { return (x + shift_) - shift_; }
  double term(double weight, double x) const { return term(weight * term(x)); }

 private:
  double shift_;
};

}  // namespace hardwood::ensemble
