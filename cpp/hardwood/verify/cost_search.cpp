#include "hardwood/verify/cost_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "hardwood/verify/merge.hpp"

namespace hardwood::verify {
namespace {

using cells::cost_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSlack =
    1e-12;  // relative: sums of costs depend on their order, by less than this
constexpr int kRootSweeps = 200;
constexpr int kChildSweeps = 8;
constexpr double kStall = 0.005;
constexpr double kRebuild = 0.9;    // a budget that fell below this share of it is worth a new cut
constexpr double kTiny = 0x1p-200;  // and below this one costs could vanish: a new cut is a must
constexpr int kTryEvery = 16;       // nodes
constexpr double kSparse = 0.7;     // of the leaves
constexpr std::int64_t kMostNear = 20000;

}  // namespace

double CostSearch::budget() const {
  const bool counts = ball_.cost_norm() == Norm::kZero;
  const double total = counts ? bar_ : cost_of(ball_.cost_norm(), bar_, unit_);
  if (closed_) return total * (1 + kSlack);
  return counts ? total - 0.5 : total * (1 - kSlack);
}

Answer CostSearch::cheapest(Cut& cut, State& state, Scope scope) {
  built_ = budget();
  open_cost_ = kInfinity;
  root_floor_ = 0;
  n_nodes_ = 0;
  n_near_ = 0;
  const Answer answer = bound_and_try(cut, state, true);
  if (answer != Answer::kOpen || scope == Scope::kRoot) return answer;
  if (!merge_factors(cut, state, budget() * (1 + kSlack))) return Answer::kNone;
  return look(cut, state, 0);
}

/// No point that is good enough and in the box costs less than this.
double CostSearch::lower_cost(const State& state) const {
  if (state.dead()) return kInfinity;
  if (state.price <= 0) return 0;
  const auto short_of = static_cast<double>(state.needed - (state.bound - state.allowance));
  return std::max(short_of / state.price * (1 - kSlack), 0.0);
}

/// Sweep until nothing in the box can count, or the bound no longer falls; look for points that do.
Answer CostSearch::bound_and_try(const Cut& cut, State& state, bool root) {
  ++n_nodes_;
  if (!closed_ && budget() < kTiny * built_) return Answer::kFound;
  const auto improved = [&] {  // what to do once the bar is lower
    if (closed_ || (root && budget() < kRebuild * built_)) return Answer::kFound;
    return refresh(cut, state) ? Answer::kOpen : Answer::kNone;
  };
  if (!refresh(cut, state)) return Answer::kNone;
  const int n_sweeps = root ? kRootSweeps : kChildSweeps;
  const bool tries = root || n_nodes_ % kTryEvery == 0;
  double floor = root ? root_floor_ : 0;
  for (int sweep = 0; sweep < n_sweeps; ++sweep) {
    if (clock_.over()) {
      open_cost_ = std::min(open_cost_, std::max(floor, lower_cost(state)));
      return Answer::kTime;
    }
    const std::int64_t before = state.bound;
    if (!messages_.sweep(cut, state)) return Answer::kNone;
    if (!root || sweep >= 2) messages_.reprice(cut, state, budget());
    if (state.bound < state.needed || rounds_away(cut, state)) return Answer::kNone;
    floor = std::max(floor, lower_cost(state));
    if (root) root_floor_ = floor;
    if (tries && (root ? sweep % 8 == 4 : sweep == 2) && try_points(cut, state, root)) {
      const Answer answer = improved();
      if (answer != Answer::kOpen) return answer;
    }
    const auto gained = static_cast<double>(before - state.bound);
    const bool stalls = gained <= kStall * static_cast<double>(state.bound - state.needed);
    if (stalls && sweep > (root ? 8 : 3)) break;
  }
  if (tries && try_points(cut, state, root)) {
    const Answer answer = improved();
    if (answer != Answer::kOpen) return answer;
  }
  if (settled(cut, state)) {
    for (std::size_t f = 0; f < cut.n_features(); ++f) {
      point_[f] = std::clamp(cut.home[f], state.cells[f].lo, state.cells[f].hi);
    }
    value_ = trees(cut).value(point_);
    if (take(cut)) return closed_ ? Answer::kFound : Answer::kNone;
    return ++n_near_ > kMostNear ? Answer::kRounding : Answer::kNone;
  }
  return state.dead() ? Answer::kNone : Answer::kOpen;
}

Answer CostSearch::look(const Cut& cut, State& state, std::size_t depth) {
  const Answer here = bound_and_try(cut, state, depth == 0);
  if (here != Answer::kOpen) return here;
  if (!sparse(cut, state)) return branch(cut, state, depth);
  Cut rest = cut;
  return compact_factors(rest, state) ? branch(rest, state, depth) : Answer::kNone;
}

/// Whether so few leaves of the cut are left that they are worth a cut of their own.
bool CostSearch::sparse(const Cut& cut, const State& state) {
  const auto n_left = std::accumulate(state.n_alive.begin(), state.n_alive.end(), std::int64_t{0});
  return static_cast<double>(n_left) < kSparse * static_cast<double>(cut.value.size());
}

Answer CostSearch::branch(const Cut& cut, State& state, std::size_t depth) {
  split(cut, state, depth);
  Answer answer = Answer::kNone;
  if (state.bound >= state.needed) answer = look(cut, state, depth + 1);
  if (answer == Answer::kTime || answer == Answer::kRounding) {
    open_cost_ = std::min(open_cost_, lower_cost(stack_[depth]));
  }
  if (answer != Answer::kNone) return answer;
  std::swap(state, stack_[depth]);
  return state.bound < state.needed ? Answer::kNone : look(cut, state, depth + 1);
}

/// Bring a state to the budget of now, which may be less than when it was left.
bool CostSearch::refresh(const Cut& cut, State& state) {
  if (state.bound < state.needed || !narrow(cut, state) || !drop_dear(cut, state)) return false;
  messages_.set_price(cut, state, state.price, budget());
  return state.bound >= state.needed;
}

/// Drop cells that the budget does not pay for when every other feature takes its cheapest cell.
bool CostSearch::narrow(const Cut& cut, State& state) const {
  double spent = 0;
  for (std::size_t f = 0; f < cut.n_features(); ++f) spent += least_cost(cut, f, state.cells[f]);
  const double rest = budget() * (1 + kSlack) - spent;
  if (rest < 0 || !narrow_changes(cut, state)) return false;
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    Cells& cells = state.cells[f];
    const double most = rest + least_cost(cut, f, state.cells[f]);
    const Cells before = cells;
    while (cost_at(cut, f, cells.lo) > most) ++cells.lo;  // the cheapest cell stays
    while (cost_at(cut, f, cells.hi) > most) --cells.hi;
    if (cells.lo != before.lo || cells.hi != before.hi) state.changed[f] = 1;
  }
  return true;
}

