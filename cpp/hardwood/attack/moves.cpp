#include "hardwood/attack/moves.hpp"

#include <algorithm>
#include <utility>

namespace hardwood::attack {

using cells::Cells;

void Moves::build(const NearTrees& near, const cells::Ball& ball, double unit) {
  constant_ = near.constant();
  feature_.assign(near.features().begin(), near.features().end());
  number_places(near, ball, unit);
  nodes_.clear();
  for (const NearTrees::Node& from : near.nodes()) {
    if (from.feature == kLeaf) {
      const double value = near.leaves[static_cast<std::size_t>(from.rank)].value;
      nodes_.push_back({kLeaf, 0, 0, 0, value});
      continue;
    }
    const auto model_feature = static_cast<std::size_t>(from.feature);
    const std::int32_t f = number_[model_feature];
    const auto cell = static_cast<std::size_t>(from.rank - near.cells(model_feature).lo);
    nodes_.push_back(
        {f, place_of_[offset_[static_cast<std::size_t>(f)] + cell], from.left, from.right, 0});
  }
  trees_of_.resize(std::max(trees_of_.size(), n_features()));
  stays_.resize(n_features());
  for (std::size_t f = 0; f < n_features(); ++f) {
    trees_of_[f] = near.trees_of(feature_[f]);
    stays_[f] = all_places(f);
  }
  root_.clear();
  leaves_.clear();
  sides_.clear();
  leaf_start_.assign(1, 0);
  for (const NearTrees::Tree& tree : near.trees) {
    root_.push_back(tree.root);
    list_leaves(tree.root);
    leaf_start_.push_back(leaves_.size());
  }
  readings_.resize(std::max(readings_.size(), n_trees()));
  saved_readings_.resize(readings_.size());
  asked_by_.resize(readings_.size());
}

/// Cells between two thresholds of the near trees are one place.
void Moves::number_places(const NearTrees& near, const cells::Ball& ball, double unit) {
  number_.resize(ball.home().size());
  offset_.assign(1, 0);
  for (std::size_t f = 0; f < feature_.size(); ++f) {
    const std::size_t model_feature = feature_[f];
    const Cells cells = near.cells(model_feature);
    number_[model_feature] = static_cast<std::int32_t>(f);
    offset_.push_back(offset_.back() + static_cast<std::size_t>(cells.hi - cells.lo + 1));
  }
  place_of_.assign(offset_.back(), 0);
  for (const NearTrees::Node& node : near.nodes()) {  // mark the last cells of places
    if (node.feature == kLeaf) continue;
    const auto model_feature = static_cast<std::size_t>(node.feature);
    const auto f = static_cast<std::size_t>(number_[model_feature]);
    place_of_[offset_[f] + static_cast<std::size_t>(node.rank - near.cells(model_feature).lo)] = 1;
  }
  home_.resize(feature_.size());
  start_.assign(1, 0);
  cell_.clear();
  costs_.clear();
  for (std::size_t f = 0; f < feature_.size(); ++f) {
    const std::size_t model_feature = feature_[f];
    const Cells cells = near.cells(model_feature);
    const std::int32_t home = ball.home()[model_feature];
    std::int32_t place = 0;
    std::int32_t first = cells.lo;
    for (std::int32_t c = cells.lo; c <= cells.hi; ++c) {
      std::int32_t& mine = place_of_[offset_[f] + static_cast<std::size_t>(c - cells.lo)];
      const bool ends = mine != 0 || c == cells.hi;
      mine = place;
      if (!ends) continue;
      const std::int32_t cell = std::clamp(home, first, c);
      if (cell == home) home_[f] = place;
      cell_.push_back(cell);
      costs_.push_back(
          cell == home ? 0 : cells::cost_of(ball.norm(), ball.step(model_feature, cell), unit));
      first = c + 1;
      ++place;
    }
    cell_.push_back(0);
    costs_.push_back(0);
    start_.push_back(cell_.size());
  }
}

void Moves::list_leaves(std::int32_t at) {
  const Node& here = node(at);
  if (here.feature == kLeaf) {
    const std::size_t first = sides_.size();
    for (const std::int32_t f : path_) {
      const auto begin = sides_.begin() + static_cast<std::ptrdiff_t>(first);
      if (std::find_if(begin, sides_.end(), [f](const Side& side) { return side.feature == f; }) ==
          sides_.end()) {
        sides_.push_back({f, stays_[static_cast<std::size_t>(f)]});
      }
    }
    leaves_.push_back({here.value, first, sides_.size()});
    return;
  }
  Cells& stays = stays_[static_cast<std::size_t>(here.feature)];
  const Cells before = stays;
  path_.push_back(here.feature);
  stays.hi = here.rank;
  list_leaves(here.left);
  stays = {here.rank + 1, before.hi};
  list_leaves(here.right);
  stays = before;
  path_.pop_back();
}

void Moves::start(std::span<const std::int32_t> cells) {
  point_.resize(n_features());
  cost_ = 0;
  for (std::size_t f = 0; f < n_features(); ++f) {
    const std::int32_t cell = cells[feature_[f]];
    const std::int32_t* nearest = cell_.data() + start_[f];
    std::int32_t place = home_[f];
    while (place < all_places(f).hi && nearest[place + 1] <= cell) ++place;
    while (place > 0 && nearest[place - 1] >= cell) --place;
    point_[f] = place;
    cost_ += costs(f)[this->place(f)];
  }
  read_all();
}

void Moves::start_at_home() {
  point_ = home_;
  cost_ = 0;
  read_all();
}

void Moves::read_all() {
  difference_.assign(costs_.size(), 0);
  gains_.resize(costs_.size());
  most_gain_.resize(n_features());
  fresh_.assign(n_features(), 0);
  value_ = constant_;
  for (std::size_t tree = 0; tree < n_trees(); ++tree) {
    read(tree);
    count(readings_[tree], 1);
  }
  read_again_.clear();
  is_read_again_.assign(n_trees(), 0);
  save();
}

void Moves::move(std::size_t feature, std::size_t place) {
  const auto to = static_cast<std::int32_t>(place);
  const std::int32_t low = std::min(point_[feature], to);
  const std::int32_t high = std::max(point_[feature], to);
  const auto crossed = [&](const Asked& asked) {
    return asked.feature == static_cast<std::int32_t>(feature) && low <= asked.rank &&
           asked.rank < high;
  };
  cost_ += costs(feature)[place] - costs(feature)[this->place(feature)];
  point_[feature] = to;
  ++n_moves;
  for (const std::int32_t at : trees_of_[feature]) {
    const auto tree = static_cast<std::size_t>(at);
    if (std::ranges::any_of(readings_[tree].asked, crossed)) read_again(tree);
  }
}

void Moves::read_again(std::size_t tree) {
  count(readings_[tree], -1);
  if (!is_read_again_[tree]) {
    is_read_again_[tree] = 1;
    read_again_.push_back(tree);
    std::swap(readings_[tree], saved_readings_[tree]);
  }
  read(tree);
  count(readings_[tree], 1);
}

/// Add a tree to the value and to the gains, or take it away again.
void Moves::count(const Reading& reading, double sign) {
  value_ += sign * reading.here;
  for (const Change& change : reading.changes) add(change, sign * change.gain);
}

void Moves::enter(const Leaf& leaf) {
  for (const Side& side : box(leaf)) {
    const auto f = static_cast<std::size_t>(side.feature);
    const std::int32_t to = nearest_place(side);
    if (to != point_[f]) move(f, static_cast<std::size_t>(to));
  }
}

void Moves::save() {
  saved_point_ = point_;
  saved_value_ = value_;
  saved_cost_ = cost_;
  for (const std::size_t tree : read_again_) is_read_again_[tree] = 0;
  read_again_.clear();
}

void Moves::go_back() {
  for (const std::size_t tree : read_again_) {
    count(readings_[tree], -1);
    std::swap(readings_[tree], saved_readings_[tree]);
    count(readings_[tree], 1);
    is_read_again_[tree] = 0;
  }
  read_again_.clear();
  point_ = saved_point_;
  value_ = saved_value_;
  cost_ = saved_cost_;
}

Moves::Entry Moves::entry(std::size_t tree, const Leaf& leaf) const {
  Entry entry{leaf.value - readings_[tree].here, 0};
  int n_moved = 0;
  for (const Side& side : box(leaf)) {
    const auto f = static_cast<std::size_t>(side.feature);
    const std::int32_t to = nearest_place(side);
    if (to == point_[f]) continue;
    ++n_moved;
    entry.cost += costs(f)[static_cast<std::size_t>(to)] - costs(f)[place(f)];
  }
  if (n_moved < 2) entry.gain = 0;
  return entry;
}

double Moves::gain_of(const Leaf& leaf) {
  const std::span<const Side> sides = box(leaf);
  from_.clear();
  for (const Side& side : sides) {
    std::int32_t& place = point_[static_cast<std::size_t>(side.feature)];
    from_.push_back(place);
    place = nearest_place(side);
  }
  ++n_asked_;
  double gain = 0;
  for (std::size_t k = 0; k < sides.size(); ++k) {
    const auto f = static_cast<std::size_t>(sides[k].feature);
    if (point_[f] == from_[k]) continue;
    for (const std::int32_t at : trees_of_[f]) {
      const auto tree = static_cast<std::size_t>(at);
      if (std::exchange(asked_by_[tree], n_asked_) == n_asked_) continue;
      gain += value_at_point(tree) - readings_[tree].here;
    }
  }
  for (std::size_t k = 0; k < sides.size(); ++k) {
    point_[static_cast<std::size_t>(sides[k].feature)] = from_[k];
  }
  return gain;
}

/// The trees, noting every threshold that the point is compared with.
struct Moves::Asking {
  const Moves& moves;
  std::vector<Asked>& asked;

