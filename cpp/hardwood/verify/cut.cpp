#include "hardwood/verify/cut.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hardwood::verify {
namespace {

using cells::cost_of;
using cells::for_each_bit;
using cells::has_bit;
using cells::set_bit;
using cells::set_first;
using cells::words_for;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostAtoms = 65535;
constexpr int kUnitBits = 26;  // the gap that leaves can lie below the best is about 2^26 units

/// Turn counts per feature (at f + 1) into starts.
void accumulate(std::vector<std::int32_t>& start) {
  for (std::size_t f = 1; f < start.size(); ++f) start[f] += start[f - 1];
}

}  // namespace

CutBuilder::CutBuilder(const Ensemble& ensemble)
    : ensemble_(ensemble),
      used_(ensemble.n_edges(), 0),
      local_(ensemble.n_features(), -1),
      edge_local_(ensemble.n_edges()) {}

void CutBuilder::build(const Ball& ball, const Question& question,
                       std::span<const Ensemble::Member> members, const Within& within, Cut& cut) {
  budget_ = within.budget;
  ball_ = &ball;
  ball.within(within.radius, within_);
  if (within.changing) hold_others(*within.changing);
  cut_trees(question, members, cut);
  if (cut.empty) return;
  name_cells(ball, within.unit, cut);
  quantise(cut);
  tables_.clear();
  scope_.clear();
  leaf_node_.clear();
  box_.clear();
  cut.roots.clear();
  for (const Tree& tree : trees_) tabulate(tree, cut);
  if (cut.empty) return;
  FactorWriter::begin(cut);
  for (const Table& table : tables_) {
    writer_.add(cut, std::span(scope_).subspan(table.scope, table.n_scope),
                std::span(box_).subspan(table.box, table.n_leaves * table.n_scope),
                std::span(leaf_node_).subspan(table.leaf, table.n_leaves), 1);
  }
  FactorWriter::end(cut);
  index_roots(cut);
}

/// Keep all features but some at home.
void CutBuilder::hold_others(std::span<const std::int32_t> changing) {
  for (std::size_t f = 0; f < within_.cells.size(); ++f) {
    const std::int32_t home = ball_->home()[f];
    const bool changes =
        std::ranges::find(changing, static_cast<std::int32_t>(f)) != changing.end();
    if (changes || home == cells::kMissing) continue;
    if (within_.n_places[f] > 0) {
      within_.n_places[f] = 1;
    } else {
      within_.cells[f] = {home, home};
    }
  }
}

/// Walk down wherever the ball gets; returns the cut's node. Cells narrow on the way, so splits
/// that a path has already decided fall away.
std::int32_t CutBuilder::visit(std::int32_t at, const Ensemble::Member& member, Cut& cut) {
  while (true) {
    const Ensemble::Node& node = ensemble_.node(at);
    if (node.feature == kLeaf) {
      const double plus = member.plus < 0 ? 0 : ensemble_.value(node.rank, member.plus);
      const double minus = member.minus < 0 ? 0 : ensemble_.value(node.rank, member.minus);
      plus_ = {std::min(plus_.lo, plus), std::max(plus_.hi, plus)};
      minus_ = {std::min(minus_.lo, minus), std::max(minus_.hi, minus)};
      ++n_leaves_;
      const std::int32_t me = add_node(kLeaf, 0, cut);
      cut.plus.back() = plus;
      cut.minus.back() = minus;
      return me;
    }
    const auto f = static_cast<std::size_t>(node.feature);
    Cells& cells = cells_[f];
    const bool left = cells.lo <= node.rank;
    const bool right = cells.hi > node.rank;
    if (left && right) {
      const std::int32_t me = add_node(node.feature, node.rank, cut);
      const Cells before = cells;
      cells.hi = node.rank;
      const std::int32_t below = visit(node.left, member, cut);
      cells = {node.rank + 1, before.hi};
      const std::int32_t above = visit(node.right, member, cut);
      cells = before;
      cut.nodes[static_cast<std::size_t>(me)].left = below;
      cut.nodes[static_cast<std::size_t>(me)].right = above;
      return me;
    }
    bool go_left = left || (!right && ensemble_.missing_left(at));
    if (!left && !right && within_.n_places[f] > 0 && divide(at, f, go_left)) {
      const std::size_t n_words = words_for(ball_->places(f).size());
      const std::size_t mine = memory_.size() - 2 * n_words;  // those that go left, and all before
      const std::int32_t me =
          add_node(node.feature, ~place_sets_.add(std::span(memory_).subspan(mine, n_words)), cut);
      const auto keep = [&](bool left_ones) {
        for (std::size_t w = 0; w < n_words; ++w) {
          const Word goes_left = memory_[mine + w];
          now_[now_start_[f] + w] =
              memory_[mine + n_words + w] & (left_ones ? goes_left : ~goes_left);
        }
      };
      keep(true);
      const std::int32_t below = visit(node.left, member, cut);
      keep(false);
      const std::int32_t above = visit(node.right, member, cut);
      std::copy_n(memory_.begin() + static_cast<std::ptrdiff_t>(mine + n_words), n_words,
                  now_.begin() + static_cast<std::ptrdiff_t>(now_start_[f]));
      memory_.resize(mine);
      cut.nodes[static_cast<std::size_t>(me)].left = below;
      cut.nodes[static_cast<std::size_t>(me)].right = above;
      return me;
    }
    at = go_left ? node.left : node.right;
  }
}

