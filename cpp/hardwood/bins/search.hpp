#pragma once

#include <array>
#include <limits>
#include <span>

#include "hardwood/box.hpp"
#include "hardwood/types.hpp"

namespace hardwood::bins {

/// The edges of a feature, ready to find the bins of many values.
class SortedEdges {
 public:
  explicit SortedEdges(std::span<const float> edges) {
    // Padded to 2^8 - 1 edges, so that every search has the same eight steps and no branch.
    padded_.fill(std::numeric_limits<float>::infinity());
    std::size_t i = 0;
    for (const float edge : edges) padded_[i++] = edge;
  }

  /// The number of edges that a value does not lie left of. A missing value gets any code.
  template <class X>
  void encode(std::span<const X> x, std::uint8_t* code) const {
    for (std::size_t i = 0; i < x.size(); ++i) code[i] = bin_of(static_cast<float>(x[i]));
  }

  std::uint8_t bin_of(float x) const {
    std::size_t n_below = 0;
    for (std::size_t step = 128; step > 0; step /= 2) {
      n_below += goes_left(x, padded_[n_below + step - 1]) ? 0 : step;
    }
    return static_cast<std::uint8_t>(n_below);
  }

 private:
  std::array<float, 255> padded_;
};

}  // namespace hardwood::bins