  const Node& node(std::int32_t at) const { return moves.node(at); }
  bool goes_left(std::int32_t at, std::int32_t place) const {
    asked.push_back({node(at).feature, node(at).rank});
    return moves.goes_left(at, place);
  }
  static bool can_change(std::size_t) { return true; }
};

/// Read a tree around the point: its value there and what one change makes of it.
void Moves::read(std::size_t tree) {
  Reading& reading = readings_[tree];
  reading.asked.clear();
  reading.changes.clear();
  reading.here = value_at_point(tree);
  const auto note = [&](std::int32_t feature, std::int32_t leaf, Cells places) {
    const double gain = node(leaf).value - reading.here;
    if (gain != 0) reading.changes.push_back({feature, places, gain});
  };
  cells::each_leaf_one_change_away(Asking{*this, reading.asked}, root_[tree], point_, stays_, note);
}

void Moves::add(const Change& change, double gain) {
  const auto f = static_cast<std::size_t>(change.feature);
  double* mine = difference_.data() + start_[f];
  mine[change.places.lo] += gain;
  mine[change.places.hi + 1] -= gain;
  fresh_[f] = 0;
}

std::span<const double> Moves::gains(std::size_t feature) {
  double* mine = gains_.data() + start_[feature];
  if (!fresh_[feature]) {
    const double* difference = difference_.data() + start_[feature];
    double sum = 0, most = 0;
    for (std::size_t c = 0; c < n_places(feature); ++c) {
      mine[c] = sum += difference[c];
      most = std::max(most, sum);
    }
    most_gain_[feature] = most;
    fresh_[feature] = 1;
  }
  return {mine, n_places(feature)};
}

void Moves::write(std::span<std::int32_t> cells) const {
  for (std::size_t f = 0; f < n_features(); ++f) {
    cells[feature_[f]] = cell_[start_[f] + place(f)];
  }
}

}  // namespace hardwood::attack
