#include "hardwood/grow/histogram.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "hardwood/grow/class_rows.hpp"

namespace hardwood::grow {
namespace {

// Columns a pass: 16 x 256 words are 32 kB. With two sides they spill into the second-level cache,
// and twice as many passes would still be slower.
constexpr std::size_t kMaxColumns = 16;
constexpr std::size_t kAhead = 24;       // rows whose codes are asked for in advance
constexpr std::size_t kWorthAsking = 8;  // columns for which it pays to leave rows out
constexpr std::size_t kChunk = 512;      // rows that are gathered at a time
constexpr std::size_t kFew = 32;         // rare rows that are subtracted faster than all cells

/// The loop everything waits for. Width, sides and n_codes are known to the compiler, so that the
/// addresses of all columns come out of one register.
template <class Stat, std::size_t kWidth, bool kAdjacent, bool kSides, std::size_t kCodes>
void add(std::span<const typename Stat::Row> rows, std::size_t stride, const Pass& pass,
         typename Stat::Cell* cells) {
  std::array<std::uint8_t, kWidth> offset;
  std::copy_n(pass.offset.begin(), kWidth, offset.begin());
  const bins::Code* codes = pass.codes;
  const auto add_row = [&](const typename Stat::Row& row) {
    const auto cell = row.cell();
    const bins::Code* code = codes + std::size_t{row.row} * stride;
    auto* side = cells + (kSides ? row.side() * (kWidth * kCodes) : 0);
    if constexpr (kAdjacent && kWidth >= 8 && std::endian::native == std::endian::little) {
      // Two loads for all codes: the processor has more room for shifts than for loads.
      std::uint64_t first, last;
      std::memcpy(&first, code, 8);
      std::memcpy(&last, code + kWidth - 8, 8);
#pragma GCC unroll 16
      for (std::size_t j = 0; j < kWidth; ++j) {
        const std::uint64_t word = j < 8 ? first >> (8 * j) : last >> (8 * (j + 8 - kWidth));
        side[j * kCodes + (word & 0xff)] += cell;
      }
    } else {
#pragma GCC unroll 16
      for (std::size_t j = 0; j < kWidth; ++j) {
        side[j * kCodes + code[kAdjacent ? j : offset[j]]] += cell;
      }
    }
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t ahead = std::min(i + kAhead, rows.size() - 1);    // a second loop, compiled
    __builtin_prefetch(codes + std::size_t{rows[ahead].row} * stride);  // 512 times, is dearer
    add_row(rows[i]);
  }
}

template <class Stat, std::size_t kWidth, bool kSides, std::size_t kCodes>
void add_apart(std::span<const typename Stat::Row> rows, std::size_t stride,
               std::span<const Pass* const> passes, std::size_t n_sides,
               typename Stat::Cell* cells) {
  std::array<const bins::Code*, kWidth> codes;
  std::array<typename Stat::Cell*, kWidth> to;
  for (std::size_t j = 0; j < kWidth; ++j) {
    codes[j] = passes[j]->codes;
    to[j] = cells + j * n_sides * kCodes;
  }
  const auto add_row = [&](const typename Stat::Row& row) {
    const auto cell = row.cell();
    const std::size_t side = kSides ? row.side() * kCodes : 0;
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kWidth; ++j) to[j][side + codes[j][row.row * stride]] += cell;
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t ahead = std::min(i + kAhead, rows.size() - 1);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kWidth; ++j)
      __builtin_prefetch(codes[j] + rows[ahead].row * stride);
    add_row(rows[i]);
  }
}

template <class Stat>
using Add = void (*)(std::span<const typename Stat::Row>, std::size_t, const Pass&,
                     typename Stat::Cell*);

template <class Stat, bool kAdjacent, bool kSides, std::size_t kCodes, std::size_t... kWidth>
constexpr std::array<Add<Stat>, kMaxColumns> by_width(std::index_sequence<kWidth...>) {
  return {add<Stat, kWidth + 1, kAdjacent, kSides, kCodes>...};
}

template <class Stat, bool kSides, std::size_t kCodes>
Add<Stat> choose(const Pass& pass) {
  constexpr auto widths = std::make_index_sequence<kMaxColumns>();
  static constexpr auto kNext = by_width<Stat, true, kSides, kCodes>(widths);
  static constexpr auto kSome = by_width<Stat, false, kSides, kCodes>(widths);
  return (pass.adjacent ? kNext : kSome)[pass.n_columns() - 1];
}

