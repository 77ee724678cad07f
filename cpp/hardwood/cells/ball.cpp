#include "hardwood/cells/ball.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hardwood::cells {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Ball::Ball(const Ensemble& ensemble, std::span<const double> x, const Budget& budget)
    : ensemble_(ensemble),
      budget_(budget),
      x_(x),
      home_(x.size()),
      step_(ensemble.n_edges(), kInfinity) {
  for (std::size_t f = 0; f < x.size(); ++f) {
    if (std::isnan(x[f])) {
      home_[f] = kMissing;
      continue;
    }
    home_[f] = ensemble.cell_of(f, x[f]);
    if (!ensemble.has_categories(f)) reach_range(f);
    if (ensemble.has_categories(f) || budget.can_blank(f)) reach_places(f);
  }
}

/// Steps over the edges of a number, which grow away from home.
void Ball::reach_range(std::size_t f) {
  const auto edges = ensemble_.edges(f);
  const auto home = static_cast<std::size_t>(home_[f]);
  double* step = step_.data() + ensemble_.edge_start(f);
  const Budget::Axis axis = budget_.axis(f, x_[f]);
  const auto reached = [&](std::size_t cell) {
    const Interval interval = ensemble_.interval(f, static_cast<std::int32_t>(cell));
    if (interval.empty()) return kInfinity;
    const double z = axis.nearest(interval);
    return std::isnan(z) ? kInfinity : axis.counted(z);
  };
  for (std::size_t edge = home; edge < edges.size(); ++edge) {
    step[edge] = reached(edge + 1);
    if (step[edge] == kInfinity) break;
  }
  for (std::size_t edge = home; edge-- > 0;) {
    step[edge] = reached(edge);
    if (step[edge] == kInfinity) break;
  }
}

void Ball::reach_places(std::size_t f) {
  if (sets_.empty()) sets_.resize(x_.size());
  Set& set = sets_[f];
  set.place = places_.size();
  places_.push_back({home_[f], 0, x_[f]});
  if (ensemble_.has_categories(f)) {
    for (const std::int32_t code : budget_.changes.of(f, ensemble_.category_of(x_[f]))) {
      const auto value = static_cast<double>(code);
      const std::int32_t cell = ensemble_.cell_of(f, value);
      const auto known = [&](const Place& place) { return place.cell == cell; };
      const auto first = places_.begin() + static_cast<std::ptrdiff_t>(set.place);
      if (std::none_of(first, places_.end(), known)) {
        places_.push_back({cell, budget_.counted_change(), value});
      }
    }
  } else {
    const Budget::Axis axis = budget_.axis(f, x_[f]);
    const auto n_cells = static_cast<std::int32_t>(ensemble_.n_cells(f));
    for (std::int32_t cell = 0; cell < n_cells; ++cell) {
      if (cell == home_[f]) continue;
      const auto edge = static_cast<std::size_t>(cell < home_[f] ? cell : cell - 1);
      const double step = step_[ensemble_.edge_start(f) + edge];
      if (step == kInfinity) continue;
      places_.push_back({cell, step, axis.nearest(ensemble_.interval(f, cell))});
    }
  }
  if (budget_.can_blank(f)) {
    places_.push_back(
        {kMissing, budget_.counted_change(), std::numeric_limits<double>::quiet_NaN()});
  }
  const auto first = places_.begin() + static_cast<std::ptrdiff_t>(set.place);
  std::stable_sort(first, places_.end(),
                   [](const Place& a, const Place& b) { return a.step < b.step; });
  set.n = static_cast<std::int32_t>(places_.size() - set.place);
  for (std::int32_t p = 1; p < set.n; ++p) {
    const Place& place = places_[set.place + static_cast<std::size_t>(p)];
    if (place.cell == kMissing) set.blank = p;
    if (ensemble_.has_categories(f) || place.cell == kMissing) step_.push_back(place.step);
  }
  index_places(f);
}

/// What every split of the feature makes of the places.
void Ball::index_places(std::size_t f) {
  Set& set = sets_[f];
  const bool categories = ensemble_.has_categories(f);
  const auto n_splits =
      categories ? static_cast<std::size_t>(ensemble_.end_split(f) - ensemble_.first_split(f))
                 : ensemble_.edges(f).size();
  const std::size_t n_words = words_for(static_cast<std::size_t>(set.n));
  set.first = first_left_.size();
  set.left = left_.size();
  first_left_.resize(set.first + n_splits, set.n);
  first_right_.resize(set.first + n_splits, set.n);
  left_.resize(set.left + n_splits * n_words, 0);
  const std::span<const Place> mine = places(f);
  for (std::size_t s = 0; s < n_splits; ++s) {
    const auto split = static_cast<std::int32_t>(s);
    for (std::int32_t p = set.n; p-- > 0;) {
      const std::int32_t cell = mine[static_cast<std::size_t>(p)].cell;
      if (cell == kMissing) continue;
      const bool left = categories ? ensemble_.splits_left(ensemble_.first_split(f) + split, cell)
                                   : cell <= split;
      (left ? first_left_ : first_right_)[set.first + s] = p;
      if (left) set_bit(left_.data() + set.left + s * n_words, p);
    }
  }
}

