#include "hardwood/ensemble/joint_refit.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "hardwood/ensemble/exact_sum.hpp"
#include "hardwood/ensemble/exponential.hpp"
#include "hardwood/model/reached.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::ensemble {
namespace {

constexpr std::size_t kBlock = 256;      // rows handled together
constexpr std::size_t kMostShares = 16;  // into which sums over rows are cut, for any n_threads
constexpr std::size_t kMostKept = std::size_t{1} << 28;  // leaves of rows that memory may hold
constexpr std::size_t kMemory = 10;                      // steps that L-BFGS remembers

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The leaves that the rows of a block can be pushed to in one tree: for each row their number,
/// then their positions among the tree's nodes.
using Reached = std::vector<std::uint32_t>;

/// Finds the leaves of rows as they are.
template <class X>
struct PlainRows {
  const model::Trees& trees;
  Matrix<const X> x;
  std::span<const JointRows> rows;

  template <class Visit>
  void visit(std::size_t tree, std::size_t copy, std::size_t row, std::vector<std::size_t>& open,
             Visit&& visit) const {
    model::visit_reached(trees, tree, x.row(row), rows[copy].reach, open, visit);
  }
};

/// Finds the leaves of rows that are in codes; a second copy of them is at rest.
struct CodedRows {
  const model::Trees& trees;
  const bins::EndCodes<std::uint8_t>& codes;
  std::vector<std::size_t> candidate = {};  // of each node

  CodedRows(const model::Trees& of, const bins::EndCodes<std::uint8_t>& in)
      : trees(of), codes(in), candidate(of.n_nodes()) {
    for (std::size_t i = 0; i < candidate.size(); ++i) {
      if (trees.feature[i] == kLeaf) continue;
      candidate[i] =
          codes.candidate(static_cast<std::size_t>(trees.feature[i]), trees.threshold[i]);
    }
  }

  template <class Visit>
  void visit(std::size_t tree, std::size_t copy, std::size_t row, std::vector<std::size_t>& open,
             Visit&& visit) const {
    const std::size_t at = (row + copy * codes.rest()) * codes.kRowCodes;
    const auto sides = [&](std::size_t node, std::size_t f) -> model::Sides {
      const std::uint8_t* const code = codes.lower(f) + at;
      if (codes.has_missing(f) && code[0] == codes.missing_code()) {
        return {trees.missing_left[node] != 0, trees.missing_left[node] == 0};
      }
      return {candidate[node] >= code[0], candidate[node] < code[codes.kWidth]};
    };
    model::visit_reached(trees, tree, open, sides, visit);
  }
};

template <class Finder>
class Objective {
 public:
  /// `shares`: what each copy of the rows counts.
  Objective(const model::Trees& trees, const Finder& finder, std::size_t n_rows,
            std::vector<double> shares, std::span<const float> y, std::span<const float> weight,
            const JointRefit& how, const Part& part)
      : trees_(trees),
        finder_(finder),
        n_rows_(n_rows),
        y_(y),
        weight_(weight),
        shares_(std::move(shares)),
        how_(how),
        part_(part) {
    n_blocks_ = (n_rows + kBlock - 1) / kBlock * shares_.size();
    omega_.assign(n_rows * shares_.size(), 1.0f);
    sum_ = ExactSum(about_sum(n_rows, how.n_threads, part, [&](std::size_t i) {
      return weight.empty() ? 1.0 : double{weight[i]};
    }));
    keeps_ = 2 * omega_.size() * trees.n_trees() < kMostKept;
    if (keeps_) reached_.resize(n_blocks_ * trees.n_trees());
    parallel_for(n_blocks_, how.n_threads, [&](std::size_t b, int) {
      std::vector<std::size_t> open;
      for (std::size_t k = 0; keeps_ && k < trees.n_trees(); ++k) {
        find(b, k, open, reached_[b * trees.n_trees() + k]);
      }
    });
  }

