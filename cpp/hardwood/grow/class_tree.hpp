#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "hardwood/grow/class_nodes.hpp"
#include "hardwood/grow/grown_tree.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// What a classification tree learns from, besides the table.
struct ClassSample {
  std::span<const std::int32_t> label;  ///< one a row, in [0, n_classes)
  std::int32_t n_classes;
  /// One a row, >= 0, or empty: one each. Rows of weight 0 are left out.
  std::span<const double> weight;
  std::span<const std::int8_t> monotonic;  ///< a sign a feature, or empty
};

/// Grow the robust classification tree of Algorithm 1 from presorted columns.
///
/// x: n_rows x n_features, finite or NaN; weights > 0, and whole where Inner::kPaper counts rows;
/// reach: one a feature. `poll` is called now and then and stops the work by throwing. Leaves hold
/// class shares. Same bytes for any n_threads.
GrownTree grow_class_tree(Matrix<const double> x, const ClassSample& sample,
                          std::span<const Reach> reach, const ClassTreeRules& rules,
                          const std::function<void()>& poll);

}  // namespace hardwood::grow
