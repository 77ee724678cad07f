#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/attack/moves.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::attack {

/// Looks for cheap points at which the near trees reach a value, in a norm that sums up steps.
///
/// Points are repaired (the steps with the best gain for their cost are taken until the value is
/// enough) and shed (steps are taken back as long as it stays enough). Draws are the same on every
/// machine and for every row.
class LocalSearch {
 public:
  /// `keep` gets every point that was shed.
  LocalSearch(std::function<void(const Moves&)> keep, const Watch& watch)
      : keep_(std::move(keep)), watch_(watch) {}

  /// Take the trees as they were built last; costs are counted in `unit`.
  void build(const NearTrees& near, const cells::Ball& ball, double unit);

  /// Shed a point, given by cells of all features of the model.
  void shed_from(std::span<const std::int32_t> cells);
  /// The same after coordinate ascent, whatever that costs.
  void climb_from(std::span<const std::int32_t> cells);
  /// Repair and shed the row itself; `squares`: let costs weigh less.
  void repair_home(bool squares);
  /// From a point whose value is enough: give some features up and repair without them, or take
  /// more steps than needed, and shed; go on from there if that is cheaper. Where nothing is
  /// cheaper for long, go on from elsewhere.
  void iterate(std::span<const std::int32_t> cells, int n_moves);

 private:
  struct Stuck {  ///< a point from which nothing cheaper was found
    double cost;
    std::vector<std::int32_t> places;
  };

  struct Proposed {  ///< a leaf, by its own tree
    double rate;
    double cost;
    const Moves::Leaf* leaf;
  };

  bool enough() const { return moves_.value() >= needed_; }
  int n_changed() const;
  void ascend();
  void shed();
  bool repair(double most);
  double rate(double gain, double missing, double favour, double dearer) const;
  bool rise(double missing);
  void enter_leaf(double missing);
  void randomise();
  void perturb(double most);
  void go_elsewhere(double best);
  void remember(double cost);
  void mix();
  void enter_some_leaf(double most);
  void propose(std::size_t tree, const Moves::Leaf& leaf, double most);
  void enter_best(double missing);

  double draw() { return static_cast<double>(random_() >> 8) * 0x1p-24; }
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(draw() * static_cast<double>(n));
  }

  std::function<void(const Moves&)> keep_;
  const Watch& watch_;
  Moves moves_;
  double needed_ = 0;
  bool squares_ = false;  // gains count squared, costs less
  std::mt19937 random_;
  std::vector<double> favour_;        // per feature of moves_: what its gains count; 0 bars it
  std::vector<std::size_t> changed_;  // features of moves_
  std::vector<Proposed> proposed_;
  std::vector<Stuck> stuck_;  // the cheapest, cheapest first
};

}  // namespace hardwood::attack
