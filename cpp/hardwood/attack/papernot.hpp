#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/types.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::attack {

/// Papernot's attack on one tree: climb from the row's leaf until there is a leaf of another label
/// below, take the one with the fewest steps down, and move the features on the way there as far as
/// its box asks. Leaves beyond `budget.reach` are passed over. Returns n_rows x n_features, NaN
/// where there is no such leaf.
std::vector<double> papernot(const model::Trees& trees, Matrix<const double> x,
                             std::span<const std::int32_t> y, const cells::Budget& budget,
                             int n_threads, Watch& watch);

}  // namespace hardwood::attack
