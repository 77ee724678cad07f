#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/rules.hpp"
#include "hardwood/part.hpp"

namespace hardwood::grow {

enum class Impurity : std::uint8_t { kEntropy, kGini };

/// Where thresholds are tried in presorted columns: halfway between neighbouring values, as in the
/// paper, or in the intervals where the robust gain can have its maximum (an end x + eps below, an
/// end x - eps above).
enum class Candidates : std::uint8_t { kMidpoints, kIntervals };

/// What a classification tree must respect, and how its splits are judged.
struct ClassTreeRules : TreeRules {
  Impurity impurity = Impurity::kEntropy;
  Candidates candidates = Candidates::kMidpoints;
  double min_weight_fraction_leaf = 0;  ///< share of all weight each child needs
};

/// The weight of some rows, class by class, in steps of `GridWeights`.
struct ClassSum {
  std::vector<double> weights;

  double cover() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }
  bool pure() const {
    return std::ranges::count_if(weights, [](double weight) { return weight > 0; }) < 2;
  }
  friend ClassSum operator-(ClassSum a, const ClassSum& b) {
    for (std::size_t k = 0; k < a.weights.size(); ++k) a.weights[k] -= b.weights[k];
    return a;
  }
};

/// Weights counted in steps of a grid, and the step: a power of two so coarse that every sum of
/// weights is a whole number below 2^53, exact in any order. So the rows of a column, sorted or
/// not, weigh the same, a child that has no rows of a class has no weight of it, and whatever the
/// unit of the weights, no product of them overflows. Weights that are whole stay as they are.
struct GridWeights {
  std::vector<double> n_steps;  ///< empty: one a row; 0 only where the weight is 0
  double step = 1;
  double largest = 1;  ///< number of steps
  bool counts = true;  ///< the weights are whole, and few enough for 32 bits

  /// The same steps in all parts of a table.
  explicit GridWeights(std::span<const double> weight, const Part& part = {})
      : n_steps(weight.begin(), weight.end()) {
    std::array<double, 3> most{};  // largest weight; is one not whole; are there weights
    for (const double w : weight) {
      most[0] = std::max(most[0], w);
      if (w != std::nearbyint(w)) most[1] = 1;
    }
    most[2] = weight.empty() ? 0 : 1;
    part.max(most);
    if (most[2] == 0 || most[0] == 0) return;
    // Summed in steps, so that it does not matter who has which rows.
    const auto n_rows = static_cast<double>(part.sum(weight.size()));
    const int bits = 62 - std::ilogb(std::max(n_rows, 1.0)) - 1 - (std::ilogb(most[0]) + 1);
    std::int64_t in_steps[] = {0};
    for (const double w : weight) in_steps[0] += std::llrint(std::ldexp(w, bits));
    part.sum(in_steps);
    const double sum = std::ldexp(static_cast<double>(in_steps[0]), -bits);
    counts = sum < 0x1p31 && most[1] == 0;
    if (!counts) {
      const int exponent = std::ilogb(sum) + 1 - 52;
      step = std::ldexp(1.0, exponent);
      for (double& n : n_steps) {
        if (n > 0) n = std::max(std::nearbyint(std::ldexp(n, -exponent)), 1.0);
      }
    }
    largest = counts ? most[0] : std::max(std::nearbyint(most[0] / step), 1.0);
  }

  double of(std::size_t row) const { return n_steps.empty() ? 1.0 : n_steps[row]; }
};

/// The class criteria as the grower sees them. Leaves hold class shares.
class ClassTree {
 public:
  ClassTree(const ClassTreeRules& rules, const ClassSum& total, double step)
      : rules_(rules),
        step_(step),
        min_weight_leaf_(rules.min_weight_fraction_leaf * total.cover()) {}

  const ClassTreeRules& rules() const { return rules_; }
  /// What one step of weight is, in the unit of the user's.
  double step() const { return step_; }
  /// The weight each child needs when nobody attacks.
  double min_weight_leaf() const { return min_weight_leaf_; }

  bool may_gain(const ClassSum& total) const { return !total.pure(); }
  /// Monotone features order the share of class 1.
  template <class Node>
  double value(const Node& node) const {
    return node.total.weights[1] / node.total.cover();
  }
  template <class Node>
  double priority(const Node& node) const {
    return node.split.gain * node.total.cover();
  }
  template <class Node>
  void describe(const Node& node, GrownTree& tree) const {
    const double cover = node.total.cover();
    tree.cover.push_back(cover * step_);
    for (const double weight : node.total.weights) {
      tree.value.push_back(static_cast<float>(weight / cover));
    }
  }

 private:
  const ClassTreeRules& rules_;
  double step_;
  double min_weight_leaf_;
};

}  // namespace hardwood::grow
