#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "hardwood/bins/blocks.hpp"
#include "hardwood/bins/edges.hpp"
#include "hardwood/bins/sample.hpp"
#include "hardwood/buffer.hpp"
#include "hardwood/part.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::bins {

/// A dense table, row after row.
template <class X>
struct DenseTable {
  Matrix<const X> x;

  std::size_t n_rows() const { return x.n_rows; }
  std::size_t n_features() const { return x.n_cols; }
};

/// A sparse table in CSR or CSC form; what is not stored is 0.
template <class X, class Index, bool kIsCsr>
struct SparseTable {
  std::span<const Index> indptr;  ///< n_major + 1 positions in `indices` and `x`
  std::span<const Index>
      indices;  ///< the feature (or row) of a value, increasing in its row (or column)
  std::span<const X> x;
  std::size_t n_minor;

  std::size_t n_major() const { return indptr.size() - 1; }
  std::size_t n_rows() const { return kIsCsr ? n_major() : n_minor; }
  std::size_t n_features() const { return kIsCsr ? n_minor : n_major(); }
};

/// All kinds of tables, for explicit instantiation.
#define HARDWOOD_EACH_TABLE(DO)                \
  DO(DenseTable<float>)                        \
  DO(DenseTable<double>)                       \
  DO(SparseTable<float, std::int32_t, true>)   \
  DO(SparseTable<float, std::int32_t, false>)  \
  DO(SparseTable<float, std::int64_t, true>)   \
  DO(SparseTable<float, std::int64_t, false>)  \
  DO(SparseTable<double, std::int32_t, true>)  \
  DO(SparseTable<double, std::int32_t, false>) \
  DO(SparseTable<double, std::int64_t, true>)  \
  DO(SparseTable<double, std::int64_t, false>)

template <class X>
class TiledTable;

/// The smallest and the largest value that a bin holds; empty bins have smallest > largest.
struct BinRange {
  double smallest;
  double largest;

  bool empty() const { return smallest > largest; }
};

/// How values become codes.
struct Cuts {
  std::size_t n_codes;  ///< codes are below this; it is 64 or 256
  std::vector<std::vector<float>> edges;
  std::vector<Code> frequent;             ///< the most frequent code of each feature
  std::vector<std::uint8_t> categorical;  ///< whether the bins of a feature are categories

  /// Without edges yet.
  Cuts(std::size_t n_features, std::size_t max_bins);

  /// The code of missing values: the last one, so that they lie right of every edge.
  Code missing_code() const { return static_cast<Code>(n_codes - 1); }
  /// Choose the edges of a feature from its values, increasing, of which `n_missing` more rows have
  /// none. `takes_all`: no row at all is missing, so that values may have the last code.
  void choose(std::size_t feature, std::span<const Value> values, std::uint64_t n_missing,
              const Reach& reach, std::size_t max_bins, bool takes_all);
};

/// Some rows of a table in codes, and what else their values tell.
struct CodedRows {
  const Code* columns;  ///< feature after feature
  std::size_t n_rows;
  const double* smallest;  ///< n_features x n_codes, as BinRange
  const double* largest;
  const std::uint8_t* missing;  ///< of each feature: is a value missing?
};

/// A table in which every value is replaced by the number of its bin, made once and read by every
/// tree: column after column for who routes rows, in blocks for who counts codes.
class Binned {
 public:
  /// `weight`: one a row, > 0, or empty: 1. Edges are quantiles of the weight. `n_categories`: one
  /// a feature, or empty: all 0. A feature with some holds whole numbers below that, and each of
  /// them has its own bin.
  template <class Table>
  Binned(const Table& table, std::span<const Reach> reach, std::size_t max_bins, int n_threads,
         std::span<const double> weight = {}, std::span<const std::int32_t> n_categories = {});

  /// With edges that are already chosen.
  template <class Table>
  Binned(const Table& table, Cuts cuts, int n_threads);
  /// Put rows together that are in codes already; ranges are those of all parts of the table. If
  /// there are no others, the codes are kept in blocks alone: such tables are large for their
  /// machine. `let_go(i)` is called when piece i is not needed any more.
  Binned(Cuts cuts, std::span<const CodedRows> pieces, const Part& part, int n_threads,
         const std::function<void(std::size_t)>& let_go);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_features() const { return cuts_.edges.size(); }

  /// Codes are below this; it is 64 or 256, so that tables of bins have a fixed stride.
  std::size_t n_codes() const { return cuts_.n_codes; }
  Code missing_code() const { return cuts_.missing_code(); }
  bool has_missing(std::size_t feature) const { return has_missing_[feature] != 0; }

  std::span<const float> edges(std::size_t feature) const { return cuts_.edges[feature]; }
  std::size_t n_bins(std::size_t feature) const { return cuts_.edges[feature].size() + 1; }
  BinRange range(std::size_t feature, std::size_t bin) const {
    return ranges_[feature * n_codes() + bin];
  }

  /// Whether the bins of a feature are categories, which have no order.
  bool categorical(std::size_t feature) const { return cuts_.categorical[feature] != 0; }

  /// The code of row i is column(feature)[i * stride()].
  const Code* column(std::size_t feature) const {
    return blocks_alone_ ? blocks_.codes(feature) : columns_.data() + feature * n_rows_;
  }
  std::size_t stride() const { return blocks_alone_ ? blocks_.width() : 1; }
  /// The codes, column after column, of a table that is not needed any more.
  Buffer<Code> take_columns() && { return std::move(columns_); }

  /// The most frequent code of a feature.
  Code frequent_code(std::size_t feature) const { return cuts_.frequent[feature]; }
  /// Made when it is asked for first: trees that look at few columns never do.
  const Blocks& blocks() const;

 private:
  template <class Row, class X>
  void choose_all_edges(const TiledTable<X>& table, std::span<const Reach> reach,
                        const WeightedRows& sampled, std::size_t max_bins, int n_threads);
  template <class X>
  void encode(const TiledTable<X>& table, int n_threads);
  std::vector<std::vector<Code>> present_codes() const;
  void keep_blocks(std::span<const CodedRows> pieces,
                   const std::function<void(std::size_t)>& let_go);
  void keep_columns(std::span<const CodedRows> pieces, const Part& part,
                    const std::function<void(std::size_t)>& let_go);

  std::size_t n_rows_;
  Cuts cuts_;
  std::vector<BinRange> ranges_;  // n_features x n_codes
  std::vector<std::uint8_t> has_missing_;
  Buffer<Code> columns_;  // column after column
  bool in_parts_ = false, blocks_alone_ = false;
  int n_threads_;
  mutable std::once_flag blocks_asked_;
  mutable Blocks blocks_;
};

}  // namespace hardwood::bins
