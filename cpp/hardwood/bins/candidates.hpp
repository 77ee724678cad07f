#pragma once

#include <span>
#include <vector>

#include "hardwood/bins/edges.hpp"
#include "hardwood/threat.hpp"

namespace hardwood::bins {

/// The thresholds of one feature at which a robust gain can have its maximum, increasing.
///
/// Let a threshold rise. Where it passes the upper end of a ball, a row becomes sure and no gain
/// falls; where it passes the lower end of one, a row becomes ambiguous and no gain rises. So every
/// maximum lies between an upper end and a lower end that are neighbours among all ends: one
/// threshold halfway between them dominates all that the adversary's reply tells apart.
///
/// `values` are those of a sample, increasing. Where there are more than `max_candidates` such
/// places, the rows are cut into as many equal shares, and each share keeps the place at which the
/// fewest rows are ambiguous. Ends that only rounding tells apart count as one.
std::vector<float> choose_candidates(std::span<const Value> values, const Reach& reach,
                                     std::size_t max_candidates);

}  // namespace hardwood::bins
