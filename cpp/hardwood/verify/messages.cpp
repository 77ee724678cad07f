#include "hardwood/verify/messages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace hardwood::verify {
namespace {

// What the costs get of a feature, for every factor on it: with an even share, the price would
// follow the factors only slowly where there are many.
constexpr double kCostShare = 0.3;
constexpr std::int32_t kGone = std::numeric_limits<std::int32_t>::min();  // below every floor

/// A leaf stays while, with the best of everything else, it still gets to what is needed.
std::int32_t least_worth(const State& state, std::size_t factor) {
  return static_cast<std::int32_t>(
      std::max<std::int64_t>(state.best[factor] + state.needed - state.bound, kWorthFloor));
}

/// What a cell's cost takes from its value: never more than the price says.
std::int64_t toll(double price, double cost) {
  const double exact = price * cost;
  return exact > 1 ? static_cast<std::int64_t>(std::min(exact, 0x1p40)) - 1 : 0;
}

}  // namespace

void Messages::start(const Cut& cut, State& state) {
  const std::size_t n_features = cut.n_features();
  state.cells.resize(n_features);
  state.base_of.resize(n_features);
  state.changed.assign(n_features, 1);
  state.bound = 0;
  state.needed = cut.needed;
  state.held.clear();
  for (std::size_t f = 0; f < n_features; ++f) {
    state.cells[f] = {0, cut.n_cells(f) - 1};
    state.base_of[f] = *std::max_element(cut.alone.begin() + cut.cell_start[f],
                                         cut.alone.begin() + cut.cell_start[f + 1]);
    state.bound += state.base_of[f];
  }
  state.share.assign(cut.intervals.size(), 0);
  state.worth = cut.value;
  state.alive.resize(cut.value.size());
  state.n_alive.resize(cut.factors.size());
  state.best.resize(cut.factors.size());
  for (std::size_t t = 0; t < cut.factors.size(); ++t) {
    const Cut::Factor& factor = cut.factors[t];
    const auto first = state.alive.begin() + factor.leaf;
    std::iota(first, first + factor.n_leaves, std::uint16_t{0});
    state.n_alive[t] = factor.n_leaves;
    state.best[t] = *std::max_element(cut.value.begin() + factor.leaf,
                                      cut.value.begin() + factor.leaf + factor.n_leaves);
    state.bound += state.best[t];
  }
}

void Messages::start(const Cut& cut, State& state, double price, double budget) {
  start(cut, state);
  for (std::int64_t& base : state.base_of) {
    state.bound -= base;
    base = 0;
  }
  state.held = cut.alone;
  state.held_best.assign(cut.n_features(), 0);
  state.allowance = 0;
  set_price(cut, state, price, budget);
}

void Messages::set_price(const Cut& cut, State& state, double price, double budget) {
  state.price = price;
  state.bound -= state.allowance;
  state.allowance = static_cast<std::int64_t>(std::min(std::ceil(price * budget), 0x1p42)) + 1;
  state.bound += state.allowance;
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    std::int64_t best = kNever;
    for (std::int32_t c = state.cells[f].lo; c <= state.cells[f].hi; ++c) {
      const auto at = static_cast<std::size_t>(cut.cell_start[f] + c);
      best = std::max(best, state.held[at] - toll(price, cut.cost[at]));
    }
    state.bound += best - state.held_best[f];
    state.held_best[f] = best;
  }
}

