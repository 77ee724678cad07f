#include "hardwood/cells/ensemble.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "hardwood/cells/ways.hpp"

namespace hardwood::cells {
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

Ensemble::Ensemble(const model::Trees& trees, std::span<const Reach> reach)
    : missing_left_(trees.missing_left),
      high_(trees.value),
      base_(trees.base),
      output_(trees.tree_output),
      classes_(static_cast<std::size_t>(trees.n_features)),
      n_values_(static_cast<std::size_t>(trees.n_values)),
      x_float32_(trees.x_float32),
      sum_float32_(trees.sum_float32),
      decision_(trees.decision) {
  if (sum_float32_) {
    for (double& base : base_) base = static_cast<float>(base);
  }
  const auto n_features = static_cast<std::size_t>(trees.n_features);
  const auto edge_at = [&](std::size_t at) {
    const auto f = static_cast<std::size_t>(trees.feature[at]);
    return f < reach.size() && reach[f].whole ? std::ceil(trees.edge(at)) : trees.edge(at);
  };
  std::vector<std::vector<double>> edges(n_features);
  std::vector<std::vector<std::size_t>> nodes_of(n_features);  // features with categories only
  for (std::size_t at = 0; at < trees.n_nodes(); ++at) {
    if (trees.feature[at] == kLeaf) continue;
    const auto f = static_cast<std::size_t>(trees.feature[at]);
    if (!trees.categories(at).empty()) {
      classes_[f].n_cells = 1;
    } else {
      edges[f].push_back(trees.edge(at));
    }
  }
  nodes_.resize(trees.n_nodes());
  for (std::size_t at = 0; trees.has_categories() && at < trees.n_nodes(); ++at) {
    if (trees.feature[at] == kLeaf) continue;
    const auto f = static_cast<std::size_t>(trees.feature[at]);
    if (has_categories(f)) nodes_of[f].push_back(at);
  }
  edge_start_.push_back(0);
  for (std::size_t f = 0; f < n_features; ++f) {
    std::vector<double>& mine = edges[f];
    if (has_categories(f)) {
      lay_out_categories(trees, f, nodes_of[f], mine);
    } else if (f < reach.size() && reach[f].whole) {
      for (double& edge : mine) edge = std::ceil(edge);
    }
    std::ranges::sort(mine);
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    edges_.insert(edges_.end(), mine.begin(), mine.end());
    edge_start_.push_back(edges_.size());
  }
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
      const auto f = static_cast<std::size_t>(feature);
      std::int32_t rank = nodes_[at].rank;  // of categories: already known
      if (!has_categories(f)) {
        rank = static_cast<std::int32_t>(std::ranges::lower_bound(edges[f], edge_at(at)) -
                                         edges[f].begin());
      }
      nodes_[at] = {feature, rank, start + trees.left[at], start + trees.right[at]};
    }
  }
  find_ranges();
  find_grain();
}

/// Children need not come after their parents, so nodes are taken in the order of a walk.
void Ensemble::find_ranges() {
  low_ = high_;
  std::vector<std::int32_t> walk(root_);
  for (std::size_t i = 0; i < walk.size(); ++i) {
    const Node mine = node(walk[i]);
    if (mine.feature != kLeaf) walk.insert(walk.end(), {mine.left, mine.right});
  }
  for (auto me = walk.rbegin(); me != walk.rend(); ++me) {
    const Node& mine = node(*me);
    if (mine.feature == kLeaf) continue;
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(n_values_); ++v) {
      high_[at(*me, v)] = std::max(high_[at(mine.left, v)], high_[at(mine.right, v)]);
      low_[at(*me, v)] = std::min(low_[at(mine.left, v)], low_[at(mine.right, v)]);
    }
  }
}

