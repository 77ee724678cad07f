#pragma once

#include <cstdint>
#include <vector>

#include "hardwood/grow/bin_search.hpp"

namespace hardwood::grow {

/// Tries sets of categories. A candidate is what crossed so far, along an order, against the rest;
/// missing values go left, so both sides are tried on the left where the node has some.
template <class Stat>
class SetSearch {
 public:
  SetSearch(const FeatureBins<Stat>& bins, const SearchedNode& node, BinSplit& best)
      : bins_(bins),
        node_(node),
        best_(best),
        n_bins_(bins.window.n_bins),
        signs_(bins.below && bins.window.moves && node.rules.inner == Inner::kExact),
        moves_(bins.window.changes.any || bins.window.blank),
        walk_(bins.window.changes, n_bins_),
        all_(n_bins_),
        movers_(moves_ ? n_bins_ : 0) {
    const bool join = node.total.g >= 0;
    for (std::size_t bin = 0; bin < n_bins_; ++bin) {
      const GridSum above = Stat::sum(bins.cells[bin]);
      const GridSum below = bins.below ? Stat::sum(bins.below[bin]) : GridSum{};
      all_[bin] = above + below;
      present_ += all_[bin];
      if (!moves_) continue;
      MovableSums& part = movers_[bin];
      if (bins.movers != Movers::kBelow) part.sum += above;
      if (bins.movers != Movers::kAbove) part.sum += below;
      if (!signs_) continue;
      // Below, residuals are negative, but for exceptions; above, only exceptions have them.
      const GridSum except = bins.exceptions ? Stat::sum(bins.exceptions[bin]) : GridSum{};
      if (bins.movers != Movers::kAbove) part.negative += join ? below : below - except;
      if (bins.movers != Movers::kBelow && join) part.negative += except;
    }
    missing_ = bins.has_missing ? node.total - present_ : GridSum{};
    saw_missing_ = missing_.g != 0 || missing_.h != 0;
  }

  void run() {
    if (!can_win()) return;
    const Sums total = node_.sums(node_.total);
    const double mean = total.h > 0 ? total.g / total.h : 0;
    const auto step_of = [&](std::span<const bins::Code> some) -> SetOrder::Step {
      GridSum sum;
      for (const bins::Code bin : some) sum += all_[bin];
      const Sums sums = node_.sums(sum);
      return {(sums.g - mean * sums.h) / (sums.h + kCategorySmoothing), sum != GridSum{}};
    };
    if (saw_missing_) judge(false);  // missing against present
    for_each_order(bins_.window.changes, n_bins_, step_of, [&](const SetOrder& order) {
      walk_.restart();
      crossed_ = {};
      crossed_movers_ = ambiguous_[0] = ambiguous_[1] = {};
      for (std::size_t step = 0, at = 0; step + 1 < order.step_end.size(); ++step) {
        for (; at < order.step_end[step]; ++at) cross(order.bins[at]);
        // Without missing values, unseen categories go with the heavier side.
        const bool both = saw_missing_ || bins_.window.blank;
        const bool heavier = 2 * crossed_.h >= node_.total.h;
        if (both || heavier) judge(false);
        if (both || !heavier) judge(true);
      }
    });
  }

 private:
  /// Sums over movable rows, and over those with a negative residual.
  struct MovableSums {
    GridSum sum, negative;

    MovableSums& operator+=(const MovableSums& other) {
      sum += other.sum, negative += other.negative;
      return *this;
    }
    MovableSums& operator-=(const MovableSums& other) {
      sum -= other.sum, negative -= other.negative;
      return *this;
    }
  };

  /// A cheap no: whether any set can beat the best split so far. G^2 / H of two bins together is at
  /// most the sum of theirs, so both sides of a split score no more than all bins apart.
  bool can_win() const {
    if (!node_.plain) return true;
    double apart = 0;
    const auto add = [&](const GridSum& sum) {
      const Sums sums = node_.sums(sum);
      if (sums.g != 0) apart += sums.g * sums.g / sums.h;  // infinite without weight: who knows
    };
    for (const GridSum& sum : all_) add(sum);
    add(missing_);
    constexpr double kSlack = 1e-9;  // more than what rounding loses
    return apart * (1 + kSlack) >= 2 * (bar() + node_.rules.min_split_gain) + node_.score;
  }

  void cross(bins::Code bin) {
    crossed_ += all_[bin];
    if (moves_) crossed_movers_ += movers_[bin];
    walk_.cross(bin, [&](bins::Code of, bool left, bool begins) {
      MovableSums& part = ambiguous_[left];
      begins ? part += movers_[of] : part -= movers_[of];
    });
  }

  /// What crossed goes left, with the missing values; or, turned, the rest does.
  void judge(bool turned) {
    const std::size_t number = n_candidates_++;
    const GridSum left = turned ? node_.total - crossed_ : crossed_ + missing_;
    if constexpr (Stat::kCounts) {
      const auto least = static_cast<std::int64_t>(node_.rules.min_samples_leaf);
      if (left.n < least || node_.total.n - left.n < least) return;
    }
    const NewtonCriterion& criterion = node_.criterion;
    if (!beats(criterion.gain(node_.sums(left), node_.sums(node_.total - left)), number)) return;
    const MovableSums on_left = ambiguous_[!turned];
    MovableSums on_right = ambiguous_[turned];
    if (bins_.window.blank) {  // whoever is right can become missing
      on_right = crossed_movers_;
      if (!turned) {
        on_right = {};
        for (const MovableSums& part : movers_) on_right += part;
        on_right -= crossed_movers_;
      }
    }
    const SplitSums split{node_.sums(left - on_left.sum), node_.sums(on_left.sum),
                          node_.sums(on_right.sum), node_.sums(node_.total - left - on_right.sum)};
    const double gain =
        signs_ ? criterion.sign_gain(split, node_.sums(on_left.negative + on_right.negative))
               : criterion.paper_gain(split);
    if (!beats(gain, number)) return;
    best_.feature = bins_.feature;
    best_.bin = number;
    best_.missing_left = true;
    best_.saw_missing = true;
    best_.gain = gain;
    best_.left = left;
    best_.right_bins = {};
    for (std::size_t bin = 0; bin < n_bins_; ++bin) {
      if (walk_.is_left(bin) == turned) best_.right_bins.put(bin);
    }
  }

  /// What a gain must exceed.
  double bar() const { return best_.feature == kLeaf ? node_.rules.least_gain : best_.gain; }

  bool beats(double gain, std::size_t number) const {
    return gain > bar() ||
           (gain == best_.gain && (bins_.feature < best_.feature ||
                                   (bins_.feature == best_.feature && number < best_.bin)));
  }

  const FeatureBins<Stat>& bins_;
  const SearchedNode& node_;
  BinSplit& best_;
  std::size_t n_bins_;
  bool signs_;
  bool moves_;  // whether the adversary can do anything to these categories
  SetWalk walk_;
  std::vector<GridSum> all_;
  std::vector<MovableSums> movers_;
  GridSum present_, missing_, crossed_;
  MovableSums crossed_movers_;
  MovableSums ambiguous_[2];  // right, left
  bool saw_missing_ = false;
  std::size_t n_candidates_ = 0;
};

}  // namespace hardwood::grow