  /// At the first call, weigh the rows down that are beyond hope.
  void weigh(const Vector& value) {
    parallel_for(n_blocks_, how_.n_threads, [&](std::size_t b, int) {
      Vector margin;
      std::vector<float> shares;
      margins(b, value, margin, shares);
      for (std::size_t i = 0; i < size(b); ++i) {
        const double loss = log_loss(&margin[i * n_outputs()], label(b, i), nullptr);
        // The log odds of the own class: p = exp(-loss).
        const double odds = -loss - std::log(std::max(-std::expm1(-loss), 1e-12));
        omega_[row(b, i) + copy(b) * n_rows_] =
            static_cast<float>(1 / (1 + std::exp(-(odds + how_.patience))));
      }
    });
  }

  /// The loss and its gradient by the values of all nodes.
  double look(const Vector& value, Vector& gradient) {
    checkpoint();
    const std::size_t n_shares = std::min(kMostShares, n_blocks_);
    Vector losses(n_shares);
    std::vector<Vector> gradients(n_shares);
    parallel_for(n_shares, how_.n_threads, [&](std::size_t share, int) {
      gradients[share].assign(value.size(), 0.0);
      std::vector<float> shares;
      for (std::size_t b = n_blocks_ * share / n_shares; b < n_blocks_ * (share + 1) / n_shares;
           ++b) {
        losses[share] += look_at(b, value, gradients[share], shares);
      }
    });
    std::ranges::fill(gradient, 0.0);
    for (const Vector& share : gradients) {
      for (std::size_t i = 0; i < value.size(); ++i) gradient[i] += share[i];
    }
    const double loss = of_all(std::accumulate(losses.begin(), losses.end(), 0.0), gradient);
    for (std::size_t i = 0; i < value.size(); ++i) gradient[i] += how_.penalty * value[i];
    return loss + how_.penalty / 2 * dot(value, value);
  }

 private:
  /// The loss and the gradient of all parts.
  double of_all(double loss, Vector& gradient) const {
    if (!part_.others) return loss;
    std::vector<std::int64_t> wire{sum_.whole(loss)};
    for (const double one : gradient) wire.push_back(sum_.whole(one));
    part_.sum(wire);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = sum_.sum(wire[i + 1]);
    return sum_.sum(wire[0]);
  }

  std::size_t n_outputs() const { return trees_.n_outputs(); }
  std::size_t blocks_a_copy() const { return n_blocks_ / shares_.size(); }
  std::size_t copy(std::size_t b) const { return b / blocks_a_copy(); }
  std::size_t row(std::size_t b, std::size_t i) const { return b % blocks_a_copy() * kBlock + i; }
  std::size_t size(std::size_t b) const { return std::min(kBlock, n_rows_ - row(b, 0)); }
  std::size_t label(std::size_t b, std::size_t i) const {
    return static_cast<std::size_t>(y_[row(b, i)]);
  }

  double weight(std::size_t b, std::size_t i) const {
    return weight_.empty() ? 1.0 : double{weight_[row(b, i)]};
  }

  void find(std::size_t b, std::size_t tree, std::vector<std::size_t>& open, Reached& reached) {
    reached.clear();
    for (std::size_t i = 0; i < size(b); ++i) {
      const std::size_t at = reached.size();
      reached.push_back(0);
      finder_.visit(tree, copy(b), row(b, i), open,
                    [&](std::size_t node) { reached.push_back(static_cast<std::uint32_t>(node)); });
      reached[at] = static_cast<std::uint32_t>(reached.size() - at - 1);
    }
    reached.shrink_to_fit();
  }

  /// Call `body(tree, reached)` for every tree.
  template <class Body>
  void for_each_tree(std::size_t b, Body&& body) {
    std::vector<std::size_t> open;
    Reached found;
    for (std::size_t k = 0; k < trees_.n_trees(); ++k) {
      if (!keeps_) find(b, k, open, found);
      body(k, keeps_ ? reached_[b * trees_.n_trees() + k] : found);
    }
  }

