#include "hardwood/attack/local_search.hpp"

#include <algorithm>
#include <limits>

namespace hardwood::attack {
namespace {

constexpr double kNoise = NearTrees::kNoise;
constexpr double kTiny = 1e-12;  // of costs
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kAscents = 4;
constexpr int kPatience = 20;       // moves without gain, for each feature that is changed
constexpr double kMostNoise = 0.9;  // in what gains count
constexpr double kOneMore = 0.7;    // chance that one more feature is changed at once
constexpr int kMostAtOnce = 8;
constexpr double kBarred = 0.7;      // chance that a feature that is given up stays so
constexpr double kEntersLeaf = 0.5;  // chance of several steps into one leaf
constexpr std::size_t kProposingTrees = 20;
constexpr std::size_t kTried = 6;    // leaves that all trees are asked about
constexpr double kMostDearer = 1.2;  // where repairs end
constexpr double kWarmth = 0.1;      // of a mean step: how much dearer a next point may be at first
constexpr double kCooling = 1.3;
constexpr double kMixes = 0.5;      // chance that two points are mixed when stuck
constexpr std::size_t kPoints = 4;  // that are mixed
constexpr int kLeaves = 20;         // of which the best is where a way from home begins
constexpr double kLeafShare = 0.7;  // of the best cost: what such a leaf may cost

}  // namespace

void LocalSearch::build(const NearTrees& near, const cells::Ball& ball, double unit) {
  moves_.build(near, ball, unit);
  needed_ = near.enough();
  squares_ = false;
  favour_.assign(moves_.n_features(), 1);
}

void LocalSearch::shed_from(std::span<const std::int32_t> cells) {
  moves_.start(cells);
  shed();
}

void LocalSearch::climb_from(std::span<const std::int32_t> cells) {
  moves_.start(cells);
  ascend();
  if (enough()) shed();
}

void LocalSearch::repair_home(bool squares) {
  moves_.start_at_home();
  squares_ = squares;
  if (repair(kInfinity)) shed();
}

void LocalSearch::iterate(std::span<const std::int32_t> cells, int n_moves) {
  random_.seed(std::mt19937::default_seed);
  stuck_.clear();
  moves_.start(cells);
  double best = moves_.cost();
  int last = 0;  // when it became cheaper
  int n_steps = 1 + n_changed();
  for (moves_.n_moves = 0; moves_.n_moves < n_moves && !watch_.over(); ++moves_.n_moves) {
    if (moves_.n_moves - last > kPatience * n_steps) {
      go_elsewhere(best);
      best = enough() ? moves_.cost() : kInfinity;
      last = moves_.n_moves;
      n_steps = 1 + n_changed();
    }
    perturb(kMostDearer * best);
    // Slightly dearer points are good enough at first: the way on may lead through them.
    const double cooling = 1 - kCooling * moves_.n_moves / n_moves;
    const double bar = best * (1 + kWarmth / n_steps * std::max(cooling, -kNoise));
    if (enough() && moves_.cost() < bar) {
      if (moves_.cost() < best * (1 - kNoise)) last = moves_.n_moves;
      best = moves_.cost();
      moves_.save();
    } else {
      moves_.go_back();
    }
  }
}

/// Coordinate ascent, whatever it costs.
void LocalSearch::ascend() {
  bool moved = true;
  for (int round = 0; moved && round < kAscents; ++round) {
    moved = false;
    for (std::size_t f = 0; f < moves_.n_features(); ++f) {
      const std::span<const double> gain = moves_.gains(f);
      const auto best = std::ranges::max_element(gain);
      if (*best <= kNoise) continue;
      moves_.move(f, static_cast<std::size_t>(best - gain.begin()));
      moved = true;
    }
  }
}

/// Take steps back, each time the one that loses least for what it saves, as long as the value is
/// enough.
void LocalSearch::shed() {
  while (true) {
    double least = kInfinity;
    std::size_t feature = 0;
    std::size_t place = 0;
    for (std::size_t f = 0; f < moves_.n_features(); ++f) {
      if (moves_.place(f) == moves_.home(f)) continue;
      const std::span<const double> gain = moves_.gains(f);
      const std::span<const double> cost = moves_.costs(f);
      const double paid = cost[moves_.place(f)];
      for (std::size_t c = 0; c < cost.size(); ++c) {
        const double saved = paid - cost[c];
        if (saved <= 0 || moves_.value() + gain[c] < needed_) continue;
        const double rate = -gain[c] / saved;
        if (rate < least) least = rate, feature = f, place = c;
      }
    }
    if (least == kInfinity) break;
    moves_.move(feature, place);
  }
  keep_(moves_);
}

/// Take steps with the best gain for their cost until the value is enough; false if there are
/// none, or if all together cost more than `most`.
bool LocalSearch::repair(double most) {
  while (!enough()) {
    if (!rise(needed_ - moves_.value()) || moves_.cost() > most) return false;
  }
  return true;
}

/// How good a gain is for its cost; With `squares_` the cost weighs less. Gains beyond what is
/// missing are worth nothing.
double LocalSearch::rate(double gain, double missing, double favour, double dearer) const {
  const double useful = favour * std::min(gain, missing);
  return (squares_ ? useful * useful : useful) / std::max(dearer, kTiny);
}

bool LocalSearch::rise(double missing) {
  double top = 0;
  std::size_t feature = 0;
  std::size_t place = 0;
  for (std::size_t f = 0; f < moves_.n_features(); ++f) {
    if (favour_[f] == 0 || moves_.most_gain(f) <= kNoise) continue;
    const std::span<const double> gain = moves_.gains(f);
    const std::span<const double> cost = moves_.costs(f);
    const double paid = cost[moves_.place(f)];
    for (std::size_t c = 0; c < cost.size(); ++c) {
      if (gain[c] <= kNoise) continue;
      const double mine = rate(gain[c], missing, favour_[f], cost[c] - paid);
      if (mine > top) top = mine, feature = f, place = c;
    }
  }
  if (top == 0) return false;
  moves_.move(feature, place);
  return true;
}

/// Enter the best of the leaves of some trees that need several steps. Their own trees propose
/// them, all trees together decide: steps often pay only together.
void LocalSearch::enter_leaf(double missing) {
  const std::size_t n_trees = moves_.n_trees();
  if (n_trees == 0) return;
  const std::size_t n_some = std::min(n_trees, kProposingTrees);
  const std::size_t first = below(n_trees);
  const std::size_t stride = 1 + below(n_trees / n_some);
  proposed_.clear();
  for (std::size_t k = 0; k < n_some; ++k) {
    const std::size_t tree = (first + k * stride) % n_trees;
    for (const Moves::Leaf& leaf : moves_.leaves(tree)) propose(tree, leaf, kInfinity);
  }
  enter_best(missing);
}

void LocalSearch::propose(std::size_t tree, const Moves::Leaf& leaf, double most) {
  const Moves::Entry entry = moves_.entry(tree, leaf);
  if (entry.gain <= kNoise || entry.cost > most) return;
  proposed_.push_back({entry.gain / std::max(entry.cost, kTiny), entry.cost, &leaf});
}

void LocalSearch::enter_best(double missing) {
  const std::size_t n = std::min(proposed_.size(), kTried);
  std::ranges::partial_sort(proposed_, proposed_.begin() + static_cast<std::ptrdiff_t>(n),
                            std::ranges::greater{}, &Proposed::rate);
  double top = 0;
  const Moves::Leaf* best = nullptr;
  for (const Proposed& proposed : std::span(proposed_).first(n)) {
    const double gain = moves_.gain_of(*proposed.leaf);
    if (gain <= kNoise) continue;
    const double mine = rate(gain, missing, 1, proposed.cost);
    if (mine > top) top = mine, best = proposed.leaf;
  }
  if (best != nullptr) moves_.enter(*best);
}

/// Let chance have a say in which gains count.
void LocalSearch::randomise() {
  const double noise = kMostNoise * (draw() < 0.5 ? 1 : draw());
  for (double& favour : favour_) favour = 1 - noise * draw();
  squares_ = draw() >= 0.5;
}

int LocalSearch::n_changed() const {
  int n = 0;
  for (std::size_t f = 0; f < moves_.n_features(); ++f) n += moves_.place(f) != moves_.home(f);
  return n;
}

/// Change the point a little, repair and shed it.
void LocalSearch::perturb(double most) {
  randomise();
  int count = 1;
  while (count < kMostAtOnce && draw() < kOneMore) ++count;
  const bool enters_leaf = draw() < kEntersLeaf;
  if (draw() < 0.5) {
    if (enters_leaf) {
      enter_leaf(kInfinity);
    } else {
      while (count-- > 0) rise(kInfinity);
    }
  } else {
    changed_.clear();
    for (std::size_t f = 0; f < moves_.n_features(); ++f) {
      if (moves_.place(f) != moves_.home(f)) changed_.push_back(f);
    }
    for (; count > 0 && !changed_.empty(); --count) {
      const auto at = changed_.begin() + static_cast<std::ptrdiff_t>(below(changed_.size()));
      const std::size_t f = *at;
      changed_.erase(at);
      moves_.move(f, moves_.home(f));
      if (draw() < kBarred) favour_[f] = 0;
    }
    if (enters_leaf && !enough()) enter_leaf(needed_ - moves_.value());
  }
  if (repair(most)) shed();
}

/// What was found is kept; a way from home that begins with some leaf, or a mixture of two points
/// where the search was stuck, may lead elsewhere.
void LocalSearch::go_elsewhere(double best) {
  if (enough()) remember(best);
  if (stuck_.size() > 1 && draw() < kMixes) {
    mix();
  } else {
    moves_.start_at_home();
    enter_some_leaf(kLeafShare * best);
  }
  randomise();
  if (repair(kInfinity)) shed();
  moves_.save();
}

void LocalSearch::remember(double cost) {
  const std::span<const std::int32_t> places = moves_.places();
  const auto same = [&](const Stuck& point) { return std::ranges::equal(point.places, places); };
  if (std::ranges::any_of(stuck_, same)) return;
  const auto at = std::ranges::upper_bound(stuck_, cost, {}, &Stuck::cost);
  stuck_.insert(at, {cost, {places.begin(), places.end()}});
  if (stuck_.size() > kPoints) stuck_.pop_back();
}

/// All steps of two points; where both take one, either.
void LocalSearch::mix() {
  const std::size_t first = below(stuck_.size());
  const std::size_t second = (first + 1 + below(stuck_.size() - 1)) % stuck_.size();
  for (std::size_t f = 0; f < moves_.n_features(); ++f) {
    const auto home = static_cast<std::int32_t>(moves_.home(f));
    const std::int32_t one = stuck_[first].places[f], other = stuck_[second].places[f];
    const bool takes_other = one == home || (other != home && draw() < 0.5);
    const auto to = static_cast<std::size_t>(takes_other ? other : one);
    if (to != moves_.place(f)) moves_.move(f, to);
  }
}

/// Begin with the best of some leaves that need several steps.
void LocalSearch::enter_some_leaf(double most) {
  if (moves_.n_trees() == 0) return;
  proposed_.clear();
  for (int k = 0; k < kLeaves; ++k) {
    const std::size_t tree = below(moves_.n_trees());
    const std::span<const Moves::Leaf> leaves = moves_.leaves(tree);
    propose(tree, leaves[below(leaves.size())], most);
  }
  enter_best(kInfinity);
}

}  // namespace hardwood::attack
