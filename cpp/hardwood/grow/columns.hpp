#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/parallel.hpp"
#include "hardwood/sort.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// Every column of the data in sorted order, kept sorted while the tree grows.
///
/// Invariant: the rows of a node are the same contiguous range [begin, end) in every column, there
/// in increasing order of x, missing values last. A split only moves entries inside the node's
/// range, left rows first, in order: sorting is paid once, not once a node.
///
/// An `Entry` is one value of one row, with what the split search asks about the row beside it; it
/// has a member `row`.
template <class Entry>
class Columns {
 public:
  Columns() = default;

  /// `make(feature, x, row)` gives the entry of a value.
  template <class Make>
  Columns(Matrix<const double> x, int n_threads, Make&& make)
      : n_columns_(x.n_cols), n_rows_(x.n_rows), entries_(x.n_rows * x.n_cols) {
    struct Value {
      double x;
      std::uint32_t row;

      /// By value, missing last, equal values in the order of rows: a total order, so the result is
      /// the same whatever the sorting algorithm does.
      bool operator<(const Value& other) const {
        const bool missing = std::isnan(x), other_missing = std::isnan(other.x);
        if (missing != other_missing) return other_missing;
        if (!missing && x != other.x) return x < other.x;
        return row < other.row;
      }
    };
    std::vector<std::vector<Value>> buffers(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_columns_, n_threads, [&](std::size_t column, int thread) {
      std::vector<Value>& values = buffers[static_cast<std::size_t>(thread)];
      values.clear();
      for (std::size_t i = 0; i < n_rows_; ++i) {
        values.push_back({x(i, column), static_cast<std::uint32_t>(i)});
      }
      sort_in_pieces(values);
      Entry* to = entries_.data() + column * n_rows_;
      for (const Value& value : values) *to++ = make(column, value.x, value.row);
    });
  }

  /// Become a copy of some columns and some rows of `all`. `rows` marks the rows, empty: all.
  void take(const Columns& all, std::span<const Feature> columns,
            std::span<const std::uint8_t> rows, int n_threads) {
    n_columns_ = columns.size();
    n_rows_ = rows.empty() ? all.n_rows_
                           : all.n_rows_ - static_cast<std::size_t>(std::ranges::count(rows, 0));
    entries_.resize(n_columns_ * n_rows_);
    parallel_for(n_columns_, n_threads, [&](std::size_t column, int) {
      const auto from = all.entries(static_cast<std::size_t>(columns[column]), 0, all.n_rows_);
      const auto to = entries_.begin() + static_cast<std::ptrdiff_t>(column * n_rows_);
      if (rows.empty()) {
        std::ranges::copy(from, to);
      } else {
        std::ranges::copy_if(from, to, [&](const Entry& entry) { return rows[entry.row] != 0; });
      }
    });
  }

  std::size_t n_columns() const { return n_columns_; }
  std::size_t n_rows() const { return n_rows_; }
  std::span<const Entry> entries(std::size_t column, std::size_t begin, std::size_t end) const {
    return {entries_.data() + column * n_rows_ + begin, end - begin};
  }

  /// Move the rows that go left to the front of [begin, end) in one column; a node is only whole
  /// again when this was done in all of them. `right` is a buffer.
  void partition(std::size_t column, std::size_t begin, std::size_t end,
                 std::span<const std::uint8_t> row_goes_left, std::vector<Entry>& right) {
    right.resize(std::max(right.size(), end - begin));
    Entry* entries = entries_.data() + column * n_rows_;
    Entry* left = entries + begin;
    std::size_t n_right = 0;
    for (std::size_t i = begin; i < end; ++i) {  // no branches: sides are random to a predictor
      const Entry entry = entries[i];
      const bool goes_left = row_goes_left[entry.row] != 0;
      *left = entry;
      right[n_right] = entry;
      left += goes_left;
      n_right += !goes_left;
    }
    std::copy_n(right.begin(), n_right, left);
  }

 private:
  std::size_t n_columns_ = 0;
  std::size_t n_rows_ = 0;
  std::vector<Entry> entries_;  // column after column
};

}  // namespace hardwood::grow
