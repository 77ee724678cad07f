#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/cells/budget.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/types.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::attack {

/// Our quick attack: an example near the row, not necessarily the nearest; no proof is tried.
///
/// The trees are cut to the leaves near the row. In the maximum norm, a ball grows from the largest
/// radius at which the trees' best leaves, each on its own, would not suffice; at a radius the
/// trees vote for their best leaves, and coordinate ascent inside the ball does the rest. Examples
/// are pulled back and the radius bisected. In the norms 1 and 2 such points, in wider balls too,
/// and the steps with the best gain for their cost are starts; steps are taken back as long as the
/// model stays fooled. From the cheapest a local search goes on (LocalSearch).
///
/// Returns n_rows x n_features, NaN where nothing was found. Rows are independent and the work is
/// bounded by counts, not by a clock, so threads change nothing; when the watch ends it, a row
/// keeps the nearest example it has.
std::vector<double> descent(const model::Trees& trees, Matrix<const double> x,
                            std::span<const std::int32_t> y, const cells::Budget& budget,
                            int n_threads, Watch& watch);

}  // namespace hardwood::attack
