#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/bins/blocks.hpp"

namespace hardwood::grow {

/// What the adversary can make of the categories of one feature, bin by bin.
struct CategoryChanges {
  std::vector<std::vector<bins::Code>> becomes;  ///< of a bin: the other bins it can become
  std::vector<std::vector<bins::Code>> from;     ///< of a bin: the other bins that can become it
  /// Bins that changes connect, in either direction: no change ever leaves its group.
  std::vector<std::vector<bins::Code>> groups;
  bool any = false;

  CategoryChanges() = default;
  /// `changes`: pairs of bins (from, to).
  CategoryChanges(std::size_t n_bins, std::span<const std::pair<bins::Code, bins::Code>> changes)
      : becomes(n_bins), from(n_bins), groups(n_bins) {
    std::vector<std::size_t> group_of(n_bins);
    std::iota(group_of.begin(), group_of.end(), std::size_t{0});
    for (std::size_t bin = 0; bin < n_bins; ++bin) groups[bin] = {static_cast<bins::Code>(bin)};
    for (const auto& [a, b] : changes) {
      if (a == b) continue;
      any = true;
      becomes[a].push_back(b);
      from[b].push_back(a);
      const auto [kept, gone] = std::minmax(group_of[a], group_of[b]);
      if (kept == gone) continue;
      const std::size_t to = kept, other = gone;  // copies: minmax gives references
      for (const bins::Code bin : groups[other]) group_of[bin] = to;
      groups[to].insert(groups[to].end(), groups[other].begin(), groups[other].end());
      groups[other].clear();
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
  }
};

/// Bins that cross from right to left one after the other, and which of them are ambiguous: an
/// allowed change brings them to the other side of the set.
class SetWalk {
 public:
  SetWalk(const CategoryChanges& changes, std::size_t n_bins)
      : changes_(changes), is_left_(n_bins), n_across_(n_bins) {}

  bool is_left(std::size_t bin) const { return is_left_[bin] != 0; }

  void restart() {
    std::ranges::fill(is_left_, std::uint8_t{0});
    std::ranges::fill(n_across_, 0);
  }

  /// `tell(bin, left, begins)`: the bin, on that side, begins or ceases to be ambiguous.
  template <class Tell>
  void cross(bins::Code bin, Tell&& tell) {
    is_left_[bin] = 1;
    if (!changes_.any) return;
    const auto n_changes = static_cast<int>(changes_.becomes[bin].size());
    if (n_across_[bin] > 0) tell(bin, false, false);
    n_across_[bin] = n_changes - n_across_[bin];
    if (n_across_[bin] > 0) tell(bin, true, true);
    for (const bins::Code other : changes_.from[bin]) {
      const int before = n_across_[other];
      n_across_[other] += is_left(other) ? -1 : 1;
      if (before == 0) tell(other, is_left(other), true);
      if (n_across_[other] == 0) tell(other, is_left(other), false);
    }
  }

 private:
  const CategoryChanges& changes_;
  std::vector<std::uint8_t> is_left_;
  std::vector<int> n_across_;  // changes of each bin that lead to the other side
};

/// Bins in the order in which they cross, several at a step. Sets are tried along it: what crossed
/// so far against the rest.
struct SetOrder {
  std::vector<bins::Code> bins;
  std::vector<std::size_t> step_end;  ///< positions in `bins`

  struct Step {
    double key;
    bool has_rows;
  };

  /// Steps by increasing key, equal ones in their order; those without rows go as one, where the
  /// key would be 0. `bins_of(i)` are the bins of step i.
  template <class BinsOf>
  SetOrder(std::span<const Step> steps, BinsOf&& bins_of) {
    std::vector<std::pair<double, std::size_t>> filled;  // key, step
    filled.reserve(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].has_rows) filled.emplace_back(steps[i].key, i);
    }
    std::ranges::sort(filled);
    step_end.reserve(filled.size() + 1);
    const auto put = [&](std::size_t i) {
      for (const bins::Code bin : bins_of(i)) bins.push_back(bin);
    };
    bool emptied = filled.size() == steps.size();
    const auto put_empty = [&] {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!steps[i].has_rows) put(i);
      }
      step_end.push_back(bins.size());
      emptied = true;
    };
    for (const auto& [key, i] : filled) {
      if (!emptied && key >= 0) put_empty();
      put(i);
      step_end.push_back(bins.size());
    }
    if (!emptied) put_empty();
  }
};

/// Weight of rows by which the mean of a category is drawn to that of its node when categories are
/// put in order: means of few rows are mostly chance. The figure is LightGBM's and scikit-learn's.
constexpr double kCategorySmoothing = 10;

/// Along which orders sets are tried: single bins, and bins that changes connect, between which the
/// adversary can do nothing. `step_of(bins)` says where bins belong; `along(order)` is called for
/// each order.
template <class StepOf, class Along>
void for_each_order(const CategoryChanges& changes, std::size_t n_bins, StepOf&& step_of,
                    Along&& along) {
  std::vector<SetOrder::Step> steps(n_bins);
  std::vector<bins::Code> all(n_bins);
  std::iota(all.begin(), all.end(), bins::Code{0});
  const auto alone = [&](std::size_t bin) { return std::span(all).subspan(bin, 1); };
  for (std::size_t bin = 0; bin < n_bins; ++bin) steps[bin] = step_of(alone(bin));
  along(SetOrder(steps, alone));
  if (!changes.any) return;
  steps.resize(changes.groups.size());
  const auto group = [&](std::size_t i) { return std::span(changes.groups[i]); };
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = step_of(group(i));
  along(SetOrder(steps, group));
}

}  // namespace hardwood::grow