/// The bound is convex and piecewise linear in the price: cut down the bracket where the lines at
/// its two ends meet.
void Messages::reprice(const Cut& cut, State& state, double budget) {
  struct Line {
    double price;
    double value;
    double slope;
  };
  const auto line_at = [&](double price) {
    Line line{price, price * budget, budget};
    for (std::size_t f = 0; f < cut.n_features(); ++f) {
      double best = -std::numeric_limits<double>::infinity();
      double cost = 0;
      for (std::int32_t c = state.cells[f].lo; c <= state.cells[f].hi; ++c) {
        const auto at = static_cast<std::size_t>(cut.cell_start[f] + c);
        const double mine = static_cast<double>(state.held[at]) - price * cut.cost[at];
        if (mine > best) best = mine, cost = cut.cost[at];
      }
      line.value += best;
      line.slope -= cost;
    }
    return line;
  };
  const Line here = line_at(state.price);
  Line low = here;
  Line high = here;
  if (here.slope < 0) {
    for (int i = 0; i < 40 && high.slope < 0; ++i) {
      low = high;
      high = line_at(std::max(high.price * 2, 1e-3));
    }
    if (high.slope < 0) return;
  } else {
    for (int i = 0; i < 6 && low.slope >= 0; ++i) {
      high = low;
      low = line_at(low.price / 2);
    }
    if (low.slope >= 0) low = line_at(0);
  }
  Line best = low.value < high.value ? low : high;
  for (int i = 0; i < 8 && low.slope < 0; ++i) {
    const double meet = (high.value - high.slope * high.price - low.value + low.slope * low.price) /
                        (low.slope - high.slope);
    if (!(meet > low.price && meet < high.price)) break;
    const Line line = line_at(meet);
    if (line.value < best.value) best = line;
    if (line.value <= low.value + low.slope * (meet - low.price) + 1) break;
    (line.slope < 0 ? low : high) = line;
  }
  if (best.value < here.value) set_price(cut, state, best.price, budget);
}

/// The best leaf of every interval of a link goes to interval_, and leaves that cannot matter are
/// dropped; false if none is left.
bool Messages::rank_leaves(const Cut& cut, State& state, const Cut::Link& link) {
  const auto t = static_cast<std::size_t>(link.factor);
  const auto n_intervals = static_cast<std::size_t>(link.n_intervals);
  std::uint16_t* alive = state.alive.data() + link.leaf;
  const std::int32_t* worth = state.worth.data() + link.leaf;
  const std::uint16_t* id = cut.id.data() + link.id;
  const std::int32_t least = least_worth(state, t);
  if (interval_.size() < n_intervals) interval_.resize(n_intervals);
  std::int32_t* interval = interval_.data();
  for (std::size_t q = 0; q < n_intervals; ++q) interval[q] = kGone;
  std::int32_t n_alive = 0;
  for (std::int32_t k = 0; k < state.n_alive[t]; ++k) {
    const std::uint16_t leaf = alive[k];
    const std::int32_t mine = worth[leaf];
    if (mine < least) continue;
    alive[n_alive++] = leaf;
    interval[id[leaf]] = std::max(interval[id[leaf]], mine);
  }
  state.n_alive[t] = n_alive;
  return n_alive > 0;
}

/// The best leaf per atom, without the share of this feature; adds it to the totals of the cells.
bool Messages::gather(const Cut& cut, State& state, const Cut::Link& link, Cells cells) {
  if (!rank_leaves(cut, state, link)) return false;
  const std::int32_t* share = state.share.data() + link.interval;
  const std::int32_t* start = cut.atom_cell.data() + link.atom;
  std::int32_t* best = atom_best_.data() + link.atom;
  const auto rest = [&](std::size_t q) {
    return interval_[q] == kGone ? kGone : interval_[q] - share[q];
  };
  const auto total = [](std::int32_t one) { return one == kGone ? kNever : std::int64_t{one}; };
  if (link.one_threshold()) {
    best[0] = std::max(rest(0), rest(1));
    best[1] = std::max(rest(1), rest(2));
    const std::int64_t below = total(best[start[1] > cells.lo ? 0 : 1]);
    total_[static_cast<std::size_t>(cells.lo)] += below;
    if (start[1] > cells.lo && start[1] <= cells.hi) {
      total_[static_cast<std::size_t>(start[1])] += total(best[1]) - below;
    }
    return true;
  }
  const auto n_atoms = static_cast<std::size_t>(link.n_atoms);
  std::fill_n(best, n_atoms, kGone);
  for (std::size_t q = 0; q < static_cast<std::size_t>(link.n_intervals); ++q) {
    const std::int32_t mine = rest(q);
    if (mine == kGone) continue;
    if (link.n_words > 0) {
      cells::for_each_bit(cut.set_of(link, q),
                          [&](std::size_t atom) { best[atom] = std::max(best[atom], mine); });
      continue;
    }
    const auto [lo, hi] = cut.intervals[static_cast<std::size_t>(link.interval) + q];
    for (std::size_t atom = lo; atom <= hi; ++atom) best[atom] = std::max(best[atom], mine);
  }
  std::int64_t before = 0;
  for (std::size_t atom = 0; atom < n_atoms; ++atom) {
    if (start[atom + 1] <= cells.lo) continue;
    if (start[atom] > cells.hi) break;
    const std::int64_t mine = total(best[atom]);
    total_[static_cast<std::size_t>(std::max(start[atom], cells.lo))] += mine - before;
    before = mine;
  }
  return true;
}

