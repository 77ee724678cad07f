#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "hardwood/grow/rules.hpp"

namespace hardwood::grow {

/// The columns that one node may be split on, drawn anew for every node.
class FeatureDraw {
 public:
  /// `node`: its number in the tree, which is all that its draw depends on.
  FeatureDraw(std::size_t n_columns, const TreeRules& rules, std::size_t node)
      : order_(n_columns), state_(rules.seed + node * 0x9e3779b97f4a7c15u) {
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    n_drawn_ = std::min(rules.max_features, n_columns);
    for (std::size_t i = 0; i < n_drawn_; ++i) draw(i);
    // In order, so that on equal gains every thread prefers the earlier feature.
    std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(n_drawn_));
  }

  static bool needed(const TreeRules& rules, std::size_t n_columns) {
    return rules.max_features > 0 && rules.max_features < n_columns;
  }

  /// The first columns, increasing.
  std::span<const std::uint32_t> first() const { return {order_.data(), n_drawn_}; }

  /// One more, or none. As in scikit-learn, a node keeps drawing until some column can be split.
  std::span<const std::uint32_t> next() {
    if (n_drawn_ == order_.size()) return {};
    draw(n_drawn_);
    return {order_.data() + n_drawn_++, 1};
  }

 private:
  void draw(std::size_t i) {
    if (i + 1 < order_.size()) std::swap(order_[i], order_[i + random() % (order_.size() - i)]);
  }

  /// splitmix64: a whole generator in one line of state, the same everywhere.
  std::uint64_t random() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::vector<std::uint32_t> order_;
  std::uint64_t state_;
  std::size_t n_drawn_ = 0;
};

}  // namespace hardwood::grow