std::int32_t Ball::first_place(std::int32_t at, bool left) const {
  const Ensemble::Node& node = ensemble_.node(at);
  const Set& set = sets_[static_cast<std::size_t>(node.feature)];
  const std::int32_t first = (left ? first_left_ : first_right_)[set.first + split_of(node)];
  const bool blank_too = set.blank >= 0 && ensemble_.missing_left(at) == left;
  return blank_too ? std::min(first, set.blank) : first;
}

void Ball::places_left(std::int32_t at, std::span<Word> out) const {
  const Ensemble::Node& node = ensemble_.node(at);
  const Set& set = sets_[static_cast<std::size_t>(node.feature)];
  const Word* words = left_.data() + set.left + split_of(node) * out.size();
  std::copy_n(words, out.size(), out.begin());
  if (set.blank >= 0 && ensemble_.missing_left(at)) set_bit(out.data(), set.blank);
}

void Ball::within(double radius, Within& out) const {
  const double most = std::min(radius, std::numeric_limits<double>::max());
  out.cells.resize(x_.size());
  out.n_places.assign(x_.size(), 0);
  for (std::size_t f = 0; f < x_.size(); ++f) {
    if (home_[f] == kMissing || has_places(f)) {
      out.cells[f] = {std::numeric_limits<std::int32_t>::max(),
                      std::numeric_limits<std::int32_t>::min()};
      if (home_[f] == kMissing) continue;
      const std::span<const Place> mine = places(f);
      out.n_places[f] = static_cast<std::int32_t>(
          std::ranges::upper_bound(mine, most, {}, &Place::step) - mine.begin());
      out.n_places[f] = std::max(out.n_places[f], 1);  // home is always there
      continue;
    }
    const double* step = step_.data() + ensemble_.edge_start(f);
    const auto n_edges = static_cast<std::int32_t>(ensemble_.edges(f).size());
    // Steps grow away from home, on both sides.
    const double* up = std::upper_bound(step + home_[f], step + n_edges, most);
    const double* down =
        std::partition_point(step, step + home_[f], [&](double one) { return one > most; });
    out.cells[f] = {static_cast<std::int32_t>(down - step), static_cast<std::int32_t>(up - step)};
  }
}

double Ball::largest_step(std::size_t feature) const {
  if (home_[feature] == kMissing) return 0;
  if (has_places(feature)) return places(feature).back().step;
  double largest = 0;
  const std::size_t first = ensemble_.edge_start(feature);
  for (std::size_t edge = first; edge < first + ensemble_.edges(feature).size(); ++edge) {
    if (step_[edge] < kInfinity) largest = std::max(largest, step_[edge]);
  }
  return largest;
}

double Ball::step_below(double radius) const {
  double best = -1;
  for (const double step : step_) {
    if (step < radius && step > best) best = step;
  }
  return best;
}

double Ball::step_to_place(std::size_t feature, std::int32_t cell) const {
  for (const Place& place : places(feature)) {
    if (place.cell == cell) return place.step;
  }
  return kInfinity;
}

double Ball::measure(Norm norm, std::span<const std::int32_t> cells) const {
  Length length{norm};
  for (std::size_t f = 0; f < cells.size(); ++f) {
    if (cells[f] != home_[f]) length.add(step(f, cells[f]));
  }
  return length.total;
}

int Ball::n_changes(std::span<const std::int32_t> cells) const {
  int n = 0;
  for (std::size_t f = 0; f < cells.size(); ++f) n += cells[f] != home_[f];
  return n;
}

double Ball::nearest(std::size_t feature, std::int32_t cell) const {
  if (!has_places(feature)) {
    return budget_.axis(feature, x_[feature]).nearest(ensemble_.interval(feature, cell));
  }
  const std::span<const Place> mine = places(feature);
  return std::ranges::find(mine, cell, &Place::cell)->value;
}

namespace {

/// The best leaf below a node that the ball reaches, if it is better than `best`. The more
/// promising child comes first, and subtrees that cannot be better are not entered.
double best_leaf(const Ball& ball, const Ensemble::Member& member, std::int32_t at,
                 const Within& within, double best) {
  const Ensemble& ensemble = ball.ensemble();
  while (ensemble.most(at, member) > best) {
    const Ensemble::Node& node = ensemble.node(at);
    if (node.feature == kLeaf) return ensemble.most(at, member);
    const auto f = static_cast<std::size_t>(node.feature);
    const Cells range = within.cells[f];
    bool left = range.lo <= node.rank;
    bool right = range.hi > node.rank;
    if (const std::int32_t n = within.n_places[f]; n > 0) {
      left = ball.first_place(at, true) < n;
      right = ball.first_place(at, false) < n;
    }
    if (left && right) {
      left = ensemble.most(node.left, member) < ensemble.most(node.right, member);
      best = best_leaf(ball, member, left ? node.right : node.left, within, best);
    } else if (!left && !right) {
      left = ensemble.missing_left(at);
    }
    at = left ? node.left : node.right;
  }
  return best;
}

}  // namespace

double plain_bound(const Ball& ball, std::span<const Ensemble::Member> members, double base,
                   const Within& within) {
  double sum = base;
  for (const Ensemble::Member& member : members) {
    sum += best_leaf(ball, member, member.root, within, -kInfinity);
  }
  return sum;
}

}  // namespace hardwood::cells
