#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "hardwood/grow/rules.hpp"

namespace hardwood::grow {

/// First and second derivatives of the loss, added up over rows: the paper's sum of g and of h.
struct Sums {
  double g = 0, h = 0;

  Sums& operator+=(const Sums& other) {
    g += other.g;
    h += other.h;
    return *this;
  }
  friend Sums operator+(Sums a, const Sums& b) { return a += b; }
  friend Sums operator-(const Sums& a, const Sums& b) { return {a.g - b.g, a.h - b.h}; }
  friend Sums operator*(double share, const Sums& a) { return {share * a.g, share * a.h}; }
};

/// What a boosted tree must respect, and how its splits are judged.
struct NewtonRules : TreeRules {
  double reg_lambda = 1;
  double reg_alpha = 0;
  double min_child_weight = 1;
  double max_delta_step = 0;  ///< largest value of a leaf, either way; 0: no limit
  /// A split that gains no more is rounding noise: XGBoost's bound, with the factor 1/2, for
  /// gradients of about 1. Those of a loss have its unit.
  double least_gain = 5e-7;

  NewtonRules() {
    inner = Inner::kPaper;
    max_depth = 6;
  }
};

/// The rows of a node at one threshold, by what the adversary can do with them. Ambiguous rows are
/// told apart by where they go when nobody attacks. Missing values are sure on their side.
///
///     sure_left      ambiguous_left  ambiguous_right     sure_right
///   ─────────────┤ t-eps            t            t+eps ├──────────────
struct SplitSums {
  Sums sure_left, ambiguous_left, ambiguous_right, sure_right;

  Sums ambiguous() const { return ambiguous_left + ambiguous_right; }
  Sums left() const { return sure_left + ambiguous_left; }
  Sums right() const { return ambiguous_right + sure_right; }
};

/// An ambiguous row and its place in the order of g / h.
struct RankedRow {
  std::uint32_t rank;
  Sums sums;
};

/// How good a split of a boosted tree is under attack (Algorithm 2): pure functions of sums, made
/// for one node. The engines must agree with this file; where they are faster, they are faster at
/// the same answer.
///
/// A leaf holds the value w in [value_low, value_high] (the bounds of max_delta_step and of
/// monotone features) that maximises
///
///     -(2 G w + (H + reg_lambda) w^2 + 2 reg_alpha |w|)
///
/// and `score` is that maximum: G^2 / (H + reg_lambda) in the plain case. It is convex in (G, H),
/// which is all that the exact replies below rest on.
///
/// Both engines try features in order, thresholds upwards and missing values on the right first;
/// the first of equally good splits wins, a split needs a gain above `least_gain`. Where a node has
/// no missing values, missing ones go with the larger number of rows, left on ties.
class NewtonCriterion {
 public:
  static constexpr double kVoid = -std::numeric_limits<double>::infinity();

  NewtonCriterion(const Sums& total, const NewtonRules& rules,
                  double value_low = -std::numeric_limits<double>::infinity(),
                  double value_high = std::numeric_limits<double>::infinity())
      : rules_(rules),
        value_low_(rules.max_delta_step > 0 ? std::max(value_low, -rules.max_delta_step)
                                            : value_low),
        value_high_(rules.max_delta_step > 0 ? std::min(value_high, rules.max_delta_step)
                                             : value_high),
        score_(score(total)),
        slope_(soft(total.g, 2 * rules.reg_alpha) /
               std::max(total.h + 2 * rules.reg_lambda, kTiny)),
        even_low_(std::clamp(total.g - rules.reg_alpha, -rules.reg_alpha, rules.reg_alpha)),
        even_high_(std::clamp(total.g + rules.reg_alpha, -rules.reg_alpha, rules.reg_alpha)) {}

  /// The best value of a leaf; 0 if it is too light to be trusted, as a light root can be.
  double value(const Sums& leaf) const {
    return leaf.h < rules_.min_child_weight ? std::clamp(0.0, value_low_, value_high_) : best(leaf);
  }

