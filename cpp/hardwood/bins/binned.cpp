#include "hardwood/bins/binned.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "hardwood/bins/edges.hpp"
#include "hardwood/bins/search.hpp"
#include "hardwood/box.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::bins {
namespace {

constexpr std::size_t kSample = 200'000;        // rows whose quantiles stand for those of all
constexpr std::size_t kSampleValues = 1 << 22;  // held in memory at a time
constexpr std::size_t kTile = 512;              // rows read together
constexpr std::size_t kTileWidth = 64;  // features read together: rows are far from each other
constexpr std::size_t kArranged = 512;  // rows that tell which features go together, one tile
constexpr std::size_t kLook = 128;      // features among which the next one of a block is chosen
constexpr std::size_t kMaxWidth = 16;
constexpr BinRange kEmpty{std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};

std::size_t scramble(std::size_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(z ^ (z >> 31));
}

/// As many rows as wanted, increasing: one of every stretch of the table, not always the same one,
/// since data may be periodic.
std::vector<std::uint32_t> sample_rows(std::size_t n_rows, std::size_t n_sampled) {
  n_sampled = std::min(n_rows, n_sampled);
  std::vector<std::uint32_t> rows(n_sampled);
  for (std::size_t i = 0; i < n_sampled; ++i) {
    const std::size_t begin = i * n_rows / n_sampled, end = (i + 1) * n_rows / n_sampled;
    rows[i] = static_cast<std::uint32_t>(begin + scramble(i) % (end - begin));
  }
  return rows;
}

/// Values of one feature in the rows of a tile, without (most) zeros.
template <class X>
struct TileColumn {
  std::size_t n = 0;
  std::array<X, kTile> x;
  std::array<std::uint16_t, kTile> at;  ///< which row of the tile

  void put(X value, std::size_t row) {
    x[n] = value;
    at[n++] = static_cast<std::uint16_t>(row);
  }
};

/// Where the stored values of rows begin, if rows are what is stored. `read_tile` goes on from
/// there and leaves the places where the features after the last one begin.
template <class Table>
std::vector<std::size_t> starts_of(const Table&, std::span<const std::uint32_t>) {
  return {};
}
template <class X, class Index>
std::vector<std::size_t> starts_of(const SparseTable<X, Index, true>& table,
                                   std::span<const std::uint32_t> rows) {
  std::vector<std::size_t> starts;
  for (const std::uint32_t row : rows) {
    starts.push_back(static_cast<std::size_t>(table.line_start[row]));
  }
  return starts;
}

/// Features [first, last), at most kTileWidth, in some rows, at most kTile, increasing.
template <class X>
using Tile = std::array<TileColumn<X>, kTileWidth>;

template <class X>
void read_tile(const DenseTable<X>& table, std::size_t first, std::size_t last,
               std::span<const std::uint32_t> rows, std::size_t*, Tile<X>& tile) {
  for (std::size_t f = first; f < last; ++f) {
    TileColumn<X>& column = tile[f - first];
    std::size_t n = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const X x = table.x(rows[i], f);
      column.x[n] = x;
      column.at[n] = static_cast<std::uint16_t>(i);
      n += x != 0;  // no branch: zeros come at random
    }
    column.n = n;
  }
}

template <class X, class Index>
void read_tile(const SparseTable<X, Index, true>& table, std::size_t first, std::size_t last,
               std::span<const std::uint32_t> rows, std::size_t* next, Tile<X>& tile) {
  for (std::size_t f = first; f < last; ++f) tile[f - first].n = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto end = static_cast<std::size_t>(table.line_start[rows[i] + 1]);
    std::size_t at = next[i];
    const auto feature = [&] { return static_cast<std::size_t>(table.across[at]); };
    while (at < end && feature() < first) ++at;
    for (; at < end && feature() < last; ++at) tile[feature() - first].put(table.x[at], i);
    next[i] = at;
  }
}

