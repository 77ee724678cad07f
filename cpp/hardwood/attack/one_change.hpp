#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/ball.hpp"

namespace hardwood::attack {

/// What a model would say if one feature of a point had another value: all features, all values, in
/// one walk over the leaves that differ from the point in one feature only.
///
/// Sums are in double and in an order of their own: what they promise is tried on the model itself
/// (`fools`) before it counts.
class OneChange {
 public:
  explicit OneChange(const cells::Ensemble& ensemble);

  /// Read the trees around a point; returns plus - minus at the point itself.
  double read(const cells::Question& question, const cells::Ball& ball,
              std::span<const std::int32_t> point);
  /// Only plus - minus at a point.
  double sum(const cells::Question& question, std::span<const std::int32_t> point) const;

  /// After `read`, for a feature without places: what plus - minus gains if its cell were c, for
  /// every c.
  std::span<const double> gain(std::size_t feature) const {
    return {gain_.data() + start_[feature], start_[feature + 1] - start_[feature] - 1};
  }

  /// Whether the model itself gives the point another label than y.
  bool fools(std::span<const std::int32_t> point, std::int32_t y) {
    return ensemble_.fooled({y}, point, margin_);
  }

 private:
  double value(std::int32_t leaf, const cells::Ensemble::Member& member) const;

  const cells::Ensemble& ensemble_;
  std::vector<std::size_t> start_;  // per feature, into gain_: its cells and one more
  std::vector<double> gain_;
  std::vector<cells::Cells> stays_;  // per feature, for each_leaf_one_change_away
  std::vector<double> margin_;
};

/// A point, given as cells, as the values nearest to the row.
void write_point(const cells::Ball& ball, std::span<const std::int32_t> point,
                 std::span<double> out);

}  // namespace hardwood::attack
