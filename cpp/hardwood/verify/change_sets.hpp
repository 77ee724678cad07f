#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hardwood/cells/ball.hpp"
#include "hardwood/verify/cut.hpp"

namespace hardwood::verify {

/// Which features could fool the model where only a few of them may change.
///
/// A leaf needs certain features to change, by at least some step. What a set of features can reach
/// is at most the sum over the trees of the best leaf that needs none but these: the plain bound of
/// the set. Few sets pass it, and with all other features at home each of them is a small question.
class ChangeSets {
 public:
  using Features = std::span<const std::int32_t>;
  static constexpr int kFew = 4;  ///< with more changes, too many sets pass

  /// Sets of at most `ball.max_changes()` features and steps of at most `farthest`, for one
  /// question.
  ChangeSets(const Ball& ball, const Question& question, std::span<const Ensemble::Member> members,
             double farthest);

  /// Call `see` with the sets that their plain bound does not rule out for steps of at most
  /// `radius`, until it returns true; false if there is no such set any more. Sets are as large as
  /// they may be: what fewer changes can do is part of what they can do.
  bool any_of(double radius, const std::function<bool(Features)>& see);

  /// Whether there are so many sets that looking at them was given up; then `any_of` says true.
  bool too_many() const { return too_many_; }

 private:
  struct Leaf {
    std::int32_t tree;
    std::int32_t first;  // of the features that it needs to change
    std::int32_t n;
    double gain;  // over the leaf of the row itself
    double step;
  };
  /// What a level of the search has left, tree by tree.
  struct Level {
    std::vector<Leaf> leaves;
    std::vector<std::pair<double, std::int32_t>> order;  // what each feature can gain at most
  };
  enum class Status : std::uint8_t { kOpen, kChosen, kLeftOut };

  void read_tree(std::int32_t at, const Ensemble::Member& member);
  void enter(std::int32_t at, const Ensemble::Member& member, std::size_t f, double step,
             bool changes);
  void keep_best(std::size_t first);
  double weigh(std::span<const Leaf> leaves, Level& level, std::size_t n_more);
  bool explore(std::span<const Leaf> leaves, std::size_t depth,
               const std::function<bool(Features)>& see);
  Features features_of(const Leaf& leaf) const {
    return Features(needed_to_change_)
        .subspan(static_cast<std::size_t>(leaf.first), static_cast<std::size_t>(leaf.n));
  }

  const Ball& ball_;
  std::size_t most_;  // features
  double margin_;     // of the row itself
  double needed_;
  int n_sets_ = 0;             // that were seen
  std::size_t n_weighed_ = 0;  // leaves
  bool too_many_ = false;
  std::vector<Leaf> leaves_;
  std::vector<std::int32_t> needed_to_change_;
  std::vector<std::int32_t> movable_;  // features
  std::int32_t tree_ = 0;
  double home_value_ = 0;

  std::vector<Cells> cells_;            // within reach, narrowed while walking down
  std::vector<std::int32_t> n_places_;  // within reach
  std::vector<std::int32_t> changed_;   // while walking down
  double step_ = 0;

  std::vector<Leaf> within_;  // the radius
  std::vector<Level> levels_;
  std::vector<Status> status_;  // per feature
  std::vector<std::int32_t> chosen_;
  std::vector<double> gain_;       // per feature: of all trees
  std::vector<double> tree_gain_;  // per feature: of one
  std::vector<std::int32_t> touched_;
};

}  // namespace hardwood::verify