/// Turn differences into totals, drop cells at the ends, and set each cell's share.
bool Messages::decide_cells(const Cut& cut, State& state, std::size_t f, std::int64_t others,
                            std::size_t n) {
  Cells& cells = state.cells[f];
  const std::int64_t* alone = cut.alone.data() + cut.cell_start[f];
  const std::int64_t least = state.needed - others;
  const bool costs = !state.held.empty();
  const double n_shares =
      static_cast<double>(n) + (costs ? 1 + kCostShare * static_cast<double>(n) : 0);
  const double even = n_shares == 0 ? 0.0 : 1.0 / n_shares;
  const double* cost = cut.cost.data() + cut.cell_start[f];
  std::int64_t* held = costs ? state.held.data() + cut.cell_start[f] : nullptr;
  stride_ = static_cast<std::size_t>(cut.n_cells(f));
  if (level_.size() < stride_) level_.resize(stride_);
  std::int64_t sum = 0;
  std::int64_t top = kNever;
  std::int64_t held_top = kNever;
  Cells left{cells.hi + 1, cells.lo - 1};
  for (std::int32_t c = cells.lo; c <= cells.hi; ++c) {
    const auto at = static_cast<std::size_t>(c);
    sum += total_[at];
    const std::int64_t fee = costs ? toll(state.price, cost[at]) : 0;
    const std::int64_t total = sum + alone[at] - fee;
    if (total < least) {
      level_[at] = kGone;
      if (costs) held[at] = kNever;
      continue;
    }
    left.lo = std::min(left.lo, c);
    left.hi = c;
    top = std::max(top, total);
    // One above the quotient rounded towards zero is never less than the quotient.
    const auto mine = static_cast<std::int64_t>(static_cast<double>(total) * even) + 1;
    level_[at] = static_cast<std::int32_t>(std::max<std::int64_t>(mine, kWorthFloor));
    if (costs) {
      const std::int64_t rest = total - static_cast<std::int64_t>(n) * level_[at];
      held[at] = rest + fee;
      held_top = std::max(held_top, rest);
    }
  }
  cells = left;
  if (costs) {
    state.held_best[f] = held_top;
  } else if (n == 0) {
    state.base_of[f] = top;
  }
  return left.lo <= left.hi;
}