template <class Stat>
Add<Stat> choose(const HistogramPlan& plan, const Pass& pass) {
  if constexpr (!Stat::kClasses) {  // classes are sides, and there are at least two
    if (plan.n_sides == 1) {
      return plan.n_codes == 256 ? choose<Stat, false, 256>(pass) : choose<Stat, false, 64>(pass);
    }
  }
  return plan.n_codes == 256 ? choose<Stat, true, 256>(pass) : choose<Stat, true, 64>(pass);
}

/// Whether rows with no rare code are left out; of classes there may be too many for that.
template <class Stat>
constexpr bool kPassesOver = !Stat::kClasses;

/// The rare ones of some rows, and the sums of the others, which all have the same codes.
template <class Stat>
struct Gathered {
  using Cell = typename Stat::Cell;
  std::array<typename Stat::Row, kChunk> rare;
  std::size_t n_rare;
  Cell others{}, others_below{};  // below: with g < 0, if there are two sides

  void gather(std::span<const typename Stat::Row> rows, const HistogramPlan& plan,
              const Pass& pass) {
    plan.n_sides == 2 ? gather<true>(rows, pass.rare) : gather<false>(rows, pass.rare);
  }

  template <bool kTwoSides>
  void gather(std::span<const typename Stat::Row> rows, const std::uint64_t* bits) {
    n_rare = 0;
    for (const auto& row : rows) {
      const bool is_rare = bits[row.row / 64] >> (row.row % 64) & 1;
      rare[n_rare] = row;
      n_rare += is_rare;
      const bool below = kTwoSides && row.g < 0;
      others += where(!is_rare && !below, row.cell());
      if constexpr (kTwoSides) others_below += where(!is_rare && below, row.cell());
    }
  }

  /// Call `add(cell of the histogram, sum)` for the others.
  template <class Add>
  void each_frequent(const HistogramPlan& plan, const Pass& pass, Cell* cells, Add&& add) const {
    for (std::size_t j = 0; j < pass.n_columns(); ++j) {
      Cell* frequent = cells + j * plan.n_codes + pass.frequent[j];
      add(*frequent, others);
      if (plan.n_sides == 2) add(frequent[pass.n_columns() * plan.n_codes], others_below);
    }
  }
};

}  // namespace

HistogramPlan::HistogramPlan(const bins::Binned& binned, std::span<const Feature> features,
                             std::size_t n_sides_, bool by_column_)
    : n_sides(n_sides_), n_codes(binned.n_codes()), stride(1), n_cells(0), by_column(by_column_) {
  by_column ? plan_columns(binned, features) : plan_blocks(binned, features);
}

void HistogramPlan::plan_columns(const bins::Binned& binned, std::span<const Feature> features) {
  stride = binned.stride();
  for (const Feature feature : features) {
    passes.push_back({.codes = binned.column(static_cast<std::size_t>(feature)),
                      .offset = {0},
                      .adjacent = true,
                      .column = {0},
                      .feature = {feature},
                      .shared = {{}},
                      .first_cell = 0,
                      .rare = nullptr,
                      .frequent = {}});
  }
  n_cells = kColumnsTogether * n_sides * n_codes;
}

void HistogramPlan::plan_blocks(const bins::Binned& binned, std::span<const Feature> features) {
  stride = binned.blocks().width();
  std::vector<Feature> in_place(features.begin(), features.end());
  const bins::Blocks& blocks = binned.blocks();
  const auto place = [&](Feature feature) {
    return blocks.place(static_cast<std::size_t>(feature));
  };
  std::ranges::sort(in_place, {}, place);
  for (auto begin = in_place.begin(); begin != in_place.end();) {
    const std::size_t block = place(*begin) / blocks.width();
    const auto end = std::find_if(begin, in_place.end(), [&](Feature feature) {
      return place(feature) / blocks.width() != block;
    });
    Pass pass;
    pass.feature.assign(begin, end);
    const std::size_t first = place(pass.feature.front());
    const std::size_t span = place(pass.feature.back()) - first + 1;
    pass.codes = blocks.codes(static_cast<std::size_t>(pass.feature.front()));
    pass.first_cell = n_cells;
    for (const Feature feature : pass.feature) {
      const auto distance = static_cast<std::uint8_t>(place(feature) - first);
      if (pass.offset.empty() || pass.offset.back() != distance) pass.offset.push_back(distance);
      pass.column.push_back(pass.offset.size() - 1);
      pass.shared.push_back(blocks.shared(static_cast<std::size_t>(feature)));
    }
    // Neighbours are built faster than scattered columns, even with a few that nobody reads.
    pass.adjacent = span * 3 <= pass.offset.size() * 4;
    if (pass.adjacent) {
      for (std::size_t& column : pass.column) column = pass.offset[column];
      pass.offset.resize(span);
      std::iota(pass.offset.begin(), pass.offset.end(), std::uint8_t{0});
    }
    pass.rare = pass.n_columns() >= kWorthAsking ? blocks.rare(block) : nullptr;
    pass.frequent.resize(pass.n_columns());  // columns that nobody reads may have any
    for (std::size_t i = 0; i < pass.feature.size(); ++i) {
      pass.frequent[pass.column[i]] = blocks.frequent(static_cast<std::size_t>(pass.feature[i]));
    }
    n_cells += cells(pass);
    passes.push_back(std::move(pass));
    begin = end;
  }
}

