#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>

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

  /// The number of edges that each value does not lie left of. A missing value gets any code.
  void encode(std::span<const float> x, std::uint8_t* code) const;
  /// The same, with instructions that every processor has.
  void encode_portable(std::span<const float> x, std::uint8_t* code) const;

 private:
  std::array<float, 256> padded_;
};

}  // namespace hardwood::bins
