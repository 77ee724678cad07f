#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/grow/certified_rows.hpp"
#include "hardwood/grow/node_sums.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/part.hpp"
#include "hardwood/pool.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// The histograms of nodes of certified trees: for each feature of a block, sums by code when the
/// left value of a split is the lower one, then sums when it is the higher one.
template <class Stat, class Code>
class CertifiedHistograms {
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;
  using Codes = bins::EndCodes<Code>;
  using Rows = CertifiedRows<Stat>;

 public:
  /// The features of a block that the tree may use.
  struct Block {
    std::size_t index;
    std::vector<Feature> features;
  };

  /// `features`: increasing, or empty: all of them.
  CertifiedHistograms(const Codes& codes, std::span<const Feature> features, Pool& pool)
      : codes_(codes), pool_(pool), block_cells_(2 * codes.width() * codes.n_codes()) {
    std::vector<Feature> all(features.empty() ? codes.n_features() : 0);
    std::iota(all.begin(), all.end(), 0);
    for (const Feature feature : features.empty() ? std::span<const Feature>(all) : features) {
      const auto f = static_cast<std::size_t>(feature);
      if (codes.candidates(f).empty()) continue;
      if (blocks_.empty() || blocks_.back().index != codes.block_of(f)) {
        blocks_.push_back({codes.block_of(f), {}});
      }
      blocks_.back().features.push_back(feature);
    }
  }

  const Codes& codes() const { return codes_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  std::size_t n_cells() const { return blocks_.size() * block_cells_; }  ///< of a node
  const Cell* of_feature(const Cell* cells, std::size_t b, std::size_t feature) const {
    return cells + b * block_cells_ + 2 * codes_.place_of(feature) * codes_.n_codes();
  }

  /// Fill a block with the sums over rows; `cells` are all histograms of the node.
  void build(const Rows& rows, std::size_t b, Cell* cells) const {
    std::fill_n(of_block(cells, b), block_cells_, Cell{});
    add(rows, 0, rows.n, b, cells);
  }
  /// All blocks; with fewer of them than threads, the rows are shared out, too.
  void build_all(const Rows& rows, Cell* cells, int n_threads) const {
    const std::size_t n_shares =
        (static_cast<std::size_t>(n_threads) + blocks_.size() - 1) / blocks_.size();
    std::vector<Pooled<Cell>> parts;
    for (std::size_t share = 1; share < n_shares; ++share)
      parts.push_back(pool_.take<Cell>(n_cells()));
    parallel_for(blocks_.size() * n_shares, n_threads, [&](std::size_t task, int) {
      const std::size_t b = task % blocks_.size(), share = task / blocks_.size();
      Cell* const to = share ? parts[share - 1].data() : cells;
      std::fill_n(of_block(to, b), block_cells_, Cell{});
      add(rows, rows.n * share / n_shares, rows.n * (share + 1) / n_shares, b, to);
    });
    for (Pooled<Cell>& part : parts) {
      for (std::size_t i = 0; i < n_cells(); ++i) cells[i] += part[i];
      pool_.give_back(std::move(part));
    }
  }

  /// Make a block of the parent that of the larger child: without the smaller child's rows, and
  /// with those that are in both.
  void derive(const Cell* small, const Rows& both, std::size_t b, Cell* parent) const {
    subtract(small + b * block_cells_, of_block(parent, b), block_cells_);
    add(both, 0, both.n, b, parent);
  }
  /// The same for all blocks, from the histograms of the rows in both.
  void derive_all(const Cell* small, const Cell* both, Cell* parent) const {
    subtract(small, parent, n_cells());
    for (std::size_t i = 0; i < n_cells(); ++i) parent[i] += both[i];
  }

  /// Add up over all parts what these tables have: only cells travel that somebody reads.
  void add_parts(const Part& part, const std::vector<Cell*>& tables) const {
    if (tables.empty()) return;
    add_cells<Cell>(part, [&](auto&& visit) {
      for (Cell* const table : tables) {
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
          for (const Feature feature : blocks_[b].features) {
            const auto f = static_cast<std::size_t>(feature);
            Cell* const cells = of_block(table, b) + 2 * codes_.place_of(f) * codes_.n_codes();
            for (std::size_t side = 0; side < 2; ++side) {
              visit(cells + side * codes_.n_codes(), codes_.candidates(f).size());
            }
            if (codes_.has_missing(f)) visit(cells + codes_.missing_code(), std::size_t{1});
          }
        }
      }
    });
  }

