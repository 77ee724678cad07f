#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// Features whose histograms are built in one pass over the rows of a node, few enough that these
/// stay in the first-level cache. In the histogram of a node their cells are
///
///     first_cell + (side * n_columns + column) * n_codes + code
///
/// `column` counts the columns of the pass; there is one side, or two: rows with g >= 0 and rows
/// with g < 0. The codes are those of the columns of bins::Blocks, which features may share.
struct Pass {
  const bins::Code* codes;           ///< of row 0; the first column of the pass
  std::vector<std::uint8_t> offset;  ///< of each column after the first one
  bool adjacent;                     ///< the offsets are 0, 1, 2, ...
  std::vector<std::size_t> column;   ///< of the features that are searched
  std::vector<Feature> feature;      ///< these features
  std::size_t first_cell;
  const std::uint64_t* busy;      ///< Blocks::busy of these codes, or null: take every row
  std::vector<bins::Code> usual;  ///< of each column, if `busy`

  std::size_t n_columns() const { return offset.size(); }
};

/// How the histogram of a node is laid out, and the passes that fill it.
struct HistogramPlan {
  std::vector<Pass> passes;
  std::size_t n_sides;
  std::size_t n_codes;
  std::size_t stride;   ///< from a row's codes to the next row's
  std::size_t n_cells;  ///< of a whole histogram

  /// `features`: increasing.
  HistogramPlan(const bins::Binned& binned, std::span<const Feature> features, std::size_t n_sides);

  std::size_t cells(const Pass& pass) const { return n_sides * pass.n_columns() * n_codes; }
};

/// Add rows to the cells of one pass; `cells` points to the first of them.
template <class Stat>
void add_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan, const Pass& pass,
              typename Stat::Cell* cells);

/// Take away what `add_rows` adds, if few of the rows are busy; otherwise return false: to subtract
/// cell by cell is faster.
template <class Stat>
bool subtract_few_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan,
                       const Pass& pass, typename Stat::Cell* cells);

}  // namespace hardwood::grow
