#include "hardwood/verify/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hardwood/verify/merge.hpp"

namespace hardwood::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kRootSweeps = 60;
constexpr int kFullSweeps = 200;
constexpr int kChildSweeps = 12;
constexpr double kStall = 0.005;  // a sweep that gains less of the gap is the last
constexpr std::int64_t kMostNear = 20000;
constexpr int kClimbs = 8;  // rounds of coordinate ascent

}  // namespace

void Search::restrict(const Cut& cut, State& state, double radius) {
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    const double* step = cut.step.data() + cut.cell_start[f];
    Cells& cells = state.cells[f];
    const Cells before = cells;
    while (cells.lo <= cells.hi && step[cells.lo] > radius) ++cells.lo;
    while (cells.hi >= cells.lo && step[cells.hi] > radius) --cells.hi;
    if (cells.lo != before.lo || cells.hi != before.hi) state.changed[f] = 1;
    if (cells.lo > cells.hi) state.bound = kNever;
  }
}

Answer Search::decide(Cut& cut, State& state, Scope scope) {
  n_near_ = 0;
  const Answer answer =
      bound_and_try(cut, state, scope == Scope::kRoot ? kRootSweeps : kFullSweeps);
  if (answer != Answer::kOpen || scope == Scope::kRoot) return answer;
  if (!merge_factors(cut, state, kInfinity)) return Answer::kNone;
  return explore(cut, state, 0, kFullSweeps);
}

/// Sweep until the box is proven empty, an example is found or the bound no longer falls.
Answer Search::bound_and_try(const Cut& cut, State& state, int n_sweeps) {
  for (int sweep = 0; sweep < n_sweeps; ++sweep) {
    if (clock_.over()) return Answer::kTime;
    const std::int64_t before = state.bound;
    if (!messages_.sweep(cut, state) || rounds_away(cut, state)) return Answer::kNone;
    if (sweep % 8 == 2 && try_point(cut, state)) return Answer::kFound;
    const auto gained = static_cast<double>(before - state.bound);
    if (sweep > 3 && gained <= kStall * static_cast<double>(state.bound - state.needed)) break;
  }
  if (try_point(cut, state)) return Answer::kFound;
  if (settled(cut, state)) {
    for (std::size_t f = 0; f < cut.n_features(); ++f) point_[f] = state.cells[f].lo;
    value_ = trees(cut).value(point_);
    if (accept(cut)) return Answer::kFound;
    return ++n_near_ > kMostNear ? Answer::kRounding : Answer::kNone;
  }
  return state.dead() ? Answer::kNone : Answer::kOpen;
}

Answer Search::explore(const Cut& cut, State& state, std::size_t depth, int n_sweeps) {
  const Answer here = bound_and_try(cut, state, n_sweeps);
  if (here != Answer::kOpen) return here;
  split(cut, state, depth);
  if (state.bound >= state.needed) {
    const Answer answer = explore(cut, state, depth + 1, kChildSweeps);
    if (answer != Answer::kNone) return answer;
  }
  std::swap(state, stack_[depth]);
  if (state.bound < state.needed) return Answer::kNone;
  return explore(cut, state, depth + 1, kChildSweeps);
}

/// Leave the more promising half of the box in `state` and the other one on the stack.
void Search::split(const Cut& cut, State& state, std::size_t depth) {
  const Branch branch = choose(cut, state);
  if (stack_.size() <= depth) stack_.resize(depth + 1);
  State& other = stack_[depth];
  other = state;
  state.cells[branch.feature].hi = branch.cell - 1;
  other.cells[branch.feature].lo = branch.cell;
  messages_.update(cut, state, branch.feature);
  messages_.update(cut, other, branch.feature);
  if (other.bound > state.bound) std::swap(other, state);
}

std::int32_t Search::best_leaf(const Cut& cut, const State& state, std::size_t t) const {
  const std::uint16_t* alive = state.alive.data() + cut.factors[t].leaf;
  const std::int32_t* worth = state.worth.data() + cut.factors[t].leaf;
  std::int32_t best = alive[0];
  for (std::int32_t k = 1; k < state.n_alive[t]; ++k) {
    if (worth[alive[k]] > worth[best]) best = alive[k];
  }
  return best;
}

