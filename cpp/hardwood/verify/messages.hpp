#pragma once

#include <cstdint>
#include <vector>

#include "hardwood/verify/cut.hpp"

namespace hardwood::verify {

// Ranges of the whole numbers. A worth or share may always be raised without making the bound
// wrong, so all of them stop at a floor instead of overflowing.
inline constexpr std::int32_t kShareFloor = -(1 << 28);
inline constexpr std::int32_t kWorthFloor = -(1 << 30);

/// What is known about a box of cells: which are left, and how value is spread over the factors.
///
/// Every factor holds, per feature, a share of what the cells of that feature are worth. The shares
/// of a feature sum to at least its own value (`alone`) in every cell that is left, whoever holds
/// them, so `bound` = base + the sum over factors of the best leaf is never below the value of any
/// point in the box. Shares are kept as their maxima over the intervals that leaves ask for, and
/// shifted to be <= 0; what is shifted away is in `base`.
struct State {
  std::vector<Cells> cells;           // per feature of the cut
  std::vector<std::uint8_t> changed;  // per feature: its cells changed since its last update
  std::vector<std::int64_t> base_of;  // per feature: what its shares were shifted by
  std::vector<std::int32_t> share;    // per interval: the maximum of the share there
  std::vector<std::int32_t> worth;    // per leaf: its value and its shares
  std::vector<std::uint16_t> alive;   // leaves of each factor that may still matter
  std::vector<std::int32_t> n_alive;  // per factor
  std::vector<std::int32_t> best;     // per factor
  std::int64_t bound = 0;
  std::int64_t needed = 0;  // what a point of the box must be worth: at least the cut's own

  // Where points have a cost and the costs a budget: whatever is left of the budget is worth
  // `price` a unit of cost, in the value's own units, so a bound below `needed` proves that no
  // point is good enough and cheap enough. The costs take part in sharing like one more factor.
  double price = 0;
  std::int64_t allowance = 0;           // the whole budget at that price, rounded up; in the bound
  std::vector<std::int64_t> held;       // per cell: the share that meets the cost; empty: no costs
  std::vector<std::int64_t> held_best;  // per feature: the best of held less the cost at its price

  bool dead() const { return bound <= kNever; }
};

/// Message passing: shifts value between factors that share a feature, which lowers the bound.
class Messages {
 public:
  void start(const Cut& cut, State& state);
  /// Start with costs, at a price.
  void start(const Cut& cut, State& state, double price, double budget);
  /// Move to the price with the lowest bound, for the shares as they are.
  void reprice(const Cut& cut, State& state, double budget);
  void set_price(const Cut& cut, State& state, double price, double budget);

  /// Share feature f out anew, evenly among its factors; drops leaves and cells that cannot be part
  /// of a point of value `needed`. Sets `bound` to kNever when nothing is left.
  void update(const Cut& cut, State& state, std::size_t f);

  /// Update every feature once; true as long as the bound does not prove the box empty.
  bool sweep(const Cut& cut, State& state);

  /// Drop the leaves that cannot be part of a point of value `needed`; false if that proves the box
  /// empty.
  bool prune(const Cut& cut, State& state);

 private:
  bool rank_leaves(const Cut& cut, State& state, const Cut::Link& link);
  bool gather(const Cut& cut, State& state, const Cut::Link& link, Cells cells);
  bool decide_cells(const Cut& cut, State& state, std::size_t f, std::int64_t others,
                    std::size_t n);
  void tabulate_maxima(Cells cells, bool by_level);
  std::int32_t share_in(std::int32_t lo, std::int32_t hi) const;
  bool spread(const Cut& cut, State& state, const Cut::Link& link, Cells cells);
  bool revalue(const Cut& cut, State& state, const Cut::Link& link, std::int32_t shift);

  std::vector<std::int64_t> total_;  // per cell, first as differences
  std::vector<std::int32_t> level_;  // maxima of the share over runs of 2^k cells
  std::size_t stride_ = 0;
  std::vector<std::int32_t> up_to_;      // maxima of the share over the cells up to one
  std::vector<std::int32_t> from_;       // and from one on
  std::vector<std::int32_t> interval_;   // scratch, per interval of a link
  std::vector<std::int32_t> atom_best_;  // per atom, as in Cut::atom_cell
  std::vector<std::int32_t> atom_share_;
};

}  // namespace hardwood::verify
