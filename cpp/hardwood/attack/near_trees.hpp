#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hardwood/cells/ball.hpp"
#include "hardwood/cells/ways.hpp"

namespace hardwood::attack {

/// The leaves near a row, for one question: trees without the branches that no step of at most
/// `radius` reaches, trees with one leaf left added up.
///
/// Values are doubles, summed in any order: a guide for attacks, whose examples are replayed.
class NearTrees {
 public:
  using Value = double;
  static constexpr double kNoise = 1e-12;  ///< a gain that is none

  struct Node {
    std::int32_t feature;  ///< kLeaf for leaves
    std::int32_t rank;     ///< left when cell <= rank; a leaf: its position in `leaves`
    std::int32_t left;
    std::int32_t right;
    std::int32_t parent;  ///< -1 for roots
  };
  struct Leaf {
    double value;  ///< plus - minus
    double step;   ///< the largest step on the way into its box
    std::int32_t node;
  };
  struct Side {  ///< of a leaf's box
    std::int32_t feature;
    cells::Cells cells;
  };
  struct Tree {
    std::int32_t root;
    std::int32_t end;   ///< behind the last of its nodes, of which the root is the first
    std::int32_t leaf;  ///< the first of its leaves
    std::int32_t n_leaves;
  };

  explicit NearTrees(const cells::Ensemble& ensemble);

  /// In a norm that sums up steps, branches that cost more than `budget`, counted in `unit`, are
  /// left out, too.
  void build(const cells::Ball& ball, const cells::Question& question,
             std::span<const cells::Ensemble::Member> members, double radius,
             double budget = std::numeric_limits<double>::infinity(), double unit = 1);

  /// The smallest radius at which the trees' best leaves, each on its own, reach a value of 0;
  /// infinity if that is beyond `radius`. `likely` is where they reach a share of what is missing
  /// at home on top, at most kWithin times as far: leaves do not fit together, so an example needs
  /// some room. It holds if `radius` is as large. Forgets the trees.
  static constexpr double kWithin = 1.4;
  double plain_radius(double share, double& likely, const cells::Ball& ball,
                      const cells::Question& question,
                      std::span<const cells::Ensemble::Member> members, double radius);

  /// The features that some tree still splits on.
  std::span<const std::size_t> features() const { return features_; }
  /// The cells of a feature that the radius of the last `build` reaches.
  cells::Cells cells(std::size_t feature) const { return cells_[feature]; }
  double step(std::size_t feature, std::int32_t cell) const { return ball_->step(feature, cell); }
  /// The value that answers the question; a tie does where the rival comes first.
  double enough() const { return enough_; }
  double constant() const { return constant_; }  ///< the sum of what is no longer a tree
  std::span<const Node> nodes() const { return nodes_; }
  const Node& node(std::int32_t at) const { return nodes_[static_cast<std::size_t>(at)]; }
  bool goes_left(std::int32_t at, std::int32_t cell) const { return cell <= node(at).rank; }
  const Leaf& leaf(std::int32_t at) const {
    return leaves[static_cast<std::size_t>(node(at).rank)];
  }
  /// The trees that split on a feature.
  const std::vector<std::int32_t>& trees_of(std::size_t feature) const {
    return trees_of_[feature];
  }
  /// The box of a leaf: the features on its path, within the ball.
  void box_of(const Leaf& leaf, std::vector<Side>& box) const;
  double value(std::span<const std::int32_t> point) const;
  /// add(cells, value) for what each tree on a feature says if its cell were one of these.
  template <class Add>
  void each_value(std::size_t feature, std::span<const std::int32_t> point, cells::Cells cells,
                  Add&& add) const {
    for (const std::int32_t tree : trees_of_[feature]) {
      cells::each_leaf_beside(
          *this, trees[static_cast<std::size_t>(tree)].root, point,
          static_cast<std::int32_t>(feature), cells,
          [&](std::int32_t at, cells::Cells some) { add(some, leaf(at).value); });
    }
  }

  std::vector<Tree> trees;
  std::vector<Leaf> leaves;

 private:
  struct Event {
    double step;
    double gain;
  };

  std::int32_t visit(std::int32_t at, const cells::Ensemble::Member& member, std::int32_t parent,
                     double step, double cost);
  void see(std::int32_t at, const cells::Ensemble::Member& member, double step);
  double value_of(const cells::Ensemble::Node& leaf, const cells::Ensemble::Member& member) const {
    double value = 0;
    if (member.plus >= 0) value += ensemble_.value(leaf.rank, member.plus);
    if (member.minus >= 0) value -= ensemble_.value(leaf.rank, member.minus);
    return value;
  }

  const cells::Ensemble& ensemble_;
  const cells::Ball* ball_ = nullptr;
  double constant_ = 0;
  double enough_ = 0;
  double budget_ = 0;
  double unit_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::size_t> features_;
  cells::Within within_;                             // the ball
  std::vector<cells::Cells> cells_;                  // of the ball, narrowed while walking down
  std::vector<std::vector<std::int32_t>> trees_of_;  // per feature
  std::vector<Event> events_;
};

}  // namespace hardwood::attack