/// Cut the doubles where some split changes its mind, find the classes of the pieces, and give
/// every node its split.
void Ensemble::lay_out_categories(const model::Trees& trees, std::size_t feature,
                                  std::span<const std::size_t> nodes, std::vector<double>& edges) {
  const auto edge_before = [&](std::int32_t code) {
    return trees.x_float32 ? edge_of(static_cast<float>(code)) : static_cast<double>(code);
  };
  for (const std::size_t at : nodes) {
    for (const std::int32_t code : trees.categories(at)) {
      edges.push_back(edge_before(code));
      edges.push_back(edge_before(code + 1));
    }
  }
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  const std::size_t n_pieces = edges.size() + 1;
  const auto piece_of = [&](double x) {
    return static_cast<std::int32_t>(std::ranges::upper_bound(edges, x) - edges.begin());
  };
  const std::size_t n_words = words_for(n_pieces);
  SetPool pool;
  std::vector<std::int32_t> sets;  // of pieces that go left, one a split
  std::unordered_map<std::int32_t, std::int32_t> split_of;
  std::vector<Word> left(n_words);
  Classes& mine = classes_[feature];
  mine.first_split = static_cast<std::int32_t>(split_start_.size());
  for (const std::size_t at : nodes) {
    const auto listed = trees.categories(at);
    set_first(left, listed.empty() ? static_cast<std::size_t>(piece_of(trees.edge(at))) : n_pieces);
    for (const std::int32_t code : listed) {
      const std::int32_t piece = piece_of(edge_before(code));
      left[static_cast<std::size_t>(piece) / 64] &= ~(Word{1} << (piece % 64));
    }
    const std::int32_t set = pool.add(left);
    const auto [found, is_new] =
        split_of.try_emplace(set, mine.first_split + static_cast<std::int32_t>(sets.size()));
    if (is_new) sets.push_back(set);
    nodes_[at].rank = ~found->second;
  }
  mine.end_split = mine.first_split + static_cast<std::int32_t>(sets.size());
  mine.cell.assign(n_pieces, 0);
  mine.n_cells = 1;
  for (const std::int32_t set : sets) {  // split every class into those that go left and the others
    std::vector<std::int32_t> side(2 * mine.n_cells, -1);
    std::int32_t n_cells = 0;
    for (std::size_t piece = 0; piece < n_pieces; ++piece) {
      const bool goes = has_bit(pool.at(set), static_cast<std::int32_t>(piece));
      std::int32_t& cell = side[2 * static_cast<std::size_t>(mine.cell[piece]) + goes];
      if (cell < 0) cell = n_cells++;
      mine.cell[piece] = cell;
    }
    mine.n_cells = static_cast<std::size_t>(n_cells);
  }
  for (const std::int32_t set : sets) {
    split_start_.push_back(left_.size());
    left_.resize(left_.size() + words_for(mine.n_cells));
    Word* words = left_.data() + split_start_.back();
    for (std::size_t piece = 0; piece < n_pieces; ++piece) {
      if (has_bit(pool.at(set), static_cast<std::int32_t>(piece))) {
        set_bit(words, mine.cell[piece]);
      }
    }
  }
}

std::int32_t Ensemble::cell_of(std::size_t feature, double x) const {
  const auto of_feature = edges(feature);
  const auto at = std::ranges::upper_bound(of_feature, x) - of_feature.begin();
  return has_categories(feature) ? classes_[feature].cell[static_cast<std::size_t>(at)]
                                 : static_cast<std::int32_t>(at);
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
        grain = std::min(grain, grain_of(high_[v]));
        largest = std::max(largest, std::abs(high_[v]));
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

std::vector<Question> Ensemble::questions(const Property& property) const {
  const std::int32_t y = property.label;
  if (y == Property::kOutput) {
    std::vector<Question> both;
    if (property.high < kInfinity) both.push_back({0, Question::kConstant, true, property.high});
    if (property.low > -kInfinity) both.push_back({Question::kConstant, 0, true, property.low});
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
    const std::int32_t leaf = leaf_of(*this, root_[k], cells);
    for (std::size_t v = 0; v < n_values_; ++v) {
      double& sum = out[static_cast<std::size_t>(output_[k]) + v];
      sum = add(sum, high_[static_cast<std::size_t>(leaf) * n_values_ + v]);
    }
  }
}

bool Ensemble::fooled(const Property& property, std::span<const std::int32_t> cells,
                      std::vector<double>& margin) const {
  margin.resize(n_outputs());
  this->margin(cells, margin);
  if (property.label == Property::kOutput)
    return margin[0] < property.low || margin[0] > property.high;
  return decision_.label(margin) != property.label;
}

}  // namespace hardwood::cells