 private:
  Cell* of_block(Cell* cells, std::size_t b) const { return cells + b * block_cells_; }

  static void subtract(const Cell* __restrict from, Cell* __restrict to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] -= from[i];
  }

  /// Add rows to a block. Where the left value is the lower one, the adversary has a row that it
  /// pushes down on the left if it can: from its lower code on.
  void add(const Rows& rows, std::size_t begin, std::size_t end, std::size_t b, Cell* cells) const {
    const std::span<const Row> all(rows.data.data(), rows.n);
    const std::size_t middle = std::clamp(rows.n_down, begin, end);
    const AddRows add_rows = choose(blocks_[b]);
    cells = of_block(cells, b);
    if (begin < middle) {
      (this->*add_rows)(all.subspan(begin, middle - begin), blocks_[b], 0, cells);
    }
    if (middle < end) {
      (this->*add_rows)(all.subspan(middle, end - middle), blocks_[b], Codes::kWidth, cells);
    }
  }

  using AddRows = void (CertifiedHistograms::*)(std::span<const Row>, const Block&, std::size_t,
                                                Cell*) const;

  template <std::size_t kStride, std::size_t... kFeatures>
  static AddRows by_width(std::size_t n_features, std::index_sequence<kFeatures...>) {
    static constexpr std::array<AddRows, sizeof...(kFeatures)> kAdd{
        &CertifiedHistograms::add_each<kStride, kFeatures>...};
    return kAdd[n_features];
  }

  /// The loop for as many features, if they are neighbours. The stride of the common 256 codes is
  /// known to the compiler.
  AddRows choose(const Block& block) const {
    constexpr auto kWidths = std::make_index_sequence<Codes::kWidth + 1>();
    const std::size_t n = block.features.size();
    const bool adjacent = codes_.place_of(static_cast<std::size_t>(block.features.back())) == n - 1;
    const std::size_t n_features = adjacent ? n : 0;
    return codes_.n_codes() == 256 ? by_width<256>(n_features, kWidths)
                                   : by_width<0>(n_features, kWidths);
  }

  /// `first`: where the codes lie that count if the left value is the lower one, 0 or kWidth.
  /// `kFeatures`: the first features of the block, or 0: those that it lists.
  template <std::size_t kStride, std::size_t kFeatures>
  void add_each(std::span<const Row> rows, const Block& block, std::size_t first,
                Cell* cells) const {
    const std::size_t stride = kStride ? kStride : codes_.n_codes();
    const std::size_t second = Codes::kWidth - first;
    const Code* const codes = codes_.block(block.index);
    const auto code_of = [=](const Row& row) {
      return codes + std::size_t{row.row & ~kShared} * Codes::kRowCodes;
    };
    const auto add_row = [&](const Code* code, const Cell& cell) {
      const Code* const if_lower = code + first;
      const Code* const if_higher = code + second;
      const auto add_place = [&](std::size_t j) {
        cells[2 * j * stride + if_lower[j]] += cell;
        cells[(2 * j + 1) * stride + if_higher[j]] += cell;
      };
      if constexpr (kFeatures > 0) {
#pragma GCC unroll 8
        for (std::size_t j = 0; j < kFeatures; ++j) add_place(j);
      } else {
        for (const Feature feature : block.features) {
          add_place(codes_.place_of(static_cast<std::size_t>(feature)));
        }
      }
    };
    if (const std::uint64_t* const rare = codes_.rare(block.index)) {
      // Rows that are not rare are added as one.
      Cell others[2] = {Cell{}, Cell{}};
      for (const Row& at : rows) {
        const std::size_t row = at.row & ~kShared;
        if (rare[row / 64] >> (row % 64) & 1) {
          add_row(code_of(at), at.cell());
        } else {
          others[row >= codes_.rest()] += at.cell();
        }
      }
      for (const bool at_rest : {false, true}) {
        add_row(codes_.frequent(block.index, at_rest), others[at_rest]);
      }
      return;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      __builtin_prefetch(code_of(rows[std::min(i + kAhead, rows.size() - 1)]));
      add_row(code_of(rows[i]), rows[i].cell());
    }
  }

  const Codes& codes_;
  Pool& pool_;
  std::size_t block_cells_;  // of all histograms of a block
  std::vector<Block> blocks_;
};

}  // namespace hardwood::grow