template <class X, class Index>
void read_tile(const SparseTable<X, Index, false>& table, std::size_t first, std::size_t last,
               std::span<const std::uint32_t> rows, std::size_t*, Tile<X>& tile) {
  const Index* const across = table.across.data();
  for (std::size_t f = first; f < last; ++f) {
    TileColumn<X>& column = tile[f - first];
    column.n = 0;
    const Index* const end = across + table.line_start[f + 1];
    const Index* stored =
        std::lower_bound(across + table.line_start[f], end, static_cast<Index>(rows.front()));
    for (std::size_t i = 0; stored < end; ++stored) {
      const auto row = static_cast<std::uint32_t>(*stored);
      if (row > rows.back()) break;
      while (rows[i] < row) ++i;
      if (rows[i] == row) column.put(table.x[stored - across], i);
    }
  }
}

/// Call `body(rows of a tile, where they go on)` for all rows.
template <class Body>
void for_each_tile(std::span<const std::uint32_t> rows, std::size_t* next, Body&& body) {
  for (std::size_t begin = 0; begin < rows.size(); begin += kTile) {
    body(rows.subspan(begin, std::min(kTile, rows.size() - begin)), next ? next + begin : next);
  }
}

/// The values of one feature in the sample.
struct Sample {
  std::vector<float> values;  // without zeros and missing ones
  std::size_t n_zeros = 0, n_missing = 0;
};

template <class X>
void add_to(Sample& sample, const TileColumn<X>& column, std::size_t n_rows) {
  sample.n_zeros += n_rows - column.n;
  std::size_t n = sample.values.size();
  sample.values.resize(n + column.n);
  for (std::size_t i = 0; i < column.n; ++i) {
    sample.values[n] = static_cast<float>(column.x[i]);
    n += column.x[i] == column.x[i];  // NaN is not
  }
  sample.n_missing += sample.values.size() - n;
  sample.values.resize(n);
}

std::vector<Value> values_of(Sample& sample, std::vector<float>& scratch) {
  std::vector<Value> values = count_values(sample.values, scratch);
  if (sample.n_zeros == 0) return values;
  const auto n_zeros = static_cast<std::uint32_t>(sample.n_zeros);
  const auto place = std::ranges::lower_bound(values, 0.0f, {}, &Value::x);
  if (place != values.end() && place->x == 0) {
    place->count += n_zeros;
  } else {
    values.insert(place, {0.0f, n_zeros});
  }
  return values;
}

/// The code of most values.
Code most_frequent(std::span<const Value> values, std::span<const float> edges,
                   std::size_t n_missing, Code missing) {
  Code usual = missing;
  std::size_t most = n_missing, value = 0;
  for (std::size_t bin = 0; bin <= edges.size(); ++bin) {
    std::size_t count = 0;
    while (value < values.size() &&
           (bin == edges.size() || goes_left(values[value].x, edges[bin]))) {
      count += values[value++].count;
    }
    if (count > most) most = count, usual = static_cast<Code>(bin);
  }
  return usual;
}

/// Turns values into codes.
template <class X>
class Encoder {
 public:
  Encoder(std::span<const float> edges, Code missing) : edges_(edges), missing_(missing) {
    const float zero = 0;
    edges_.encode({&zero, 1}, &zero_);
  }

  Code zero() const { return zero_; }

  void encode(const TileColumn<X>& column, Code* code) const {
    std::array<float, kTile> rounded;
    std::copy_n(column.x.begin(), column.n, rounded.begin());
    edges_.encode({rounded.data(), column.n}, code);
    for (std::size_t i = 0; i < column.n; ++i) {
      code[i] = column.x[i] == column.x[i] ? code[i] : missing_;  // NaN is not equal to itself
    }
  }

 private:
  SortedEdges edges_;
  Code missing_, zero_;
};