  /// What splitting so gains when nobody attacks: the paper's S(I_L, I_R).
  double gain(const Sums& left, const Sums& right) const {
    return 0.5 * (score(left) + score(right) - score_) - rules_.min_split_gain;
  }

  /// A cheap no: whether the plain gain, which no robust gain exceeds, can be above `bar`. Bounds
  /// only lower scores, and the slack covers the rounding of both sides.
  bool can_exceed(double bar, const Sums& left, const Sums& right) const {
    const double a = left.h + rules_.reg_lambda, b = right.h + rules_.reg_lambda;
    const double g_left = soft(left.g, rules_.reg_alpha), g_right = soft(right.g, rules_.reg_alpha);
    const double wanted = 2 * (bar + rules_.min_split_gain) + score_;
    return (g_left * g_left * b + g_right * g_right * a) * (1 + 1e-12) > wanted * (a * b);
  }

  /// The same for the four cases and, if it is asked for, the two by sign of the residual.
  bool can_exceed(double bar, const SplitSums& split, const Sums* negative = nullptr) const {
    const Sums all = split.left() + split.right();
    const auto can = [&](const Sums& left) { return can_exceed(bar, left, all - left); };
    return can(split.left()) && can(split.sure_left) && can(all - split.sure_right) &&
           can(split.sure_left + split.ambiguous_right) &&
           (!negative || (can(split.sure_left + *negative) &&
                          can(split.sure_left + split.ambiguous() - *negative)));
  }

  bool too_light(const Sums& child) const { return child.h < rules_.min_child_weight; }

  /// Whether the values of the children keep a monotone feature's order: +1 rising, -1 falling.
  bool keeps_order(int monotonic, const Sums& left, const Sums& right) const {
    return monotonic * (best(right) - best(left)) >= 0;
  }

  /// inner="paper": the least of the four cases. A child that is too light in any of them voids the
  /// split; sums of h only grow with the rows, so the sure rows alone decide that.
  double paper_gain(const SplitSums& split) const {
    if (too_light(split.sure_left) || too_light(split.sure_right)) return kVoid;
    const Sums ambiguous = split.ambiguous();
    return std::min({gain(split.left(), split.right()),                    // nobody moves
                     gain(split.sure_left, split.sure_right + ambiguous),  // all to the right
                     gain(split.sure_left + ambiguous, split.sure_right),  // all to the left
                     gain(split.sure_left + split.ambiguous_right,         // all change sides
                          split.sure_right + split.ambiguous_left)});
  }

  /// The constant of a row that decides where the adversary wants it: r = g - m h.
  ///
  /// Without reg_alpha, m = G / (H + 2 lambda), and with A = H_L + lambda, B = H_R + lambda,
  /// C = A + B, T = G_L - m A, the scores of the children are G^2 / C + T^2 C / (A B). T is a sum
  /// of r over the rows on the left (and a constant): the adversary wants it near 0, where both
  /// children would hold the same value. With reg_alpha, G loses 2 reg_alpha in m, and the values
  /// are equal for T in [even_low, even_high]: a point, or the range where both values are 0.
  double residual(const Sums& row) const { return row.g - slope_ * row.h; }

  /// Straddle test: some reply, rows divided where needed, makes the children's values equal, and
  /// then the split gains nothing. `slack`: by how much it must straddle at least.
  bool can_void(const SplitSums& split, const Sums& negative, double slack = 0) const {
    const double sure = tilt(split.sure_left);
    const double low = sure + residual(negative);
    const double high = sure + residual(split.ambiguous() - negative);
    return low <= even_high_ - slack && high >= even_low_ + slack;
  }

  /// inner="exact" from sums: straddle test, then the four cases and two more by sign of the
  /// residual. `negative` are the sums over the ambiguous rows with a residual below 0. O(1).
  double sign_gain(const SplitSums& split, const Sums& negative) const {
    if (can_void(split, negative)) return kVoid;
    const Sums positive = split.ambiguous() - negative;
    return std::min({paper_gain(split),
                     gain(split.sure_left + negative, split.sure_right + positive),
                     gain(split.sure_left + positive, split.sure_right + negative)});
  }

