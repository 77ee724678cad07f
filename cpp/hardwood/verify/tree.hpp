#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/types.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::verify {

using cells::Budget;

struct Nearest {
  std::vector<double> distance;  ///< infinity where no point within the budget changes the label
  std::vector<double> x_adv;     ///< n_rows x n_features; NaN where there is none
  std::vector<std::uint8_t> answered;  ///< 0 for rows whose turn never came
};

/// The exact truth about one tree: for every row the nearest point in a leaf of another label.
/// Leaf boxes are disjoint and cover the space, so the smallest distance to a box of another label
/// is the smallest change that fools the tree. Rows that the tree already gets wrong
/// (label != y) have distance 0.
Nearest nearest_in_tree(const model::Trees& trees, Matrix<const double> x,
                        std::span<const std::int32_t> y, const Budget& budget, int n_threads,
                        Watch& watch);

}  // namespace hardwood::verify
