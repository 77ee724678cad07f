#pragma once

#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/types.hpp"

namespace hardwood::attack {

/// How far z is from x, row by row, counted as the budget says. A row of z with a missing value
/// where x has none is no example: infinity.
std::vector<double> lengths(Matrix<const double> x, Matrix<const double> z,
                            const cells::Budget& budget);

}  // namespace hardwood::attack
