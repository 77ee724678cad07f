#include "hardwood/verify/change_sets.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "hardwood/cells/ways.hpp"

namespace hardwood::verify {
namespace {

constexpr int kMostSets = 300;
constexpr std::size_t kMostRounds = 300;  // of weighing all leaves

}  // namespace

ChangeSets::ChangeSets(const Ball& ball, const Question& question,
                       std::span<const Ensemble::Member> members, double farthest)
    : ball_(ball) {
  const Ensemble& ensemble = ball.ensemble();
  cells::Within all;
  ball.within(farthest, all);
  cells_ = std::move(all.cells);
  n_places_ = std::move(all.n_places);
  for (std::size_t f = 0; f < cells_.size(); ++f) {
    const bool moves = ball.has_places(f) ? n_places_[f] > 1 : cells_[f].lo < cells_[f].hi;
    if (moves) movable_.push_back(static_cast<std::int32_t>(f));
  }
  most_ = std::min(static_cast<std::size_t>(ball.max_changes()), movable_.size());
  margin_ = ensemble.plus_base(question) - ensemble.minus_base(question);
  for (const Ensemble::Member& member : members) {
    home_value_ = ensemble.most(cells::leaf_of(ensemble, member.root, ball.home()), member);
    margin_ += home_value_;
    const std::size_t first = leaves_.size();
    read_tree(member.root, member);
    keep_best(first);
    ++tree_;
  }
  // Gains are added up and divided more often than the leaves of a plain bound.
  const double error = ensemble.largest_error(question);
  needed_ = ensemble.needed(question, error) - static_cast<double>(most_ + 2) * error;
  levels_.resize(most_);
  status_.assign(cells_.size(), Status::kOpen);
  gain_.assign(cells_.size(), 0);
  tree_gain_.assign(cells_.size(), 0);
}

/// Note the leaves below a node that are better than the row's own and need few enough changes.
void ChangeSets::read_tree(std::int32_t at, const Ensemble::Member& member) {
  const Ensemble& ensemble = ball_.ensemble();
  if (ensemble.most(at, member) <= home_value_) return;
  const Ensemble::Node& node = ensemble.node(at);
  if (node.feature == kLeaf) {
    leaves_.push_back({tree_, static_cast<std::int32_t>(needed_to_change_.size()),
                       static_cast<std::int32_t>(changed_.size()),
                       ensemble.most(at, member) - home_value_, step_});
    needed_to_change_.insert(needed_to_change_.end(), changed_.begin(), changed_.end());
    return;
  }
  const auto f = static_cast<std::size_t>(node.feature);
  const std::int32_t home = ball_.home()[f];
  if (home == cells::kMissing) {
    read_tree(ensemble.missing_left(at) ? node.left : node.right, member);
  } else if (ball_.has_places(f)) {
    // Which places an earlier node has left is not asked: the bound may be too high.
    const auto places = ball_.places(f);
    for (const bool left : {true, false}) {
      const std::int32_t first = ball_.first_place(at, left);
      if (first >= n_places_[f]) continue;
      const double step = places[static_cast<std::size_t>(first)].step;
      enter(left ? node.left : node.right, member, f, step, first > 0);
    }
  } else {
    const Cells before = cells_[f];
    for (const bool left : {true, false}) {
      Cells& cells = cells_[f];
      if (left) {
        cells.hi = std::min(cells.hi, node.rank);
      } else {
        cells.lo = std::max(cells.lo, node.rank + 1);
      }
      if (cells.lo <= cells.hi) {
        const std::int32_t nearest = std::clamp(home, cells.lo, cells.hi);
        enter(left ? node.left : node.right, member, f, ball_.step(f, nearest), nearest != home);
      }
      cells = before;
    }
  }
}

/// Go on below a node, where a feature `changes` or may stay.
void ChangeSets::enter(std::int32_t at, const Ensemble::Member& member, std::size_t f, double step,
                       bool changes) {
  const auto feature = static_cast<std::int32_t>(f);
  const bool adds = changes && std::ranges::find(changed_, feature) == changed_.end();
  if (adds && changed_.size() == most_) return;
  const double before = step_;
  if (changes) step_ = std::max(step_, step);
  if (adds) changed_.push_back(feature);
  read_tree(at, member);
  if (adds) changed_.pop_back();
  step_ = before;
}

/// Of the leaves of one tree, drop those that another one is better than for less.
void ChangeSets::keep_best(std::size_t first) {
  const auto mine = std::span(leaves_).subspan(first);
  std::ranges::sort(mine, std::greater<>{}, &Leaf::gain);
  std::size_t n_kept = 0;
  for (const Leaf& leaf : mine) {
    const Features features = features_of(leaf);
    const auto beats = [&](const Leaf& other) {
      return other.step <= leaf.step && other.n <= leaf.n &&
             std::ranges::all_of(features_of(other), [&](std::int32_t f) {
               return std::ranges::find(features, f) != features.end();
             });
    };
    if (std::ranges::none_of(mine.first(n_kept), beats)) mine[n_kept++] = leaf;
  }
  leaves_.resize(first + n_kept);
}

bool ChangeSets::any_of(double radius, const std::function<bool(Features)>& see) {
  within_.clear();
  std::ranges::copy_if(leaves_, std::back_inserter(within_),
                       [&](const Leaf& leaf) { return leaf.step <= radius; });
  chosen_.clear();
  return explore(within_, 0, see);
}

/// The bound of the chosen features alone; `level` gets what is left to gain with `n_more`
/// features. A leaf that needs several of them is a gain of each, in equal parts.
double ChangeSets::weigh(std::span<const Leaf> leaves, Level& level, std::size_t n_more) {
  level.leaves.clear();
  n_weighed_ += leaves.size();
  for (const std::int32_t f : movable_) gain_[static_cast<std::size_t>(f)] = 0;
  double bound = margin_;
  for (std::size_t i = 0; i < leaves.size();) {
    const std::size_t begin = level.leaves.size();
    const std::int32_t tree = leaves[i].tree;
    Leaf chosen{tree, 0, 0, 0, 0};  // the best that needs nothing more
    for (; i < leaves.size() && leaves[i].tree == tree; ++i) {
      std::size_t n_open = 0;
      for (const std::int32_t f : features_of(leaves[i])) {
        const Status status = status_[static_cast<std::size_t>(f)];
        n_open += status == Status::kOpen ? 1 : status == Status::kLeftOut ? most_ + 1 : 0;
      }
      if (n_open > n_more || leaves[i].gain <= chosen.gain) continue;
      if (n_open > 0) {
        level.leaves.push_back(leaves[i]);
      } else {
        chosen = leaves[i];
      }
    }
    bound += chosen.gain;
    touched_.clear();
    std::size_t end = begin;
    for (std::size_t j = begin; j < level.leaves.size(); ++j) {
      const Leaf leaf = level.leaves[j];
      if (leaf.gain <= chosen.gain) continue;
      level.leaves[end++] = leaf;
      const Features features = features_of(leaf);
      const auto open = [&](std::int32_t f) {
        return status_[static_cast<std::size_t>(f)] == Status::kOpen;
      };
      const double part =
          (leaf.gain - chosen.gain) / static_cast<double>(std::ranges::count_if(features, open));
      for (const std::int32_t f : features) {
        if (!open(f)) continue;
        double& best = tree_gain_[static_cast<std::size_t>(f)];
        if (best == 0) touched_.push_back(f);
        best = std::max(best, part);
      }
    }
    level.leaves.resize(end);
    if (chosen.gain > 0) level.leaves.push_back(chosen);
    for (const std::int32_t f : touched_) {
      gain_[static_cast<std::size_t>(f)] += tree_gain_[static_cast<std::size_t>(f)];
      tree_gain_[static_cast<std::size_t>(f)] = 0;
    }
  }
  level.order.clear();
  for (const std::int32_t f : movable_) {
    if (status_[static_cast<std::size_t>(f)] == Status::kOpen) {
      level.order.emplace_back(gain_[static_cast<std::size_t>(f)], f);
    }
  }
  std::ranges::sort(level.order, std::greater<>{});
  return bound;
}

/// Choose one more feature, the most promising first; those that were tried are left out after.
bool ChangeSets::explore(std::span<const Leaf> leaves, std::size_t depth,
                         const std::function<bool(Features)>& see) {
  too_many_ |= n_sets_ >= kMostSets || n_weighed_ > kMostRounds * (leaves_.size() + 1);
  if (too_many_) return true;
  if (depth == most_) {
    ++n_sets_;
    return see(chosen_);
  }
  Level& level = levels_[depth];
  const std::size_t n_more = most_ - depth;
  const double bound = weigh(leaves, level, n_more);
  bool stops = false;
  std::size_t next = 0;
  for (; next + n_more <= level.order.size(); ++next) {
    double hope = bound;
    for (std::size_t i = next; i < next + n_more; ++i) hope += level.order[i].first;
    if (hope < needed_) break;
    const auto f = static_cast<std::size_t>(level.order[next].second);
    status_[f] = Status::kChosen;
    chosen_.push_back(level.order[next].second);
    stops = explore(level.leaves, depth + 1, see);
    chosen_.pop_back();
    status_[f] = Status::kLeftOut;
    if (stops) {
      ++next;
      break;
    }
  }
  for (std::size_t i = 0; i < next; ++i) {
    status_[static_cast<std::size_t>(level.order[i].second)] = Status::kOpen;
  }
  return stops;
}

}  // namespace hardwood::verify
