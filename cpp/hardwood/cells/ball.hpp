#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/cells/ensemble.hpp"

namespace hardwood::cells {

/// What steps of at most a radius reach.
struct Within {
  std::vector<Cells> cells;  ///< per feature; lo > hi: a missing value, or a set of places
  std::vector<std::int32_t> n_places;  ///< per feature: of its places the first so many; 0: no set
};

/// One row, seen from the cells around it.
///
/// The cells of a number that the row reaches are a range. Those of a category, and those of a
/// number that can be left blank, are a set: such a feature has places, the nearest first, of which
/// the row itself holds the first one.
class Ball {
 public:
  /// A cell that the row can get into.
  struct Place {
    std::int32_t cell;  ///< kMissing: a blank
    double step;
    double value;
  };

  Ball(const Ensemble& ensemble, std::span<const double> x, const Budget& budget);

  const Ensemble& ensemble() const { return ensemble_; }
  std::span<const double> x() const { return x_; }
  Norm norm() const { return budget_.norm; }
  double limit() const { return budget_.radius; }
  int max_changes() const { return budget_.max_changes; }
  /// What is summed up while the search looks for few changes or short ways: the norm or, where the
  /// number of changes is limited in the maximum norm, that number.
  Norm cost_norm() const {
    return budget_.norm == Norm::kInf && budget_.max_changes > 0 ? Norm::kZero : budget_.norm;
  }
  /// The cells of the row itself.
  std::span<const std::int32_t> home() const { return home_; }

  /// The counted step into a cell: 0 at home, infinity where the threat does not get.
  double step(std::size_t feature, std::int32_t cell) const {
    if (cell == home_[feature]) return 0;
    if (has_places(feature)) return step_to_place(feature, cell);
    const auto edge = static_cast<std::size_t>(cell < home_[feature] ? cell : cell - 1);
    return step_[ensemble_.edge_start(feature) + edge];
  }
  /// Steps over every edge and into every place, for those who need radii to try.
  std::span<const double> steps() const { return step_; }

  bool has_places(std::size_t feature) const { return !sets_.empty() && sets_[feature].n > 0; }
  bool any_places() const { return !sets_.empty(); }
  std::span<const Place> places(std::size_t feature) const {
    return {places_.data() + sets_[feature].place, static_cast<std::size_t>(sets_[feature].n)};
  }
  /// Of a feature with places: the first that a node sends left, or right; their number if none.
  std::int32_t first_place(std::int32_t at, bool left) const;
  /// The places that a node sends left.
  void places_left(std::int32_t at, std::span<Word> out) const;

  /// The cells of every feature that a single step of at most `radius` reaches.
  void within(double radius, Within& out) const;
  /// The largest step that one feature can take.
  double largest_step(std::size_t feature) const;
  /// The largest step below `radius`, -1 if there is none.
  double step_below(double radius) const;
  /// How far the row is from a point, given as a cell of every feature.
  double length(std::span<const std::int32_t> cells) const { return measure(budget_.norm, cells); }
  /// The same as `cost_norm` counts it.
  double cost(std::span<const std::int32_t> cells) const { return measure(cost_norm(), cells); }
  int n_changes(std::span<const std::int32_t> cells) const;
  /// The point of a cell that is nearest to the row.
  double nearest(std::size_t feature, std::int32_t cell) const;

 private:
  struct Set {
    std::int32_t n = 0;       ///< number of places; 0: none, the feature has a range
    std::int32_t blank = -1;  ///< the place of the blank
    std::size_t place = 0;
    std::size_t first = 0;  ///< in first_left_ and first_right_: one a split, or one an edge
    std::size_t left = 0;   ///< in left_: words_for(n) each
  };

  void reach_range(std::size_t f);
  void reach_places(std::size_t f);
  void index_places(std::size_t f);
  double step_to_place(std::size_t feature, std::int32_t cell) const;
  double measure(Norm norm, std::span<const std::int32_t> cells) const;
  std::size_t split_of(const Ensemble::Node& node) const {
    const auto f = static_cast<std::size_t>(node.feature);
    return static_cast<std::size_t>(node.rank >= 0 ? node.rank
                                                   : ~node.rank - ensemble_.first_split(f));
  }

  const Ensemble& ensemble_;
  const Budget& budget_;
  std::span<const double> x_;
  std::vector<std::int32_t> home_;
  std::vector<double> step_;
  std::vector<Set> sets_;  // per feature; empty if none has places
  std::vector<Place> places_;
  std::vector<std::int32_t> first_left_;  // without the blank
  std::vector<std::int32_t> first_right_;
  std::vector<Word> left_;  // without the blank
};

/// The plain bound: every tree gives the best leaf it can reach, on its own. Never below the
/// largest value of plus - minus in the ball, but for the rounding of the sum.
double plain_bound(const Ball& ball, std::span<const Ensemble::Member> members, double base,
                   const Within& within);

}  // namespace hardwood::cells
