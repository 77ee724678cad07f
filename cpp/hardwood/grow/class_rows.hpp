#pragma once

#include <cstddef>
#include <cstdint>

namespace hardwood::grow {

/// Statistics of a bin and a class in one word: the weight of rows above, their number below. One
/// addition updates both. For weights that are whole and few (GridWeights::counts).
struct ClassCounts {
  using Cell = std::uint64_t;
  struct Row {
    std::uint32_t row;
    std::uint16_t label;
    std::uint16_t weight;

    Cell cell() const { return (Cell{weight} << 32) + 1; }
    std::size_t side() const { return label; }
  };
  static constexpr bool kClasses = true;
  static constexpr double kMaxWeight = 65535;

  static double weight(Cell cell) { return static_cast<double>(cell >> 32); }
  static std::size_t n_rows(Cell cell) { return cell & 0xffffffffu; }
};

/// The same in two words, for all weights.
struct ClassWeights {
  struct Cell {
    std::int64_t weight = 0;
    std::int64_t n = 0;

    Cell& operator+=(const Cell& other) {
      weight += other.weight, n += other.n;
      return *this;
    }
    Cell& operator-=(const Cell& other) {
      weight -= other.weight, n -= other.n;
      return *this;
    }
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  struct Row {
    std::uint32_t row;
    std::uint32_t label;
    std::int64_t weight;

    Cell cell() const { return {weight, 1}; }
    std::size_t side() const { return label; }
  };
  static constexpr bool kClasses = true;

  static double weight(const Cell& cell) { return static_cast<double>(cell.weight); }
  static std::size_t n_rows(const Cell& cell) { return static_cast<std::size_t>(cell.n); }
};

}  // namespace hardwood::grow
