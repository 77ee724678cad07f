#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hardwood/ensemble/exponential.hpp"
#include "hardwood/simd.hpp"

namespace hardwood::ensemble {

/// The losses that certified boosting knows: convex in the margin, so that the worst margin of a
/// row is one end of the range that the adversary can reach. The formulas are those of
/// `ensemble/loss.py`; each has the loss of a row and its two derivatives by the margin.
enum class MarginLoss : std::uint8_t { kLogistic, kSquared, kHuber, kPoisson, kQuantile };

struct Slope {
  float gradient, hessian;
};

/// log(x) for x >= 1 to seven digits, the same bits on every machine, and plain enough for the
/// compiler to take several at a time.
[[gnu::always_inline]] inline float logarithm(float x) {
  // x = 2^n m with m from sqrt(1/2) to sqrt(2); log m = 2 artanh((m - 1) / (m + 1)).
  constexpr std::uint32_t kOne = 0x3f800000u, kRoot = 0x3f3504f3u;
  const std::uint32_t shifted = std::bit_cast<std::uint32_t>(x) + (kOne - kRoot);
  const auto n = static_cast<float>(static_cast<std::int32_t>(shifted >> 23) - 127);
  const float m = std::bit_cast<float>((shifted & 0x007fffffu) + kRoot);
  const float s = (m - 1.0f) / (m + 1.0f), square = s * s;
  float sum = 1.0f / 9;
  sum = sum * square + 1.0f / 7;
  sum = sum * square + 1.0f / 5;
  sum = sum * square + 1.0f / 3;
  return n * 0.693147181f + 2.0f * s * (sum * square + 1.0f);
}

/// y is 0 or 1.
struct Logistic {
  static constexpr bool kSided = true;  ///< the worst end of a row depends on y alone
  [[gnu::always_inline]] double loss(float y, float margin) const {
    const float against = y > 0 ? -margin : margin;
    const float small = logarithm(1.0f + exponential(against));
    return double{against > 30.0f ? against : small};
  }
  [[gnu::always_inline]] Slope slope(float y, float margin) const {
    const float probability = 1.0f / (1.0f + exponential(-margin));
    const float product = probability * (1.0f - probability);
    return {probability - y, product > 1e-16f ? product : 1e-16f};
  }
  /// Both, with one exponential.
  [[gnu::always_inline]] Slope slope(float y, float margin, double& loss) const {
    const float away = std::abs(margin), e = exponential(-away), rest = 1.0f + e;
    const float likely = 1.0f / rest, unlikely = e * likely;
    const bool wrong = (margin > 0) != (y > 0);  // at 0 both sides are the same
    loss = double{(wrong ? away : 0.0f) + logarithm(rest)};
    const float miss = wrong ? likely : unlikely, product = likely * unlikely;
    return {y > 0 ? -miss : miss, product > 1e-16f ? product : 1e-16f};
  }
};

struct Squared {
  static constexpr bool kSided = false;
  double loss(float y, float margin) const {
    const double error = double{margin} - y;
    return error * error / 2;
  }
  Slope slope(float y, float margin) const { return {margin - y, 1.0f}; }
};

struct Huber {
  static constexpr bool kSided = false;
  float bend;  ///< where it turns from quadratic to linear
  double loss(float y, float margin) const {
    const double error = (double{margin} - y) / bend;
    return double{bend} * bend * (std::sqrt(1 + error * error) - 1);
  }
  Slope slope(float y, float margin) const {
    const float error = margin - y, square = bend * bend;
    const float root = std::sqrt(1.0f + error * error / square);
    return {error / root, std::max(square / ((square + error * error) * root), 1e-16f)};
  }
};

struct Poisson {
  static constexpr bool kSided = false;
  double loss(float y, float margin) const { return std::exp(double{margin}) - double{y} * margin; }
  Slope slope(float y, float margin) const {
    return {exponential(margin) - y, exponential(margin + 0.7f)};
  }
};

struct Quantile {
  static constexpr bool kSided = false;
  float share;
  double loss(float y, float margin) const {
    const double residual = double{y} - margin;
    return std::max(share * residual, (share - 1) * residual);
  }
  Slope slope(float y, float margin) const { return {margin >= y ? 1.0f - share : -share, 1.0f}; }
};

/// What is asked about rows: derivatives by the margin, losses, or both.
enum class Asked : std::uint8_t { kSlopes, kLosses, kBoth };

/// Loss and derivatives of some rows, as far as they are asked for.
struct Looks {
  const float* y;
  const float* margin;
  double* loss;
  float* gradient;
  float* hessian;
};

/// Fill in what `y` and `margin` lead to. The same bytes with every instruction set.
template <Asked kAsked, class Loss>
[[gnu::always_inline]] inline void look_at_rows(const Loss& of, std::size_t n, const Looks& rows) {
  constexpr bool kLoss = kAsked != Asked::kSlopes;
  const float* __restrict y = rows.y;
  const float* __restrict margin = rows.margin;
  [[maybe_unused]] double* __restrict loss = rows.loss;
  [[maybe_unused]] float* __restrict gradient = rows.gradient;
  [[maybe_unused]] float* __restrict hessian = rows.hessian;
  for (std::size_t i = 0; i < n; ++i) {
    Slope slope;
    if constexpr (kLoss && Loss::kSided) {
      slope = of.slope(y[i], margin[i], loss[i]);
    } else {
      if constexpr (kAsked != Asked::kLosses) slope = of.slope(y[i], margin[i]);
      if constexpr (kLoss) loss[i] = of.loss(y[i], margin[i]);
    }
    if constexpr (kAsked != Asked::kLosses) {
      gradient[i] = slope.gradient;
      hessian[i] = slope.hessian;
    }
  }
}

#if HARDWOOD_X86
template <Asked kAsked, class Loss>
[[gnu::target("avx2")]] void look_avx2(const Loss& of, std::size_t n, const Looks& rows) {
  look_at_rows<kAsked>(of, n, rows);
}
#endif
template <Asked kAsked, class Loss>
void look(const Loss& of, std::size_t n, const Looks& rows) {
#if HARDWOOD_X86
  if (has_avx2()) return look_avx2<kAsked>(of, n, rows);
#endif
  look_at_rows<kAsked>(of, n, rows);
}

/// Call `body(loss)` with the loss that is meant; `parameter` is its bend or its share.
template <class Body>
auto with_loss(MarginLoss kind, float parameter, Body&& body) {
  switch (kind) {
    case MarginLoss::kSquared:
      return body(Squared{});
    case MarginLoss::kHuber:
      return body(Huber{parameter});
    case MarginLoss::kPoisson:
      return body(Poisson{});
    case MarginLoss::kQuantile:
      return body(Quantile{parameter});
    default:
      return body(Logistic{});
  }
}

}  // namespace hardwood::ensemble
