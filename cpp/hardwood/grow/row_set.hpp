#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/buffer.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {

/// Which side of a split a code lies on.
///
/// Missing values have the last code. Turning the codes by one place brings them to the front, so
/// that either side of theirs is one comparison.
struct CodeSplit {
  const bins::Code* column;  ///< of the feature
  unsigned turn;             ///< 1 if missing values go left, else 0
  unsigned below;            ///< turned codes below this go left
  unsigned mask;

  CodeSplit(const bins::Binned& binned, std::size_t feature, std::size_t bin, bool missing_left)
      : column(binned.column(feature)),
        turn(missing_left),
        below(static_cast<unsigned>(bin) + turn),
        mask(static_cast<unsigned>(binned.n_codes()) - 1) {}

  template <class Split>
  CodeSplit(const bins::Binned& binned, const Split& split)
      : CodeSplit(binned, static_cast<std::size_t>(split.feature), split.bin, split.missing_left) {}

  const bins::Code* code(std::uint32_t row) const { return column + row; }
  bool goes_left(std::uint32_t row) const { return ((*code(row) + turn) & mask) < below; }
};

/// The same for a split by a set of bins.
struct SetSplit {
  const bins::Code* column;
  const BinSet& right;

  const bins::Code* code(std::uint32_t row) const { return column + row; }
  bool goes_left(std::uint32_t row) const { return !right.has(*code(row)); }
};

/// Call `body` with what tells the sides of a split: its type is chosen once, not once a row.
template <class Split, class Body>
auto with_sides(const bins::Binned& binned, const Split& split, Body&& body) {
  if (split.right_bins.empty()) return body(CodeSplit(binned, split));
  return body(SetSplit{binned.column(static_cast<std::size_t>(split.feature)), split.right_bins});
}

/// The rows of a tree, each with its gradients.
///
/// Invariant: the rows of a node are a contiguous range, in the order of the table. A split moves
/// the rows of the left child to the front of the range and keeps the order on both sides.
template <class Row>
class RowSet {
 public:
  static constexpr std::size_t kAhead = 24;  // rows whose codes are asked for in advance

  RowSet() = default;
  explicit RowSet(std::size_t capacity) : rows_(capacity), right_(capacity) {}

  Row* data() { return rows_.data(); }
  std::size_t capacity() const { return rows_.size(); }
  std::span<const Row> range(std::size_t begin, std::size_t end) const {
    return {rows_.data() + begin, end - begin};
  }

  /// Returns where the right child begins.
  template <class Sides>
  std::size_t partition(std::size_t begin, std::size_t end, const Sides& split, int n_threads) {
    if (begin == end) return begin;  // an empty set may have no memory to copy from
    if (n_threads <= 1) {
      const std::size_t middle = begin + separate(begin, end, split);
      std::memcpy(rows_.data() + middle, right_.data() + begin, (end - middle) * sizeof(Row));
      return middle;
    }
    // Each thread separates a share; then the left rows close ranks, then the right ones follow.
    const auto n_shares = static_cast<std::size_t>(n_threads);
    const auto start = [&](std::size_t share) { return begin + (end - begin) * share / n_shares; };
    std::vector<std::size_t> n_left(n_shares);
    parallel_for(n_shares, n_threads, [&](std::size_t share, int) {
      n_left[share] = separate(start(share), start(share + 1), split);
    });
    std::size_t middle = begin;
    for (std::size_t share = 0; share < n_shares; middle += n_left[share++]) {
      std::memmove(rows_.data() + middle, rows_.data() + start(share), n_left[share] * sizeof(Row));
    }
    std::vector<std::size_t> to(n_shares, middle);
    for (std::size_t share = 1; share < n_shares; ++share) {
      to[share] = to[share - 1] + start(share) - start(share - 1) - n_left[share - 1];
    }
    parallel_for(n_shares, n_threads, [&](std::size_t share, int) {
      std::memcpy(rows_.data() + to[share], right_.data() + start(share),
                  (start(share + 1) - start(share) - n_left[share]) * sizeof(Row));
    });
    return middle;
  }

 private:
  /// Left rows to the front of [begin, end), right rows aside. Returns how many went left.
  template <class Sides>
  std::size_t separate(std::size_t begin, std::size_t end, const Sides& split) {
    Row* const rows = rows_.data() + begin;
    Row* const right = right_.data() + begin;
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
    return n_left;
  }

  Buffer<Row> rows_;
  Buffer<Row> right_;
};

}  // namespace hardwood::grow
