#include "hardwood/attack/one_change.hpp"

#include <algorithm>

#include "hardwood/cells/ways.hpp"

namespace hardwood::attack {

using cells::Cells;
using cells::Ensemble;

OneChange::OneChange(const Ensemble& ensemble)
    : ensemble_(ensemble), stays_(ensemble.n_features()) {
  start_.push_back(0);
  for (std::size_t f = 0; f < ensemble.n_features(); ++f) {
    start_.push_back(start_.back() + ensemble.edges(f).size() + 2);
    stays_[f] = {0, static_cast<std::int32_t>(ensemble.edges(f).size())};
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

double OneChange::sum(const cells::Question& question, std::span<const std::int32_t> point) const {
  double sum = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  for (const Ensemble::Member& member : ensemble_.members(question)) {
    sum += value(cells::leaf_of(ensemble_, member.root, point), member);
  }
  return sum;
}

namespace {

/// The model's trees, where the points of a ball are read.
struct Movable {
  const Ensemble& ensemble;
  const cells::Ball& ball;

  const Ensemble::Node& node(std::int32_t at) const { return ensemble.node(at); }
  bool goes_left(std::int32_t at, std::int32_t cell) const { return ensemble.goes_left(at, cell); }
  bool can_change(std::size_t f) const {
    return ball.home()[f] != cells::kMissing && !ball.has_places(f);
  }
};

}  // namespace

double OneChange::read(const cells::Question& question, const cells::Ball& ball,
                       std::span<const std::int32_t> point) {
  std::ranges::fill(gain_, 0.0);
  double sum = ensemble_.plus_base(question) - ensemble_.minus_base(question);
  for (const Ensemble::Member& member : ensemble_.members(question)) {
    const double here = value(cells::leaf_of(ensemble_, member.root, point), member);
    const auto note = [&](std::int32_t feature, std::int32_t leaf, Cells cells) {
      const double gained = value(leaf, member) - here;
      double* first = gain_.data() + start_[static_cast<std::size_t>(feature)];
      first[cells.lo] += gained;
      first[cells.hi + 1] -= gained;
    };
    cells::each_leaf_one_change_away(Movable{ensemble_, ball}, member.root, point, stays_, note);
    sum += here;
  }
  // Until here gain_ holds differences from one cell to the next.
  for (std::size_t f = 0; f + 1 < start_.size(); ++f) {
    for (std::size_t c = start_[f] + 1; c < start_[f + 1]; ++c) gain_[c] += gain_[c - 1];
  }
  return sum;
}

void write_point(const cells::Ball& ball, std::span<const std::int32_t> point,
                 std::span<double> out) {
  for (std::size_t f = 0; f < out.size(); ++f) {
    out[f] = point[f] == ball.home()[f] ? ball.x()[f] : ball.nearest(f, point[f]);
  }
}

}  // namespace hardwood::attack