std::int32_t CutBuilder::add_node(std::int32_t feature, std::int32_t rank, Cut& cut) {
  cut.nodes.push_back({feature, rank, 0, 0, 0});
  cut.plus.push_back(0);
  cut.minus.push_back(0);
  return static_cast<std::int32_t>(cut.nodes.size()) - 1;
}

/// Whether a node sends the places that are left of a feature both ways; then its left ones and all
/// of them lie on top of memory_. Else `left` is their way.
bool CutBuilder::divide(std::int32_t at, std::size_t f, bool& left) {
  const std::size_t n_words = words_for(ball_->places(f).size());
  const std::size_t mine = memory_.size();
  memory_.resize(mine + 2 * n_words);
  ball_->places_left(at, std::span(memory_).subspan(mine, n_words));
  bool right = left = false;
  for (std::size_t w = 0; w < n_words; ++w) {
    const Word now = now_[now_start_[f] + w];
    memory_[mine + n_words + w] = now;
    left |= (now & memory_[mine + w]) != 0;
    right |= (now & ~memory_[mine + w]) != 0;
  }
  if (left && right) return true;
  memory_.resize(mine);
  return false;
}

void CutBuilder::cut_trees(const Question& question, std::span<const Ensemble::Member> members,
                           Cut& cut) {
  cells_ = within_.cells;
  now_.clear();
  now_start_.assign(cells_.size(), 0);
  for (std::size_t f = 0; ball_->any_places() && f < cells_.size(); ++f) {
    if (within_.n_places[f] == 0) continue;
    now_start_[f] = now_.size();
    now_.resize(now_.size() + words_for(ball_->places(f).size()));
    set_first(std::span(now_).subspan(now_start_[f]),
              static_cast<std::size_t>(within_.n_places[f]));
  }
  place_sets_.clear();
  trees_.clear();
  cut.nodes.clear();
  cut.plus.clear();
  cut.minus.clear();
  cut.parts.clear();
  cut.question = question;
  cut.constant = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  SumError plus(ensemble_.plus_base(question));
  SumError minus(ensemble_.minus_base(question));
  for (const Ensemble::Member& member : members) {
    const std::size_t first = cut.nodes.size();
    n_leaves_ = 0;
    plus_ = minus_ = {kInfinity, -kInfinity};
    const std::int32_t root = visit(member.root, member, cut);
    if (member.plus >= 0) plus.add(plus_.lo, plus_.hi);
    if (member.minus >= 0) minus.add(minus_.lo, minus_.hi);
    double best = -kInfinity;
    for (std::size_t at = first; at < cut.nodes.size(); ++at) {
      if (cut.nodes[at].feature == kLeaf) best = std::max(best, cut.plus[at] - cut.minus[at]);
    }
    cut.constant += best;
    if (n_leaves_ == 1) {
      cut.nodes.resize(first);
      cut.plus.resize(first);
      cut.minus.resize(first);
      cut.parts.push_back({-1, -1, 0, plus_.lo, minus_.lo});
      continue;
    }
    trees_.push_back({root, static_cast<std::int32_t>(first),
                      static_cast<std::int32_t>(cut.nodes.size()),
                      static_cast<std::int32_t>(cut.parts.size()), best});
    cut.parts.push_back({root, -1, 0, 0, 0});
  }
  const double error = 1.001 * ensemble_.unit_roundoff() * (plus.reach + minus.reach);
  cut.own_error =
      1.001 * 0x1p-52 * (static_cast<double>(members.size()) + 8) * (plus.size + minus.size);
  const double gap = cut.constant - ensemble_.needed(question, error + cut.own_error);
  cut.empty = gap < 0;
  if (cut.empty) return;
  // A power of two, so that values that are themselves multiples of a coarser one stay exact.
  const double scale = std::max({gap, 0x1p-40 * (plus.size + minus.size), 0x1p-900});
  cut.unit = std::ldexp(1.0, std::ilogb(scale) - kUnitBits + 1);
  cut.needed = -static_cast<std::int64_t>(std::floor(gap / cut.unit));
  cut.zero = std::max(cut.needed, cut.needed_for(0));
}

