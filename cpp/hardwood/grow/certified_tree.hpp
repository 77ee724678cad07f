#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/part.hpp"
#include "hardwood/pool.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// What one tree of certified boosting is grown from. What is on loan goes back to the pool once
/// the rows are on the grid.
struct CertifiedRequest {
  Pooled<float> slopes;                    ///< gradients of all rows, finite; then hessians, >= 0
  std::span<const float> weight;           ///< one a row, >= 0, or empty: 1
  Pooled<std::uint32_t> rows;              ///< that train: first those the adversary pushes down
  std::size_t n_down = 0;                  ///< how many of them it pushes down; the others up
  std::span<const Feature> features;       ///< increasing, or empty: every feature
  std::span<const std::int8_t> monotonic;  ///< one a feature, or empty: no constraint
  NewtonRules rules;
  std::uint64_t seed = 0;        ///< for the rounding of gradients
  bool wants_leaf_rows = false;  ///< in the answer, from the pool
  int n_threads = 1;
  Part part = {};  ///< `number` is that of rows of the codes
};

/// The numbers of the rows that can be sent to a leaf: first those that the adversary pushes down,
/// increasing, then the others, increasing. A leaf can have several lists, and a row can be in more
/// than one of them.
struct LeafRows {
  NodeId leaf = 0;
  Pooled<std::uint32_t> rows = {};
  std::size_t n_down = 0;
};

struct CertifiedTree {
  GrownTree tree;
  std::vector<std::uint32_t> candidate;       ///< of a node that splits: where its threshold stands
  std::vector<double> value_low, value_high;  ///< limits of a leaf's value
  double g_total = 0, h_total = 0;            ///< see Grid
  std::vector<LeafRows> leaf_rows;            ///< in the order of leaves, if they are wanted
};

/// Grow a tree on rows that go wherever the adversary can send them.
///
/// A row that is ambiguous at a split goes into both children. One of them owns it: the one where
/// its margin is worse, which at a split whose left value is the lower one is the left child for a
/// row that the adversary pushes down. A row counts in full in the node that owns it and by half
/// in the others.
///
/// A split is judged by what is left of its gain when each ambiguous row is where it is worse. Two
/// histograms give these sums: one for splits whose left value is the lower one, one for the
/// reverse. A candidate counts only if the values it leads to are in the order of its histogram;
/// this is the adversary's exact reply (see `NewtonCriterion`), rows told apart by where they are
/// pushed.
///
/// A split that gains less than `min_split_gain` and has no better one below it is taken back once
/// the tree is grown. Same bytes for any number of threads, and of parts: where others have rows of
/// the table, too, all of them grow the same tree level by level, with two messages a level.
template <class Code>
CertifiedTree grow_certified(const bins::EndCodes<Code>& codes, CertifiedRequest request,
                             Pool& pool);

}  // namespace hardwood::grow
