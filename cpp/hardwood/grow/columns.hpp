#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/types.hpp"

namespace hardwood::grow {

/// One value of one row, with what the split search asks about the row beside it.
struct Entry {
  double x;
  std::uint32_t row;
  std::uint32_t label;
};

/// Every column of the data in sorted order, kept sorted while the tree grows.
///
/// Invariant: the rows of a node are the same contiguous range [begin, end) in every column, there
/// in increasing order of x, missing values last. A split only moves entries inside the node's
/// range, left rows first, in order: sorting is paid once, not once a node.
class Columns {
 public:
  Columns(Matrix<const double> x, std::span<const std::int32_t> label, int n_threads);

  std::size_t n_features() const { return n_features_; }
  std::size_t n_rows() const { return n_rows_; }
  std::span<const Entry> entries(std::size_t feature, std::size_t begin, std::size_t end) const {
    return {entries_.data() + feature * n_rows_ + begin, end - begin};
  }

  /// Move the rows that go left to the front of [begin, end) in every column.
  void partition(std::size_t begin, std::size_t end, std::span<const std::uint8_t> row_goes_left,
                 int n_threads);

 private:
  std::size_t n_features_;
  std::size_t n_rows_;
  std::vector<Entry> entries_;                 // column after column
  std::vector<std::vector<Entry>> put_aside_;  // one buffer a thread, for the rows that go right
};

}  // namespace hardwood::grow