void CutBuilder::name_cells(const Ball& ball, double unit, Cut& cut) {
  sets_used_.clear();
  cut.sets.clear();
  cut.n_words.clear();
  cut.all.clear();
  cut.place_start.assign(1, 0);
  cut.place_cell.clear();
  cut.feature.clear();
  for (const Cut::Node& node : cut.nodes) {
    if (node.feature == kLeaf) continue;
    const auto f = static_cast<std::size_t>(node.feature);
    if (local_[f] < 0) {
      local_[f] = 0;
      cut.feature.push_back(node.feature);
    }
    if (node.rank >= 0) {
      used_[ensemble_.edge_start(f) + static_cast<std::size_t>(node.rank)] = 1;
    } else {
      sets_used_.push_back({node.feature, ~node.rank, 0});
    }
  }
  std::ranges::sort(cut.feature);
  const auto key = [](const Used& used) { return std::pair(used.feature, used.places); };
  std::ranges::sort(sets_used_, {}, key);
  const auto same = std::ranges::unique(sets_used_, {}, key);
  sets_used_.erase(same.begin(), same.end());
  cut.cell_start.assign(1, 0);
  cut.cell.clear();
  cut.step.clear();
  cut.cost.clear();
  cut.home.clear();
  for (std::size_t i = 0; i < cut.feature.size(); ++i) {
    const auto f = static_cast<std::size_t>(cut.feature[i]);
    local_[f] = static_cast<std::int32_t>(i);
    if (within_.n_places[f] > 0) {
      name_places(ball, i, unit, cut);
      continue;
    }
    cut.n_words.push_back(0);
    cut.all.push_back(0);
    cut.place_start.push_back(static_cast<std::int32_t>(cut.place_cell.size()));
    const Cells range = within_.cells[f];
    const std::int32_t home = ball.home()[f];
    std::int32_t first = range.lo;
    std::int32_t n_cells = 0;
    const auto close = [&](std::int32_t last) {
      const std::int32_t nearest = std::clamp(home, first, last);
      add_cell(ball, f, nearest, ball.step(f, nearest), unit, cut);
      if (nearest == home) cut.home.push_back(n_cells);
      first = last + 1;
      ++n_cells;
    };
    for (std::int32_t rank = range.lo; rank < range.hi; ++rank) {
      const std::size_t edge = ensemble_.edge_start(f) + static_cast<std::size_t>(rank);
      if (!used_[edge]) continue;
      used_[edge] = 0;
      edge_local_[edge] = n_cells;
      close(rank);
    }
    close(range.hi);
    cut.cell_start.push_back(static_cast<std::int32_t>(cut.cell.size()));
  }
  for (Cut::Node& node : cut.nodes) {
    if (node.feature == kLeaf) continue;
    const auto f = static_cast<std::size_t>(node.feature);
    if (node.rank >= 0) {
      node.rank = edge_local_[ensemble_.edge_start(f) + static_cast<std::size_t>(node.rank)];
    } else {
      node.rank =
          ~std::ranges::lower_bound(sets_used_, std::pair(node.feature, ~node.rank), {}, key)->set;
    }
    node.feature = local_[f];
  }
  for (const std::int32_t f : cut.feature) local_[static_cast<std::size_t>(f)] = -1;
  cut.alone.assign(cut.cell.size(), 0);
  cut.alone_ends.assign(cut.cell.size(), 0);
}

