#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

namespace hardwood::model {

/// The C library's logf. XGBoost's base margins are computed with it, and numpy's own logarithm
/// differs in the last bit.
inline float log_float32(float x) { return std::log(x); }

/// How a margin becomes what people see: a mean, a share, a probability.
enum class LinkKind : std::uint8_t {
  kIdentity,
  kLogistic,
  kSoftmax,
  kShare,  ///< of the sum over all outputs
  kExp,
  kSquare,     ///< with the margin's sign
  kSoftplus,   ///< log(1 + exp(margin))
  kOneVsRest,  ///< the logistic function of each output
  kHinge,      ///< 1 where the margin is positive, else 0
};

/// A link with its numbers: the margin is divided by `divisor`, then multiplied by `slope`.
///
/// The arithmetic is that of the libraries whose models end with it: XGBoost's in float32,
/// LightGBM's and scikit-learn's in double. None of them falls when a margin grows.
struct Link {
  LinkKind kind = LinkKind::kIdentity;
  double divisor = 1;
  double slope = 1;
  bool float32 = false;

  /// The mean of one output alone; softmax and shares need all of them.
  double of(double margin) const {
    return float32 ? static_cast<double>(of_scaled(static_cast<float>(scaled(margin))))
                   : of_scaled(scaled(margin));
  }

  /// The means of all outputs, in place.
  void apply(std::span<double> outputs) const {
    if (kind == LinkKind::kSoftmax) {
      const double most = scaled(*std::ranges::max_element(outputs));
      double sum = 0;
      for (double& output : outputs) sum += output = exponential(scaled(output), most);
      for (double& output : outputs) output = share(output, sum);
    } else if (kind == LinkKind::kShare) {
      double sum = 0;
      for (const double output : outputs) sum += output;
      for (double& output : outputs) output /= sum;
    } else {
      for (double& output : outputs) output = of(output);
    }
  }

  /// The exponential of a margin relative to the largest one, and its share of the sum of all.
  double exponential(double margin, double most) const {
    return float32 ? static_cast<double>(std::exp(static_cast<float>(margin - most)))
                   : std::exp(margin - most);
  }
  double share(double one, double sum) const {
    return float32 ? static_cast<double>(static_cast<float>(one) / static_cast<float>(sum))
                   : one / sum;
  }
  double scaled(double margin) const { return slope * (margin / divisor); }

 private:
  template <class T>
  T of_scaled(T x) const {
    switch (kind) {
      case LinkKind::kLogistic:
      case LinkKind::kOneVsRest:
        if constexpr (std::is_same_v<T, float>) {
          return 1.0f / (std::exp(std::min(-x, 88.7f)) + 1.0f + 1e-16f);
        } else {
          return 1.0 / (1.0 + std::exp(-x));
        }
      case LinkKind::kExp:
        return std::exp(x);
      case LinkKind::kSquare:
        return std::copysign(x * x, x);
      case LinkKind::kSoftplus:
        return std::log1p(std::exp(x));
      case LinkKind::kHinge:
        return x > T{0} ? T{1} : T{0};
      default:
        return x;
    }
  }
};

}  // namespace hardwood::model