  /// The soft minimum (sign 1) or maximum (sign -1) of some values; its gradient is put to
  /// `shares`.
  double soft(const Vector& value, const std::uint32_t* leaf, std::size_t n, double sign,
              std::vector<float>& shares) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t e = 0; e < n; ++e) least = std::min(least, sign * value[leaf[e]]);
    shares.resize(shares.size() + n);
    float* const share = shares.data() + shares.size() - n;
    const double sharpness = 1 / how_.temperature;
    for (std::size_t e = 0; e < n; ++e) {
      share[e] = static_cast<float>((least - sign * value[leaf[e]]) * sharpness);
    }
    float sum = 0;
    for (std::size_t e = 0; e < n; ++e) share[e] = exponential(share[e]);
    for (std::size_t e = 0; e < n; ++e) sum += share[e];
    for (std::size_t e = 0; e < n; ++e) share[e] /= sum;
    return sign *
           (least - how_.temperature * std::log(static_cast<double>(sum) / static_cast<double>(n)));
  }

  /// Margins of a block, and the gradients of all soft minima in it, one after the other.
  void margins(std::size_t b, const Vector& value, Vector& margin, std::vector<float>& shares) {
    margin.resize(size(b) * n_outputs());
    for (std::size_t i = 0; i < margin.size(); ++i) margin[i] = trees_.base[i % n_outputs()];
    shares.clear();
    for_each_tree(b, [&](std::size_t k, const Reached& reached) {
      const auto output = static_cast<std::size_t>(trees_.tree_output[k]);
      const std::uint32_t* at = reached.data();
      for (std::size_t i = 0; i < size(b); ++i, at += *at + 1) {
        const double sign = label(b, i) == output ? 1 : -1;
        margin[i * n_outputs() + output] +=
            *at == 1 ? value[at[1]] : soft(value, at + 1, *at, sign, shares);
      }
    });
  }

  /// log sum exp(margin) - margin[y], and its gradient unless that is null.
  double log_loss(const double* margin, std::size_t y, double* gradient) const {
    const double largest = *std::max_element(margin, margin + n_outputs());
    double sum = 0;
    for (std::size_t c = 0; c < n_outputs(); ++c) sum += std::exp(margin[c] - largest);
    for (std::size_t c = 0; gradient && c < n_outputs(); ++c) {
      gradient[c] = std::exp(margin[c] - largest) / sum - (c == y ? 1 : 0);
    }
    return largest + std::log(sum) - margin[y];
  }

  double look_at(std::size_t b, const Vector& value, Vector& gradient, std::vector<float>& shares) {
    Vector margin, pull(size(b) * n_outputs());
    margins(b, value, margin, shares);
    double total = 0;
    for (std::size_t i = 0; i < size(b); ++i) {
      double* const of_row = &pull[i * n_outputs()];
      const double share = double{omega_[row(b, i) + copy(b) * n_rows_]} * shares_[copy(b)];
      total +=
          sum_.term(weight(b, i), share * log_loss(&margin[i * n_outputs()], label(b, i), of_row));
      for (std::size_t c = 0; c < n_outputs(); ++c) of_row[c] *= share;
    }
    const float* share = shares.data();
    for_each_tree(b, [&](std::size_t k, const Reached& reached) {
      const auto output = static_cast<std::size_t>(trees_.tree_output[k]);
      const std::uint32_t* at = reached.data();
      for (std::size_t i = 0; i < size(b); ++i, at += *at + 1) {
        const double by_margin = pull[i * n_outputs() + output];
        if (*at == 1) {
          gradient[at[1]] += sum_.term(weight(b, i), by_margin);
          continue;
        }
        for (std::size_t e = 1; e <= *at; ++e) {
          gradient[at[e]] += sum_.term(weight(b, i), by_margin * double{*share++});
        }
      }
    });
    return total;
  }

  const model::Trees& trees_;
  const Finder& finder_;
  std::size_t n_rows_;
  std::span<const float> y_, weight_;
  std::vector<double> shares_;
  const JointRefit& how_;
  Part part_;
  std::size_t n_blocks_;  // of all copies of the rows
  bool keeps_;            // `reached_`, or finds it anew each time
  std::vector<Reached> reached_;
  std::vector<float> omega_;
  ExactSum sum_;
};

/// The steps that L-BFGS remembers, and the direction they make of a gradient.
class Curvature {
 public:
  void add(Vector step, Vector change) {
    if (dot(step, change) <= 1e-12) return;
    steps_.push_back(std::move(step));
    changes_.push_back(std::move(change));
    if (steps_.size() <= kMemory) return;
    steps_.pop_front();
    changes_.pop_front();
  }

