#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/buffer.hpp"
#include "hardwood/grow/histogram.hpp"
#include "hardwood/grow/row_set.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/part.hpp"

namespace hardwood::grow {

/// Histograms that are not in use. Trees are grown depth first, so there are few.
template <class Cell>
class HistogramPool {
 public:
  Buffer<Cell> take(std::size_t n_cells) {
    const std::lock_guard guard(lock_);
    if (n_cells != n_cells_) free_.clear();
    n_cells_ = n_cells;
    if (free_.empty()) return Buffer<Cell>(n_cells);
    Buffer<Cell> buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(Buffer<Cell> buffer) {
    const std::lock_guard guard(lock_);
    if (buffer.size() && buffer.size() == n_cells_) free_.push_back(std::move(buffer));
  }

 private:
  std::mutex lock_;
  std::size_t n_cells_ = 0;
  std::vector<Buffer<Cell>> free_;
};

/// Add up over all parts the cells that `each(visit)` shows to `visit(cells, n)`, stretch after
/// stretch, the same ones in every part: in one message, as a message costs time however short it
/// is.
template <class Cell, class Each>
void add_cells(const Part& part, Each&& each) {
  if (!part.others) return;
  constexpr std::size_t kWords = sizeof(Cell) / sizeof(std::int64_t);
  static_assert(sizeof(Cell) % sizeof(std::int64_t) == 0);
  std::vector<std::int64_t> wire;
  each([&](const Cell* cells, std::size_t n) {
    wire.resize(wire.size() + n * kWords);
    std::memcpy(&wire[wire.size() - n * kWords], cells, n * sizeof(Cell));
  });
  part.sum(wire);
  const std::int64_t* from = wire.data();
  each([&](Cell* cells, std::size_t n) {
    std::memcpy(static_cast<void*>(cells), from, n * sizeof(Cell));
    from += n * kWords;
  });
}

/// The one place where sums over rows are asked for: the histogram of a node, added up over all who
/// have rows of it. A single process has them all and answers with its own; who has a part of the
/// rows calls `add_parts` after the questions below.
template <class Stat>
class NodeSums {
 public:
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;

  NodeSums(const HistogramPlan& plan, const RowSet<Row>& rows, HistogramPool<Cell>& pool,
           const Part& part)
      : plan_(plan), rows_(rows), pool_(pool), part_(part) {}

  /// Bytes of one histogram.
  std::size_t n_bytes() const { return plan_.n_cells * sizeof(Cell); }

  /// Add up over all parts what each of these tables has in the columns of `passes`, all together.
  /// Only bins that exist travel, those of a column that features share once.
  void add_parts(std::span<Cell* const> tables, std::span<const Pass* const> passes,
                 const bins::Binned& binned) const {
    if (tables.empty()) return;
    add_cells<Cell>(part_, [&](auto&& visit) {
      for (Cell* const table : tables) {
        Cell* cells = table;
        for (const Pass* const pass : passes) {
          for (std::size_t side = 0; side < plan_.n_sides; ++side) {
            for (std::size_t i = 0; i < pass->feature.size(); ++i) {
              const auto feature = static_cast<std::size_t>(pass->feature[i]);
              Cell* const of_column =
                  cells + (side * pass->n_columns() + pass->column[i]) * plan_.n_codes;
              if (const std::size_t n_shared = pass->shared[i].size()) {
                if (i == 0 || pass->column[i] != pass->column[i - 1]) visit(of_column, n_shared);
                continue;
              }
              visit(of_column, binned.n_bins(feature));
              if (binned.has_missing(feature)) visit(of_column + binned.missing_code(), 1);
            }
          }
          cells += plan_.cells(*pass);
        }
      }
    });
  }

  /// The whole histogram of the rows [begin, end). Returns false where it is better asked for pass
  /// by pass, while the cells are in the cache: unless there are fewer passes than threads, and the
  /// rows must be shared out, too.
  bool all(std::size_t begin, std::size_t end, Cell* cells, int n_threads) const {
    const std::size_t n_passes = plan_.passes.size();
    const std::size_t n_shares = (static_cast<std::size_t>(n_threads) + n_passes - 1) / n_passes;
    if (n_shares < 2) return false;
    std::vector<Buffer<Cell>> parts;
    for (std::size_t share = 1; share < n_shares; ++share) {
      parts.push_back(pool_.take(plan_.n_cells));
    }
    const auto start = [&](std::size_t share) { return begin + (end - begin) * share / n_shares; };
    parallel_for(n_passes * n_shares, n_threads, [&](std::size_t task, int) {
      const std::size_t share = task / n_passes;
      add_up(start(share), start(share + 1), plan_.passes[task % n_passes],
             share ? parts[share - 1].data() : cells);
    });
    parallel_for(n_passes, n_threads, [&](std::size_t p, int) {
      const Pass& pass = plan_.passes[p];
      for (const Buffer<Cell>& part : parts) {
        for (std::size_t i = pass.first_cell; i < pass.first_cell + plan_.cells(pass); ++i) {
          cells[i] += part[i];
        }
      }
    });
    for (Buffer<Cell>& part : parts) pool_.give_back(std::move(part));
    return true;
  }

  /// The cells of one pass.
  void one(std::size_t begin, std::size_t end, const Pass& pass, Cell* cells) const {
    add_up(begin, end, pass, cells);
  }

  /// The cells of a few columns, one after the other; see `add_columns`.
  void some(std::size_t begin, std::size_t end, std::span<const Pass* const> passes,
            Cell* cells) const {
    std::fill_n(cells, passes.size() * plan_.n_sides * plan_.n_codes, Cell{});
    add_columns<Stat>(rows_.range(begin, end), plan_, passes, cells);
  }

 private:
  void add_up(std::size_t begin, std::size_t end, const Pass& pass, Cell* cells) const {
    std::fill_n(cells + pass.first_cell, plan_.cells(pass), Cell{});
    add_rows<Stat>(rows_.range(begin, end), plan_, pass, cells + pass.first_cell);
  }

  const HistogramPlan& plan_;
  const RowSet<Row>& rows_;
  HistogramPool<Cell>& pool_;
  const Part part_;
};

}  // namespace hardwood::grow
