#include "hardwood/grow/class_split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardwood/ambiguity.hpp"
#include "hardwood/box.hpp"

namespace hardwood::grow {
namespace {

using X = float;  // the precision in which our own models compare

/// The three weights of the criterion's contract, kept up to date while the threshold rises.
template <class Weights>
class Sides {
 public:
  Sides(std::span<const ClassEntry> present, const Reach& reach, const GridWeights& weight,
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
  void add(Weights& to, const ClassEntry& entry) { to[entry.label] += weight_.of(entry.row); }

  std::span<const ClassEntry> present_;
  const Reach& reach_;
  const GridWeights& weight_;
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

}  // namespace

template <ClassCriterion C>
void ClassSearch::search_with(std::span<const ClassEntry> column, Feature feature, int monotonic,
                              const ClassSearched& node, typename C::Weights zero,
                              ClassSplit& best) const {
  using Weights = typename C::Weights;
  const auto first_missing = std::ranges::partition_point(
      column, [](const ClassEntry& entry) { return !std::isnan(entry.x); });
  const std::span<const ClassEntry> present(column.begin(), first_missing);
  const std::span<const ClassEntry> missing(first_missing, column.end());
  Weights missing_weights = zero;
  for (const ClassEntry& entry : missing) missing_weights[entry.label] += weights_.of(entry.row);

  const ClassJudge<C> judge(node, tree_, feature, monotonic);
  const auto consider = [&](X threshold, bool missing_left, const Weights& sure,
                            const Weights& plain, const Weights& possible, std::size_t n_left) {
    if (!judge.enough_rows(n_left)) return;
    const bool* side = missing.empty() ? nullptr : &missing_left;
    if (!judge.accepts(sure, plain, possible, side, best)) return;
    best.threshold = threshold;
    best.n_left = n_left;
  };

  const Reach& reach = reach_[static_cast<std::size_t>(feature)];
  Sides<Weights> sides(present, reach, weights_, zero);
  const auto with_missing = [&](Weights weights) {
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] += missing_weights[k];
    return weights;
  };
  const auto visit = [&](X threshold) {
    sides.move_to(threshold);
    if (sides.n_plain == 0 || sides.n_plain == present.size()) return;
    consider(threshold, false, sides.sure, sides.plain, sides.possible, sides.n_plain);
    if (!missing.empty()) {
      consider(threshold, true, with_missing(sides.sure), with_missing(sides.plain),
               with_missing(sides.possible), sides.n_plain + missing.size());
    }
  };
  if (!missing.empty() && !present.empty()) {
    // Missing against present: no finite value, attacked or not, lies left of the lowest float.
    consider(std::numeric_limits<X>::lowest(), true, missing_weights, missing_weights,
             missing_weights, missing.size());
  }
  if (tree_.rules().candidates == Candidates::kMidpoints) {
    visit_midpoints(present, visit);
  } else {
    visit_intervals(present, reach, visit);
  }
}

void ClassSearch::search(std::span<const ClassEntry> column, Feature feature, int monotonic,
                         const ClassSearched& node, ClassSplit& best) const {
  with_criterion(tree_.rules(), node.total.size(), [&]<class C>() {
    typename C::Weights zero{};
    if constexpr (requires { zero.resize(0); }) zero.resize(node.total.size());
    search_with<C>(column, feature, monotonic, node, zero, best);
  });
}

}  // namespace hardwood::grow
