#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hardwood/grow/columns.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/grow/newton_split.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// The rows and columns a boosted tree is grown from.
struct NewtonSample {
  std::span<const std::uint8_t> rows;      ///< marks the rows; empty: all
  std::span<const Feature> features;       ///< increasing
  std::span<const std::int8_t> monotonic;  ///< a sign a feature of the table; empty: none
};

/// One round's trees, and the leaf of every row of the table in them, sampled or not.
struct NewtonTrees {
  std::vector<GrownTree> trees;  ///< one an output
  std::vector<NodeId> leaf;      ///< n_rows x n_outputs
};

/// Data sorted once for a whole run of boosting; grows trees that try every threshold (Algorithm 2
/// to the letter). This is the oracle of the histogram engine and the engine for small data.
class ExactTable {
 public:
  /// x: n_rows x n_features, finite or NaN; reach: one a feature.
  ExactTable(Matrix<const double> x, std::span<const Reach> reach, int n_threads);

  std::size_t n_rows() const { return x_.size() / n_features_; }
  std::size_t n_features() const { return n_features_; }

  /// Grow a tree for each column of the derivatives, n_rows x n_outputs, h > 0, each row times its
  /// weight (empty: 1). `between_levels` is called now and then, and may throw to give up. Rows are
  /// routed where they go when nobody attacks: the adversary's choices only judge a split. Same
  /// bytes for any n_threads.
  NewtonTrees grow(Matrix<const float> gradient, Matrix<const float> hessian,
                   std::span<const float> weight, const NewtonSample& sample,
                   const NewtonRules& rules, const std::function<void()>& between_levels);

 private:
  void apply(const GrownTree& tree, std::span<NodeId> leaf, std::size_t stride,
             int n_threads) const;

  std::size_t n_features_;
  std::vector<float> x_;  // row after row, rounded as the model compares
  Columns<NewtonEntry> sorted_;
  Columns<NewtonEntry> columns_;  // of the tree that grows; kept for its memory
};

}  // namespace hardwood::grow