  /// inner="exact" to the end: the adversary's true minimum, where it may divide one row between
  /// the sides. `ambiguous`: its rows, which change their order. O(k).
  ///
  /// Where the values of the children differ, moving a row left changes the scores at the rate
  /// (w_R - w_L) (2 g + h (w_L + w_R)): whether the adversary wants it left depends on g / h alone,
  /// so the rows on the left are the first ones in that order, or the last ones. The gain falls up
  /// to the best place of the border and rises after it, so the border is found by halving.
  double scan_gain(const SplitSums& split, const Sums& negative,
                   std::span<RankedRow> ambiguous) const {
    if (too_light(split.sure_left) || too_light(split.sure_right)) return kVoid;
    if (can_void(split, negative)) return kVoid;
    Sums left = split.sure_left, right = split.sure_right + split.ambiguous();
    // Not straddled, T lies on one side: above, the value on the left is the lower one.
    const bool first_go_left = tilt(split.left()) > even_high_;
    const auto sooner = [first_go_left](const RankedRow& a, const RankedRow& b) {
      return first_go_left ? a.rank < b.rank : a.rank > b.rank;
    };
    while (!ambiguous.empty()) {
      const std::size_t middle = ambiguous.size() / 2;
      std::nth_element(ambiguous.begin(), ambiguous.begin() + static_cast<std::ptrdiff_t>(middle),
                       ambiguous.end(), sooner);
      Sums before;
      for (const RankedRow& row : ambiguous.first(middle)) before += row.sums;
      const Sums row = ambiguous[middle].sums;
      if (rate(left + before, right - before, row) >= 0) {
        ambiguous = ambiguous.first(middle);
        continue;
      }
      const Sums moved = before + share_moved(left + before, right - before, row) * row;
      left += moved;
      right = right - moved;
      if (rate(left, right, row) >= 0) break;  // a part of the row, or no row more
      ambiguous = ambiguous.subspan(middle + 1);
    }
    return gain(left, right);
  }

 private:
  static constexpr double kTiny = std::numeric_limits<double>::min();

  static double soft(double g, double by) { return g > by ? g - by : g < -by ? g + by : 0.0; }

  double best(const Sums& leaf) const {
    const double weight = leaf.h + rules_.reg_lambda;
    const double value = weight > 0 ? -soft(leaf.g, rules_.reg_alpha) / weight : 0.0;
    return std::clamp(value, value_low_, value_high_);
  }

  bool bounded() const { return std::isfinite(value_low_) || std::isfinite(value_high_); }

  double score(const Sums& leaf) const {
    const double weight = leaf.h + rules_.reg_lambda;
    if (bounded()) {
      const double w = best(leaf);
      return -(2 * leaf.g * w + weight * w * w + 2 * rules_.reg_alpha * std::abs(w));
    }
    const double g = soft(leaf.g, rules_.reg_alpha);
    return weight > 0 ? g * g / weight : 0.0;
  }

  /// T of the rows on the left.
  double tilt(const Sums& left) const { return left.g - slope_ * (left.h + rules_.reg_lambda); }

  /// How fast the scores change when `row` moves left.
  double rate(const Sums& left, const Sums& right, const Sums& row) const {
    const double w_left = best(left), w_right = best(right);
    return (w_right - w_left) * (2 * row.g + row.h * (w_left + w_right));
  }

  /// The share of `row` that the adversary moves left, given that it moves some of it.
  double share_moved(const Sums& left, const Sums& right, const Sums& row) const {
    if (rate(left + row, right - row, row) <= 0) return 1;
    double enough = 0, too_much = 1;
    for (int step = 0; step < 50; ++step) {
      const double share = (enough + too_much) / 2;
      const Sums part = share * row;
      (rate(left + part, right - part, row) > 0 ? too_much : enough) = share;
    }
    return too_much;
  }

  NewtonRules rules_;
  double value_low_, value_high_;
  double score_;  // of the node itself
  double slope_;  // m, see residual
  double even_low_, even_high_;
};

}  // namespace hardwood::grow