template <class Stat>
void add_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan, const Pass& pass,
              typename Stat::Cell* cells) {
  const Add<Stat> add = choose<Stat>(plan, pass);
  if constexpr (kPassesOver<Stat>) {
    if (pass.rare) {
      Gathered<Stat> gathered;
      for (; !rows.empty(); rows = rows.subspan(std::min(kChunk, rows.size()))) {
        gathered.gather(rows.first(std::min(kChunk, rows.size())), plan, pass);
        add({gathered.rare.data(), gathered.n_rare}, plan.stride, pass, cells);
      }
      gathered.each_frequent(plan, pass, cells, [](auto& cell, const auto& sum) { cell += sum; });
      return;
    }
  }
  add(rows, plan.stride, pass, cells);
}

template <class Stat>
void add_columns(std::span<const typename Stat::Row> rows, const HistogramPlan& plan,
                 std::span<const Pass* const> passes, typename Stat::Cell* cells) {
  const auto add = [&]<std::size_t kWidth>() {
    const auto with = [&]<bool kSides>() {
      (plan.n_codes == 256
           ? add_apart<Stat, kWidth, kSides, 256>
           : add_apart<Stat, kWidth, kSides, 64>)(rows, plan.stride, passes, plan.n_sides, cells);
    };
    plan.n_sides > 1 ? with.template operator()<true>() : with.template operator()<false>();
  };
  switch (passes.size()) {
    case 1:
      return add.template operator()<1>();
    case 2:
      return add.template operator()<2>();
    case 3:
      return add.template operator()<3>();
    case 4:
      return add.template operator()<4>();
  }
}

template <class Stat>
bool subtract_few_rows(std::span<const typename Stat::Row> rows, const HistogramPlan& plan,
                       const Pass& pass, typename Stat::Cell* cells) {
  if constexpr (kPassesOver<Stat>) {
    if (!pass.rare || rows.size() > kChunk) return false;
    Gathered<Stat> gathered;
    gathered.gather(rows, plan, pass);
    if (gathered.n_rare > kFew) return false;
    for (const auto& row : std::span(gathered.rare).first(gathered.n_rare)) {
      const bins::Code* code = pass.codes + std::size_t{row.row} * plan.stride;
      auto* side = cells + (plan.n_sides == 2 ? row.side() * pass.n_columns() * plan.n_codes : 0);
      for (std::size_t j = 0; j < pass.n_columns(); ++j) {
        side[j * plan.n_codes + code[pass.offset[j]]] -= row.cell();
      }
    }
    gathered.each_frequent(plan, pass, cells, [](auto& cell, const auto& sum) { cell -= sum; });
    return true;
  }
  return false;
}

#define HARDWOOD_STAT(Stat)                                                                   \
  template void add_rows<Stat>(std::span<const Stat::Row>, const HistogramPlan&, const Pass&, \
                               Stat::Cell*);                                                  \
  template void add_columns<Stat>(std::span<const Stat::Row>, const HistogramPlan&,           \
                                  std::span<const Pass* const>, Stat::Cell*);                 \
  template bool subtract_few_rows<Stat>(std::span<const Stat::Row>, const HistogramPlan&,     \
                                        const Pass&, Stat::Cell*);
HARDWOOD_STAT(Packed)
HARDWOOD_STAT(Wide)
HARDWOOD_STAT(ClassCounts)
HARDWOOD_STAT(ClassWeights)
#undef HARDWOOD_STAT

}  // namespace hardwood::grow
