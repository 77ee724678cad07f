#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hardwood {

using Feature = std::int32_t;
using NodeId = std::int32_t;  ///< position of a node inside its tree; the root is 0

inline constexpr Feature kLeaf = -1;  ///< the feature of a node that does not split

/// A row-major table that somebody else owns.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::size_t n_rows = 0;
  std::size_t n_cols = 0;

  std::span<T> row(std::size_t i) const { return {data + i * n_cols, n_cols}; }
  T& operator()(std::size_t i, std::size_t j) const { return data[i * n_cols + j]; }
};

}  // namespace hardwood