/// Drop leaves that the budget does not pay for when every other feature takes its cheapest cell.
bool CostSearch::drop_dear(const Cut& cut, State& state) {
  double rest = budget() * (1 + kSlack);
  least_.resize(cut.n_features());
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    least_[f] = least_cost(cut, f, state.cells[f]);
    rest -= least_[f];
  }
  for (std::size_t t = 0; t < cut.factors.size(); ++t) {
    const Cut::Factor& factor = cut.factors[t];
    std::uint16_t* alive = state.alive.data() + factor.leaf;
    const auto left = std::span(alive, static_cast<std::size_t>(state.n_alive[t]));
    dues_.assign(static_cast<std::size_t>(factor.n_leaves), 0.0);
    for (std::int32_t p = 0; p < factor.n_links; ++p) {
      const Cut::Link& link = cut.links[static_cast<std::size_t>(factor.link + p)];
      const auto f = static_cast<std::size_t>(link.feature);
      const Cells cells = state.cells[f];
      due_.resize(static_cast<std::size_t>(link.n_intervals));
      for (std::size_t q = 0; q < due_.size(); ++q) {
        const Cells hull = cut.hull(link, q, cells);
        const Cells some{std::max(hull.lo, cells.lo), std::min(hull.hi, cells.hi)};
        due_[q] = some.lo > some.hi ? kInfinity : least_cost(cut, f, some) - least_[f];
      }
      const std::uint16_t* id = cut.id.data() + link.id;
      for (const std::uint16_t leaf : left) dues_[leaf] += due_[id[leaf]];
    }
    const auto dear = [&](std::uint16_t leaf) { return dues_[leaf] > rest; };
    const auto gone = std::ranges::remove_if(left, dear);
    state.n_alive[t] -= static_cast<std::int32_t>(gone.size());
    if (state.n_alive[t] == 0) return false;
    const std::int32_t best =
        state.worth[static_cast<std::size_t>(factor.leaf + best_leaf(cut, state, t))];
    state.bound += best - state.best[t];
    state.best[t] = best;
  }
  return true;
}

