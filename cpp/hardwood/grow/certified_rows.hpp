#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/grow/certified_tree.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/pool.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

constexpr std::size_t kAhead = 40;  // rows whose codes are asked for in advance
constexpr std::size_t kSparse = 4;  // rows of the table a row, from where on asking pays

/// Rows carry whether another node owns them in the highest bit of their number.
constexpr std::uint32_t kShared = 1u << 31;

/// The rows of a node: first those that the adversary pushes down.
template <class Stat>
struct CertifiedRows {
  Pooled<typename Stat::Row> data;
  std::size_t n = 0, n_down = 0;
};

/// Rows are on every second place of the grid, so that half a row is on it as well.
inline Packed::Row twice(Packed::Row row) {
  const int g = std::clamp<int>(row.g, -16383, 16383), h = std::min<int>(row.h, 32767);
  return {row.row, static_cast<std::int16_t>(2 * g), static_cast<std::uint16_t>(2 * h)};
}
inline Wide::Row twice(Wide::Row row) { return {row.row, 2 * row.g, 2 * row.h}; }

/// A cell halved once or not at all.
inline Packed::Cell halved(Packed::Cell cell, int halves) {
  return static_cast<Packed::Cell>(static_cast<std::int64_t>(cell) >> halves);
}
inline Wide::Cell halved(const Wide::Cell& cell, int halves) {
  return {cell.g >> halves, cell.h >> halves, cell.n};
}

/// Sends the rows of a node to its children, into both where they are ambiguous.
template <class Stat, class Code>
class CertifiedRouter {
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;
  using Codes = bins::EndCodes<Code>;
  using Rows = CertifiedRows<Stat>;

 public:
  /// Where rows go at a split.
  struct Gate {
    Feature feature;
    std::uint32_t candidate;
    bool missing_left;
    bool left_is_lower;  ///< so it owns the ambiguous rows that are pushed down
  };

  /// A stretch of a node's rows, all pushed the same way, and what becomes of it at a split.
  struct Stretch {
    std::size_t begin, end;
    bool left_owns;  ///< its rows, if they are in both
    GridSum half;    ///< of the rows in both, as the child counts them that does not own them
    std::size_t n_left = 0, n_right = 0, n_both = 0, n_missing = 0;
    std::size_t to_left = 0, to_right = 0, to_both = 0;  ///< where its rows go
  };

  /// The rows of both children, and those that are in both, as the child counts them that does not
  /// own them.
  struct Parted {
    Rows left, right, both;
  };

  /// The numbers of the rows of both children.
  struct Listed {
    LeafRows left, right;
  };

  CertifiedRouter(const Codes& codes, Pool& pool) : codes_(codes), pool_(pool) {}

  /// Find the side of every row, and what goes where.
  std::vector<Stretch> count(const Rows& rows, const Gate& gate, std::uint8_t* sides,
                             int n_threads) const {
    std::vector<Stretch> stretches;
    const auto cut = [&](std::size_t begin, std::size_t end, bool down) {
      for (; begin < end; begin += std::min(kBlock, end - begin)) {
        stretches.push_back({begin, std::min(begin + kBlock, end), down == gate.left_is_lower, {}});
      }
    };
    cut(0, rows.n_down, true);
    cut(rows.n_down, rows.n, false);
    parallel_for(stretches.size(), n_threads, [&](std::size_t s, int) {
      codes_.has_missing(static_cast<std::size_t>(gate.feature))
          ? count<true>(rows.data.data(), gate, stretches[s], sides)
          : count<false>(rows.data.data(), gate, stretches[s], sides);
    });
    return stretches;
  }

