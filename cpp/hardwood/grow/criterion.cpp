#include "hardwood/grow/criterion.hpp"

#include <limits>

namespace hardwood::grow {
namespace {

using Weights = std::span<const double>;

/// The root of a non-increasing, piecewise linear function: it is evaluated at its sorted corners
/// only, and between the last positive and the first non-positive one it is a straight line.
template <class F>
double root_between(std::vector<double>& corners, F&& f) {
  std::sort(corners.begin(), corners.end());
  std::size_t low = 0, high = corners.size() - 1;
  if (f(corners[low]) <= 0) return corners[low];
  if (f(corners[high]) >= 0) return corners[high];
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (f(corners[middle]) > 0 ? low : high) = middle;
  }
  const double at_low = f(corners[low]), at_high = f(corners[high]);
  return corners[low] + (corners[high] - corners[low]) * (at_low / (at_low - at_high));
}

/// The shares t for which every class can have t of its weight on the left form an interval; the
/// adversary can void the split when it is not empty.
bool can_be_void(Weights sure, Weights possible, Weights total) {
  double low = 0, high = 1;
  for (std::size_t k = 0; k < total.size(); ++k) {
    if (!(total[k] > 0)) continue;
    low = std::max(low, sure[k] / total[k]);
    high = std::min(high, possible[k] / total[k]);
  }
  return low <= high;
}

/// Entropy's minimiser: n_k = clip(t N_k, sure_k, possible_k), t the share of all weight that goes
/// left, the root of sum_k n_k = t N.
std::vector<double> even_shares(Weights sure, Weights possible, Weights total) {
  std::vector<double> n(total.size()), corners;
  double all = 0;
  for (std::size_t k = 0; k < total.size(); ++k) {
    all += total[k];
    if (!(total[k] > 0)) continue;
    corners.push_back(sure[k] / total[k]);
    corners.push_back(possible[k] / total[k]);
  }
  const auto spread = [&](double share) {
    double sum = 0;
    for (std::size_t k = 0; k < n.size(); ++k) {
      n[k] = std::clamp(share * total[k], sure[k], possible[k]);
      sum += n[k];
    }
    return sum - share * all;
  };
  spread(root_between(corners, spread));
  return n;
}

/// Gini's minimiser among the moves that put `left` weight on the left: the box's point nearest to
/// left / N times the class weights, n_k = clip(left N_k / N + shift, sure_k, possible_k).
void nearest_shares(double left, Weights sure, Weights possible, Weights total,
                    std::vector<double>& n, std::vector<double>& corners) {
  const double share = left / std::accumulate(total.begin(), total.end(), 0.0);
  corners.clear();
  for (std::size_t k = 0; k < total.size(); ++k) {
    corners.push_back(share * total[k] - sure[k]);
    corners.push_back(share * total[k] - possible[k]);
  }
  const auto excess = [&](double drop) {
    double sum = 0;
    for (std::size_t k = 0; k < n.size(); ++k) {
      n[k] = std::clamp(share * total[k] - drop, sure[k], possible[k]);
      sum += n[k];
    }
    return sum - left;
  };
  excess(root_between(corners, excess));
}

}  // namespace

double Entropy::minimum(Weights sure, Weights possible, Weights total, double best) {
  if (can_be_void(sure, possible, total)) return 0;
  const std::vector<double> n = even_shares(sure, possible, total);
  if (ceiling(n, total) <= best) return best;
  return gain(n, total);
}

double Gini::minimum(Weights sure, Weights possible, Weights total, double best) {
  if (can_be_void(sure, possible, total)) return 0;
  // Entropy's answer is a move too, and nearly the worst one: it often settles the question.
  std::vector<double> n = even_shares(sure, possible, total);
  double least = gain(n, total);
  if (least <= best) return best;
  // The least gain for a given left weight is convex in that weight: golden section.
  std::vector<double> corners;
  const auto at = [&](double left) {
    nearest_shares(left, sure, possible, total, n, corners);
    const double value = gain(n, total);
    least = std::min(least, value);
    return value;
  };
  constexpr double kGolden = 0.6180339887498949;
  double low = std::accumulate(sure.begin(), sure.end(), 0.0);
  double high = std::accumulate(possible.begin(), possible.end(), 0.0);
  double inner_low = high - kGolden * (high - low), inner_high = low + kGolden * (high - low);
  double at_low = at(inner_low), at_high = at(inner_high);
  at(low);
  at(high);
  while (inner_low < inner_high && high - low > 1e-12 * high) {
    if (least <= best) return best;
    if (at_low <= at_high) {
      high = inner_high, inner_high = inner_low, at_high = at_low;
      inner_low = high - kGolden * (high - low), at_low = at(inner_low);
    } else {
      low = inner_low, inner_low = inner_high, at_low = at_high;
      inner_high = low + kGolden * (high - low), at_high = at(inner_high);
    }
  }
  return least;
}

}  // namespace hardwood::grow
