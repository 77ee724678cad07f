#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/grow/newton.hpp"
#include "hardwood/part.hpp"

namespace hardwood::grow {

/// A sum of gradients and hessians on the grid, exact.
struct GridSum {
  std::int64_t g = 0;
  std::int64_t h = 0;
  std::int64_t n = 0;  ///< rows; only `Wide` knows it

  GridSum& operator+=(const GridSum& other) {
    g += other.g, h += other.h, n += other.n;
    return *this;
  }
  GridSum& operator-=(const GridSum& other) {
    g -= other.g, h -= other.h, n -= other.n;
    return *this;
  }
  friend GridSum operator+(GridSum a, const GridSum& b) { return a += b; }
  friend GridSum operator-(GridSum a, const GridSum& b) { return a -= b; }
  friend bool operator==(const GridSum&, const GridSum&) = default;
};

/// Gradients on a grid of whole numbers, so that sums are exact: they depend neither on the order
/// of rows nor on the number of threads, and a histogram minus its part is the other part.
///
/// The grid is a power of two chosen for each tree, as fine as the integers allow: gradients that
/// are on it are kept as they are. Others are rounded up or down at random (by a hash of the row),
/// so that sums are right on average.
struct Grid {
  int g_bits = 0;  ///< g = integer * 2^-g_bits
  int h_bits = 0;
  bool wide = false;  ///< 16 bits a gradient would be too coarse
  double g_step = std::ldexp(1.0, -g_bits);
  double h_step = std::ldexp(1.0, -h_bits);
  /// About what absolute gradients and hessians add up to, the same for all parts of a table.
  double g_total = 0, h_total = 0;

  /// Exact: a power of two times an integer that a double holds.
  Sums real(const GridSum& sum) const {
    return {static_cast<double>(sum.g) * g_step, static_cast<double>(sum.h) * h_step};
  }
};

/// Statistics of a bin in one word: G above, H below. One addition updates both. The grid is such
/// that no sum over rows leaves its half.
struct Packed {
  using Cell = std::uint64_t;
  struct Row {
    std::uint32_t row;
    std::int16_t g;
    std::uint16_t h;

    Cell cell() const { return (static_cast<Cell>(static_cast<std::int64_t>(g)) << 32) + h; }
    std::size_t side() const { return g < 0; }
  };
  static constexpr double kMaxG = 32767, kMaxH = 65535, kMaxSum = 2147483647;
  static constexpr bool kCounts = false, kClasses = false;

  static GridSum sum(Cell cell) {
    return {static_cast<std::int64_t>(cell) >> 32, static_cast<std::int64_t>(cell & 0xffffffffu),
            0};
  }
};

/// Statistics of a bin in three words, for gradients of very different size, for more rows than
/// `Packed` has bits for, where rows must be counted, and for small data: the grid is so fine that
/// nothing is lost, and a row of weight 2 is two rows.
struct Wide {
  using Cell = GridSum;
  struct Row {
    std::uint32_t row;
    std::int64_t g;
    std::int64_t h;

    Cell cell() const { return {g, h, 1}; }
    std::size_t side() const { return g < 0; }
  };
  static constexpr double kMaxG = 0x1p42, kMaxH = 0x1p42, kMaxSum = 0x1p62;
  static constexpr bool kCounts = true, kClasses = false;

  static GridSum sum(const Cell& cell) { return cell; }
};

/// The cell, or nothing; without a branch, which would be hard to foresee.
inline Packed::Cell where(bool is, Packed::Cell cell) { return cell & -Packed::Cell{is}; }
inline Wide::Cell where(bool is, const Wide::Cell& cell) {
  const std::int64_t mask = -std::int64_t{is};
  return {cell.g & mask, cell.h & mask, cell.n & mask};
}

/// One output of a table of gradients: row i is data[i * stride].
struct GradientColumn {
  const float* g;
  const float* h;
  std::size_t stride;
  std::size_t n_rows;
  const float* weight = nullptr;  ///< of the rows; null: 1

  /// In double a weight loses nothing; float is quicker where the grid is coarse anyway.
  template <class Real>
  Real gradient(std::size_t i) const {
    return g[i * stride] * (weight ? Real{weight[i]} : Real{1});
  }
  template <class Real>
  Real hessian(std::size_t i) const {
    return h[i * stride] * (weight ? Real{weight[i]} : Real{1});
  }
};

/// The rows that count, in order; empty: all of them.
using RowList = std::span<const std::uint32_t>;

/// The grid of a tree, the same for all parts of a table; `wide`: whatever the gradients are like.
/// Throws if a gradient is not finite or a hessian is negative.
Grid choose_grid(const GradientColumn& gradients, RowList rows, bool wide, int n_threads,
                 const Part& part = {});

/// Put gradients on the grid; returns their sum over all parts. `rows_out` has room for every row
/// that counts. Rounding goes by the number of a row in the whole table.
template <class Stat>
GridSum put_on_grid(const GradientColumn& gradients, RowList rows, const Grid& grid,
                    std::uint64_t seed, typename Stat::Row* rows_out, int n_threads,
                    const Part& part = {});

}  // namespace hardwood::grow
