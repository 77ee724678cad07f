#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/model/trees.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"
#include "hardwood/verify/length.hpp"
#include "hardwood/verify/watch.hpp"

namespace hardwood::verify {

/// How a move is measured and what bounds it.
///
/// A step of s down in feature f counts s / down_scale[f], a step up s / up_scale[f] (scales of 1:
/// the plain norm). Every coordinate must stay inside its `reach`, and the norm of the counted
/// steps inside `radius`.
struct Budget {
  Norm norm = Norm::kInf;
  double radius = 0;
  std::span<const Reach> reach;
  std::span<const double> down_scale;
  std::span<const double> up_scale;
};

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
