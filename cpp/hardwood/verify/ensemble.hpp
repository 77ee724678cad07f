#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/model/trees.hpp"
#include "hardwood/verify/tree.hpp"

namespace hardwood::verify {

inline constexpr std::int32_t kMissing = -1;  ///< the cell of a missing value

/// A range of cells, both ends included. A missing value has lo > hi: it belongs to no cell.
struct Cells {
  std::int32_t lo;
  std::int32_t hi;
};

/// What a row must keep: its label or, where that is kOutput, its only output within a range.
struct Target {
  static constexpr std::int32_t kOutput = -1;
  std::int32_t label;
  double low = 0;
  double high = 0;
};

/// How a row can be fooled: output `plus` beats output `minus` (kConstant stands for a number).
/// Where `strict`, a tie does not fool: of equal outputs the first wins.
struct Question {
  static constexpr std::int32_t kConstant = -1;
  std::int32_t plus;
  std::int32_t minus;
  bool strict;
  double constant = 0;
};

/// A model laid out for exact questions.
///
/// The thresholds of a feature cut the doubles into cells: cell c lies between edge c - 1 and edge
/// c. A node compares the cell of a row with its own rank, so nothing is rounded from here on.
class Ensemble {
 public:
  struct Node {
    std::int32_t feature;  ///< kLeaf for leaves
    std::int32_t rank;     ///< a row goes left when its cell <= rank; a leaf: the row of its values
    std::int32_t left;
    std::int32_t right;
  };

  /// A tree that has a say in a question, and where its leaves keep what they say.
  struct Member {
    std::int32_t root;
    std::int32_t plus;   ///< column of the values, or -1
    std::int32_t minus;  ///< column of the values, or -1
  };

  explicit Ensemble(const model::Trees& trees);

  std::size_t n_features() const { return edge_start_.size() - 1; }
  std::size_t n_outputs() const { return base_.size(); }
  std::size_t n_edges() const { return edges_.size(); }
  const Node& node(std::int32_t at) const { return nodes_[static_cast<std::size_t>(at)]; }
  bool missing_left(std::int32_t at) const { return missing_left_[static_cast<std::size_t>(at)]; }
  double value(std::int32_t leaf, std::int32_t column) const {
    return value_[static_cast<std::size_t>(leaf) * n_values_ + static_cast<std::size_t>(column)];
  }
  /// Where the two sums of a question start, as the model's own sum sees them.
  double plus_base(const Question& question) const { return base(question, question.plus); }
  double minus_base(const Question& question) const { return base(question, question.minus); }
  std::size_t edge_start(std::size_t feature) const { return edge_start_[feature]; }
  std::span<const double> edges(std::size_t feature) const {
    return {edges_.data() + edge_start_[feature], edge_start_[feature + 1] - edge_start_[feature]};
  }
  Interval interval(std::size_t feature, std::int32_t cell) const;

  /// All the ways in which a row is fooled.
  std::vector<Question> questions(const Target& target) const;
  std::vector<Member> members(const Question& question) const;

  /// The largest error of one addition, relative to its result, in the model's own sum.
  double unit_roundoff() const { return sum_float32_ ? 0x1p-24 : 0x1p-53; }
  /// The next partial sum, in the model's own precision. It never falls when a term grows.
  double add(double sum, double term) const {
    // Two floats added in double and rounded once are the float sum: a double has room for it.
    return sum_float32_ ? static_cast<float>(sum + term) : sum + term;
  }
  /// Where both sums of a question are exact in the model's own precision: the power of two that
  /// divides them all, if it tells any two of them apart. Else 0.
  double grain(const Question& question) const {
    const double constant = question.constant;
    const bool fits = std::abs(constant) <= grain_ * 0x1p51 && on_grain(constant) == constant;
    return fits && grain_ > tie(question) ? grain_ : 0;
  }

