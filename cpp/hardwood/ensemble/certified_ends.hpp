#pragma once

#include <span>

#include "hardwood/model/trees.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::ensemble {

/// Add to `low` and `high` (n_rows x n_outputs) what the trees add to a row's margins at worst: of
/// each tree the least and the largest leaf that the adversary can push the row to, in the order
/// of the trees. Rounding is monotone, so a margin that started between the two and gets the trees
/// added in float32, as the model does it, stays between them wherever the row is moved.
template <class X>
void add_certified_ends(const model::Trees& trees, Matrix<const X> x, std::span<const Reach> reach,
                        Matrix<float> low, Matrix<float> high, int n_threads);

}  // namespace hardwood::ensemble
