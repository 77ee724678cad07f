#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/buffer.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::bins {

using Code = std::uint8_t;

/// A dense table, row after row.
template <class X>
struct DenseTable {
  Matrix<const X> x;

  std::size_t n_rows() const { return x.n_rows; }
  std::size_t n_features() const { return x.n_cols; }
};

/// A sparse table, column after column, rows increasing; what is not stored is 0.
template <class X, class Index>
struct SparseTable {
  std::span<const Index> column_start;  ///< n_features + 1 positions in `row` and `x`
  std::span<const Index> row;
  std::span<const X> x;
  std::size_t rows;

  std::size_t n_rows() const { return rows; }
  std::size_t n_features() const { return column_start.size() - 1; }
};

/// The smallest and the largest value that a bin holds; empty bins have smallest > largest.
struct BinRange {
  double smallest;
  double largest;

  bool empty() const { return smallest > largest; }
};

/// A table in which every value is replaced by the number of its bin, made once and read by every
/// tree.
///
/// Codes lie in blocks of up to sixteen features, inside a block row after row: the histograms of
/// a block fit the first-level cache, and a row of a block is one or two loads. They are there a
/// second time column after column, for who asks for one feature of many rows.
class Binned {
 public:
  template <class Table>
  Binned(const Table& table, std::span<const Reach> reach, std::size_t max_bins, int n_threads);

  std::size_t n_rows() const { return n_rows_; }
  std::size_t n_features() const { return edges_.size(); }

  /// Codes are below this; it is 64 or 256, so that tables of bins have a fixed stride.
  std::size_t n_codes() const { return n_codes_; }
  /// The code of missing values: the last one, so that they lie right of every edge.
  Code missing_code() const { return static_cast<Code>(n_codes_ - 1); }
  bool has_missing(std::size_t feature) const { return has_missing_[feature] != 0; }

  std::span<const float> edges(std::size_t feature) const { return edges_[feature]; }
  std::size_t n_bins(std::size_t feature) const { return edges_[feature].size() + 1; }
  BinRange range(std::size_t feature, std::size_t bin) const {
    return ranges_[feature * n_codes_ + bin];
  }

  std::size_t width() const { return width_; }  ///< features a block, the last may have fewer
  std::size_t n_blocks() const { return (n_features() + width_ - 1) / width_; }
  /// Codes of row i in a block start at block(b)[i * width()].
  const Code* block(std::size_t b) const { return codes_.data() + b * n_rows_ * width_; }
  /// The code of row i is column(feature)[i].
  const Code* column(std::size_t feature) const { return columns_.data() + feature * n_rows_; }

 private:
  template <class Table>
  void choose_all_edges(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
                        int n_threads);
  template <class Table>
  void encode(const Table& table, int n_threads);

  std::size_t n_rows_;
  std::size_t n_codes_;
  std::size_t width_;
  std::vector<std::vector<float>> edges_;
  std::vector<BinRange> ranges_;  // n_features x n_codes
  std::vector<std::uint8_t> has_missing_;
  Buffer<Code> codes_;    // block after block, inside row after row
  Buffer<Code> columns_;  // column after column
};

}  // namespace hardwood::bins
