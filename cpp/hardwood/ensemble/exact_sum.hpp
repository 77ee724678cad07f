#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hardwood/parallel.hpp"
#include "hardwood/part.hpp"

namespace hardwood::ensemble {

/// Brings terms to multiples of a power of two, so that doubles add them up without any rounding:
/// the sum depends on neither order nor threads, and a row of weight 2 is two rows.
class ExactSum {
 public:
  /// `total`: about what the terms add up to, signs left aside; up to 64 times as much is exact.
  explicit ExactSum(double total = 1)
      : shift_(std::ldexp(1.5, std::ilogb(total > 0 ? total : 1.0) + 7)),
        unit_(std::ldexp(shift_ / 1.5, -52)) {}

  /// x to the nearest multiple: adding the large number cuts off what is smaller.
  double term(double x) const { return (x + shift_) - shift_; }
  double term(double weight, double x) const { return term(weight * term(x)); }

  /// A sum of terms as a whole number, for those who hold other terms; and back.
  std::int64_t whole(double sum) const { return static_cast<std::int64_t>(sum / unit_); }
  double sum(std::int64_t whole) const { return static_cast<double>(whole) * unit_; }

 private:
  double shift_;
  double unit_;  // that terms are multiples of: the last place of the large number
};

/// About what `size(i)`, >= 0, add up to over the rows of all parts, the same whoever holds which
/// rows: in whole steps, so many that the largest number has 28 bits.
template <class Size>
double about_sum(std::size_t n_rows, int n_threads, const Part& part, Size&& size) {
  constexpr std::size_t kBlock = 1 << 12;
  std::vector<double> largest(n_rows / kBlock + 1);
  parallel_blocks(n_rows, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    double& most = largest[begin / kBlock];
    for (std::size_t i = begin; i < end; ++i) most = std::max(most, size(i));
  });
  double most[] = {std::ranges::max(largest)};
  part.max(most);
  if (!(most[0] > 0) || !std::isfinite(most[0])) return 0;
  const double steps = std::ldexp(1.0, 27 - std::ilogb(most[0]));
  std::vector<std::int64_t> sums(largest.size());
  parallel_blocks(n_rows, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    std::int64_t& sum = sums[begin / kBlock];
    for (std::size_t i = begin; i < end; ++i) sum += static_cast<std::int64_t>(size(i) * steps);
  });
  std::int64_t sum[] = {std::accumulate(sums.begin(), sums.end(), std::int64_t{0})};
  part.sum(sum);
  return static_cast<double>(sum[0]) / steps;
}

}  // namespace hardwood::ensemble