template <class Table, class X>
bool any_missing(const Table& table, std::size_t feature, Tile<X>& tile) {
  std::vector<std::uint32_t> rows(table.n_rows());
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<std::size_t> next = starts_of(table, rows);
  bool any = false;
  for_each_tile(rows, next.data(), [&](std::span<const std::uint32_t> some, std::size_t* at) {
    read_tile(table, feature, feature + 1, some, at, tile);
    const std::span<const X> x(tile[0].x.data(), tile[0].n);
    any = any || std::ranges::any_of(x, [](X value) { return std::isnan(value); });
  });
  return any;
}

template <class X>
X value_type(const DenseTable<X>&);
template <class X, class Index, bool kLinesAreRows>
X value_type(const SparseTable<X, Index, kLinesAreRows>&);

}  // namespace

template <class Table>
Binned::Binned(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
               int n_threads)
    : n_rows_(table.n_rows()),
      n_codes_(max_bins <= 64 ? 64 : 256),
      // As even as possible: 28 features are two blocks of 14, not one of 16 and one of 12.
      width_([](std::size_t n) {
        const std::size_t n_blocks = (n + kMaxWidth - 1) / kMaxWidth;
        return n_blocks ? (n + n_blocks - 1) / n_blocks : 1;
      }(table.n_features())),
      edges_(table.n_features()),
      ranges_(table.n_features() * n_codes_, kEmpty),
      has_missing_(table.n_features()),
      usual_(table.n_features()),
      place_(table.n_features()),
      busy_(n_blocks()) {
  if (max_bins < 2 || max_bins > 256) {
    throw std::invalid_argument(
        "max_bins must be from 2 to 256, got max_bins=" + std::to_string(max_bins) + ".");
  }
  choose_all_edges(table, reach, max_bins, n_threads);
  arrange(table, n_threads);
  codes_ = Buffer<Code>(n_blocks() * width_ * n_rows_);
  columns_ = Buffer<Code>(n_features() * n_rows_);
  encode(table, n_threads);
}

template <class Table>
void Binned::choose_all_edges(const Table& table, std::span<const Reach> reach,
                              std::size_t max_bins, int n_threads) {
  using X = decltype(value_type(table));
  // In groups, so that the sample of a wide table is never in memory as a whole.
  struct Workspace {
    Tile<X> tile;
    std::array<Sample, kTileWidth> samples;
    std::vector<float> scratch;
    std::vector<std::size_t> next;
    std::size_t last = 0;  // feature that was read
  };
  std::vector<std::unique_ptr<Workspace>> workspaces(
      static_cast<std::size_t>(std::max(n_threads, 1)));
  const std::vector<std::uint32_t> rows = sample_rows(n_rows_, kSample);
  const std::size_t n = n_features();
  const std::size_t share = n / static_cast<std::size_t>(std::max(n_threads, 1));
  const std::size_t most = kSampleValues / std::max<std::size_t>(rows.size(), 1);
  const std::size_t group = std::clamp<std::size_t>(std::min(share, most), 1, kTileWidth);
  parallel_blocks(n, group, n_threads, [&](std::size_t first, std::size_t last, int thread) {
    auto& workspace = workspaces[static_cast<std::size_t>(thread)];
    if (!workspace) workspace = std::make_unique<Workspace>();
    auto& [tile, samples, scratch, next, last_read] = *workspace;
    if (last_read == 0 || first < last_read) next = starts_of(table, rows);
    last_read = last;
    for (Sample& sample : samples) sample.values.clear(), sample.n_zeros = sample.n_missing = 0;
    for_each_tile(rows, next.data(), [&](std::span<const std::uint32_t> some, std::size_t* at) {
      read_tile(table, first, last, some, at, tile);
      for (std::size_t j = 0; j < last - first; ++j) add_to(samples[j], tile[j], some.size());
    });
    for (std::size_t f = first; f < last; ++f) {
      Sample& sample = samples[f - first];
      const std::vector<Value> values = values_of(sample, scratch);
      // One code is kept for missing values, unless just that one makes every value a bin.
      const bool needs_all = values.size() == n_codes_ && max_bins == n_codes_;
      const bool takes_all = needs_all && sample.n_missing == 0 &&
                             (rows.size() == n_rows_ || !any_missing(table, f, tile));
      edges_[f] =
          choose_edges(values, reach[f], takes_all ? max_bins : std::min(max_bins, n_codes_ - 1));
      usual_[f] = most_frequent(values, edges_[f], sample.n_missing, missing_code());
    }
  });
}

