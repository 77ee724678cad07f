#pragma once

#include "array.hpp"
#include "hardwood/threat.hpp"

namespace hardwood::bind {

/// A threat crosses the border as n_features x 4: down, up, low, high.
inline std::span<const Reach> reaches(const Array2<double>& array) {
  static_assert(sizeof(Reach) == 4 * sizeof(double));
  return {reinterpret_cast<const Reach*>(array.data()), array.shape(0)};
}

}  // namespace hardwood::bind
