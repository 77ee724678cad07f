#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hardwood/cells/ways.hpp"

namespace hardwood::cells {

/// Looks for a point at which trees together reach a value: they vote for its cells, coordinate
/// ascent improves it, and its largest steps are pulled back.
///
/// `Trees` are those that a ball reaches, with a numbering of features and cells of their own:
///   Value                           what their sums are made of
///   kNoise                          a gain that is none
///   enough()                        the value to reach
///   features(), cells(f)            that some tree splits on, and what the ball reaches of each
///   step(f, cell)                   from the row
///   value(point)                    of all trees together
///   each_value(f, point, cells, add)  add(cells, value): what trees on f say, cell by cell
template <class Trees>
class PointSearch {
 public:
  using Value = typename Trees::Value;

 protected:
  /// Let the point have the cells that steps of at most `radius` reach.
  void stay_within(const Trees& trees, double radius) {
    for (const std::size_t f : trees.features()) {
      Cells cells = trees.cells(f);
      while (trees.step(f, cells.lo) > radius) ++cells.lo;
      while (trees.step(f, cells.hi) > radius) --cells.hi;
      allowed_[f] = cells;
    }
  }

  /// Take for each feature the cell with most votes, the nearest of equals. `each_vote(cast)` calls
  /// cast(f, cells, weight).
  template <class EachVote>
  void vote(const Trees& trees, EachVote&& each_vote) {
    ballot_start_.resize(allowed_.size());
    std::size_t n = 0;
    for (const std::size_t f : trees.features()) {
      ballot_start_[f] = n;
      n += static_cast<std::size_t>(allowed_[f].hi - allowed_[f].lo + 2);
    }
    ballot_.assign(n, 0);  // differences from one cell to the next
    each_vote([&](std::size_t f, Cells cells, double weight) {
      const auto [lo, hi] = allowed_[f];
      cells = {std::max(cells.lo, lo) - lo, std::min(cells.hi, hi) - lo};
      if (cells.lo > cells.hi) return;
      double* votes = ballot_.data() + ballot_start_[f];
      votes[cells.lo] += weight;
      votes[cells.hi + 1] -= weight;
    });
    for (const std::size_t f : trees.features()) {
      const double* votes = ballot_.data() + ballot_start_[f];
      double sum = 0;
      double top = -std::numeric_limits<double>::infinity();
      for (std::int32_t c = allowed_[f].lo; c <= allowed_[f].hi; ++c) {
        sum += *votes++;
        if (sum > top + Trees::kNoise ||
            (sum >= top - Trees::kNoise && trees.step(f, c) < trees.step(f, point_[f]))) {
          top = std::max(top, sum);
          point_[f] = c;
        }
      }
    }
    value_ = trees.value(point_);
  }

  /// Coordinate ascent until the value is enough; whether it is.
  bool climb(const Trees& trees, int n_rounds) {
    for (int round = 0; round < n_rounds && value_ < trees.enough(); ++round) {
      const Value before = value_;
      for (const std::size_t f : trees.features()) {
        improve(trees, f);
        if (value_ >= trees.enough()) return true;
      }
      // Rounds gain less and less.
      const auto hoped = static_cast<double>(value_) + kHope * static_cast<double>(value_ - before);
      if (hoped < static_cast<double>(trees.enough())) break;
    }
    return value_ >= trees.enough();
  }

  /// Take the largest steps of the point back, one size after the other, while `accept()` keeps it.
  template <class Accept>
  void pull_back(const Trees& trees, Accept&& accept) {
    do {
      const double largest = largest_step(trees);
      if (largest <= 0) return;
      stay_within(trees, std::nextafter(largest, 0.0));
      for (const std::size_t f : trees.features()) {
        if (point_[f] < allowed_[f].lo || point_[f] > allowed_[f].hi) improve(trees, f);
      }
      climb(trees, kShortClimb);
    } while (accept());
  }

  double largest_step(const Trees& trees) const {
    double largest = 0;
    for (const std::size_t f : trees.features()) {
      largest = std::max(largest, trees.step(f, point_[f]));
    }
    return largest;
  }

  /// gain_[c - cells.lo]: what the trees on a feature say together if its cell were c.
  void find_gains(const Trees& trees, std::size_t f, Cells cells) {
    gain_.assign(static_cast<std::size_t>(cells.hi - cells.lo + 2), 0);
    trees.each_value(f, point_, cells, [&](Cells some, Value value) {
      gain_[static_cast<std::size_t>(some.lo - cells.lo)] += value;
      gain_[static_cast<std::size_t>(some.hi - cells.lo) + 1] -= value;
    });
    for (std::size_t c = 1; c < gain_.size(); ++c) gain_[c] += gain_[c - 1];
  }

  std::vector<std::int32_t> point_;
  Value value_ = 0;             // of point_
  std::vector<Cells> allowed_;  // per feature: where point_ may be
  std::vector<Value> gain_;

 private:
  static constexpr double kHope = 0.5;  // rounds to come gain at most this much of the last one's
  static constexpr int kShortClimb = 3;

  /// Move one feature to the best of its allowed cells.
  void improve(const Trees& trees, std::size_t f) {
    const Cells cells = allowed_[f];
    const std::int32_t here = point_[f];
    const bool inside = cells.lo <= here && here <= cells.hi;
    if (inside && cells.lo == cells.hi) return;
    const Cells wide{std::min(cells.lo, here), std::max(cells.hi, here)};
    find_gains(trees, f, wide);
    const auto gain = [&](std::int32_t c) { return gain_[static_cast<std::size_t>(c - wide.lo)]; };
    std::int32_t best = inside ? here : cells.lo;
    for (std::int32_t c = cells.lo; c <= cells.hi; ++c) {
      if (gain(c) > gain(best) + Trees::kNoise) best = c;
    }
    value_ += gain(best) - gain(here);
    point_[f] = best;
  }

  std::vector<double> ballot_;
  std::vector<std::size_t> ballot_start_;  // per feature
};

}  // namespace hardwood::cells
