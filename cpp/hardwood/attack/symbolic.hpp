#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/types.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::attack {

/// Kantchelian's symbolic prediction, for few changed features: each round reads off the trees what
/// the model would say for every value of every single feature, and makes the best of these
/// changes, until the model is fooled or no change helps. Features whose change turned out not to
/// be needed go back. Returns n_rows x n_features, NaN where it failed.
std::vector<double> symbolic(const model::Trees& trees, Matrix<const double> x,
                             std::span<const std::int32_t> y, const cells::Budget& budget,
                             int n_threads, Watch& watch);

}  // namespace hardwood::attack
