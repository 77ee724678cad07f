#pragma once

#include <algorithm>
#include <cmath>
#include <span>
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

/// The same where ranks of categories are among the features: their ends follow, least and largest
/// of each rank, NaN behind the last one. They stay in the array.
inline std::vector<Reach> reaches_with_ranks(const Array2<double>& array) {
  const auto given = matrix(array);
  if (given.n_cols <= 7) return reaches(array);
  std::vector<Reach> reach(given.n_rows);
  for (std::size_t f = 0; f < given.n_rows; ++f) {
    const std::span<const double> row = given.row(f);
    reach[f] = {row[0], row[1], row[2], row[3], row[4], row[5], row[6] != 0};
    const std::span<const double> ends = row.subspan(7);
    const auto behind = std::ranges::find_if(ends, [](double end) { return std::isnan(end); });
    reach[f].ranks = ends.first(static_cast<std::size_t>(behind - ends.begin()));
  }
  return reach;
}

}  // namespace hardwood::bind
