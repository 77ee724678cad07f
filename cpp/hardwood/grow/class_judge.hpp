#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "hardwood/grow/class_nodes.hpp"
#include "hardwood/grow/criterion.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// A node as the searches of its columns or bins see it.
struct ClassSearched {
  std::span<const double> total;  ///< class weights
  std::size_t n_rows;
  double value_low, value_high;  ///< bounds that monotonicity puts on the share of class 1

  template <class Node>
  explicit ClassSearched(const Node& node)
      : total(node.total.weights),
        n_rows(node.n_rows()),
        value_low(node.value_low),
        value_high(node.value_high) {}
};

/// Decides whether a split on one feature of a node is the best so far; columns and bins ask the
/// same judge, threshold by threshold.
template <class Criterion>
class ClassJudge {
 public:
  ClassJudge(const ClassSearched& node, const ClassTree& tree, Feature feature, int monotonic)
      : node_(node),
        rules_(tree.rules()),
        min_weight_leaf_(tree.min_weight_leaf()),
        feature_(feature),
        monotonic_(monotonic),
        ordered_(monotonic != 0 || std::isfinite(node.value_low) || std::isfinite(node.value_high)),
        all_(sum_of(node.total)),
        criterion_(node.total) {}

  bool enough_rows(std::size_t n_left) const {
    return n_left >= rules_.min_samples_leaf && node_.n_rows - n_left >= rules_.min_samples_leaf;
  }

  /// What a gain must exceed; of equal gains, the earlier feature's wins.
  double bar(const Split& best) const {
    if (best.feature == kLeaf) return rules_.min_split_gain;
    return feature_ < best.feature ? std::nextafter(best.gain, 0.0) : best.gain;
  }

  /// Whether this split beats the best one; then its feature, gain, sums and side of missing values
  /// become the best one's, and the caller adds where the threshold is. `missing_left` is null
  /// where the node has no missing values to learn from: they will follow the heavier side.
  template <class Weights, class BestSplit>
  bool accepts(const Weights& sure, const Weights& plain, const Weights& possible,
               const bool* missing_left, BestSplit& best) const {
    const double least = bar(best);
    const double gain = criterion_.robust_gain(sure, plain, possible, least);
    if (!(gain > least)) return false;
    const double left = sum_of(plain), right = all_ - left;
    if (std::min(left, right) < min_weight_leaf_) return false;
    if (ordered_ && !keeps_order(plain[1] / left, (node_.total[1] - plain[1]) / right)) {
      return false;
    }
    best.feature = feature_;
    best.missing_left = missing_left ? *missing_left : left >= right;
    best.gain = gain;
    best.left.weights.assign(plain.begin(), plain.end());
    return true;
  }

 private:
  static double sum_of(std::span<const double> weights) {
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  }

  bool keeps_order(double left_share, double right_share) const {
    const auto inside = [&](double share) {
      return node_.value_low <= share && share <= node_.value_high;
    };
    return inside(left_share) && inside(right_share) &&
           monotonic_ * (right_share - left_share) >= 0;
  }

  const ClassSearched& node_;
  const ClassTreeRules& rules_;
  double min_weight_leaf_;
  Feature feature_;
  int monotonic_;
  bool ordered_;
  double all_;
  Criterion criterion_;
};

/// Call `body.template operator()<Criterion>()` with the criterion that the rules ask for.
template <class Body>
void with_criterion(const ClassTreeRules& rules, std::size_t n_classes, Body&& body) {
  const auto with = [&]<class Gain>() {
    if (n_classes > 2) return body.template operator()<ManyClasses<Gain>>();
    if (rules.inner == Inner::kExact) return body.template operator()<TwoClasses<Gain>>();
    return body.template operator()<TwoClassesPaper<Gain>>();
  };
  rules.impurity == Impurity::kEntropy ? with.template operator()<Entropy>()
                                       : with.template operator()<Gini>();
}

}  // namespace hardwood::grow
