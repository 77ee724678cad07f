#pragma once

#include <cstddef>

#include "hardwood/types.hpp"

namespace hardwood::grow {

/// The best split of a node found so far. No split yet: `feature == kLeaf`.
struct Split {
  Feature feature = kLeaf;
  float threshold = 0;
  bool missing_left = false;
  double gain = 0;
  std::size_t n_left = 0;  ///< rows that go left when nobody attacks

  /// Larger gain; on equal gain the earlier feature, so that the order of threads cannot matter.
  bool beats(const Split& other) const {
    if (feature == kLeaf || other.feature == kLeaf) return feature != kLeaf;
    return gain > other.gain || (gain == other.gain && feature < other.feature);
  }
};

}  // namespace hardwood::grow