  Vector direction(const Vector& gradient) const {
    Vector to = gradient, along(steps_.size());
    const auto add_to = [&](double factor, const Vector& other) {
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * other[i];
    };
    for (std::size_t k = steps_.size(); k-- > 0;) {
      along[k] = dot(steps_[k], to) / dot(steps_[k], changes_[k]);
      add_to(-along[k], changes_[k]);
    }
    const double scale = steps_.empty() ? 1 / std::max(1.0, std::sqrt(dot(gradient, gradient)))
                                        : dot(steps_.back(), changes_.back()) /
                                              dot(changes_.back(), changes_.back());
    for (double& part : to) part *= scale;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      add_to(along[k] - dot(changes_[k], to) / dot(steps_[k], changes_[k]), steps_[k]);
    }
    return to;
  }

 private:
  std::deque<Vector> steps_, changes_;
};

void check(const model::Trees& trees, std::size_t n_rows, std::size_t n_features,
           std::span<const float> y, std::span<const float> weight) {
  if (trees.has_categories() || trees.n_values != 1 || y.size() != n_rows ||
      n_features != static_cast<std::size_t>(trees.n_features) ||
      (!weight.empty() && weight.size() != n_rows)) {
    throw std::invalid_argument("rows and labels must have the shapes of the model.");
  }
}

template <class Finder>
std::vector<float> minimise(const model::Trees& trees, Objective<Finder>& objective,
                            const JointRefit& how) {
  // Inner nodes hold values of no meaning; no row reaches them.
  Vector value(trees.n_nodes());
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (trees.feature[i] == kLeaf) value[i] = trees.value[i];
  }
  objective.weigh(value);
  Vector gradient(value.size()), next(value.size()), next_gradient(value.size());
  double now = objective.look(value, gradient);
  Curvature curvature;
  for (int step = 0; step < how.n_steps; ++step) {
    const Vector direction = curvature.direction(gradient);
    const double slope = dot(gradient, direction);
    if (!(slope > 0)) break;
    double length = 1, then = 0;
    bool falls = false;
    for (int halving = 0; halving < 20 && !falls; ++halving, length /= 2) {
      for (std::size_t i = 0; i < value.size(); ++i) next[i] = value[i] - length * direction[i];
      then = objective.look(next, next_gradient);
      falls = then <= now - 1e-4 * length * slope;
    }
    if (!falls) break;
    Vector moved(value.size()), change(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      moved[i] = next[i] - value[i];
      change[i] = next_gradient[i] - gradient[i];
    }
    curvature.add(std::move(moved), std::move(change));
    value.swap(next);
    gradient.swap(next_gradient);
    const double gained = now - then;
    now = then;
    if (gained < 1e-6 * std::abs(now)) break;
  }
  return {value.begin(), value.end()};
}

}  // namespace

template <class X>
std::vector<float> joint_refit(const model::Trees& trees, Matrix<const X> x,
                               std::span<const float> y, std::span<const float> weight,
                               std::span<const JointRows> rows, const JointRefit& how) {
  check(trees, x.n_rows, x.n_cols, y, weight);
  std::vector<double> shares;
  for (const JointRows& copy : rows) shares.push_back(copy.share);
  const PlainRows<X> finder{trees, x, rows};
  Objective objective(trees, finder, x.n_rows, shares, y, weight, how, {});
  return minimise(trees, objective, how);
}

std::vector<float> joint_refit(const model::Trees& trees, const bins::EndCodes<std::uint8_t>& codes,
                               std::span<const float> y, std::span<const float> weight,
                               double robustness, const JointRefit& how, const Part& part) {
  check(trees, codes.rest(), codes.n_features(), y, weight);
  const CodedRows finder(trees, codes);
  std::vector<double> shares{robustness};
  if (codes.rest() < codes.n_rows()) shares.push_back(1 - robustness);
  Objective objective(trees, finder, codes.rest(), shares, y, weight, how, part);
  return minimise(trees, objective, how);
}

template std::vector<float> joint_refit(const model::Trees&, Matrix<const float>,
                                        std::span<const float>, std::span<const float>,
                                        std::span<const JointRows>, const JointRefit&);
template std::vector<float> joint_refit(const model::Trees&, Matrix<const double>,
                                        std::span<const float>, std::span<const float>,
                                        std::span<const JointRows>, const JointRefit&);

}  // namespace hardwood::ensemble
