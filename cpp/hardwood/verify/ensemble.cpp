#include "hardwood/verify/ensemble.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hardwood::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The largest power of two that divides a number.
double grain_of(double value) {
  if (value == 0) return kInfinity;
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(value), &exponent);
  const auto bits = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
  return std::ldexp(1.0, exponent - 53 + std::countr_zero(bits));
}

}  // namespace

Ensemble::Ensemble(const model::Trees& trees)
    : missing_left_(trees.missing_left),
      value_(trees.value),
      base_(trees.base),
      output_(trees.tree_output),
      n_values_(static_cast<std::size_t>(trees.n_values)),
      sum_float32_(trees.sum_float32),
      decision_(trees.decision) {
  if (trees.has_categories()) {
    throw std::invalid_argument("The search cannot bound categories; decide their nodes first.");
  }
  if (sum_float32_) {
    for (double& base : base_) base = static_cast<float>(base);
  }
  const auto n_features = static_cast<std::size_t>(trees.n_features);
  std::vector<std::vector<double>> edges(n_features);
  for (std::size_t at = 0; at < trees.n_nodes(); ++at) {
    if (trees.feature[at] == kLeaf) continue;
    edges[static_cast<std::size_t>(trees.feature[at])].push_back(trees.edge(at));
  }
  edge_start_.push_back(0);
  for (std::vector<double>& of_feature : edges) {
    std::ranges::sort(of_feature);
    of_feature.erase(std::unique(of_feature.begin(), of_feature.end()), of_feature.end());
    edges_.insert(edges_.end(), of_feature.begin(), of_feature.end());
    edge_start_.push_back(edges_.size());
  }
  nodes_.resize(trees.n_nodes());
  for (std::size_t k = 0; k < trees.n_trees(); ++k) {
    const auto start = static_cast<std::int32_t>(trees.tree_start[k]);
    root_.push_back(start);
    for (auto at = static_cast<std::size_t>(start);
         at < static_cast<std::size_t>(trees.tree_start[k + 1]); ++at) {
      const Feature feature = trees.feature[at];
      if (feature == kLeaf) {
        nodes_[at] = {kLeaf, static_cast<std::int32_t>(at), 0, 0};
        continue;
      }
      const auto& of_feature = edges[static_cast<std::size_t>(feature)];
      const auto found = std::ranges::lower_bound(of_feature, trees.edge(at));
      nodes_[at] = {feature, static_cast<std::int32_t>(found - of_feature.begin()),
                    start + trees.left[at], start + trees.right[at]};
    }
  }
  find_grain();
}

void Ensemble::find_grain() {
  double grain = kInfinity;
  for (const double base : base_) {
    grain = std::min(grain, grain_of(base));
    largest_sum_ += std::abs(base);
  }
  for (std::size_t k = 0; k < root_.size(); ++k) {
    const auto first = static_cast<std::size_t>(root_[k]);
    const std::size_t end =
        k + 1 < root_.size() ? static_cast<std::size_t>(root_[k + 1]) : nodes_.size();
    double largest = 0;
    for (std::size_t at = first; at < end; ++at) {
      if (nodes_[at].feature != kLeaf) continue;
      for (std::size_t v = at * n_values_; v < (at + 1) * n_values_; ++v) {
        grain = std::min(grain, grain_of(value_[v]));
        largest = std::max(largest, std::abs(value_[v]));
      }
    }
    largest_sum_ += largest;
  }
  if (grain == kInfinity) grain = 1;  // all values are zero
  // Every partial sum, and the difference of two, is a multiple of the grain; it is exact while it
  // has no more bits than the precision.
  if (largest_sum_ <= grain * (sum_float32_ ? 0x1p23 : 0x1p51)) grain_ = grain;
}

Interval Ensemble::interval(std::size_t feature, std::int32_t cell) const {
  const auto of_feature = edges(feature);
  const auto at = static_cast<std::size_t>(cell);
  Interval interval;
  if (at > 0) interval.low = of_feature[at - 1];
  if (at < of_feature.size()) interval.high = of_feature[at];
  return interval;
}

std::vector<Question> Ensemble::questions(const Target& target) const {
  const std::int32_t y = target.label;
  if (y == Target::kOutput) {
    std::vector<Question> both;
    if (target.high < kInfinity) both.push_back({0, Question::kConstant, true, target.high});
    if (target.low > -kInfinity) both.push_back({Question::kConstant, 0, true, target.low});
    return both;
  }
  if (n_outputs() == 1) {
    const double cut = on_grain(decision_.cut);
    if (y == 0) return {{0, Question::kConstant, true, cut}};
    return {{Question::kConstant, 0, false, cut}};
  }
  std::vector<Question> all;
  for (std::int32_t c = 0; c < static_cast<std::int32_t>(n_outputs()); ++c) {
    if (c != y) all.push_back({c, y, c > y});
  }
  return all;
}

