#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/bins/binned.hpp"

namespace hardwood::bins {

inline constexpr std::size_t kTile = 512;  ///< rows read together
inline constexpr std::size_t kTileWidth =
    64;  ///< features read together: rows are far from each other

/// Values of one feature in the rows of a tile, without (most) zeros.
template <class X>
struct TileColumn {
  std::size_t n = 0;
  std::array<X, kTile> x;
  std::array<std::uint16_t, kTile> at;  ///< which row of the tile

  void put(X value, std::size_t row) {
    x[n] = value;
    at[n++] = static_cast<std::uint16_t>(row);
  }
};

/// Where the stored values of rows begin, if rows are what is stored. `read_tile` goes on from
/// there and leaves the places where the features after the last one begin.
template <class Table>
std::vector<std::size_t> starts_of(const Table&, std::span<const std::uint32_t>) {
  return {};
}
template <class X, class Index>
std::vector<std::size_t> starts_of(const SparseTable<X, Index, true>& table,
                                   std::span<const std::uint32_t> rows) {
  std::vector<std::size_t> starts;
  for (const std::uint32_t row : rows) {
    starts.push_back(static_cast<std::size_t>(table.indptr[row]));
  }
  return starts;
}

/// Features [first, last), at most kTileWidth, in some rows, at most kTile, increasing.
template <class X>
using Tile = std::array<TileColumn<X>, kTileWidth>;

template <class X>
void read_tile(const DenseTable<X>& table, std::size_t first, std::size_t last,
               std::span<const std::uint32_t> rows, std::size_t*, Tile<X>& tile) {
  for (std::size_t f = first; f < last; ++f) {
    TileColumn<X>& column = tile[f - first];
    std::size_t n = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const X x = table.x(rows[i], f);
      column.x[n] = x;
      column.at[n] = static_cast<std::uint16_t>(i);
      n += x != 0;  // no branch: zeros come at random
    }
    column.n = n;
  }
}

template <class X, class Index>
void read_tile(const SparseTable<X, Index, true>& table, std::size_t first, std::size_t last,
               std::span<const std::uint32_t> rows, std::size_t* next, Tile<X>& tile) {
  for (std::size_t f = first; f < last; ++f) tile[f - first].n = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto end = static_cast<std::size_t>(table.indptr[rows[i] + 1]);
    std::size_t at = next[i];
    const auto feature = [&] { return static_cast<std::size_t>(table.indices[at]); };
    while (at < end && feature() < first) ++at;
    for (; at < end && feature() < last; ++at) tile[feature() - first].put(table.x[at], i);
    next[i] = at;
  }
}

template <class X, class Index>
void read_tile(const SparseTable<X, Index, false>& table, std::size_t first, std::size_t last,
               std::span<const std::uint32_t> rows, std::size_t*, Tile<X>& tile) {
  const Index* const indices = table.indices.data();
  for (std::size_t f = first; f < last; ++f) {
    TileColumn<X>& column = tile[f - first];
    column.n = 0;
    const Index* const end = indices + table.indptr[f + 1];
    const Index* stored =
        std::lower_bound(indices + table.indptr[f], end, static_cast<Index>(rows.front()));
    for (std::size_t i = 0; stored < end; ++stored) {
      const auto row = static_cast<std::uint32_t>(*stored);
      if (row > rows.back()) break;
      while (rows[i] < row) ++i;
      if (rows[i] == row) column.put(table.x[static_cast<std::size_t>(stored - indices)], i);
    }
  }
}

/// Call `body(rows of a tile, where they go on)` for all rows.
template <class Body>
void for_each_tile(std::span<const std::uint32_t> rows, std::size_t* next, Body&& body) {
  for (std::size_t begin = 0; begin < rows.size(); begin += kTile) {
    body(rows.subspan(begin, std::min(kTile, rows.size() - begin)), next ? next + begin : next);
  }
}

/// A table whose kind is forgotten, asked a tile at a time: what follows is compiled for each type
/// of value, not for each kind of table.
template <class X>
class TiledTable {
 public:
  template <class Table>
  explicit TiledTable(const Table& table)
      : table_(&table),
        starts_of_([](const void* of, std::span<const std::uint32_t> rows) {
          return starts_of(*static_cast<const Table*>(of), rows);
        }),
        read_tile_([](const void* of, std::size_t first, std::size_t last,
                      std::span<const std::uint32_t> rows, std::size_t* next, Tile<X>& tile) {
          read_tile(*static_cast<const Table*>(of), first, last, rows, next, tile);
        }) {}

  std::vector<std::size_t> starts(std::span<const std::uint32_t> rows) const {
    return starts_of_(table_, rows);
  }
  void read(std::size_t first, std::size_t last, std::span<const std::uint32_t> rows,
            std::size_t* next, Tile<X>& tile) const {
    read_tile_(table_, first, last, rows, next, tile);
  }

 private:
  const void* table_;
  std::vector<std::size_t> (*starts_of_)(const void*, std::span<const std::uint32_t>);
  void (*read_tile_)(const void*, std::size_t, std::size_t, std::span<const std::uint32_t>,
                     std::size_t*, Tile<X>&);
};

}  // namespace hardwood::bins
