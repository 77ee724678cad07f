#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "array.hpp"
#include "hardwood/threat.hpp"

namespace hardwood::bind {

/// A threat crosses the border as n_features x 4: down, up, low, high; or x 7, where shares down
/// and up and whether only whole numbers count follow.
inline std::vector<Reach> reaches(const Array2<double>& array) {
  const auto given = matrix(array);
  if (given.n_cols != 4 && given.n_cols != 7) {
    throw std::invalid_argument("reach must have 4 or 7 columns, got " +
                                std::to_string(given.n_cols) + ".");
  }
  std::vector<Reach> reach(given.n_rows);
  for (std::size_t f = 0; f < given.n_rows; ++f) {
    reach[f] = {given(f, 0), given(f, 1), given(f, 2), given(f, 3)};
    if (given.n_cols == 7) {
      reach[f].down_share = given(f, 4);
      reach[f].up_share = given(f, 5);
      reach[f].whole = given(f, 6) != 0;
    }
  }
  return reach;
}

}  // namespace hardwood::bind
