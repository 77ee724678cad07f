#pragma once

#include <cstddef>
#include <cstdint>

#include "hardwood/grow/inner.hpp"

namespace hardwood::grow {

/// What every tree must respect, whatever judges its splits.
struct TreeRules {
  Inner inner = Inner::kExact;
  double min_split_gain = 0;
  std::size_t min_samples_leaf = 1;
  std::size_t min_samples_split = 2;
  std::int32_t max_depth = -1;     ///< -1: no limit
  std::size_t max_leaf_nodes = 0;  ///< 0: no limit
  std::size_t max_features = 0;    ///< features drawn a node; 0: all of them
  std::uint64_t seed = 0;          ///< for these draws, and for the rounding of gradients
  int n_threads = 1;
};

}  // namespace hardwood::grow
