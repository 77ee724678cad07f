#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <vector>

namespace hardwood::grow {

/// How good a split of classes is under attack.
///
/// Invariant of every criterion: it is made for one node from the class weights `total`, and asked
/// about a threshold by three vectors of class weights, class by class
///
///     sure <= plain <= possible <= total
///
/// `sure` are the sure_left rows, `possible` all rows that are not sure_right, `plain` the rows
/// that go left when nobody attacks. The adversary picks the left weights n anywhere in the box
/// sure <= n <= possible, and `robust_gain` is the least gain it can force: never above the plain
/// gain. An answer only has to be exact where it exceeds `best`; otherwise anything not above
/// `best` will do, which is how the costly formulas are skipped.
template <class C>
concept ClassCriterion =
    requires(const C criterion, const typename C::Weights& weights, double best) {
      { criterion.robust_gain(weights, weights, weights, best) } -> std::same_as<double>;
    };

/// Information gain in bits.
struct Entropy {
  /// n: left weights, total: the node's, both over the same classes.
  static double gain(std::span<const double> n, std::span<const double> total) {
    double left = 0, all = 0;
    for (std::size_t k = 0; k < n.size(); ++k) left += n[k], all += total[k];
    const double right = all - left;
    double sum = 0;  // of cell * log(cell * all / (side * class)): the mutual information
    for (std::size_t k = 0; k < n.size(); ++k) {
      const double rest = total[k] - n[k];
      if (n[k] > 0) sum += n[k] * std::log2(n[k] * all / (left * total[k]));
      if (rest > 0) sum += rest * std::log2(rest * all / (right * total[k]));
    }
    return std::max(sum / all, 0.0);
  }

  /// Never below the gain and without a logarithm: mutual information is at most chi squared.
  /// The slack covers the rounding of both formulas.
  static double ceiling(std::span<const double> n, std::span<const double> total) {
    double left = 0, all = 0;
    for (std::size_t k = 0; k < n.size(); ++k) left += n[k], all += total[k];
    const double share = left / all;
    if (!(share > 0 && share < 1)) return 0;
    double sum = 0;
    for (std::size_t k = 0; k < n.size(); ++k) {
      const double surplus = n[k] - share * total[k];
      if (total[k] > 0) sum += surplus * surplus / total[k];
    }
    return sum / (all * share * (1 - share)) * (1.000001 / std::numbers::ln2) + 1e-12;
  }

  static double minimum(std::span<const double> sure, std::span<const double> possible,
                        std::span<const double> total, double best);
};

/// Decrease of the Gini impurity 1 - sum of squared shares.
struct Gini {
  static double gain(std::span<const double> n, std::span<const double> total) {
    double left = 0, all = 0;
    for (std::size_t k = 0; k < n.size(); ++k) left += n[k], all += total[k];
    const double right = all - left;
    if (!(left > 0 && right > 0)) return 0;
    double sum = 0;  // surplus * all, so that whole counts give an exact zero
    for (std::size_t k = 0; k < n.size(); ++k) {
      const double surplus = n[k] * all - left * total[k];
      sum += surplus * surplus;
    }
    return sum / (all * all * left * right);
  }

  /// The same slack: the least gain over a box is found by another road than the gain at one of its
  /// points, and must not exceed what was ruled out by that point.
  static double ceiling(std::span<const double> n, std::span<const double> total) {
    return gain(n, total) * 1.000001 + 1e-12;
  }

  static double minimum(std::span<const double> sure, std::span<const double> possible,
                        std::span<const double> total, double best);
};

/// Two classes, exact: O(1) a threshold.
///
/// Both gains are convex in n and zero exactly on the line n0 / N0 = n1 / N1. If the box of the
/// adversary meets the line, it can void the split; otherwise the least gain is at the corner
/// nearest to the line, which is a move of whole rows.
template <class Impurity>
class TwoClasses {
 public:
  using Weights = std::array<double, 2>;

  explicit TwoClasses(std::span<const double> total) : total_{total[0], total[1]} {}

  double robust_gain(const Weights& sure, const Weights&, const Weights& possible,
                     double best) const {
    Weights n{sure[0], possible[1]};
    if (!(surplus(n) > 0)) {
      n = {possible[0], sure[1]};
      if (!(surplus(n) < 0)) return 0;
    }
    if (Impurity::ceiling(n, total_) <= best) return best;
    return Impurity::gain(n, total_);
  }

 private:
  double surplus(const Weights& n) const { return n[0] * total_[1] - n[1] * total_[0]; }

  Weights total_;
};

/// Two classes, Algorithm 3 of the paper to the letter: among whole rows, the move that brings
/// n0 / N0 and n1 / N1 closest, found by trying every number of rows of class 0. O(n) a threshold.
/// Rows count one each. The comparisons are those of the real numbers (both sides multiplied by
/// N0 N1), so ties are ties.
template <class Impurity>
class TwoClassesPaper {
 public:
  using Weights = std::array<double, 2>;

  explicit TwoClassesPaper(std::span<const double> total) : total_{total[0], total[1]} {}

  double robust_gain(const Weights& sure, const Weights&, const Weights& possible, double) const {
    const auto whole = [](double weight) { return static_cast<std::int64_t>(weight); };
    const std::int64_t n0_all = whole(total_[0]), n1_all = whole(total_[1]);
    const std::int64_t n0 = whole(sure[0]), n1 = whole(sure[1]);
    const std::int64_t free0 = whole(possible[0]) - n0, free1 = whole(possible[1]) - n1;
    const auto difference = [&](std::int64_t move0, std::int64_t move1) {
      return std::abs((move0 + n0) * n1_all - (move1 + n1) * n0_all);
    };
    std::int64_t best0 = 0, best1 = 0, least = difference(0, 0);
    for (std::int64_t move0 = 0; move0 <= free0; ++move0) {
      const std::int64_t scaled = n1_all * (n0 + move0);
      const std::int64_t floor = scaled / n0_all, ceil = floor + (scaled % n0_all != 0);
      for (const std::int64_t wanted : {ceil - n1, floor - n1}) {
        const std::int64_t move1 = std::max(std::min(wanted, free1), std::int64_t{0});
        if (difference(move0, move1) < least) {
          best0 = move0, best1 = move1, least = difference(move0, move1);
        }
      }
    }
    return Impurity::gain(
        Weights{sure[0] + static_cast<double>(best0), sure[1] + static_cast<double>(best1)},
        total_);
  }

 private:
  Weights total_;
};

/// Any number of classes, exact: O(K log K) where the minimum is needed, O(K) elsewhere.
template <class Impurity>
class ManyClasses {
 public:
  using Weights = std::vector<double>;

  explicit ManyClasses(std::span<const double> total) : total_(total.begin(), total.end()) {}

  double robust_gain(std::span<const double> sure, std::span<const double> plain,
                     std::span<const double> possible, double best) const {
    // Three things the adversary can do, cheap to judge, often settle it.
    for (const auto& n : {plain, sure, possible}) {
      if (Impurity::ceiling(n, total_) <= best) return best;
    }
    return Impurity::minimum(sure, possible, total_, best);
  }

 private:
  Weights total_;
};

}  // namespace hardwood::grow
