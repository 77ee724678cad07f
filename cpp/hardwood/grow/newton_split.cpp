#include "hardwood/grow/newton_split.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "hardwood/box.hpp"
#include "hardwood/interrupt.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kTogether = 16;  // thresholds that are given up at once

/// The sums, or nothing; without a branch, since signs are random to a predictor.
Sums where(bool is, const Sums& sums) {
  const auto mask = -std::uint64_t{is};
  const auto kept = [mask](double x) {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & mask);
  };
  return {kept(sums.g), kept(sums.h)};
}

}  // namespace

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
    negative += where(criterion.residual(row) < 0, row);
    first_negative_[i + 1] = negative;
  }
  slack_ = 1e-9 * (criterion.residual(sums) - 2 * criterion.residual(negative));
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
  checkpoint();                    // it looks at every ambiguous row
  ambiguous_.clear();
  for (std::size_t i = candidate.n_sure; i < candidate.n_possible; ++i) {
    const std::uint32_t row = column[i].row;
    ambiguous_.push_back({rank_of_row_[row], gradient_[row]});
  }
  return criterion.scan_gain(sums, negative, ambiguous_);
}

/// Whether no threshold between rows begin - 1 and end - 1 can have a gain above `bar`.
///
/// Rows that are possible at the lowest of these thresholds and not sure at the highest are
/// ambiguous at all of them: what the adversary can do with these rows alone, it can do at each.
bool NewtonSearch::all_fail(std::size_t begin, std::size_t end, std::span<const NewtonEntry> column,
                            const Sums& total, const NewtonCriterion& criterion, double bar,
                            Neighbours& seen) const {
  const float lowest = column[begin - 1].x, highest = column[end - 1].x;
  seen.n_possible = std::max(seen.n_possible, begin);
  while (seen.n_possible < n_present_ && !column[seen.n_possible].ends.sure_right(lowest)) {
    ++seen.n_possible;
  }
  while (seen.n_sure < end && column[seen.n_sure].ends.sure_left(highest)) ++seen.n_sure;
  if (seen.n_possible <= seen.n_sure) return false;
  const Sums sure_left = first_[seen.n_sure], ambiguous = first_[seen.n_possible] - sure_left;
  const Sums negative = first_negative_[seen.n_possible] - first_negative_[seen.n_sure];
  const auto fails = [&](const Sums& left) {
    const SplitSums sums{left, ambiguous, {}, total - left - ambiguous};
    return criterion.can_void(sums, negative, slack_) ||
           !criterion.can_exceed(bar, sums, &negative);
  };
  return fails(sure_left) && (n_present_ == column.size() || fails(sure_left + missing_));
}

void NewtonSearch::search(std::span<const NewtonEntry> column, Feature feature, int monotonic,
                          const Prepared& node, NewtonSplit& best) {
  const auto& [total, criterion] = node;
  add_up(column, criterion);
  const std::size_t n_missing = column.size() - n_present_;

  const auto bar = [&] { return best.feature == kLeaf ? rules_.least_gain : best.gain; };
  const auto judge = [&](const Candidate& candidate) {
    const std::size_t n_left = candidate.n_plain + (candidate.missing_left ? n_missing : 0);
    if (n_left < rules_.min_samples_leaf || column.size() - n_left < rules_.min_samples_leaf)
      return;
    const SplitSums sums = sums_of(candidate, total);
    const double gain = robust_gain(candidate, sums, column, criterion, bar());
    if (!(gain > bar())) return;
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
  Neighbours seen;
  for (std::size_t i = 1; i < n_present_; ++i) {
    if (rules_.inner == Inner::kExact && i % kTogether == 1) {
      const std::size_t end = std::min(i + kTogether, n_present_);
      if (all_fail(i, end, column, total, criterion, bar(), seen)) {
        i = end - 1;
        continue;
      }
    }
    if (!(column[i - 1].x < column[i].x)) continue;
    const Sums left = first_[i], with_missing = left + missing_;
    const bool right_worth = criterion.can_exceed(bar(), left, total - left);
    const bool left_worth =
        n_missing > 0 && criterion.can_exceed(bar(), with_missing, total - with_missing);
    if (!right_worth && !left_worth) continue;
    // What is ambiguous only moves up with the threshold, so what was skipped is caught up here.
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
