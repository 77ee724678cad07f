#include "hardwood/attack/one_change.hpp"

#include <algorithm>

namespace hardwood::attack {

using cells::Cells;
using cells::Ensemble;
using cells::kMissing;

OneChange::OneChange(const Ensemble& ensemble)
    : ensemble_(ensemble), path_(ensemble.n_features()), margin_(ensemble.n_outputs()) {
  start_.push_back(0);
  for (std::size_t f = 0; f < ensemble.n_features(); ++f) {
    start_.push_back(start_.back() + ensemble.edges(f).size() + 2);
    path_[f] = {0, static_cast<std::int32_t>(ensemble.edges(f).size())};
  }
  gain_.resize(start_.back());
}

double OneChange::value(std::int32_t leaf, const Ensemble::Member& member) const {
  const std::int32_t row = ensemble_.node(leaf).rank;
  double sum = 0;
  if (member.plus >= 0) sum += ensemble_.value(row, member.plus);
  if (member.minus >= 0) sum -= ensemble_.value(row, member.minus);
  return sum;
}

bool OneChange::goes_left(std::int32_t at, std::span<const std::int32_t> point) const {
  return ensemble_.goes_left(at, point[static_cast<std::size_t>(ensemble_.node(at).feature)]);
}

std::int32_t OneChange::leaf_of(const Ensemble::Member& member,
                                std::span<const std::int32_t> point) const {
  std::int32_t at = member.root;
  while (ensemble_.node(at).feature != kLeaf) {
    at = goes_left(at, point) ? ensemble_.node(at).left : ensemble_.node(at).right;
  }
  return at;
}

double OneChange::sum(const cells::Question& question, std::span<const std::int32_t> point) const {
  double sum = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  for (const Ensemble::Member& member : ensemble_.members(question)) {
    sum += value(leaf_of(member, point), member);
  }
  return sum;
}

double OneChange::read(const cells::Question& question, const cells::Ball& ball,
                       std::span<const std::int32_t> point) {
  ball_ = &ball;
  std::ranges::fill(gain_, 0.0);
  double sum = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  for (const Ensemble::Member& member : ensemble_.members(question)) {
    sum += read_tree(member, point);
  }
  // Until here gain_ holds differences from one cell to the next.
  for (std::size_t f = 0; f + 1 < start_.size(); ++f) {
    for (std::size_t c = start_[f] + 1; c < start_[f + 1]; ++c) gain_[c] += gain_[c - 1];
  }
  return sum;
}

double OneChange::read_tree(const Ensemble::Member& member, std::span<const std::int32_t> point) {
  const double home = value(leaf_of(member, point), member);
  narrowed_.clear();
  for (std::int32_t at = member.root; ensemble_.node(at).feature != kLeaf;) {
    const Ensemble::Node& node = ensemble_.node(at);
    const auto f = static_cast<std::size_t>(node.feature);
    const bool left = goes_left(at, point);
    if (point[f] != kMissing && !ball_->has_places(f)) {
      Cells& stays = path_[f];
      narrowed_.push_back({f, stays});
      const Cells leaves = left ? Cells{std::max(stays.lo, node.rank + 1), stays.hi}
                                : Cells{stays.lo, std::min(stays.hi, node.rank)};
      if (leaves.lo <= leaves.hi) {
        read_beside(left ? node.right : node.left, member, point, node.feature, leaves, home);
      }
      (left ? stays.hi : stays.lo) =
          left ? std::min(stays.hi, node.rank) : std::max(stays.lo, node.rank + 1);
    }
    at = left ? node.left : node.right;
  }
  for (std::size_t k = narrowed_.size(); k-- > 0;) path_[narrowed_[k].feature] = narrowed_[k].cells;
  return home;
}

/// Leaves below a node that the point reaches if its cell of `feature` is one of `cells`.
void OneChange::read_beside(std::int32_t at, const Ensemble::Member& member,
                            std::span<const std::int32_t> point, std::int32_t feature, Cells cells,
                            double home) {
  while (ensemble_.node(at).feature != kLeaf) {
    const Ensemble::Node& node = ensemble_.node(at);
    if (node.feature != feature) {
      at = goes_left(at, point) ? node.left : node.right;
    } else if (cells.hi <= node.rank) {
      at = node.left;
    } else if (cells.lo > node.rank) {
      at = node.right;
    } else {
      read_beside(node.left, member, point, feature, {cells.lo, node.rank}, home);
      cells.lo = node.rank + 1;
      at = node.right;
    }
  }
  const double gained = value(at, member) - home;
  double* first = gain_.data() + start_[static_cast<std::size_t>(feature)];
  first[cells.lo] += gained;
  first[cells.hi + 1] -= gained;
}

bool OneChange::fools(std::span<const std::int32_t> point, std::int32_t y) {
  ensemble_.margin(point, margin_);
  return ensemble_.decision().label(margin_) != y;
}

void write_point(const cells::Ball& ball, std::span<const std::int32_t> point,
                 std::span<double> out) {
  for (std::size_t f = 0; f < out.size(); ++f) {
    out[f] = point[f] == ball.home()[f] ? ball.x()[f] : ball.nearest(f, point[f]);
  }
}

}  // namespace hardwood::attack