void CutBuilder::add_cell(const Ball& ball, std::size_t f, std::int32_t cell, double step,
                          double unit, Cut& cut) {
  cut.cell.push_back(cell);
  cut.step.push_back(step);
  cut.cost.push_back(cell == ball.home()[f] ? 0.0 : cost_of(ball.cost_norm(), step, unit));
}

/// The cells of a feature with places: classes that no set tells apart, the nearest first.
void CutBuilder::name_places(const Ball& ball, std::size_t local, double unit, Cut& cut) {
  const std::int32_t feature = cut.feature[local];
  const auto f = static_cast<std::size_t>(feature);
  const auto n_places = static_cast<std::size_t>(within_.n_places[f]);
  const auto mine = std::ranges::equal_range(sets_used_, feature, {}, &Used::feature);
  const std::size_t first = cut.place_cell.size();
  cut.place_cell.resize(first + n_places, 0);
  const auto cell_of = std::span(cut.place_cell).subspan(first);
  std::size_t n_cells = 1;
  std::vector<std::int32_t> side;
  for (const Used& used : mine) {
    side.assign(2 * n_cells, -1);
    std::int32_t n = 0;
    for (std::size_t p = 0; p < n_places; ++p) {
      const bool left = has_bit(place_sets_.at(used.places), static_cast<std::int32_t>(p));
      std::int32_t& cell = side[2 * static_cast<std::size_t>(cell_of[p]) + left];
      if (cell < 0) cell = n++;
      cell_of[p] = cell;
    }
    n_cells = static_cast<std::size_t>(n);
  }
  if (n_cells > kMostAtoms) throw std::length_error("a feature has more than 65535 cells");
  std::int32_t next = 0;
  for (std::size_t p = 0; p < n_places; ++p) {
    if (cell_of[p] < next) continue;
    const Ball::Place& place = ball.places(f)[p];
    add_cell(ball, f, place.cell, place.step, unit, cut);
    ++next;
  }
  cut.home.push_back(0);
  cut.cell_start.push_back(static_cast<std::int32_t>(cut.cell.size()));
  cut.place_start.push_back(static_cast<std::int32_t>(cut.place_cell.size()));
  cut.n_words.push_back(words_for(n_cells));
  std::vector<Word> words(words_for(n_cells));
  set_first(words, n_cells);
  cut.all.push_back(cut.sets.add(words));
  for (Used& used : mine) {
    std::ranges::fill(words, 0);
    for (std::size_t p = 0; p < n_places; ++p) {
      if (has_bit(place_sets_.at(used.places), static_cast<std::int32_t>(p))) {
        set_bit(words.data(), cell_of[p]);
      }
    }
    used.set = cut.sets.add(words);
  }
}

void CutBuilder::quantise(Cut& cut) {
  // Far below what is needed one value is as good as another.
  const double floor = static_cast<double>(4 * cut.needed - 4);
  for (const Tree& tree : trees_) {
    for (auto at = static_cast<std::size_t>(tree.first_node);
         at < static_cast<std::size_t>(tree.end_node); ++at) {
      if (cut.nodes[at].feature != kLeaf) continue;
      const double units = std::ceil((cut.plus[at] - cut.minus[at] - tree.best) / cut.unit);
      cut.nodes[at].value = static_cast<std::int32_t>(std::max(units, floor));
    }
  }
}

void CutBuilder::tabulate(const Tree& tree, Cut& cut) {
  Table table{scope_.size(), 0, leaf_node_.size(), 0, box_.size()};
  for (auto at = static_cast<std::size_t>(tree.first_node);
       at < static_cast<std::size_t>(tree.end_node); ++at) {
    if (cut.nodes[at].feature != kLeaf) scope_.push_back(cut.nodes[at].feature);
  }
  const auto begin = scope_.begin() + static_cast<std::ptrdiff_t>(table.scope);
  std::sort(begin, scope_.end());
  scope_.erase(std::unique(begin, scope_.end()), scope_.end());
  table.n_scope = scope_.size() - table.scope;
  position_.resize(cut.n_features());
  path_.resize(table.n_scope);
  for (std::size_t p = 0; p < table.n_scope; ++p) {
    const auto f = static_cast<std::size_t>(scope_[table.scope + p]);
    position_[f] = static_cast<std::int32_t>(p);
    path_[p] = cut.whole(f);
  }
  add_leaves(tree.root, cut, table);
  if (table.n_leaves == 0) {
    cut.empty = true;
    return;
  }
  if (table.n_scope == 1) {
    add_alone(table, cut);
    scope_.resize(table.scope);
    leaf_node_.resize(table.leaf);
    box_.resize(table.box);
    return;
  }
  cut.parts[static_cast<std::size_t>(tree.part)].factor = static_cast<std::int32_t>(tables_.size());
  cut.roots.push_back(tree.root);
  tables_.push_back(table);
}