/// up_to_[c], from_[c]: the maximum over the cells up to c and from c on, which is all that links
/// of one threshold ask for. For the others, level_[k * stride + c] has the one over cells c to c +
/// 2^k - 1.
void Messages::tabulate_maxima(Cells cells, bool by_level) {
  if (up_to_.size() < stride_) up_to_.resize(stride_), from_.resize(stride_);
  std::int32_t top = kGone;
  for (std::int32_t c = cells.lo; c <= cells.hi; ++c) {
    up_to_[static_cast<std::size_t>(c)] = top = std::max(top, level_[static_cast<std::size_t>(c)]);
  }
  top = kGone;
  for (std::int32_t c = cells.hi; c >= cells.lo; --c) {
    from_[static_cast<std::size_t>(c)] = top = std::max(top, level_[static_cast<std::size_t>(c)]);
  }
  if (!by_level) return;
  const auto n = static_cast<std::size_t>(cells.hi - cells.lo + 1);
  const auto n_levels = static_cast<std::size_t>(std::bit_width(n));
  if (level_.size() < n_levels * stride_) level_.resize(n_levels * stride_);
  for (std::size_t k = 1; k < n_levels; ++k) {
    const std::size_t half = std::size_t{1} << (k - 1);
    const std::int32_t* from = level_.data() + (k - 1) * stride_ + cells.lo;
    std::int32_t* to = level_.data() + k * stride_ + cells.lo;
    for (std::size_t c = 0; c + 2 * half <= n; ++c) to[c] = std::max(from[c], from[c + half]);
  }
}

std::int32_t Messages::share_in(std::int32_t lo, std::int32_t hi) const {
  const auto k =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(hi - lo + 1)) - 1);
  const std::int32_t* level = level_.data() + k * stride_;
  return std::max(level[lo], level[hi + 1 - (1 << k)]);
}

/// Give the factor its new share; false if none of its leaves is left.
bool Messages::spread(const Cut& cut, State& state, const Cut::Link& link, Cells cells) {
  const std::int32_t* start = cut.atom_cell.data() + link.atom;
  const std::int32_t* best = atom_best_.data() + link.atom;
  std::int32_t* share = state.share.data() + link.interval;
  const auto share_of = [](std::int32_t all, std::int32_t mine) {
    return all == kGone || mine == kGone ? kGone : all - mine;
  };
  std::int32_t top = kGone;
  // What an interval gains: its new share, shifted to be at most 0, without the one before.
  const auto replace = [&](std::size_t q, std::int32_t mine) {
    if (mine == kGone) {
      interval_[q] = kGone;
      return;
    }
    const std::int32_t shifted = std::max(mine - top, kShareFloor);
    interval_[q] = shifted - share[q];
    share[q] = shifted;
  };
  if (link.one_threshold()) {
    const std::int32_t last = std::min(start[1] - 1, cells.hi);
    const std::int32_t first = std::max(start[1], cells.lo);
    const std::int32_t below =
        last < cells.lo ? kGone : share_of(up_to_[static_cast<std::size_t>(last)], best[0]);
    const std::int32_t above =
        first > cells.hi ? kGone : share_of(from_[static_cast<std::size_t>(first)], best[1]);
    top = std::max(below, above);
    if (top == kGone) return false;
    replace(0, below);
    replace(1, top);
    replace(2, above);
    return revalue(cut, state, link, top);
  }
  const auto n_atoms = static_cast<std::size_t>(link.n_atoms);
  atom_share_.assign(n_atoms, kGone);
  for (std::size_t atom = 0; atom < n_atoms; ++atom) {
    const std::int32_t lo = std::max(start[atom], cells.lo);
    const std::int32_t hi = std::min(start[atom + 1] - 1, cells.hi);
    if (lo <= hi) atom_share_[atom] = share_of(share_in(lo, hi), best[atom]);
    top = std::max(top, atom_share_[atom]);
  }
  if (top == kGone) return false;
  for (std::size_t q = 0; q < static_cast<std::size_t>(link.n_intervals); ++q) {
    std::int32_t mine = kGone;
    if (link.n_words > 0) {
      cells::for_each_bit(cut.set_of(link, q),
                          [&](std::size_t atom) { mine = std::max(mine, atom_share_[atom]); });
    } else {
      const auto [lo, hi] = cut.intervals[static_cast<std::size_t>(link.interval) + q];
      for (std::size_t atom = lo; atom <= hi; ++atom) mine = std::max(mine, atom_share_[atom]);
    }
    replace(q, mine);
  }
  return revalue(cut, state, link, top);
}

