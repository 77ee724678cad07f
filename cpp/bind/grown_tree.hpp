#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "array.hpp"
#include "hardwood/grow/grown_tree.hpp"

namespace hardwood::bind {

using OwnedTree = std::tuple<Owned1<Feature>, Owned1<float>, Owned1<NodeId>, Owned1<NodeId>,
                             Owned1<std::uint8_t>, Owned2<float>, Owned1<double>, Owned1<double>,
                             Owned1<std::int64_t>, Owned1<std::int64_t>, Owned1<std::int32_t>>;

/// The fields of the Python side's GrownTree, in its order.
inline OwnedTree own(grow::GrownTree&& tree) {
  const std::size_t n_values = tree.value.size() / tree.feature.size();
  return {own(std::move(tree.feature)),      own(std::move(tree.threshold)),
          own(std::move(tree.left)),         own(std::move(tree.right)),
          own(std::move(tree.missing_left)), own(std::move(tree.value), n_values),
          own(std::move(tree.gain)),         own(std::move(tree.cover)),
          own(std::move(tree.n_samples)),    own(std::move(tree.category_start)),
          own(std::move(tree.category))};
}

}  // namespace hardwood::bind
