#include "hardwood/grow/class_split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hardwood/ambiguity.hpp"
#include "hardwood/box.hpp"
#include "hardwood/grow/criterion.hpp"

namespace hardwood::grow {
namespace {

using X = float;  // the precision in which our own models compare

/// The three weights of the criterion's contract, kept up to date while the threshold rises.
template <class Weights>
class Window {
 public:
  Window(std::span<const ClassEntry> present, const Reach& reach, std::span<const double> weight,
         const Weights& zero)
      : sure(zero),
        plain(zero),
        possible(zero),
        present_(present),
        reach_(reach),
        weight_(weight) {}

  void move_to(X threshold) {
    while (n_possible_ < present_.size() &&
           !sure_right(reach_, present_[n_possible_].x, threshold)) {
      add(possible, present_[n_possible_++]);
    }
    while (n_plain < present_.size() && goes_left(static_cast<X>(present_[n_plain].x), threshold)) {
      add(plain, present_[n_plain++]);
    }
    while (n_sure_ < present_.size() && sure_left(reach_, present_[n_sure_].x, threshold)) {
      add(sure, present_[n_sure_++]);
    }
  }

  Weights sure, plain, possible;
  std::size_t n_plain = 0;

 private:
  void add(Weights& to, const ClassEntry& entry) {
    to[entry.label] += weight_.empty() ? 1.0 : weight_[entry.row];
  }

  std::span<const ClassEntry> present_;
  const Reach& reach_;
  std::span<const double> weight_;
  std::size_t n_sure_ = 0, n_possible_ = 0;
};

template <class Visit>
void visit_midpoints(std::span<const ClassEntry> present, Visit&& visit) {
  for (std::size_t i = 1; i < present.size(); ++i) {
    const auto below = static_cast<X>(present[i - 1].x), above = static_cast<X>(present[i].x);
    if (below < above) visit(between(below, above));
  }
}

/// Between two neighbouring ends of balls the robust gain does not change; it can only be largest
/// where the end below is an upper one (a row just became sure_left) and the end above a lower one
/// (the next row would stop being sure_right).
template <class Visit>
void visit_intervals(std::span<const ClassEntry> present, const Reach& reach, Visit&& visit) {
  const auto lowest = [&](std::size_t i) { return static_cast<X>(reach.lowest(present[i].x)); };
  std::size_t next_low = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    const auto below = static_cast<X>(reach.highest(present[i].x));
    while (next_low < present.size() && lowest(next_low) <= below) ++next_low;
    if (next_low == present.size()) return;
    const X above = lowest(next_low);
    const bool upper_end_between =
        i + 1 < present.size() && static_cast<X>(reach.highest(present[i + 1].x)) < above;
    if (!upper_end_between) visit(between(below, above));
  }
}

bool keeps_order(int monotonic, double left_share, double right_share, const SplitNode& node) {
  const auto inside = [&](double share) {
    return node.value_low <= share && share <= node.value_high;
  };
  return inside(left_share) && inside(right_share) && monotonic * (right_share - left_share) >= 0;
}

double sum_of(std::span<const double> weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

double share_of_class_1(std::span<const double> weights) { return weights[1] / sum_of(weights); }

template <ClassCriterion Criterion>
void search(std::span<const ClassEntry> column, Feature feature, const Reach& reach, int monotonic,
            const SplitNode& node, const SplitRules& rules, typename Criterion::Weights zero,
            ClassSplit& best) {
  using Weights = typename Criterion::Weights;
  const auto first_missing = std::ranges::partition_point(
      column, [](const ClassEntry& entry) { return !std::isnan(entry.x); });
  const std::span<const ClassEntry> present(column.begin(), first_missing);
  const std::span<const ClassEntry> missing(first_missing, column.end());
  Weights missing_weights = zero;
  for (const ClassEntry& entry : missing) {
    missing_weights[entry.label] += node.weight.empty() ? 1.0 : node.weight[entry.row];
  }
  const Criterion criterion(node.total);
  const bool ordered =
      monotonic != 0 || std::isfinite(node.value_low) || std::isfinite(node.value_high);

  const auto judge = [&](X threshold, bool missing_left, const Weights& sure, const Weights& plain,
                         const Weights& possible, std::size_t n_left) {
    if (n_left < rules.min_samples_leaf || column.size() - n_left < rules.min_samples_leaf) return;
    const double bar = best.feature == kLeaf ? rules.min_split_gain : best.gain;
    const double gain = criterion.robust_gain(sure, plain, possible, bar);
    if (!(gain > bar)) return;
    const double left_weight = sum_of(plain), right_weight = sum_of(node.total) - left_weight;
    if (std::min(left_weight, right_weight) < node.min_weight_leaf) return;
    if (ordered) {
      Weights right(plain);
      for (std::size_t k = 0; k < right.size(); ++k) right[k] = node.total[k] - plain[k];
      if (!keeps_order(monotonic, share_of_class_1(plain), share_of_class_1(right), node)) return;
    }
    best.feature = feature;
    best.threshold = threshold;
    // Without missing rows to learn from, they will follow the heavier side.
    best.missing_left = missing.empty() ? left_weight >= right_weight : missing_left;
    best.gain = gain;
    best.n_left = n_left;
    best.left_weights.assign(plain.begin(), plain.end());
  };

  Window<Weights> window(present, reach, node.weight, zero);
  const auto with_missing = [&](Weights weights) {
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] += missing_weights[k];
    return weights;
  };
  const auto visit = [&](X threshold) {
    window.move_to(threshold);
    if (window.n_plain == 0 || window.n_plain == present.size()) return;
    judge(threshold, false, window.sure, window.plain, window.possible, window.n_plain);
    if (!missing.empty()) {
      judge(threshold, true, with_missing(window.sure), with_missing(window.plain),
            with_missing(window.possible), window.n_plain + missing.size());
    }
  };
  if (!missing.empty() && !present.empty()) {
    // Missing against present: no finite value, attacked or not, lies left of the lowest float.
    judge(std::numeric_limits<X>::lowest(), true, missing_weights, missing_weights, missing_weights,
          missing.size());
  }
  if (rules.candidates == Candidates::kMidpoints) {
    visit_midpoints(present, visit);
  } else {
    visit_intervals(present, reach, visit);
  }
}

template <class Gain>
void search_with(std::span<const ClassEntry> column, Feature feature, const Reach& reach,
                 int monotonic, const SplitNode& node, const SplitRules& rules, ClassSplit& best) {
  if (node.total.size() > 2) {
    search<ManyClasses<Gain>>(column, feature, reach, monotonic, node, rules,
                              std::vector<double>(node.total.size()), best);
  } else if (rules.inner == Inner::kExact) {
    search<TwoClasses<Gain>>(column, feature, reach, monotonic, node, rules, {0, 0}, best);
  } else {
    search<TwoClassesPaper<Gain>>(column, feature, reach, monotonic, node, rules, {0, 0}, best);
  }
}

}  // namespace

void search_column(std::span<const ClassEntry> column, Feature feature, const Reach& reach,
                   int monotonic, const SplitNode& node, const SplitRules& rules,
                   ClassSplit& best) {
  if (rules.impurity == Impurity::kEntropy) {
    search_with<Entropy>(column, feature, reach, monotonic, node, rules, best);
  } else {
    search_with<Gini>(column, feature, reach, monotonic, node, rules, best);
  }
}

}  // namespace hardwood::grow