void CutBuilder::add_leaves(std::int32_t at, Cut& cut, Table& table) {
  const Cut::Node node = cut.nodes[static_cast<std::size_t>(at)];
  if (node.feature == kLeaf) {
    if (node.value < cut.needed) return;  // with it, no choice of the others is enough
    if (budget_ < kInfinity && cost_of_path(cut, table) > budget_) return;
    leaf_node_.push_back(at);
    box_.insert(box_.end(), path_.begin(), path_.end());
    ++table.n_leaves;
    return;
  }
  const auto p = static_cast<std::size_t>(position_[static_cast<std::size_t>(node.feature)]);
  const Cells before = path_[p];
  if (node.rank >= 0) {
    path_[p].hi = node.rank;
    add_leaves(node.left, cut, table);
    path_[p] = {node.rank + 1, before.hi};
    add_leaves(node.right, cut, table);
  } else {
    const std::size_t n_words = cut.n_words[static_cast<std::size_t>(node.feature)];
    path_[p].lo = cut.sets.add_both(before.lo, ~node.rank, n_words, false);
    add_leaves(node.left, cut, table);
    path_[p].lo = cut.sets.add_both(before.lo, ~node.rank, n_words, true);
    add_leaves(node.right, cut, table);
  }
  path_[p] = before;
}

/// What the cheapest point of the leaf at the end of the path costs.
double CutBuilder::cost_of_path(const Cut& cut, const Table& table) const {
  double cost = 0;
  for (std::size_t p = 0; p < table.n_scope; ++p) {
    const auto f = static_cast<std::size_t>(scope_[table.scope + p]);
    const std::int32_t nearest = cut.nearest_cell(f, path_[p]);
    cost += cut.cost[static_cast<std::size_t>(cut.cell_start[f] + nearest)];
  }
  return cost;
}

void CutBuilder::add_alone(const Table& table, Cut& cut) {
  const auto f = static_cast<std::size_t>(scope_[table.scope]);
  if (cut.n_words[f] > 0) return add_alone_sets(table, cut);
  const auto first = static_cast<std::size_t>(cut.cell_start[f]);
  std::int32_t next = 0;
  const auto never_until = [&](std::int32_t end) {
    for (; next < end; ++next) cut.alone[first + static_cast<std::size_t>(next)] += kNever;
  };
  for (std::size_t leaf = 0; leaf < table.n_leaves; ++leaf) {  // from left to right
    const Cells cells = box_[table.box + leaf];
    never_until(cells.lo);
    for (; next <= cells.hi; ++next) {
      cut.alone[first + static_cast<std::size_t>(next)] +=
          cut.nodes[static_cast<std::size_t>(leaf_node_[table.leaf + leaf])].value;
    }
    cut.alone_ends[first + static_cast<std::size_t>(cells.hi)] = 1;
  }
  never_until(cut.n_cells(f));
}

void CutBuilder::add_alone_sets(const Table& table, Cut& cut) {
  const auto f = static_cast<std::size_t>(scope_[table.scope]);
  const auto first = static_cast<std::size_t>(cut.cell_start[f]);
  const auto n_cells = static_cast<std::size_t>(cut.n_cells(f));
  std::vector<std::int64_t> value(n_cells, kNever);
  for (std::size_t leaf = 0; leaf < table.n_leaves; ++leaf) {
    const Cut::Node& node = cut.nodes[static_cast<std::size_t>(leaf_node_[table.leaf + leaf])];
    for_each_bit(cut.set(f, box_[table.box + leaf].lo),
                 [&](std::size_t cell) { value[cell] = node.value; });
  }
  for (std::size_t cell = 0; cell < n_cells; ++cell) {
    cut.alone[first + cell] += value[cell];
    cut.alone_ends[first + cell] = 1;
  }
}

