#include "hardwood/grow/newton_split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardwood/box.hpp"

namespace hardwood::grow {

void NewtonSearch::add_up(std::span<const NewtonEntry> column, const NewtonCriterion& criterion) {
  n_present_ = static_cast<std::size_t>(
      std::ranges::partition_point(column,
                                   [](const NewtonEntry& entry) { return !std::isnan(entry.x); }) -
      column.begin());
  const bool signs = rules_.inner == Inner::kExact;
  first_.resize(std::max(first_.size(), n_present_ + 1));
  if (signs) first_negative_.resize(first_.size());
  Sums sums, negative;
  for (std::size_t i = 0; i < n_present_; ++i) {
    const Sums row = gradient_[column[i].row];
    sums += row;
    first_[i + 1] = sums;
    if (!signs) continue;
    negative += (criterion.residual(row) < 0 ? 1.0 : 0.0) * row;  // no branch: signs are random
    first_negative_[i + 1] = negative;
  }
  missing_ = {};
  for (const NewtonEntry& entry : column.subspan(n_present_)) missing_ += gradient_[entry.row];
}

SplitSums NewtonSearch::sums_of(const Candidate& candidate, const Sums& total) const {
  SplitSums sums{first_[candidate.n_sure], first_[candidate.n_plain] - first_[candidate.n_sure],
                 first_[candidate.n_possible] - first_[candidate.n_plain],
                 total - first_[candidate.n_possible]};
  if (candidate.missing_left) {
    sums.sure_left += missing_;
    sums.sure_right = sums.sure_right - missing_;
  }
  return sums;
}

double NewtonSearch::robust_gain(const Candidate& candidate, const SplitSums& sums,
                                 std::span<const NewtonEntry> column,
                                 const NewtonCriterion& criterion, double bar) {
  if (rules_.inner == Inner::kPaper) {
    return criterion.can_exceed(bar, sums) ? criterion.paper_gain(sums) : bar;
  }
  const Sums negative = first_negative_[candidate.n_possible] - first_negative_[candidate.n_sure];
  // Void splits are the most by far where the ball is wide, and the test is the cheapest.
  if (criterion.can_void(sums, negative) || !criterion.can_exceed(bar, sums, &negative)) return bar;
  const double gain = criterion.sign_gain(sums, negative);
  if (!(gain > bar)) return gain;  // the scan can only find less
  ambiguous_.clear();
  for (std::size_t i = candidate.n_sure; i < candidate.n_possible; ++i) {
    const std::uint32_t row = column[i].row;
    ambiguous_.push_back({rank_of_row_[row], gradient_[row]});
  }
  return criterion.scan_gain(sums, negative, ambiguous_);
}

void NewtonSearch::search(std::span<const NewtonEntry> column, Feature feature, int monotonic,
                          const Sums& total, const NewtonCriterion& criterion, NewtonSplit& best) {
  add_up(column, criterion);
  const std::size_t n_missing = column.size() - n_present_;

  const auto judge = [&](const Candidate& candidate) {
    const std::size_t n_left = candidate.n_plain + (candidate.missing_left ? n_missing : 0);
    if (n_left < rules_.min_samples_leaf || column.size() - n_left < rules_.min_samples_leaf)
      return;
    const SplitSums sums = sums_of(candidate, total);
    const double bar = best.feature == kLeaf ? NewtonCriterion::kLeastGain : best.gain;
    const double gain = robust_gain(candidate, sums, column, criterion, bar);
    if (!(gain > bar)) return;
    if (monotonic != 0 && !criterion.keeps_order(monotonic, sums.left(), sums.right())) return;
    best.feature = feature;
    best.threshold = candidate.threshold;
    best.missing_left = n_missing == 0 ? 2 * n_left >= column.size() : candidate.missing_left;
    best.gain = gain;
    best.n_left = n_left;
    best.left = sums.left();
  };

  if (n_missing > 0 && n_present_ > 0) {
    // Missing against present: no finite value, attacked or not, lies left of the lowest float.
    judge({std::numeric_limits<float>::lowest(), true, 0, 0, 0});
  }
  Candidate candidate{};
  for (std::size_t i = 1; i < n_present_; ++i) {
    if (!(column[i - 1].x < column[i].x)) continue;
    const double bar = best.feature == kLeaf ? NewtonCriterion::kLeastGain : best.gain;
    const Sums left = first_[i], with_missing = left + missing_;
    const bool right_worth = criterion.can_exceed(bar, left, total - left);
    const bool left_worth =
        n_missing > 0 && criterion.can_exceed(bar, with_missing, total - with_missing);
    if (!right_worth && !left_worth) continue;
    // The window only moves up with the threshold, so what was skipped is caught up here.
    candidate.threshold = between(column[i - 1].x, column[i].x);
    candidate.n_plain = i;
    candidate.n_possible = std::max(candidate.n_possible, i);
    while (candidate.n_possible < n_present_ &&
           !column[candidate.n_possible].ends.sure_right(candidate.threshold)) {
      ++candidate.n_possible;
    }
    while (candidate.n_sure < i && column[candidate.n_sure].ends.sure_left(candidate.threshold)) {
      ++candidate.n_sure;
    }
    for (const bool missing_left : {false, true}) {
      candidate.missing_left = missing_left;
      if (missing_left ? left_worth : right_worth) judge(candidate);
    }
  }
}

}  // namespace hardwood::grow