/// Try to make an example out of what the factors like best; if it works, it is in found_.
bool Search::try_point(const Cut& cut, const State& state) {
  vote_and_climb(cut, state);
  if (!accept(cut)) return false;
  pull_back(trees(cut), [&] { return accept(cut) && !clock_.over(); });
  return true;
}

/// Every factor votes for the cells of its best leaf, with what it would lose with the second;
/// from there coordinate ascent goes on inside the state's cells.
void Search::vote_and_climb(const Cut& cut, const State& state) {
  point_.resize(cut.n_features());
  allowed_ = state.cells;
  vote(trees(cut), [&](auto&& cast) {
    for (std::size_t f = 0; f < cut.n_features(); ++f) {
      for (std::int32_t c = state.cells[f].lo; c <= state.cells[f].hi; ++c) {
        cast(f, {c, c},
             static_cast<double>(cut.alone[static_cast<std::size_t>(cut.cell_start[f] + c)]));
      }
    }
    for (std::size_t t = 0; t < cut.factors.size(); ++t) {
      const Cut::Factor& factor = cut.factors[t];
      const std::int32_t leaf = best_leaf(cut, state, t);
      const std::int32_t* worth = state.worth.data() + factor.leaf;
      const std::uint16_t* alive = state.alive.data() + factor.leaf;
      std::int32_t loss = worth[leaf] - static_cast<std::int32_t>(cut.needed);
      for (std::int32_t k = 0; k < state.n_alive[t]; ++k) {
        if (alive[k] == leaf) continue;
        const std::int64_t lead =
            std::int64_t{worth[leaf]} - worth[alive[k]];  // of kGone: too large
        if (lead < loss) loss = static_cast<std::int32_t>(lead);
      }
      for (std::int32_t p = 0; p < factor.n_links; ++p) {
        const Cut::Link& link = cut.links[static_cast<std::size_t>(factor.link + p)];
        const auto f = static_cast<std::size_t>(link.feature);
        const std::size_t q = cut.id[link.id + static_cast<std::size_t>(leaf)];
        if (link.n_words == 0) {
          cast(f, cut.range_of(link, q), loss + 1);
          continue;
        }
        cells::for_each_bit(cut.set_of(link, q), [&](std::size_t cell) {
          const auto c = static_cast<std::int32_t>(cell);
          cast(f, {c, c}, loss + 1);
        });
      }
    }
  });
  climb(trees(cut), kClimbs);
}

/// Replay point_ in the model's own arithmetic; an example is kept.
bool Search::accept(const Cut& cut) {
  if (value_ < cut.needed) return false;
  write_trial(cut);
  if (!fools(trial_)) return false;
  found_ = trial_;
  return true;
}

/// point_ in the model's cells.
void Search::write_trial(const Cut& cut) {
  trial_.assign(ball_.home().begin(), ball_.home().end());
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    trial_[static_cast<std::size_t>(cut.feature[f])] =
        cut.cell[static_cast<std::size_t>(cut.cell_start[f] + point_[f])];
  }
}

/// Whether only the rounding of the model's own sum keeps the bound from being a proof, and that
/// sum itself settles it: added up in the model's precision and order, the best leaves that are
/// left of every tree do not fool. Such a sum never falls when a term grows, so no other leaves do.
bool Search::rounds_away(const Cut& cut, State& state) {
  if (state.bound >= cut.zero) return false;
  if (!messages_.prune(cut, state)) return true;
  SumError plus(ensemble_.plus_base(cut.question));
  SumError minus(ensemble_.minus_base(cut.question));
  double most = plus.hi;
  double least = minus.lo;
  for (const Cut::Part& part : cut.parts) {
    Span of_plus{part.plus, part.plus};
    Span of_minus{part.minus, part.minus};
    if (part.root >= 0) see_leaves(cut, state, part, of_plus, of_minus);
    most = ensemble_.add(most, of_plus.hi);
    least = ensemble_.add(least, of_minus.lo);
    plus.add(of_plus.lo, of_plus.hi);
    minus.add(of_minus.lo, of_minus.hi);
  }
  if (!ensemble_.may_beat(cut.question, most, least)) return true;
  // With fewer leaves left, the sum has less room to go astray than at the start.
  if (ensemble_.grain(cut.question) == 0) {
    const double error = 1.001 * ensemble_.unit_roundoff() * (plus.reach + minus.reach);
    state.needed = std::max(state.needed, cut.needed_for(error + ensemble_.tie(cut.question)));
  }
  return state.bound < state.needed;
}

