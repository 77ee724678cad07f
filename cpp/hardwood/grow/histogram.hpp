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
/// with g < 0; or a side a class. The codes are those of the columns of bins::Blocks, which
/// features may share.
struct Pass {
  const bins::Code* codes;           ///< of row 0; the first column of the pass
  std::vector<std::uint8_t> offset;  ///< of each column after the first one
  bool adjacent;                     ///< the offsets are 0, 1, 2, ...
  std::vector<std::size_t> column;   ///< of the features that are searched
  std::vector<Feature> feature;      ///< these features
  /// Blocks::shared of these features.
  std::vector<std::span<const bins::Code>> shared;
  std::size_t first_cell;
  const std::uint64_t* rare;         ///< Blocks::rare of these codes, or null: take every row
  std::vector<bins::Code> frequent;  ///< of each column, if `rare`

  std::size_t n_columns() const { return offset.size(); }
};

/// How the histogram of a node is laid out, and the passes that fill it.
struct HistogramPlan {
  std::vector<Pass> passes;
  std::size_t n_sides;
  std::size_t n_codes;
  std::size_t stride;   ///< from a row's codes to the next row's
  std::size_t n_cells;  ///< of a whole histogram
  /// One pass a feature, for nodes that look at few of them: the histogram has room for a few.
  bool by_column;

  /// `features`: increasing.
  HistogramPlan(const bins::Binned& binned, std::span<const Feature> features, std::size_t n_sides,
                bool by_column = false);

  std::size_t cells(const Pass& pass) const { return n_sides * pass.n_columns() * n_codes; }

 private:
  void plan_columns(const bins::Binned& binned, std::span<const Feature> features);
  void plan_blocks(const bins::Binned& binned, std::span<const Feature> features);
};

/// The cells of one feature, code by code: those of side `cells` of its column, or, taken apart in
/// `apart`, of its share in the column.
template <class Cell>
const Cell* cells_of(const HistogramPlan& plan, const Pass& pass, std::size_t i, const Cell* cells,
                     std::vector<Cell>& apart) {
  cells += pass.column[i] * plan.n_codes;
  const std::span<const bins::Code> codes = pass.shared[i];
  if (codes.empty()) return cells;
  apart.assign(plan.n_codes, Cell{});
  for (std::size_t code = 0; code < codes.size(); ++code) apart[codes[code]] += cells[code];
  return apart.data();
}

/// Add rows to the cells of one pass; `cells` points to the first of them.
template <class Stat>
void add_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan, const Pass& pass,
              typename Stat::Cell* cells);

/// Passes of one column each that are filled together: no addition waits for the one before.
constexpr std::size_t kColumnsTogether = 4;

/// Add rows to the cells of up to `kColumnsTogether` such passes, which lie one after the other.
template <class Stat>
void add_columns(std::span<const typename Stat::Row> rows, const HistogramPlan& plan,
                 std::span<const Pass* const> passes, typename Stat::Cell* cells);

/// Take away what `add_rows` adds, if few of the rows are rare; otherwise return false: to subtract
/// cell by cell is faster.
template <class Stat>
bool subtract_few_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan,
                       const Pass& pass, typename Stat::Cell* cells);

}  // namespace hardwood::grow