template <class Table>
void Binned::arrange(const Table& table, int n_threads) {
  using X = decltype(value_type(table));
  const std::size_t n = n_features();
  std::iota(place_.begin(), place_.end(), 0);
  const std::vector<std::uint32_t> rows = sample_rows(n_rows_, kArranged);
  if (rows.empty()) return;
  // Which rows of the sample have an unusual code.
  using Rows = std::bitset<kArranged>;
  std::vector<Rows> unusual(n);
  parallel_blocks(n, kTileWidth, n_threads, [&](std::size_t first, std::size_t last, int) {
    const auto tile = std::make_unique<Tile<X>>();
    read_tile(table, first, last, rows, starts_of(table, rows).data(), *tile);
    std::array<Code, kTile> code;
    for (std::size_t f = first; f < last; ++f) {
      const TileColumn<X>& column = (*tile)[f - first];
      const Encoder<X> encoder(edges_[f], missing_code());
      encoder.encode(column, code.data());
      if (encoder.zero() != usual_[f]) unusual[f].set();
      for (std::size_t i = 0; i < column.n; ++i) unusual[f][column.at[i]] = code[i] != usual_[f];
    }
  });
  // Blocks are filled one after the other, each time with the feature that has the fewest unusual
  // rows that the block has not yet. The busiest blocks come first: their features often make the
  // best splits, and with these known the others are searched faster.
  std::vector<std::size_t> features(n), place(n);
  std::iota(features.begin(), features.end(), 0);
  std::ranges::stable_sort(features, {}, [&](std::size_t f) { return unusual[f].count(); });
  std::size_t n_quiet_blocks = 0;
  for (std::size_t b = n_blocks(); b-- > 0;) {
    Rows busy;
    for (std::size_t p = b * width_; p < std::min((b + 1) * width_, n); ++p) {
      const auto end =
          features.begin() + static_cast<std::ptrdiff_t>(std::min(features.size(), kLook));
      const auto next = std::ranges::min_element(
          features.begin(), end, {}, [&](std::size_t f) { return (unusual[f] & ~busy).count(); });
      busy |= unusual[*next];
      place[*next] = p;
      features.erase(next);
    }
    if (busy.count() * 4 > rows.size() * 3) continue;
    busy_[b] = Buffer<std::uint64_t>((n_rows_ + 63) / 64);
    ++n_quiet_blocks;
  }
  if (n_quiet_blocks > 0) place_ = std::move(place);
}

