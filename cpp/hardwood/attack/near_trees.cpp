#include "hardwood/attack/near_trees.hpp"

#include <algorithm>
#include <limits>

namespace hardwood::attack {

using cells::Cells;
using cells::Ensemble;

NearTrees::NearTrees(const Ensemble& ensemble)
    : ensemble_(ensemble), trees_of_(ensemble.n_features()) {}

void NearTrees::build(const cells::Ball& ball, const cells::Question& question,
                      std::span<const Ensemble::Member> members, double radius, double budget,
                      double unit) {
  ball_ = &ball;
  budget_ = budget;
  unit_ = unit;
  ball.within(radius, within_);
  cells_ = within_.cells;
  nodes_.clear();
  trees.clear();
  leaves.clear();
  for (const std::size_t f : features_) trees_of_[f].clear();
  features_.clear();
  enough_ = question.strict ? kNoise : 0;
  constant_ = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  for (const Ensemble::Member& member : members) {
    const std::size_t first_node = nodes_.size();
    const std::size_t first_leaf = leaves.size();
    const std::int32_t root = visit(member.root, member, -1, 0, 0);
    if (leaves.size() - first_leaf == 1) {
      constant_ += leaves.back().value;
      nodes_.resize(first_node);
      leaves.resize(first_leaf);
      continue;
    }
    const auto tree = static_cast<std::int32_t>(trees.size());
    trees.push_back({root, static_cast<std::int32_t>(nodes_.size()),
                     static_cast<std::int32_t>(first_leaf),
                     static_cast<std::int32_t>(leaves.size() - first_leaf)});
    for (std::size_t at = first_node; at < nodes_.size(); ++at) {
      if (nodes_[at].feature == kLeaf) continue;
      const auto f = static_cast<std::size_t>(nodes_[at].feature);
      auto& of_feature = trees_of_[f];
      if (of_feature.empty()) features_.push_back(f);
      if (of_feature.empty() || of_feature.back() != tree) of_feature.push_back(tree);
    }
  }
  std::ranges::sort(features_);
}

std::int32_t NearTrees::visit(std::int32_t at, const Ensemble::Member& member, std::int32_t parent,
                              double step, double cost) {
  while (true) {
    const Ensemble::Node& node = ensemble_.node(at);
    if (node.feature == kLeaf) {
      nodes_.push_back({kLeaf, static_cast<std::int32_t>(leaves.size()), 0, 0, parent});
      leaves.push_back(
          {value_of(node, member), step, static_cast<std::int32_t>(nodes_.size()) - 1});
      return static_cast<std::int32_t>(nodes_.size()) - 1;
    }
    const auto f = static_cast<std::size_t>(node.feature);
    Cells& cells = cells_[f];
    const bool left = cells.lo <= node.rank;
    const bool right = cells.hi > node.rank;
    if (!left || !right) {
      const bool go_left = left || (!right && ensemble_.missing_left(at));
      at = go_left ? node.left : node.right;
      continue;
    }
    // One of the two branches keeps the cell next to home, the other may need a longer step.
    const bool near_left = ball_->home()[f] <= node.rank;
    const double away = ball_->step(f, near_left ? node.rank + 1 : node.rank);
    double away_cost = cost;
    if (budget_ < std::numeric_limits<double>::infinity()) {
      const std::int32_t here = std::clamp(ball_->home()[f], cells.lo, cells.hi);
      away_cost += cells::cost_of(ball_->norm(), away, unit_);
      if (here != ball_->home()[f])
        away_cost -= cells::cost_of(ball_->norm(), ball_->step(f, here), unit_);
      if (away_cost > budget_) {
        const Cells before = cells;
        (near_left ? cells.hi : cells.lo) = near_left ? node.rank : node.rank + 1;
        const std::int32_t only =
            visit(near_left ? node.left : node.right, member, parent, step, cost);
        cells = before;
        return only;
      }
    }
    const auto me = nodes_.size();
    nodes_.push_back({node.feature, node.rank, 0, 0, parent});
    const auto mine = static_cast<std::int32_t>(me);
    const Cells before = cells;
    const double far = std::max(step, away);
    cells.hi = node.rank;
    const std::int32_t below =
        visit(node.left, member, mine, near_left ? step : far, near_left ? cost : away_cost);
    cells = {node.rank + 1, before.hi};
    const std::int32_t above =
        visit(node.right, member, mine, near_left ? far : step, near_left ? away_cost : cost);
    cells = before;
    nodes_[me].left = below;
    nodes_[me].right = above;
    return mine;
  }
}

/// As `visit`, but only to note values and steps.
void NearTrees::see(std::int32_t at, const Ensemble::Member& member, double step) {
  while (ensemble_.node(at).feature != kLeaf) {
    const Ensemble::Node& node = ensemble_.node(at);
    const auto f = static_cast<std::size_t>(node.feature);
    Cells& cells = cells_[f];
    const bool left = cells.lo <= node.rank;
    const bool right = cells.hi > node.rank;
    if (left && right) {
      const Cells before = cells;
      const bool home_left = ball_->home()[f] <= node.rank;
      cells.hi = node.rank;
      see(node.left, member, home_left ? step : std::max(step, ball_->step(f, node.rank)));
      cells = {node.rank + 1, before.hi};
      see(node.right, member, home_left ? std::max(step, ball_->step(f, node.rank + 1)) : step);
      cells = before;
      return;
    }
    const bool go_left = left || (!right && ensemble_.missing_left(at));
    at = go_left ? node.left : node.right;
  }
  events_.push_back({step, value_of(ensemble_.node(at), member)});
}

double NearTrees::plain_radius(double share, double& likely, const cells::Ball& ball,
                               const cells::Question& question,
                               std::span<const Ensemble::Member> members, double radius) {
  ball_ = &ball;
  ball.within(radius, within_);
  cells_ = within_.cells;
  events_.clear();
  double sum = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  const auto sooner = [](const Event& a, const Event& b) { return a.step < b.step; };
  for (const Ensemble::Member& member : members) {
    const std::size_t before = events_.size();
    see(member.root, member, 0);
    const auto mine = events_.begin() + static_cast<std::ptrdiff_t>(before);
    double best = -std::numeric_limits<double>::infinity();
    for (auto event = mine; event != events_.end(); ++event) {
      if (event->step == 0) best = std::max(best, event->gain);
    }
    sum += best;
    const auto no_better = [&](const Event& event) { return event.gain <= best; };
    events_.erase(std::remove_if(mine, events_.end(), no_better), events_.end());
    if (events_.end() - mine > 1) std::sort(mine, events_.end(), sooner);
    // What the tree's best leaf within a step adds to its best one within less.
    auto kept = mine;
    for (auto event = mine; event != events_.end(); ++event) {
      if (no_better(*event)) continue;
      const double gain = event->gain - best;
      best = event->gain;
      *kept++ = {event->step, gain};
    }
    events_.erase(kept, events_.end());
  }
  std::ranges::sort(events_, sooner);
  const double enough = -share * sum;
  double needed = 0;
  std::size_t k = 0;
  for (; sum < 0; ++k) {
    if (k == events_.size()) return std::numeric_limits<double>::infinity();
    sum += events_[k].gain;
    needed = events_[k].step;
  }
  likely = needed;
  const double most = kWithin * needed;
  for (; sum < enough && k < events_.size() && events_[k].step <= most; ++k) {
    sum += events_[k].gain;
    likely = events_[k].step;
  }
  if (sum < enough) likely = most;
  return needed;
}

void NearTrees::box_of(const Leaf& leaf, std::vector<Side>& box) const {
  box.clear();
  std::int32_t below = leaf.node;
  for (std::int32_t at = nodes_[static_cast<std::size_t>(below)].parent; at >= 0;) {
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    auto side = std::ranges::find(box, node.feature, &Side::feature);
    if (side == box.end()) {
      box.push_back({node.feature, cells_[static_cast<std::size_t>(node.feature)]});
      side = box.end() - 1;
    }
    if (node.left == below) {
      side->cells.hi = std::min(side->cells.hi, node.rank);
    } else {
      side->cells.lo = std::max(side->cells.lo, node.rank + 1);
    }
    below = at;
    at = node.parent;
  }
}

double NearTrees::value(std::span<const std::int32_t> point) const {
  double sum = constant_;
  for (const Tree& tree : trees) sum += leaf(cells::leaf_of(*this, tree.root, point)).value;
  return sum;
}

}  // namespace hardwood::attack
