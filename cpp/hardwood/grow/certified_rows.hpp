#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/pool.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

constexpr std::size_t kAhead = 40;  // rows whose codes are asked for in advance

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
    for (Stretch& stretch : stretches) {
      stretch.to_left = std::exchange(to.left.n, to.left.n + stretch.n_left);
      stretch.to_right = std::exchange(to.right.n, to.right.n + stretch.n_right);
      stretch.to_both = std::exchange(to.both.n, to.both.n + stretch.n_both);
      if (stretch.end > rows.n_down) continue;
      to.left.n_down = to.left.n;
      to.right.n_down = to.right.n;
      to.both.n_down = to.both.n;
    }
    to.left.data = pool_.take<Row>(to.left.n);
    to.right.data = pool_.take<Row>(to.right.n);
    if (wants_both) to.both.data = pool_.take<Row>(to.both.n);
    parallel_for(stretches.size(), n_threads,
                 [&](std::size_t s, int) { part(rows.data.data(), stretches[s], sides, to); });
    return to;
  }

 private:
  static constexpr std::size_t kBlock = 1 << 14;  // rows of a stretch
  static constexpr std::size_t kChunk = 256;      // of them, that are moved together

  enum : std::uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };

  /// A row as it counts where another node owns it: by half, but only once.
  static Row shared(Row row) {
    const int halves = row.row & kShared ? 0 : 1;
    row.row |= kShared;
    row.g = static_cast<decltype(row.g)>(row.g >> halves);  // exact, see twice
    row.h = static_cast<decltype(row.h)>(row.h >> halves);
    return row;
  }

  /// Without a branch, as sides are random to a predictor.
  template <bool kMissing>
  void count(const Row* rows, const Gate& gate, Stretch& stretch, std::uint8_t* sides) const {
    const Code* const lower = codes_.lower(static_cast<std::size_t>(gate.feature));
    const Code missing = codes_.missing_code();
    const std::uint32_t candidate = gate.candidate;
    const std::uint8_t missing_side = gate.missing_left ? kLeft : kRight;
    const std::size_t end = stretch.end;
    const auto code_of = [=](std::size_t i) {
      return lower + std::size_t{rows[i].row & ~kShared} * Codes::kRowCodes;
    };
    Cell half{};
    std::size_t n_left = 0, n_right = 0, n_missing = 0;
    for (std::size_t i = stretch.begin; i < end; ++i) {
      __builtin_prefetch(code_of(std::min(i + kAhead, end - 1)));
      const Code* const code = code_of(i);
      auto side = static_cast<std::uint8_t>(kLeft * (candidate >= code[0]) |
                                            kRight * (candidate < code[Codes::kWidth]));
      if (kMissing && code[0] == missing) {
        ++n_missing;
        side = missing_side;
      }
      sides[i] = side;
      n_left += side & kLeft;
      n_right += side / kRight;
      half += where(side == kBoth, halved(rows[i].cell(), rows[i].row & kShared ? 0 : 1));
    }
    stretch.half = Stat::sum(half);
    stretch.n_left = n_left;
    stretch.n_right = n_right;
    stretch.n_both = n_left + n_right - (end - stretch.begin);
    stretch.n_missing = n_missing;
  }

  /// Where a stretch puts the rows of a child: without a branch, but not into the next stretch.
  struct Target {
    Target(Rows& rows, std::size_t begin, std::size_t n)
        : next(rows.data.data() + begin), end(next + n) {}
    bool has_room(std::size_t n) const { return static_cast<std::size_t>(end - next) > n; }

    template <bool kRoom>
    void put(const Row& row, bool is, Row& spare) {
      *(kRoom || next < end ? next : &spare) = row;
      next += is && (kRoom || next < end);
    }

    Row* next;
    Row* end;
  };

  static void part(const Row* rows, const Stretch& stretch, const std::uint8_t* sides, Parted& to) {
    const Target left(to.left, stretch.to_left, stretch.n_left);
    const Target right(to.right, stretch.to_right, stretch.n_right);
    Target owner = stretch.left_owns ? left : right, other = stretch.left_owns ? right : left;
    Row* both = to.both.data.size() ? to.both.data.data() + stretch.to_both : nullptr;
    const std::uint8_t owner_side = stretch.left_owns ? kLeft : kRight;
    for (std::size_t begin = stretch.begin; begin < stretch.end; begin += kChunk) {
      const std::size_t n = std::min(kChunk, stretch.end - begin);
      const bool has_room = owner.has_room(n) && other.has_room(n);
      const auto move_rows = has_room ? move<true> : move<false>;
      both = move_rows(rows + begin, sides + begin, n, owner_side, owner, other, both);
    }
  }

  /// Move some rows of a stretch; those that are in both go to `both`, too, if it is wanted.
  template <bool kRoom>
  static Row* move(const Row* rows, const std::uint8_t* sides, std::size_t n,
                   std::uint8_t owner_side, Target& to_owner, Target& to_other, Row* both) {
    Target owner = to_owner, other = to_other;  // where stores to rows cannot change them
    Row spare;
    std::array<Row*, kChunk> in_both;
    std::size_t n_both = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint8_t side = sides[i];
      in_both[n_both] = other.next;
      n_both += side == kBoth;
      owner.template put<kRoom>(rows[i], side & owner_side, spare);
      other.template put<kRoom>(rows[i], side & (kBoth - owner_side), spare);
    }
    for (std::size_t k = 0; k < n_both; ++k) {
      *in_both[k] = shared(*in_both[k]);
      if (both) *both++ = *in_both[k];
    }
    to_owner = owner;
    to_other = other;
    return both;
  }

  const Codes& codes_;
  Pool& pool_;
};

}  // namespace hardwood::grow