/// The range of what the leaves that are left of one tree add to the two outputs.
void Search::see_leaves(const Cut& cut, const State& state, const Cut::Part& part, Span& plus,
                        Span& minus) {
  plus =
      minus = {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  const auto see = [&](std::int32_t node) {
    const double high = cut.plus[static_cast<std::size_t>(node)];
    const double low = cut.minus[static_cast<std::size_t>(node)];
    plus = {std::min(plus.lo, high), std::max(plus.hi, high)};
    minus = {std::min(minus.lo, low), std::max(minus.hi, low)};
  };
  if (part.factor >= 0) {
    const auto t = static_cast<std::size_t>(part.factor);
    const std::uint16_t* alive = state.alive.data() + cut.factors[t].leaf;
    for (std::int32_t k = 0; k < state.n_alive[t]; ++k) {
      see(cut.node_of(cut.factors[t], alive[k], part.member));
    }
    return;
  }
  const Cut::Node& root = cut.nodes[static_cast<std::size_t>(part.root)];
  const Cells cells = state.cells[static_cast<std::size_t>(root.feature)];
  open_.assign(1, part.root);
  while (!open_.empty()) {
    const std::int32_t at = open_.back();
    const Cut::Node& node = cut.nodes[static_cast<std::size_t>(at)];
    open_.pop_back();
    if (node.feature == kLeaf) {
      see(at);
      continue;
    }
    if (node.rank >= 0) {
      if (cells.lo <= node.rank) open_.push_back(node.left);
      if (cells.hi > node.rank) open_.push_back(node.right);
      continue;
    }
    bool left = false;
    bool right = false;
    for (std::int32_t c = cells.lo; c <= cells.hi; ++c) {
      (cut.goes_left(node, c) ? left : right) = true;
    }
    if (left) open_.push_back(node.left);
    if (right) open_.push_back(node.right);
  }
}

/// Whether the box has come down to one point as far as any tree can tell; narrows the box to the
/// leaves that are left, which may show it empty (state.dead()).
bool Search::settled(const Cut& cut, State& state) {
  if (!messages_.prune(cut, state)) return false;
  bool one_leaf_each = true;
  for (const Cut::Link& link : cut.links) {
    const auto t = static_cast<std::size_t>(link.factor);
    const std::uint16_t leaf = state.alive[static_cast<std::size_t>(cut.factors[t].leaf)];
    if (state.n_alive[t] > 1) {
      one_leaf_each = false;
      break;
    }
    Cells& cells = state.cells[static_cast<std::size_t>(link.feature)];
    const Cells hull = cut.hull(link, cut.id[link.id + leaf], cells);
    cells = {std::max(cells.lo, hull.lo), std::min(cells.hi, hull.hi)};
    if (cells.lo > cells.hi) {
      state.bound = kNever;
      return false;
    }
  }
  // A box that has just been narrowed may be one point before its leaves have heard of it.
  if (std::ranges::all_of(state.cells, [](Cells cells) { return cells.lo == cells.hi; })) {
    return true;
  }
  if (!one_leaf_each) return false;
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    if (cut.n_words[f] > 0 && !settle_set(cut, state, f)) return false;
  }
  for (std::size_t f = 0; f < cut.n_features(); ++f) {
    const std::uint8_t* ends = cut.alone_ends.data() + cut.cell_start[f];
    if (std::any_of(ends + state.cells[f].lo, ends + state.cells[f].hi,
                    [](std::uint8_t end) { return end != 0; })) {
      return false;
    }
  }
  return true;
}