/// Where the number of changes is limited beside their cost: when all are used up, the other
/// features stay at home.
bool CostSearch::narrow_changes(const Cut& cut, State& state) const {
  if (ball_.max_changes() == 0) return true;
  const auto changed = [&](std::size_t f) {
    return cut.home[f] < state.cells[f].lo || cut.home[f] > state.cells[f].hi;
  };
  int n = 0;
  for (std::size_t f = 0; f < cut.n_features(); ++f) n += changed(f);
  if (n < ball_.max_changes()) return true;
  if (n > ball_.max_changes()) return false;
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    if (changed(f) || state.cells[f].lo == state.cells[f].hi) continue;
    state.cells[f] = {cut.home[f], cut.home[f]};
    state.changed[f] = 1;
  }
  return true;
}

bool CostSearch::improve(const Cut& cut, const Point& point) {
  point_.resize(cut.n_features());
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    const std::int32_t cell = point[static_cast<std::size_t>(cut.feature[f])];
    std::int32_t at = cut.home[f];  // the cell of the cut that holds it
    if (cut.n_words[f] > 0) {
      const auto places = ball_.places(static_cast<std::size_t>(cut.feature[f]));
      const auto place = std::ranges::find(places, cell, &Ball::Place::cell) - places.begin();
      const bool within = place < cut.place_start[f + 1] - cut.place_start[f];
      point_[f] = within ? cut.place_cell[static_cast<std::size_t>(cut.place_start[f] + place)] : 0;
      continue;
    }
    const std::int32_t* nearest = cut.cell.data() + cut.cell_start[f];
    while (at + 1 < cut.n_cells(f) && nearest[at + 1] <= cell) ++at;
    while (at > 0 && nearest[at - 1] >= cell) --at;
    point_[f] = at;
  }
  return polish(cut);
}

bool CostSearch::try_points(const Cut& cut, const State& state, bool thorough) {
  point_.resize(cut.n_features());
  follow_costs(cut, state);
  bool better = polish(cut);
  if (thorough) {
    vote_and_climb(cut, state);
    better |= polish(cut);
  }
  return better;
}

/// The cells that are best after their cost, improved one feature at a time.
void CostSearch::follow_costs(const Cut& cut, const State& state) {
  const auto after_cost = [&](const std::int64_t* gain, std::size_t f, std::int32_t c) {
    return static_cast<double>(gain[c]) - state.price * cost_at(cut, f, c);
  };
  const auto best_cell = [&](const std::int64_t* gain, std::size_t f, std::int32_t start) {
    std::int32_t best = start;
    for (std::int32_t c = state.cells[f].lo; c <= state.cells[f].hi; ++c) {
      if (after_cost(gain, f, c) > after_cost(gain, f, best)) best = c;
    }
    return best;
  };
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    point_[f] = best_cell(state.held.data() + cut.cell_start[f], f, state.cells[f].lo);
  }
  begin_moves(cut);
  for (int round = 0; round < 4; ++round) {
    bool moved = false;
    for (std::size_t f = 0; f < cut.n_features(); ++f) {
      if (state.cells[f].lo == state.cells[f].hi) continue;
      const std::int32_t best = best_cell(gains_of(cut, f), f, point_[f]);
      if (best == point_[f]) continue;
      move(cut, f, best);
      moved = true;
    }
    if (!moved) return;
  }
}

