#include "hardwood/grow/columns.hpp"

#include <algorithm>
#include <cmath>

#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

/// By value, missing last, equal values in the order of rows: a total order, so the result is the
/// same whatever the sorting algorithm does.
bool before(const Entry& a, const Entry& b) {
  const bool a_missing = std::isnan(a.x), b_missing = std::isnan(b.x);
  if (a_missing != b_missing) return b_missing;
  if (!a_missing && a.x != b.x) return a.x < b.x;
  return a.row < b.row;
}

}  // namespace

Columns::Columns(Matrix<const double> x, std::span<const std::int32_t> label, int n_threads)
    : n_features_(x.n_cols),
      n_rows_(x.n_rows),
      entries_(x.n_rows * x.n_cols),
      put_aside_(static_cast<std::size_t>(std::max(n_threads, 1))) {
  parallel_for(n_features_, n_threads, [&](std::size_t feature, int) {
    Entry* column = entries_.data() + feature * n_rows_;
    for (std::size_t i = 0; i < n_rows_; ++i) {
      column[i] = {x(i, feature), static_cast<std::uint32_t>(i),
                   static_cast<std::uint32_t>(label[i])};
    }
    std::sort(column, column + n_rows_, before);
  });
}

void Columns::partition(std::size_t begin, std::size_t end,
                        std::span<const std::uint8_t> row_goes_left, int n_threads) {
  parallel_for(n_features_, n_threads, [&](std::size_t feature, int thread) {
    std::vector<Entry>& right = put_aside_[static_cast<std::size_t>(thread)];
    right.resize(std::max(right.size(), end - begin));
    Entry* column = entries_.data() + feature * n_rows_;
    Entry* left = column + begin;
    std::size_t n_right = 0;
    for (std::size_t i = begin; i < end;
         ++i) {  // without branches: sides are random to a predictor
      const Entry entry = column[i];
      const bool goes_left = row_goes_left[entry.row] != 0;
      *left = entry;
      right[n_right] = entry;
      left += goes_left;
      n_right += !goes_left;
    }
    std::copy_n(right.begin(), n_right, left);
  });
}

}  // namespace hardwood::grow
