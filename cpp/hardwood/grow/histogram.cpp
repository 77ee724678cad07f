#include "hardwood/grow/histogram.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hardwood::grow {
namespace {

// Columns a pass: 16 x 256 words are 32 kB. With two sides they spill into the second-level cache,
// and twice as many passes would still be slower.
constexpr std::size_t kMaxColumns = 16;
constexpr std::size_t kAhead = 16;  // rows whose codes are asked for in advance

/// The loop everything waits for. Width, sides and n_codes are known to the compiler, so that the
/// addresses of all columns come out of one register.
template <class Stat, std::size_t kWidth, bool kAdjacent, bool kTwoSides, std::size_t kCodes>
void add(std::span<const typename Stat::Row> rows, std::size_t stride, const Pass& pass,
         typename Stat::Cell* cells) {
  std::array<std::uint8_t, kWidth> offset;
  std::copy_n(pass.offset.begin(), kWidth, offset.begin());
  const bins::Code* codes = pass.codes;
  const auto add_row = [&](const typename Stat::Row& row) {
    const auto cell = row.cell();
    const bins::Code* code = codes + std::size_t{row.row} * stride;
    auto* side = cells + (kTwoSides && row.g < 0 ? kWidth * kCodes : 0);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kWidth; ++j) {
      side[j * kCodes + code[kAdjacent ? j : offset[j]]] += cell;
    }
  };
  const std::size_t n_ahead = rows.size() > kAhead ? rows.size() - kAhead : 0;
  for (std::size_t i = 0; i < n_ahead; ++i) {
    __builtin_prefetch(codes + std::size_t{rows[i + kAhead].row} * stride);
    add_row(rows[i]);
  }
  for (std::size_t i = n_ahead; i < rows.size(); ++i) add_row(rows[i]);
}

template <class Stat>
using Add = void (*)(std::span<const typename Stat::Row>, std::size_t, const Pass&,
                     typename Stat::Cell*);

template <class Stat, bool kAdjacent, bool kTwoSides, std::size_t kCodes, std::size_t... kWidth>
constexpr std::array<Add<Stat>, kMaxColumns> by_width(std::index_sequence<kWidth...>) {
  return {add<Stat, kWidth + 1, kAdjacent, kTwoSides, kCodes>...};
}

template <class Stat, bool kTwoSides, std::size_t kCodes>
Add<Stat> choose(const Pass& pass) {
  constexpr auto widths = std::make_index_sequence<kMaxColumns>();
  static constexpr auto kNext = by_width<Stat, true, kTwoSides, kCodes>(widths);
  static constexpr auto kSome = by_width<Stat, false, kTwoSides, kCodes>(widths);
  return (pass.adjacent ? kNext : kSome)[pass.n_columns() - 1];
}

}  // namespace

HistogramPlan::HistogramPlan(const bins::Binned& binned, std::span<const Feature> features,
                             std::size_t n_sides_)
    : n_sides(n_sides_), n_codes(binned.n_codes()), stride(binned.width()), n_cells(0) {
  for (auto begin = features.begin(); begin != features.end();) {
    // The features of one block, in shares as equal as possible.
    const auto block = static_cast<std::size_t>(*begin) / binned.width();
    const auto end = std::find_if(begin, features.end(), [&](Feature feature) {
      return static_cast<std::size_t>(feature) / binned.width() != block;
    });
    const auto n = static_cast<std::size_t>(end - begin);
    const std::size_t n_shares = (n + kMaxColumns - 1) / kMaxColumns;
    for (std::size_t share = 0; share < n_shares; ++share) {
      Pass pass;
      pass.feature.assign(begin + static_cast<std::ptrdiff_t>(n * share / n_shares),
                          begin + static_cast<std::ptrdiff_t>(n * (share + 1) / n_shares));
      const auto first = static_cast<std::size_t>(pass.feature.front());
      const auto span = static_cast<std::size_t>(pass.feature.back()) - first + 1;
      pass.codes = binned.block(block) + first % binned.width();
      pass.first_cell = n_cells;
      // Neighbours are built faster than scattered columns, even with a few that nobody reads.
      pass.adjacent = span <= kMaxColumns && span * 3 <= pass.feature.size() * 4;
      for (const Feature feature : pass.feature) {
        const auto distance = static_cast<std::size_t>(feature) - first;
        pass.column.push_back(pass.adjacent ? distance : pass.column.size());
        if (!pass.adjacent) pass.offset.push_back(static_cast<std::uint8_t>(distance));
      }
      if (pass.adjacent) {
        for (std::size_t j = 0; j < span; ++j) pass.offset.push_back(static_cast<std::uint8_t>(j));
      }
      n_cells += cells(pass);
      passes.push_back(std::move(pass));
    }
    begin = end;
  }
}

template <class Stat>
void add_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan, const Pass& pass,
              typename Stat::Cell* cells) {
  const Add<Stat> add =
      plan.n_codes == 256
          ? (plan.n_sides == 2 ? choose<Stat, true, 256> : choose<Stat, false, 256>)(pass)
          : (plan.n_sides == 2 ? choose<Stat, true, 64> : choose<Stat, false, 64>)(pass);
  add(rows, plan.stride, pass, cells);
}

template void add_rows<Packed>(std::span<const Packed::Row>, const HistogramPlan&, const Pass&,
                               Packed::Cell*);
template void add_rows<Wide>(std::span<const Wide::Row>, const HistogramPlan&, const Pass&,
                             Wide::Cell*);

}  // namespace hardwood::grow
