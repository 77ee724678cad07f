#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/attack/near_trees.hpp"

namespace hardwood::attack {

/// A point that moves one feature at a time, in a norm that sums up steps: what every next move
/// would gain and cost, kept up to date.
///
/// Features are those that the near trees split on. A feature's places lie between the thresholds
/// of these trees; each stands for its cell next to home. When a feature moves, only trees that
/// sent the point, or the point with one change, left or right by a threshold in between are read
/// again.
class Moves {
 public:
  struct Side {  ///< of a leaf's box
    std::int32_t feature;
    cells::Cells places;
  };
  struct Leaf {
    double value;
    std::size_t side;  ///< the first of its sides
    std::size_t end;   ///< behind the last
  };
  struct Entry {  ///< into a leaf
    double gain;  ///< of its own tree
    double cost;
  };

  /// Take the trees as they were built last; costs are counted in `unit`.
  void build(const NearTrees& near, const cells::Ball& ball, double unit = 1);
  /// Go to a point, given by cells of all features of the model, within the trees' radius.
  void start(std::span<const std::int32_t> cells);
  void start_at_home();
  void move(std::size_t feature, std::size_t place);
  /// Move every feature that has to, by as little as possible.
  void enter(const Leaf& leaf);
  void save();
  void go_back();

  std::size_t n_features() const { return home_.size(); }
  std::size_t n_trees() const { return root_.size(); }
  double value() const { return value_; }
  double cost() const { return cost_; }
  std::span<const std::int32_t> places() const { return point_; }
  std::size_t place(std::size_t feature) const { return static_cast<std::size_t>(point_[feature]); }
  std::size_t home(std::size_t feature) const { return static_cast<std::size_t>(home_[feature]); }
  std::span<const double> costs(std::size_t feature) const {
    return {costs_.data() + start_[feature], n_places(feature)};
  }
  /// What the value gains at each place of a feature.
  std::span<const double> gains(std::size_t feature);
  /// The largest of them.
  double most_gain(std::size_t feature) {
    gains(feature);
    return most_gain_[feature];
  }
  std::span<const Leaf> leaves(std::size_t tree) const {
    return {leaves_.data() + leaf_start_[tree], leaf_start_[tree + 1] - leaf_start_[tree]};
  }
  /// What entering a leaf would gain in its tree, and cost; no gain where a single move is enough.
  Entry entry(std::size_t tree, const Leaf& leaf) const;
  /// What entering a leaf would gain in all trees.
  double gain_of(const Leaf& leaf);
  /// The point as cells of the model's features; features that no tree splits on are left alone.
  void write(std::span<std::int32_t> cells) const;

  int n_moves = 0;  ///< so far; for those who count

  // Ways down the trees.
  struct Node {
    std::int32_t feature;  ///< kLeaf for leaves
    std::int32_t rank;     ///< left when place <= rank
    std::int32_t left;
    std::int32_t right;
    double value;
  };
  const Node& node(std::int32_t at) const { return nodes_[static_cast<std::size_t>(at)]; }
  bool goes_left(std::int32_t at, std::int32_t place) const { return place <= node(at).rank; }

 private:
  struct Change {  ///< of a tree's value, if one feature had one of these places
    std::int32_t feature;
    cells::Cells places;
    double gain;
  };
  struct Asked {  ///< a threshold that the point itself was compared with
    std::int32_t feature;
    std::int32_t rank;
  };

  struct Reading {  ///< of a tree, around the point
    double here;    ///< its value
    std::vector<Change> changes;
    std::vector<Asked> asked;
  };
  struct Asking;

  std::int32_t nearest_place(const Side& side) const {
    return std::clamp(point_[static_cast<std::size_t>(side.feature)], side.places.lo,
                      side.places.hi);
  }
  double value_at_point(std::size_t tree) const {
    return node(cells::leaf_of(*this, root_[tree], point_)).value;
  }
  void number_places(const NearTrees& near, const cells::Ball& ball, double unit);
  void list_leaves(std::int32_t at);
  void read_all();
  void read(std::size_t tree);
  void read_again(std::size_t tree);
  void count(const Reading& reading, double sign);
  void add(const Change& change, double gain);
  std::span<const Side> box(const Leaf& leaf) const {
    return {sides_.data() + leaf.side, leaf.end - leaf.side};
  }
  std::size_t n_places(std::size_t feature) const {
    return start_[feature + 1] - start_[feature] - 1;
  }
  cells::Cells all_places(std::size_t feature) const {
    return {0, static_cast<std::int32_t>(n_places(feature)) - 1};
  }

  std::vector<Node> nodes_;
  std::vector<std::int32_t> root_;  // per tree
  std::vector<std::size_t> leaf_start_;
  std::vector<Leaf> leaves_;
  std::vector<Side> sides_;
  std::vector<std::vector<std::int32_t>> trees_of_;  // per feature
  std::vector<std::size_t> feature_;                 // its number in the model
  std::vector<std::int32_t> home_;
  std::vector<std::size_t> start_;  // per feature, into what follows: its places and one more
  std::vector<std::int32_t> cell_;
  std::vector<double> costs_;
  std::vector<double> difference_;  // of gains, from one place to the next
  std::vector<double> gains_;
  std::vector<double> most_gain_;    // per feature
  std::vector<std::uint8_t> fresh_;  // per feature: gains_ sum up difference_

  std::vector<std::int32_t> point_;
  double constant_ = 0;
  double value_ = 0;
  double cost_ = 0;
  std::vector<Reading> readings_;      // per tree
  std::vector<cells::Cells> stays_;    // per feature: its places on the way down
  std::vector<std::size_t> asked_by_;  // per tree: the last question of gain_of that read it
  std::size_t n_asked_ = 0;
  std::vector<std::int32_t> from_;  // places of the sides of a leaf

  // What was saved; of the trees, only those that were read again since.
  std::vector<std::int32_t> saved_point_;
  double saved_value_ = 0;
  double saved_cost_ = 0;
  std::vector<std::size_t> read_again_;
  std::vector<std::uint8_t> is_read_again_;  // per tree
  std::vector<Reading> saved_readings_;      // per tree

  // While building.
  std::vector<std::size_t> offset_;     // per feature, into place_of_
  std::vector<std::int32_t> place_of_;  // cells
  std::vector<std::int32_t> number_;    // per feature of the model: ours
  std::vector<std::int32_t> path_;
};

}  // namespace hardwood::attack
