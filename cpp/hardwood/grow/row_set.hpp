#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/buffer.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/pool.hpp"

namespace hardwood::grow {

/// Which side of a split a code lies on.
///
/// Missing values have the last code. Turning the codes by one place brings them to the front, so
/// that either side of theirs is one comparison.
struct CodeSplit {
  const bins::Code* column;  ///< of the feature
  std::size_t stride;        ///< to the code of the next row
  unsigned turn;             ///< 1 if missing values go left, else 0
  unsigned below;            ///< turned codes below this go left
  unsigned mask;

  CodeSplit(const bins::Binned& binned, std::size_t feature, std::size_t bin, bool missing_left)
      : column(binned.column(feature)),
        stride(binned.stride()),
        turn(missing_left),
        below(static_cast<unsigned>(bin) + turn),
        mask(static_cast<unsigned>(binned.n_codes()) - 1) {}

  template <class Split>
  CodeSplit(const bins::Binned& binned, const Split& split)
      : CodeSplit(binned, static_cast<std::size_t>(split.feature), split.bin, split.missing_left) {}

  const bins::Code* code(std::uint32_t row) const { return column + row * stride; }
  bool goes_left(std::uint32_t row) const { return ((*code(row) + turn) & mask) < below; }
};

/// The same for a split by a set of bins, written out: a byte is read faster than a bit.
struct SetSplit {
  const bins::Code* column;
  std::size_t stride;
  std::array<std::uint8_t, BinSet::kSize> left;

  SetSplit(const bins::Binned& binned, std::size_t feature, const BinSet& right)
      : column(binned.column(feature)), stride(binned.stride()) {
    for (std::size_t bin = 0; bin < left.size(); ++bin) left[bin] = !right.has(bin);
  }

  const bins::Code* code(std::uint32_t row) const { return column + row * stride; }
  bool goes_left(std::uint32_t row) const { return left[*code(row)]; }
};

/// Call `body` with what tells the sides of a split: its type is chosen once, not once a row.
template <class Split, class Body>
auto with_sides(const bins::Binned& binned, const Split& split, Body&& body) {
  if (split.right_bins.empty()) return body(CodeSplit(binned, split));
  const auto feature = static_cast<std::size_t>(split.feature);
  return body(SetSplit(binned, feature, split.right_bins));
}

/// The side of one row.
template <class Split>
bool goes_left(const bins::Binned& binned, const Split& split, std::uint32_t row) {
  if (split.right_bins.empty()) return CodeSplit(binned, split).goes_left(row);
  const bins::Code* const column = binned.column(static_cast<std::size_t>(split.feature));
  return !split.right_bins.has(column[row * binned.stride()]);
}

/// The rows of a tree, each with its gradients.
///
/// Invariant: the rows of a node are a contiguous range, in chunks that are in the order of the
/// table. A split separates each chunk, in that order; then right rows that lie among the left ones
/// change places with left rows. So a split needs little memory beside the rows, and long runs of
/// them are still in order, which is how memory likes to be read.
template <class Row>
class RowSet {
 public:
  static constexpr std::size_t kAhead = 24;  // rows whose codes are asked for in advance
  /// Rows separated together: few enough that those set aside stay in the cache.
  static constexpr std::size_t kChunk = std::size_t{1} << 16;

  RowSet() = default;
  explicit RowSet(std::size_t capacity) : rows_(capacity) {}

  Row* data() { return rows_.data(); }
  std::size_t capacity() const { return rows_.size(); }
  std::span<const Row> range(std::size_t begin, std::size_t end) const {
    return {rows_.data() + begin, end - begin};
  }

  /// Returns where the right child begins. `pool`: of memory for rows set aside.
  template <class Sides>
  std::size_t partition(std::size_t begin, std::size_t end, const Sides& split, int n_threads,
                        Pool& pool) {
    const std::size_t n = end - begin;
    if (n == 0) return begin;  // an empty set may have no memory to copy from
    const auto n_shares = static_cast<std::size_t>(std::max(n_threads, 1));
    const std::size_t n_chunks = std::max((n + kChunk - 1) / kChunk, n_shares);
    const auto start = [&](std::size_t chunk) { return begin + n * chunk / n_chunks; };
    const auto separated = [&](std::size_t chunk) {
      Pooled<Row> aside = pool.take<Row>(start(chunk + 1) - start(chunk));
      const std::size_t count = separate(start(chunk), start(chunk + 1), split, aside.data());
      pool.give_back(std::move(aside));
      return count;
    };
    if (n_chunks == 1) return begin + separated(0);
    std::vector<std::size_t> n_left(n_chunks);
    parallel_for(n_chunks, n_threads,
                 [&](std::size_t chunk, int) { n_left[chunk] = separated(chunk); });
    std::size_t middle = begin;
    for (const std::size_t count : n_left) middle += count;
    // Right rows before the middle, and left rows behind it: there are as many.
    std::vector<std::span<Row>> right, left;
    for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
      const std::size_t border = start(chunk) + n_left[chunk];
      put(right, border, std::min(start(chunk + 1), middle));
      put(left, std::max(start(chunk), middle), border);
    }
    for (std::size_t i = 0, j = 0; i < right.size();) {
      const std::size_t count = std::min(right[i].size(), left[j].size());
      std::swap_ranges(right[i].begin(), right[i].begin() + static_cast<std::ptrdiff_t>(count),
                       left[j].begin());
      if ((right[i] = right[i].subspan(count)).empty()) ++i;
      if ((left[j] = left[j].subspan(count)).empty()) ++j;
    }
    return middle;
  }

 private:
  void put(std::vector<std::span<Row>>& stretches, std::size_t begin, std::size_t end) {
    if (begin < end) stretches.push_back({rows_.data() + begin, end - begin});
  }

  /// Left rows to the front of [begin, end), right rows behind them. Returns how many went left.
  template <class Sides>
  std::size_t separate(std::size_t begin, std::size_t end, const Sides& split, Row* right) {
    Row* const rows = rows_.data() + begin;
    const std::size_t n = end - begin, n_ahead = n > kAhead ? n - kAhead : 0;
    std::size_t n_left = 0, n_right = 0;
    const auto place = [&](std::size_t i) {  // without branches: sides are random to a predictor
      const Row row = rows[i];
      const bool left = split.goes_left(row.row);
      rows[n_left] = row;
      right[n_right] = row;
      n_left += left;
      n_right += !left;
    };
    for (std::size_t i = 0; i < n_ahead; ++i) {
      __builtin_prefetch(split.code(rows[i + kAhead].row));
      place(i);
    }
    for (std::size_t i = n_ahead; i < n; ++i) place(i);
    if (n_right) std::memcpy(rows + n_left, right, n_right * sizeof(Row));
    return n_left;
  }

  Buffer<Row> rows_;
};

}  // namespace hardwood::grow
