#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "hardwood/interrupt.hpp"

namespace hardwood {

/// Sort by a total order; a long sort can be stopped between its pieces.
template <class T, class Less = std::less<>>
void sort_in_pieces(std::vector<T>& values, Less less = {}) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const std::size_t n = values.size();
  const auto at = [&](std::size_t i) {
    return values.begin() + static_cast<std::ptrdiff_t>(std::min(i, n));
  };
  for (std::size_t begin = 0; begin < n; begin += kPiece) {
    checkpoint();
    std::sort(at(begin), at(begin + kPiece), less);
  }
  for (std::size_t size = kPiece; size < n; size *= 2) {
    for (std::size_t begin = 0; begin + size < n; begin += 2 * size) {
      checkpoint();
      std::inplace_merge(at(begin), at(begin + size), at(begin + 2 * size), less);
    }
  }
}

}  // namespace hardwood