std::vector<Ensemble::Member> Ensemble::members(const Question& question) const {
  const auto column = [&](std::size_t tree, std::int32_t output) {
    const std::int32_t at = output - output_[tree];
    return output >= 0 && at >= 0 && at < static_cast<std::int32_t>(n_values_) ? at : -1;
  };
  std::vector<Member> all;
  for (std::size_t k = 0; k < root_.size(); ++k) {
    const Member member{root_[k], column(k, question.plus), column(k, question.minus)};
    if (member.plus >= 0 || member.minus >= 0) all.push_back(member);
  }
  return all;
}

void Ensemble::margin(std::span<const std::int32_t> cells, std::span<double> out) const {
  std::ranges::copy(base_, out.begin());
  for (std::size_t k = 0; k < root_.size(); ++k) {
    std::int32_t at = root_[k];
    while (node(at).feature != kLeaf) {
      const std::int32_t cell = cells[static_cast<std::size_t>(node(at).feature)];
      const bool left = cell == kMissing ? missing_left(at) : cell <= node(at).rank;
      at = left ? node(at).left : node(at).right;
    }
    for (std::size_t v = 0; v < n_values_; ++v) {
      double& sum = out[static_cast<std::size_t>(output_[k]) + v];
      sum = add(sum, value_[static_cast<std::size_t>(at) * n_values_ + v]);
    }
  }
}

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
    const auto edges = ensemble.edges(f);
    const auto home =
        static_cast<std::size_t>(std::ranges::upper_bound(edges, x[f]) - edges.begin());
    home_[f] = static_cast<std::int32_t>(home);
    double* step = step_.data() + ensemble.edge_start(f);
    const auto reaches = [&](std::size_t cell) {
      const Interval interval = ensemble.interval(f, static_cast<std::int32_t>(cell));
      return !interval.empty() && interval.meets(budget.reach[f], x[f]);
    };
    // Within reach, a step alone never leaves the ball: what exceeds the radius is rounding.
    const auto counted = [&](double z, double scale) {
      return std::min(step_between(x[f], z) / scale, budget.radius);
    };
    for (std::size_t edge = home; edge < edges.size() && reaches(edge + 1); ++edge) {
      step[edge] = counted(edges[edge], budget.up_scale[f]);
    }
    for (std::size_t edge = home; edge-- > 0 && reaches(edge);) {
      step[edge] = counted(std::nextafter(edges[edge], -kInfinity), budget.down_scale[f]);
    }
  }
}

void Ball::cells_within(double radius, std::vector<Cells>& out) const {
  out.resize(x_.size());
  for (std::size_t f = 0; f < x_.size(); ++f) {
    if (home_[f] == kMissing) {
      out[f] = {std::numeric_limits<std::int32_t>::max(), -1};
      continue;
    }
    const double* step = step_.data() + ensemble_.edge_start(f);
    const auto n_edges = static_cast<std::int32_t>(ensemble_.edges(f).size());
    const double most = std::min(radius, std::numeric_limits<double>::max());
    // Steps grow away from home, on both sides.
    const double* up = std::upper_bound(step + home_[f], step + n_edges, most);
    const double* down =
        std::partition_point(step, step + home_[f], [&](double one) { return one > most; });
    out[f] = {static_cast<std::int32_t>(down - step), static_cast<std::int32_t>(up - step)};
  }
}

double Ball::step_below(double radius) const {
  double best = -1;
  for (const double step : step_) {
    if (step < radius && step > best) best = step;
  }
  return best;
}

double Ball::length(std::span<const std::int32_t> cells) const {
  Length length{budget_.norm};
  for (std::size_t f = 0; f < cells.size(); ++f) {
    if (cells[f] != home_[f]) length.add(step(f, cells[f]));
  }
  return length.total;
}

double Ball::nearest(std::size_t feature, std::int32_t cell) const {
  return ensemble_.interval(feature, cell).nearest(x_[feature]);
}

double plain_bound(const Ensemble& ensemble, std::span<const Ensemble::Member> members, double base,
                   std::span<const Cells> cells) {
  std::vector<std::int32_t> open;
  double sum = base;
  for (const Ensemble::Member& member : members) {
    double best = -kInfinity;
    open.push_back(member.root);
    while (!open.empty()) {
      const std::int32_t at = open.back();
      open.pop_back();
      const Ensemble::Node& node = ensemble.node(at);
      if (node.feature == kLeaf) {
        double value = 0;
        if (member.plus >= 0) value += ensemble.value(node.rank, member.plus);
        if (member.minus >= 0) value -= ensemble.value(node.rank, member.minus);
        best = std::max(best, value);
        continue;
      }
      const Cells range = cells[static_cast<std::size_t>(node.feature)];
      const bool left = range.lo <= node.rank;
      const bool right = range.hi > node.rank;
      if (left) open.push_back(node.left);
      if (right) open.push_back(node.right);
      if (!left && !right) open.push_back(ensemble.missing_left(at) ? node.left : node.right);
    }
    sum += best;
  }
  return sum;
}

}  // namespace hardwood::verify