/// Make point_ good enough, then as cheap as greedy moves can, and keep it if it counts.
bool CostSearch::polish(const Cut& cut) {
  begin_moves(cut);
  if (!repair(cut)) return false;
  descend(cut);
  return take(cut);
}

/// Take the moves that gain most for their cost until the value is enough.
bool CostSearch::repair(const Cut& cut) {
  const double most = budget();
  double spent = 0;
  for (std::size_t f = 0; f < cut.n_features(); ++f) spent += cost_at(cut, f, point_[f]);
  for (int round = 0; value_ < cut.zero; ++round) {
    if (round == 60) return false;
    std::size_t best_feature = 0;
    std::int32_t best = -1;
    double top = 0;
    for (std::size_t f = 0; f < cut.n_features(); ++f) {
      const std::int64_t* gain = gains_of(cut, f);
      for (std::int32_t c = 0; c < cut.n_cells(f); ++c) {
        const std::int64_t gained = gain[c] - gain[point_[f]];
        const double paid = cost_at(cut, f, c) - cost_at(cut, f, point_[f]);
        if (gained <= 0 || spent + paid > most) continue;
        const auto useful = static_cast<double>(std::min(gained, cut.zero - value_));
        const double rate = paid <= 0 ? kInfinity : useful / paid;
        if (rate > top) top = rate, best = c, best_feature = f;
      }
    }
    if (best < 0) return false;
    spent += cost_at(cut, best_feature, best) - cost_at(cut, best_feature, point_[best_feature]);
    move(cut, best_feature, best);
  }
  return true;
}

/// Take back what costs most, as long as the value stays enough.
void CostSearch::descend(const Cut& cut) {
  while (!clock_.over()) {
    std::size_t best_feature = 0;
    std::int32_t best = -1;
    double top = 0;
    for (std::size_t f = 0; f < cut.n_features(); ++f) {
      const double now = cost_at(cut, f, point_[f]);
      if (now - top <= 0) continue;
      const std::int64_t* gain = gains_of(cut, f);
      for (std::int32_t c = 0; c < cut.n_cells(f); ++c) {
        const double saved = now - cost_at(cut, f, c);
        if (saved > top && value_ + gain[c] - gain[point_[f]] >= cut.zero) {
          top = saved, best = c, best_feature = f;
        }
      }
    }
    if (best < 0) return;
    move(cut, best_feature, best);
  }
}

/// Keep point_ if it counts and fools the model.
bool CostSearch::take(const Cut& cut) {
  if (value_ < cut.needed) return false;
  write_trial(cut);
  const double length = ball_.cost(trial_);
  if (ball_.max_changes() > 0 && ball_.n_changes(trial_) > ball_.max_changes()) return false;
  if (closed_ ? length > bar_ : length >= bar_) return false;
  if (!fools(trial_)) return false;
  found_ = trial_;
  has_example_ = true;
  if (!closed_) bar_ = length;
  return true;
}

void CostSearch::begin_moves(const Cut& cut) {
  value_ = trees(cut).value(point_);
  gains_.resize(cut.cell.size());
  fresh_.assign(cut.n_features(), 0);
}

void CostSearch::move(const Cut& cut, std::size_t f, std::int32_t cell) {
  const std::int64_t* gain = gains_of(cut, f);
  value_ += gain[cell] - gain[point_[f]];
  point_[f] = cell;
  for (const std::int32_t root : cut.roots_of(f)) {
    for (const std::int32_t other : cut.scope_of(static_cast<std::size_t>(root))) {
      if (static_cast<std::size_t>(other) != f) fresh_[static_cast<std::size_t>(other)] = 0;
    }
  }
}

const std::int64_t* CostSearch::gains_of(const Cut& cut, std::size_t f) {
  std::int64_t* mine = gains_.data() + cut.cell_start[f];
  if (!fresh_[f]) {
    const Cells all{0, cut.n_cells(f) - 1};
    find_gains(trees(cut), f, all);
    std::ranges::copy_n(gain_.begin(), all.hi + 1, mine);
    fresh_[f] = 1;
  }
  return mine;
}

}  // namespace hardwood::verify