  const model::Decision& decision() const { return decision_; }
  /// How far one output may lie below another and yet be its equal when the label is decided.
  double tie(const Question& question) const {
    return question.plus >= 0 && question.minus >= 0 ? decision_.tie : 0;
  }
  /// Whether two sums of a question, in the model's own precision, may answer it with yes.
  bool may_beat(const Question& question, double plus, double minus) const {
    if (tie(question) > 0) return plus >= minus - tie(question);
    return question.strict ? plus > minus : plus >= minus;
  }

  /// What plus - minus must at least be for a row to be fooled, if the model's own sum and ours
  /// together are at most `error` away from the true one.
  double needed(const Question& question, double error) const {
    const double grain = this->grain(question);
    if (grain > 0) return question.strict ? grain : 0.0;
    return -(error + tie(question));
  }
  /// Such an error for sums over any leaves of all trees.
  double largest_error(const Question& question) const {
    const double most = largest_sum_ + std::abs(question.constant);
    return 2 * most * (unit_roundoff() + 0x1p-52) * (static_cast<double>(root_.size()) + 8);
  }

  /// The margins of a row of cells (kMissing for missing values), added up in the model's own
  /// precision and order.
  void margin(std::span<const std::int32_t> cells, std::span<double> out) const;

 private:
  void find_grain();
  /// The largest multiple of the grain that is not above a number; margins cannot tell the two
  /// apart. Numbers too large for that stay as they are.
  double on_grain(double number) const {
    return grain_ > 0 && std::abs(number) <= grain_ * 0x1p51 ? std::floor(number / grain_) * grain_
                                                             : number;
  }
  double base(const Question& question, std::int32_t output) const {
    return output == Question::kConstant ? question.constant
                                         : base_[static_cast<std::size_t>(output)];
  }

  std::vector<Node> nodes_;
  std::vector<std::uint8_t> missing_left_;
  std::vector<double> value_;
  std::vector<double> base_;
  std::vector<std::int32_t> root_;
  std::vector<std::int32_t> output_;  // first output of each tree
  std::vector<double> edges_;
  std::vector<std::size_t> edge_start_;
  std::size_t n_values_;
  bool sum_float32_;
  model::Decision decision_;
  double largest_sum_ = 0;  // of absolute values
  double grain_ = 0;
};

/// One row, seen from the thresholds around it.
class Ball {
 public:
  Ball(const Ensemble& ensemble, std::span<const double> x, const Budget& budget);

  const Ensemble& ensemble() const { return ensemble_; }
  std::span<const double> x() const { return x_; }
  Norm norm() const { return budget_.norm; }
  double limit() const { return budget_.radius; }
  /// The cells of the row itself.
  std::span<const std::int32_t> home() const { return home_; }

  /// The counted step into a cell: 0 at home, infinity where the threat does not get.
  double step(std::size_t feature, std::int32_t cell) const {
    if (cell == home_[feature]) return 0;
    const auto edge = static_cast<std::size_t>(cell < home_[feature] ? cell : cell - 1);
    return step_[ensemble_.edge_start(feature) + edge];
  }
  /// Steps over every edge of every feature, for those who need radii to try.
  std::span<const double> steps() const { return step_; }

  /// The cells of every feature that a single step of at most `radius` reaches.
  void cells_within(double radius, std::vector<Cells>& out) const;
  /// The largest step below `radius`, -1 if there is none.
  double step_below(double radius) const;
  /// How far the row is from a point, given as a cell of every feature.
  double length(std::span<const std::int32_t> cells) const;
  /// The point of a cell that is nearest to the row.
  double nearest(std::size_t feature, std::int32_t cell) const;

 private:
  const Ensemble& ensemble_;
  const Budget& budget_;
  std::span<const double> x_;
  std::vector<std::int32_t> home_;
  std::vector<double> step_;
};

/// The plain bound: every tree gives the best leaf it can reach, on its own. `cells` are the cells
/// of the ball. Never below the largest value of plus - minus in the ball, but for the rounding of
/// the sum.
double plain_bound(const Ensemble& ensemble, std::span<const Ensemble::Member> members, double base,
                   std::span<const Cells> cells);

}  // namespace hardwood::verify