/// With one leaf left of every factor: narrow a feature to the nearest cell that is in all their
/// sets; false if there is none (state.dead()), or if trees on this feature alone tell some apart.
bool Search::settle_set(const Cut& cut, State& state, std::size_t f) {
  const auto all = cut.set(f, cut.all[f]);
  words_.assign(all.begin(), all.end());
  for (const std::int32_t i : cut.links_of(f)) {
    const Cut::Link& link = cut.links[static_cast<std::size_t>(i)];
    const auto t = static_cast<std::size_t>(link.factor);
    const std::uint16_t leaf = state.alive[static_cast<std::size_t>(cut.factors[t].leaf)];
    const auto set = cut.set_of(link, cut.id[link.id + leaf]);
    for (std::size_t w = 0; w < set.size(); ++w) words_[w] &= set[w];
  }
  Cells& cells = state.cells[f];
  Cells left{cells.hi + 1, cells.lo - 1};
  std::int32_t n_left = 0;
  for (std::int32_t c = cells.lo; c <= cells.hi; ++c) {
    if (!cells::has_bit(words_.data(), c)) continue;
    left = {std::min(left.lo, c), c};
    ++n_left;
  }
  cells = left;
  if (n_left == 0) state.bound = kNever;
  if (n_left > 1 && !cut.alone_ends[static_cast<std::size_t>(cut.cell_start[f])]) {
    cells.hi = cells.lo;
    n_left = 1;
  }
  return n_left == 1;
}

/// The split on which the best leaves disagree most: those that the lower half would hurt times
/// those that the upper half would. Trees count by the square of what their leaves differ by: many
/// small ones together must not outweigh a large one.
Search::Branch Search::choose(const Cut& cut, const State& state) {
  const std::size_t n_features = cut.n_features();
  below_.assign(cut.cell.size() + n_features, 0);  // at s: hurt if the cell is below s
  above_.assign(cut.cell.size() + n_features, 0);  // at s: hurt if the cell is s or above
  const auto at = [&](std::size_t f) { return static_cast<std::size_t>(cut.cell_start[f]) + f; };
  for (std::size_t t = 0; t < cut.factors.size(); ++t) {
    const Cut::Factor& factor = cut.factors[t];
    if (state.n_alive[t] < 2) continue;
    const std::int32_t leaf = best_leaf(cut, state, t);
    const std::uint16_t* alive = state.alive.data() + factor.leaf;
    const std::int32_t* value = cut.value.data() + factor.leaf;
    std::int32_t low = value[leaf];
    std::int32_t high = value[leaf];
    for (std::int32_t k = 0; k < state.n_alive[t]; ++k) {
      low = std::min(low, value[alive[k]]);
      high = std::max(high, value[alive[k]]);
    }
    const double weight = std::pow(static_cast<double>(high - low) + 1, 2);
    for (std::int32_t p = 0; p < factor.n_links; ++p) {
      const Cut::Link& link = cut.links[static_cast<std::size_t>(factor.link + p)];
      const auto f = static_cast<std::size_t>(link.feature);
      const Cells cells = state.cells[f];
      const Cells hull = cut.hull(link, cut.id[link.id + static_cast<std::size_t>(leaf)], cells);
      if (hull.lo > cells.lo) below_[at(f) + static_cast<std::size_t>(hull.lo)] += weight;
      if (hull.hi < cells.hi) above_[at(f) + static_cast<std::size_t>(hull.hi) + 1] += weight;
    }
  }
  Branch best{0, -1};
  double top = -1;
  for (std::size_t f = 0; f < n_features; ++f) {
    const Cells cells = state.cells[f];
    if (cells.lo == cells.hi) continue;
    double* below = below_.data() + at(f);
    const double* above = above_.data() + at(f);
    for (std::int32_t s = cells.hi - 1; s > cells.lo; --s) below[s] += below[s + 1];
    double up = 0;
    for (std::int32_t s = cells.lo + 1; s <= cells.hi; ++s) {
      up += above[s];
      const double mine = (up + 1) * (below[s] + 1);
      if (mine > top) {
        top = mine;
        best = {f, s};
      }
    }
  }
  return best;
}

}  // namespace hardwood::verify
