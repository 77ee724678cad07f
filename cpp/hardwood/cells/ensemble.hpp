#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/bits.hpp"
#include "hardwood/cells/question.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/threat.hpp"

namespace hardwood::cells {

inline constexpr std::int32_t kMissing = -1;  ///< the cell of a missing value

/// A range of cells, both ends included. A missing value has lo > hi: it belongs to no cell.
struct Cells {
  std::int32_t lo;
  std::int32_t hi;
};

/// A model laid out for exact questions.
///
/// The thresholds of a feature cut the doubles into cells: cell c lies between edge c - 1 and edge
/// c. A node compares the cell of a row with its own rank, so nothing is rounded from here on.
///
/// The cells of a feature of whole numbers all hold one: x < t is x < ceil(t) for them. Where some
/// split takes a feature for categories, its cells are the classes of values that no split tells
/// apart; they have no order, and a node has a set of cells that go left.
class Ensemble {
 public:
  struct Node {
    std::int32_t feature;  ///< kLeaf for leaves
    std::int32_t rank;     ///< a row goes left when its cell <= rank; below 0: ~rank is a split of
                           ///< categories; a leaf: the row of its values
    std::int32_t left;
    std::int32_t right;
  };

  /// A tree that has a say in a question, and where its leaves keep what they say.
  struct Member {
    std::int32_t root;
    std::int32_t plus;   ///< column of the values, or -1
    std::int32_t minus;  ///< column of the values, or -1
  };

  /// `reach` says which features are whole; where it is empty, none is.
  explicit Ensemble(const model::Trees& trees, std::span<const Reach> reach = {});

  std::size_t n_features() const { return edge_start_.size() - 1; }
  std::size_t n_outputs() const { return base_.size(); }
  std::size_t n_edges() const { return edges_.size(); }
  const Node& node(std::int32_t at) const { return nodes_[static_cast<std::size_t>(at)]; }
  bool missing_left(std::int32_t at) const { return missing_left_[static_cast<std::size_t>(at)]; }
  double value(std::int32_t leaf, std::int32_t column) const { return high_[at(leaf, column)]; }
  /// What a leaf adds to plus - minus; of an inner node: no leaf below it adds more.
  double most(std::int32_t node, const Member& member) const {
    const double plus = member.plus < 0 ? 0.0 : high_[at(node, member.plus)];
    return member.minus < 0 ? plus : plus - low_[at(node, member.minus)];
  }
  /// Where the two sums of a question start, as the model's own sum sees them.
  double plus_base(const Question& question) const { return base(question, question.plus); }
  double minus_base(const Question& question) const { return base(question, question.minus); }
  std::size_t edge_start(std::size_t feature) const { return edge_start_[feature]; }
  std::span<const double> edges(std::size_t feature) const {
    return {edges_.data() + edge_start_[feature], edge_start_[feature + 1] - edge_start_[feature]};
  }
  /// Of a feature of numbers.
  Interval interval(std::size_t feature, std::int32_t cell) const;

  bool has_categories(std::size_t feature) const { return classes_[feature].n_cells > 0; }
  /// The cell of a value that is not missing.
  std::int32_t cell_of(std::size_t feature, double x) const;
  std::size_t n_cells(std::size_t feature) const {
    return has_categories(feature) ? classes_[feature].n_cells : edges(feature).size() + 1;
  }
  /// The code that a value stands for, as the model rounds it.
  std::int32_t category_of(double x) const {
    return model::category_of(x_float32_ ? static_cast<float>(x) : x);
  }
  /// Splits of a feature of categories are numbered one after the other.
  std::int32_t first_split(std::size_t feature) const { return classes_[feature].first_split; }
  std::int32_t end_split(std::size_t feature) const { return classes_[feature].end_split; }
  bool splits_left(std::int32_t split, std::int32_t cell) const {
    return has_bit(left_.data() + split_start_[static_cast<std::size_t>(split)], cell);
  }
  /// Where a node sends a row with this cell of its feature.
  bool goes_left(std::int32_t at, std::int32_t cell) const {
    if (cell == kMissing) return missing_left(at);
    const std::int32_t rank = node(at).rank;
    return rank >= 0 ? cell <= rank : splits_left(~rank, cell);
  }

  /// All the ways in which a row is fooled.
  std::vector<Question> questions(const Property& property) const;
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
  /// Whether such a row is fooled, by the model itself; `margin` is memory to work in.
  bool fooled(const Property& property, std::span<const std::int32_t> cells,
              std::vector<double>& margin) const;

 private:
  /// Of a feature of categories: its edges cut the doubles into pieces, each of one class.
  struct Classes {
    std::size_t n_cells = 0;         ///< 0: a feature of numbers
    std::vector<std::int32_t> cell;  ///< per piece
    std::int32_t first_split = 0;
    std::int32_t end_split = 0;
  };

  void lay_out_categories(const model::Trees& trees, std::size_t feature,
                          std::span<const std::size_t> nodes, std::vector<double>& edges);
  void find_ranges();
  void find_grain();
  std::size_t at(std::int32_t node, std::int32_t column) const {
    return static_cast<std::size_t>(node) * n_values_ + static_cast<std::size_t>(column);
  }
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
  std::vector<double> high_;  // per node and column: the largest value of the leaves below it
  std::vector<double> low_;   // and the least
  std::vector<double> base_;
  std::vector<std::int32_t> root_;
  std::vector<std::int32_t> output_;  // first output of each tree
  std::vector<double> edges_;
  std::vector<std::size_t> edge_start_;
  std::vector<Classes> classes_;          // per feature
  std::vector<std::size_t> split_start_;  // into left_
  std::vector<Word> left_;                // per split of categories: the cells that go left
  std::size_t n_values_;
  bool x_float32_;
  bool sum_float32_;
  model::Decision decision_;
  double largest_sum_ = 0;  // of absolute values
  double grain_ = 0;
};

}  // namespace hardwood::cells