void FactorWriter::begin(Cut& cut) {
  cut.factors.clear();
  cut.links.clear();
  cut.intervals.clear();
  cut.atom_cell.clear();
  cut.id.clear();
  cut.value.clear();
  cut.leaf_node.clear();
}

void FactorWriter::add(Cut& cut, std::span<const std::int32_t> scope, std::span<const Cells> box,
                       std::span<const std::int32_t> node, std::size_t n_trees) {
  Cut::Factor factor{static_cast<std::int32_t>(cut.value.size()),
                     static_cast<std::int32_t>(node.size() / n_trees),
                     static_cast<std::int32_t>(cut.links.size()),
                     0,
                     static_cast<std::int32_t>(cut.leaf_node.size()),
                     static_cast<std::int32_t>(n_trees)};
  for (std::size_t at = 0; at < node.size(); at += n_trees) {
    std::int32_t value = 0;
    for (const std::int32_t one : node.subspan(at, n_trees)) {
      value += cut.nodes[static_cast<std::size_t>(one)].value;
      cut.leaf_node.push_back(one);
    }
    cut.value.push_back(value);
  }
  for (std::size_t p = 0; p < scope.size(); ++p) {
    if (cut.n_words[static_cast<std::size_t>(scope[p])] > 0) {
      add_set_link(cut, scope[p], box, p, scope.size());
    } else {
      add_link(cut, scope[p], box, p, scope.size());
    }
  }
  factor.n_links = static_cast<std::int32_t>(cut.links.size()) - factor.link;
  cut.factors.push_back(factor);
}

void FactorWriter::add_link(Cut& cut, std::int32_t feature, std::span<const Cells> boxes,
                            std::size_t position, std::size_t n_scope) {
  const auto n_cells = static_cast<std::size_t>(cut.n_cells(static_cast<std::size_t>(feature)));
  const std::size_t n_leaves = boxes.size() / n_scope;
  const auto box = [&](std::size_t leaf) { return boxes[leaf * n_scope + position]; };
  // Mark where atoms begin, then number them.
  atom_at_.assign(n_cells + 1, 0);
  for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
    atom_at_[static_cast<std::size_t>(box(leaf).lo)] = 1;
    atom_at_[static_cast<std::size_t>(box(leaf).hi) + 1] = 1;
  }
  atom_at_[0] = atom_at_[n_cells] = 1;
  Cut::Link link{static_cast<std::int32_t>(cut.factors.size()),          feature,
                 static_cast<std::int32_t>(cut.intervals.size()),        0,
                 static_cast<std::int32_t>(cut.atom_cell.size()),        0,
                 static_cast<std::int32_t>(cut.value.size() - n_leaves), cut.id.size()};
  std::int32_t atom = -1;
  for (std::size_t cell = 0; cell <= n_cells; ++cell) {
    if (atom_at_[cell]) {
      ++atom;
      cut.atom_cell.push_back(static_cast<std::int32_t>(cell));
    }
    atom_at_[cell] = atom;
  }
  link.n_atoms = atom;
  if (link.n_atoms == 1) {  // no leaf that is left asks anything of this feature
    cut.atom_cell.resize(static_cast<std::size_t>(link.atom));
    return;
  }
  if (link.one_threshold()) {
    link.n_intervals = 3;
    cut.intervals.insert(cut.intervals.end(), {{0, 0}, {0, 1}, {1, 1}});
    for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
      const Cells cells = box(leaf);
      cut.id.push_back(static_cast<std::uint16_t>(atom_at_[static_cast<std::size_t>(cells.lo)] +
                                                  atom_at_[static_cast<std::size_t>(cells.hi)]));
    }
    cut.links.push_back(link);
    return;
  }
  // Name the distinct intervals, from left to right.
  key_.clear();
  for (std::size_t leaf = 0; leaf < n_leaves; ++leaf) {
    const Cells cells = box(leaf);
    key_.push_back(static_cast<std::uint32_t>(atom_at_[static_cast<std::size_t>(cells.lo)]) << 16 |
                   static_cast<std::uint32_t>(atom_at_[static_cast<std::size_t>(cells.hi)]));
  }
  distinct_ = key_;
  std::ranges::sort(distinct_);
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
  if (static_cast<std::size_t>(link.n_atoms) > kMostAtoms || distinct_.size() > kMostAtoms) {
    throw std::length_error("a tree splits one feature into more than 65535 ranges");
  }
  link.n_intervals = static_cast<std::int32_t>(distinct_.size());
  for (const std::uint32_t key : distinct_) {
    cut.intervals.push_back(
        {static_cast<std::uint16_t>(key >> 16), static_cast<std::uint16_t>(key & 0xffff)});
  }
  for (const std::uint32_t key : key_) {
    cut.id.push_back(
        static_cast<std::uint16_t>(std::ranges::lower_bound(distinct_, key) - distinct_.begin()));
  }
  cut.links.push_back(link);
}

