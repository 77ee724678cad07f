#pragma once

#include <limits>
#include <vector>

#include "hardwood/verify/search.hpp"

namespace hardwood::verify {

/// Searches for the cheapest point that fools the model, in a norm that sums up steps.
class CostSearch : public Search {
 public:
  /// Points count if their length is below `bar` or, where `closed`, at most `bar`.
  CostSearch(const Ensemble& ensemble, const Ball& ball, const Property& property,
             const Clock& clock, double bar, bool closed)
      : Search(ensemble, ball, property, clock), bar_(bar), closed_(closed) {}

  /// The largest cost that counts: nothing dearer needs to be looked at.
  double budget() const;
  /// In what steps are counted where they cost: see `unit_of`. A cut is made for one unit.
  double unit() const { return unit_; }
  void count_anew() { unit_ = cells::unit_of(bar_); }
  double bar() const { return bar_; }
  bool closed() const { return closed_; }
  void set_bar(double bar) { bar_ = bar; }

  /// Take an example from elsewhere, as a start; it is made cheaper. False if it does not count.
  bool improve(const Cut& cut, const Point& point);

  /// kNone: nothing in the cut counts. kFound: an example was found, bar() is lower (not where the
  /// bar is closed) and a cut to the new budget is worth its while, or any example will do.
  Answer cheapest(Cut& cut, State& state, Scope scope = Scope::kFull);

  /// After kTime or kRounding: no point of the cut that counts costs less than this.
  double open_cost() const { return open_cost_; }
  const Point& example() const { return found_; }
  bool has_example() const { return has_example_; }

 private:
  Answer bound_and_try(const Cut& cut, State& state, bool root);
  Answer look(const Cut& cut, State& state, std::size_t depth);
  Answer branch(const Cut& cut, State& state, std::size_t depth);
  static bool sparse(const Cut& cut, const State& state);
  bool narrow(const Cut& cut, State& state) const;
  bool drop_dear(const Cut& cut, State& state);
  bool narrow_changes(const Cut& cut, State& state) const;
  bool refresh(const Cut& cut, State& state);
  double lower_cost(const State& state) const;
  bool try_points(const Cut& cut, const State& state, bool thorough);
  void follow_costs(const Cut& cut, const State& state);
  bool polish(const Cut& cut);
  bool repair(const Cut& cut);
  void descend(const Cut& cut);
  bool take(const Cut& cut);
  void begin_moves(const Cut& cut);
  void move(const Cut& cut, std::size_t f, std::int32_t cell);
  const std::int64_t* gains_of(const Cut& cut, std::size_t f);
  double cost_at(const Cut& cut, std::size_t f, std::int32_t cell) const {
    return cut.cost[static_cast<std::size_t>(cut.cell_start[f] + cell)];
  }
  /// The cost of the cheapest of some cells that lie side by side.
  double least_cost(const Cut& cut, std::size_t f, Cells cells) const {
    return cost_at(cut, f, std::clamp(cut.home[f], cells.lo, cells.hi));
  }

  double bar_;
  bool closed_;
  double unit_ = 1;
  bool has_example_ = false;
  double built_ = 0;  // the budget that the cut was made for
  double open_cost_ = 0;
  double root_floor_ = 0;  // proven for the whole cut
  std::int64_t n_nodes_ = 0;
  std::vector<std::int64_t> gains_;  // per cell of the cut, kept while nothing near moves
  std::vector<std::uint8_t> fresh_;  // per feature
  std::vector<double> least_;        // per feature: what its cheapest cell costs
  std::vector<double> due_;          // per interval of a link: what its cheapest cell costs beyond
  std::vector<double> dues_;         // per leaf: the sum of these
};

}  // namespace hardwood::verify