  Parted part(const Rows& rows, std::vector<Stretch>& stretches, const std::uint8_t* sides,
              bool wants_both, int n_threads) const {
    Parted to;
    place(rows, stretches, to.left, to.right, to.both);
    to.left.data = pool_.take<Row>(to.left.n);
    to.right.data = pool_.take<Row>(to.right.n);
    if (wants_both) to.both.data = pool_.take<Row>(to.both.n);
    parallel_for(stretches.size(), n_threads,
                 [&](std::size_t s, int) { part(rows.data.data(), stretches[s], sides, to); });
    return to;
  }

  /// The same where both children are leaves.
  Listed list(const Rows& rows, std::vector<Stretch>& stretches, const std::uint8_t* sides,
              int n_threads) const {
    Rows left, right, both;
    place(rows, stretches, left, right, both);
    Listed to{{0, pool_.take<std::uint32_t>(left.n), left.n_down},
              {0, pool_.take<std::uint32_t>(right.n), right.n_down}};
    parallel_for(stretches.size(), n_threads, [&](std::size_t s, int) {
      list(rows.data.data(), stretches[s], sides, to.left.rows.data() + stretches[s].to_left,
           to.right.rows.data() + stretches[s].to_right);
    });
    return to;
  }
  /// Those of a node.
  LeafRows list(const Rows& rows) const {
    LeafRows to{0, pool_.take<std::uint32_t>(rows.n), rows.n_down};
    for (std::size_t i = 0; i < rows.n; ++i) to.rows[i] = rows.data[i].row & ~kShared;
    return to;
  }

 private:
  static constexpr std::size_t kBlock = 1 << 14;  // rows of a stretch
  static constexpr std::size_t kChunk = 256;      // of them, that are handled together