template <class Table>
void Binned::encode(const Table& table, int n_threads) {
  using X = decltype(value_type(table));
  std::vector<Encoder<X>> encoders;
  for (const auto& edges : edges_) encoders.emplace_back(edges, missing_code());
  std::vector<Code> usual(n_blocks() * width_);  // the codes of rows that are not busy
  for (std::size_t f = 0; f < n_features(); ++f) usual[place_[f]] = usual_[f];
  struct Workspace {
    Tile<X> tile;
    std::array<std::uint32_t, kTile> rows;
    std::vector<X> smallest, largest;
    std::vector<std::uint8_t> saw_missing;

    explicit Workspace(std::size_t n_features, std::size_t n_codes)
        : smallest(n_features * n_codes, std::numeric_limits<X>::infinity()),
          largest(n_features * n_codes, -std::numeric_limits<X>::infinity()),
          saw_missing(n_features) {}
  };
  std::vector<std::unique_ptr<Workspace>> workspaces(
      static_cast<std::size_t>(std::max(n_threads, 1)));
  parallel_blocks(n_rows_, kTile, n_threads, [&](std::size_t begin, std::size_t end, int thread) {
    auto& workspace = workspaces[static_cast<std::size_t>(thread)];
    if (!workspace) workspace = std::make_unique<Workspace>(n_features(), n_codes_);
    auto& [tile, rows, smallest, largest, saw_missing] = *workspace;
    const std::size_t n = end - begin;
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin));
    const std::span<const std::uint32_t> some(rows.data(), n);
    std::vector<std::size_t> next = starts_of(table, some);
    for (std::size_t unused = n_features(); unused < n_blocks() * width_; ++unused) {
      Code* out = codes_.data() + offset(unused) + begin * width_;
      for (std::size_t i = 0; i < n; ++i) out[i * width_] = 0;
    }
    for (std::size_t first = 0; first < n_features(); first += kTileWidth) {
      const std::size_t last = std::min(first + kTileWidth, n_features());
      read_tile(table, first, last, some, next.data(), tile);
      for (std::size_t f = first; f < last; ++f) {
        const TileColumn<X>& column = tile[f - first];
        std::array<Code, kTile> code;
        encoders[f].encode(column, code.data());
        X* low = smallest.data() + f * n_codes_;
        X* high = largest.data() + f * n_codes_;
        Code* out = codes_.data() + offset(place_[f]) + begin * width_;
        Code* out_column = columns_.data() + f * n_rows_ + begin;
        for (std::size_t i = 0; i < column.n; ++i) {
          const X x = column.x[i];
          const Code k = code[i];
          if (x < low[k]) low[k] = x;
          if (x > high[k]) high[k] = x;
          saw_missing[f] |= x != x;
        }
        if (column.n == n) {
          std::copy_n(code.begin(), n, out_column);
        } else {
          std::fill_n(out_column, n, encoders[f].zero());
          for (std::size_t i = 0; i < column.n; ++i) out_column[column.at[i]] = code[i];
        }
        for (std::size_t i = 0; i < n; ++i) out[i * width_] = out_column[i];
        if (column.n < n) {
          const Code k = encoders[f].zero();
          low[k] = std::min(low[k], X{0});
          high[k] = std::max(high[k], X{0});
        }
      }
    }
    for (std::size_t b = 0; b < n_blocks(); ++b) {
      if (!busy_[b].size()) continue;
      const Code* codes = codes_.data() + (b * n_rows_ + begin) * width_;
      for (std::size_t word = 0; word * 64 < n; ++word) {
        std::uint64_t bits = 0;
        for (std::size_t i = word * 64; i < std::min(n, word * 64 + 64); ++i) {
          const bool busy = std::memcmp(codes + i * width_, usual.data() + b * width_, width_) != 0;
          bits |= std::uint64_t{busy} << (i % 64);
        }
        busy_[b][begin / 64 + word] = bits;
      }
    }
  });
  for (const auto& workspace : workspaces) {
    if (!workspace) continue;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      BinRange& range = ranges_[i];
      range.smallest = std::min(range.smallest, static_cast<double>(workspace->smallest[i]));
      range.largest = std::max(range.largest, static_cast<double>(workspace->largest[i]));
    }
    for (std::size_t f = 0; f < n_features(); ++f) has_missing_[f] |= workspace->saw_missing[f];
  }
}

template Binned::Binned(const DenseTable<float>&, std::span<const Reach>, std::size_t, int);
template Binned::Binned(const DenseTable<double>&, std::span<const Reach>, std::size_t, int);
#define HARDWOOD_SPARSE(X, Index)                                                                  \
  template Binned::Binned(const SparseTable<X, Index, true>&, std::span<const Reach>, std::size_t, \
                          int);                                                                    \
  template Binned::Binned(const SparseTable<X, Index, false>&, std::span<const Reach>,             \
                          std::size_t, int);
HARDWOOD_SPARSE(float, std::int32_t)
HARDWOOD_SPARSE(float, std::int64_t)
HARDWOOD_SPARSE(double, std::int32_t)
HARDWOOD_SPARSE(double, std::int64_t)
#undef HARDWOOD_SPARSE

}  // namespace hardwood::bins