/// A link whose atoms are the cells themselves.
void FactorWriter::add_set_link(Cut& cut, std::int32_t feature, std::span<const Cells> boxes,
                                std::size_t position, std::size_t n_scope) {
  const auto f = static_cast<std::size_t>(feature);
  key_.clear();
  for (std::size_t at = position; at < boxes.size(); at += n_scope) {
    key_.push_back(static_cast<std::uint32_t>(boxes[at].lo));
  }
  distinct_ = key_;
  std::ranges::sort(distinct_);
  distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
  // No leaf that is left asks anything of this feature.
  if (distinct_.size() == 1 && distinct_[0] == static_cast<std::uint32_t>(cut.all[f])) return;
  if (distinct_.size() > kMostAtoms) {
    throw std::length_error("a tree splits one feature into more than 65535 sets");
  }
  cut.links.push_back(
      {static_cast<std::int32_t>(cut.factors.size()), feature,
       static_cast<std::int32_t>(cut.intervals.size()), static_cast<std::int32_t>(distinct_.size()),
       static_cast<std::int32_t>(cut.atom_cell.size()), cut.n_cells(f),
       static_cast<std::int32_t>(cut.value.size() - key_.size()), cut.id.size(), cut.n_words[f]});
  for (std::int32_t cell = 0; cell <= cut.n_cells(f); ++cell) cut.atom_cell.push_back(cell);
  for (const std::uint32_t key : distinct_) {
    cut.intervals.push_back(Cut::Atoms::of_set(static_cast<std::int32_t>(key)));
  }
  for (const std::uint32_t key : key_) {
    cut.id.push_back(
        static_cast<std::uint16_t>(std::ranges::lower_bound(distinct_, key) - distinct_.begin()));
  }
}

void FactorWriter::end(Cut& cut) {
  cut.link_start.assign(cut.n_features() + 1, 0);
  for (const Cut::Link& link : cut.links)
    ++cut.link_start[static_cast<std::size_t>(link.feature) + 1];
  accumulate(cut.link_start);
  cut.link_of.resize(cut.links.size());
  std::vector<std::int32_t> next(cut.link_start);
  for (std::size_t i = 0; i < cut.links.size(); ++i) {
    cut.link_of[static_cast<std::size_t>(next[static_cast<std::size_t>(cut.links[i].feature)]++)] =
        static_cast<std::int32_t>(i);
  }
}

void CutBuilder::index_roots(Cut& cut) const {
  cut.scope.clear();
  cut.scope_start.assign(1, 0);
  for (const Table& table : tables_) {
    const auto first = scope_.begin() + static_cast<std::ptrdiff_t>(table.scope);
    cut.scope.insert(cut.scope.end(), first, first + static_cast<std::ptrdiff_t>(table.n_scope));
    cut.scope_start.push_back(static_cast<std::int32_t>(cut.scope.size()));
  }
  cut.root_start.assign(cut.n_features() + 1, 0);
  std::size_t n = 0;
  for (const Table& table : tables_) {
    for (std::size_t p = 0; p < table.n_scope; ++p, ++n) {
      ++cut.root_start[static_cast<std::size_t>(scope_[table.scope + p]) + 1];
    }
  }
  accumulate(cut.root_start);
  cut.root_of.resize(n);
  std::vector<std::int32_t> next(cut.root_start);
  for (std::size_t k = 0; k < tables_.size(); ++k) {
    for (std::size_t p = 0; p < tables_[k].n_scope; ++p) {
      const auto f = static_cast<std::size_t>(scope_[tables_[k].scope + p]);
      cut.root_of[static_cast<std::size_t>(next[f]++)] = static_cast<std::int32_t>(k);
    }
  }
}

}  // namespace hardwood::verify