  enum : std::uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };

  /// Call `body(begin, n)` for the chunks of a stretch.
  template <class Body>
  static void in_chunks(const Stretch& stretch, Body&& body) {
    for (std::size_t begin = stretch.begin; begin < stretch.end; begin += kChunk) {
      body(begin, std::min(kChunk, stretch.end - begin));
    }
  }

  /// Where the stretches put their rows, and how many rows there are.
  static void place(const Rows& rows, std::vector<Stretch>& stretches, Rows& left, Rows& right,
                    Rows& both) {
    for (Stretch& stretch : stretches) {
      stretch.to_left = std::exchange(left.n, left.n + stretch.n_left);
      stretch.to_right = std::exchange(right.n, right.n + stretch.n_right);
      stretch.to_both = std::exchange(both.n, both.n + stretch.n_both);
      if (stretch.end > rows.n_down) continue;
      left.n_down = left.n;
      right.n_down = right.n;
      both.n_down = both.n;
    }
  }

  /// A row as it counts where another node owns it: by half, but only once.
  static Row shared(Row row) {
    const int halves = row.row & kShared ? 0 : 1;
    row.row |= kShared;
    row.g = static_cast<decltype(row.g)>(row.g >> halves);  // exact, see twice
    row.h = static_cast<decltype(row.h)>(row.h >> halves);
    return row;
  }

  template <bool kMissing>
  void count(const Row* rows, const Gate& gate, Stretch& stretch, std::uint8_t* sides) const {
    const Code* const lower = codes_.lower(static_cast<std::size_t>(gate.feature));
    const Code missing = codes_.missing_code();
    const std::uint32_t candidate = gate.candidate;
    const std::uint8_t missing_side = gate.missing_left ? kLeft : kRight;
    const std::size_t last = stretch.end - 1;
    const auto number_of = [=](std::size_t i) { return std::size_t{rows[i].row & ~kShared}; };
    const auto code_of = [=](std::size_t i) { return lower + number_of(i) * Codes::kRowCodes; };
    // The codes of neighbours come without being asked for.
    const bool sparse =
        number_of(last) - number_of(stretch.begin) > kSparse * (last - stretch.begin);
    Cell half{};
    in_chunks(stretch, [&](std::size_t begin, std::size_t n) {
      // Without a branch, as sides are random to a predictor.
      std::size_t n_missing = 0;
      for (std::size_t i = begin; i < begin + n; ++i) {
        if (sparse) __builtin_prefetch(code_of(std::min(i + kAhead, last)));
        const Code* const code = code_of(i);
        auto side = static_cast<std::uint8_t>(kLeft * (candidate >= code[0]) |
                                              kRight * (candidate < code[Codes::kWidth]));
        if (kMissing && code[0] == missing) {
          ++n_missing;
          side = missing_side;
        }
        sides[i] = side;
      }
      stretch.n_missing += n_missing;
      std::uint32_t n_left = 0, n_right = 0;
      for (std::size_t i = begin; i < begin + n; ++i) {
        n_left += sides[i] & kLeft;
        n_right += sides[i] / kRight;
      }
      stretch.n_left += n_left;
      stretch.n_right += n_right;
      if (n_left + n_right == n) return;
      std::array<std::uint32_t, kChunk> in_both;
      std::size_t n_both = 0;
      for (std::size_t i = 0; i < n; ++i) {
        in_both[n_both] = static_cast<std::uint32_t>(i);
        n_both += sides[begin + i] == kBoth;
      }
      for (std::size_t k = 0; k < n_both; ++k) {
        const Row& row = rows[begin + in_both[k]];
        half += halved(row.cell(), row.row & kShared ? 0 : 1);
      }
    });
    stretch.half = Stat::sum(half);
    stretch.n_both = stretch.n_left + stretch.n_right - (stretch.end - stretch.begin);
  }

  /// By way of lists of the chunk: no branch, and no stretch writes where the next one does.
  static void part(const Row* rows, const Stretch& stretch, const std::uint8_t* sides, Parted& to) {
    Row* owner = (stretch.left_owns ? to.left : to.right).data.data();
    Row* other = (stretch.left_owns ? to.right : to.left).data.data();
    owner += stretch.left_owns ? stretch.to_left : stretch.to_right;
    other += stretch.left_owns ? stretch.to_right : stretch.to_left;
    Row* both = to.both.data.size() ? to.both.data.data() + stretch.to_both : nullptr;
    const std::uint8_t owner_side = stretch.left_owns ? kLeft : kRight;
    const std::uint8_t other_side = kBoth - owner_side;
    std::array<Row, kChunk> owned, others;
    std::array<std::uint32_t, kChunk> in_both;  // places in `others`
    in_chunks(stretch, [&](std::size_t begin, std::size_t n) {
      std::size_t n_owned = 0, n_others = 0, n_both = 0;
      for (std::size_t i = begin; i < begin + n; ++i) {
        const std::uint8_t side = sides[i];
        owned[n_owned] = others[n_others] = rows[i];
        in_both[n_both] = static_cast<std::uint32_t>(n_others);
        n_owned += (side & owner_side) != 0;
        n_others += (side & other_side) != 0;
        n_both += side == kBoth;
      }
      for (std::size_t k = 0; k < n_both; ++k) {
        Row& row = others[in_both[k]];
        row = shared(row);
        if (both) *both++ = row;
      }
      owner = std::copy_n(owned.data(), n_owned, owner);
      other = std::copy_n(others.data(), n_others, other);
    });
  }

  static void list(const Row* rows, const Stretch& stretch, const std::uint8_t* sides,
                   std::uint32_t* left, std::uint32_t* right) {
    std::array<std::uint32_t, kChunk> lefts, rights;
    in_chunks(stretch, [&](std::size_t begin, std::size_t n) {
      std::size_t n_left = 0, n_right = 0;
      for (std::size_t i = begin; i < begin + n; ++i) {
        lefts[n_left] = rights[n_right] = rows[i].row & ~kShared;
        n_left += sides[i] & kLeft;
        n_right += sides[i] / kRight;
      }
      left = std::copy_n(lefts.data(), n_left, left);
      right = std::copy_n(rights.data(), n_right, right);
    });
  }

  const Codes& codes_;
  Pool& pool_;
};

}  // namespace hardwood::grow