/// Add to the leaves what their intervals gained, and to the base what shares were shifted by;
/// false if no leaf is left.
bool Messages::revalue(const Cut& cut, State& state, const Cut::Link& link, std::int32_t shift) {
  const auto t = static_cast<std::size_t>(link.factor);
  const std::uint16_t* alive = state.alive.data() + link.leaf;
  std::int32_t* worth = state.worth.data() + link.leaf;
  const std::uint16_t* id = cut.id.data() + link.id;
  const std::int32_t* gained = interval_.data();
  std::int32_t best = kGone;
  for (std::int32_t k = 0; k < state.n_alive[t]; ++k) {
    const std::uint16_t leaf = alive[k];
    const std::int32_t change = gained[id[leaf]];
    const std::int32_t mine = change == kGone ? kGone : std::max(worth[leaf] + change, kWorthFloor);
    worth[leaf] = mine;
    best = std::max(best, mine);
  }
  state.best[t] = best;
  state.base_of[static_cast<std::size_t>(link.feature)] += shift;
  return best != kGone;
}

void Messages::update(const Cut& cut, State& state, std::size_t f) {
  const auto links = cut.links_of(f);
  const Cells before = state.cells[f];
  total_.assign(static_cast<std::size_t>(before.hi) + 1, 0);
  if (atom_best_.size() < cut.atom_cell.size()) atom_best_.resize(cut.atom_cell.size());
  const bool costs = !state.held.empty();
  std::int64_t others = state.bound - state.base_of[f] - (costs ? state.held_best[f] : 0);
  bool by_level = false;
  for (const std::int32_t i : links) {
    const Cut::Link& link = cut.links[static_cast<std::size_t>(i)];
    others -= state.best[static_cast<std::size_t>(link.factor)];
    by_level |= !link.one_threshold();
    if (!gather(cut, state, link, before)) {
      state.bound = kNever;
      return;
    }
  }
  state.base_of[f] = 0;
  if (!decide_cells(cut, state, f, others, links.size())) {
    state.bound = kNever;
    return;
  }
  const Cells cells = state.cells[f];
  if (!links.empty()) tabulate_maxima(cells, by_level);
  std::int64_t bound = others;
  for (const std::int32_t i : links) {
    const Cut::Link& link = cut.links[static_cast<std::size_t>(i)];
    if (!spread(cut, state, link, cells)) {
      state.bound = kNever;
      return;
    }
    bound += state.best[static_cast<std::size_t>(link.factor)];
  }
  state.bound = bound + state.base_of[f] + (costs ? state.held_best[f] : 0);
  state.changed[f] = 0;
}

bool Messages::prune(const Cut& cut, State& state) {
  for (std::size_t t = 0; t < cut.factors.size(); ++t) {
    std::uint16_t* alive = state.alive.data() + cut.factors[t].leaf;
    const std::int32_t* worth = state.worth.data() + cut.factors[t].leaf;
    const std::int32_t least = least_worth(state, t);
    std::uint16_t* end = std::remove_if(alive, alive + state.n_alive[t],
                                        [&](std::uint16_t leaf) { return worth[leaf] < least; });
    state.n_alive[t] = static_cast<std::int32_t>(end - alive);
    if (state.n_alive[t] == 0) {
      state.bound = kNever;
      return false;
    }
  }
  return true;
}

bool Messages::sweep(const Cut& cut, State& state) {
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    // One cell has nothing to share out, one factor nobody to share with.
    const std::size_t n_shares = cut.links_of(f).size() + (state.held.empty() ? 0 : 1);
    const bool settled = state.cells[f].lo == state.cells[f].hi || n_shares < 2;
    if (settled && !state.changed[f]) continue;
    update(cut, state, f);
    if (state.bound < state.needed) return false;
  }
  return true;
}

}  // namespace hardwood::verify
