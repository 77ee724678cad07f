#include "hardwood/bins/binned.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>

#include "hardwood/bins/edges.hpp"
#include "hardwood/bins/search.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::bins {
namespace {

constexpr std::size_t kSample = 200'000;  // rows whose quantiles stand for those of all
constexpr std::size_t kGroup = 16;        // features sampled together: one cache line of floats
constexpr std::size_t kTile = 1024;       // rows of a column encoded together
constexpr std::size_t kMaxWidth = 16;
constexpr BinRange kEmpty{std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};

std::size_t scramble(std::size_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(z ^ (z >> 31));
}

/// One row of every `step`, not always the same one: data may be periodic.
std::size_t sampled_row(std::size_t i, std::size_t step) {
  return i * step + (step > 1 ? scramble(i) % step : 0);
}

/// The values of features [first, last) in a sample of the rows, without the missing ones.
template <class X>
void sample_columns(const DenseTable<X>& table, std::size_t first, std::size_t last,
                    std::vector<std::vector<float>>& columns) {
  const std::size_t n_sampled = std::min(table.n_rows(), kSample);
  const std::size_t step = n_sampled ? table.n_rows() / n_sampled : 1;
  for (std::size_t f = first; f < last; ++f) columns[f - first].resize(n_sampled);
  for (std::size_t i = 0; i < n_sampled; ++i) {
    const std::span<const X> row = table.x.row(sampled_row(i, step));
    for (std::size_t f = first; f < last; ++f) {
      columns[f - first][i] = static_cast<float>(row[f]);
    }
  }
  for (std::size_t f = first; f < last; ++f) {
    std::erase_if(columns[f - first], [](float x) { return std::isnan(x); });
  }
}

template <class X>
std::vector<Value> values_of(const DenseTable<X>&, std::size_t, std::vector<float>& column,
                             std::vector<float>& scratch) {
  return count_values(column, scratch);
}

/// The stored values of the columns, thinned to a sample.
template <class X, class Index>
void sample_columns(const SparseTable<X, Index>& table, std::size_t first, std::size_t last,
                    std::vector<std::vector<float>>& columns) {
  for (std::size_t f = first; f < last; ++f) {
    columns[f - first].clear();
    const auto begin = static_cast<std::size_t>(table.column_start[f]);
    const auto end = static_cast<std::size_t>(table.column_start[f + 1]);
    const std::size_t step = std::max<std::size_t>((end - begin) / kSample, 1);
    for (std::size_t i = 0; i < (end - begin) / step; ++i) {
      const X x = table.x[begin + sampled_row(i, step)];
      if (!std::isnan(x)) columns[f - first].push_back(static_cast<float>(x));
    }
  }
}

/// The stored values, and one zero for every row that stores none, thinned as much.
template <class X, class Index>
std::vector<Value> values_of(const SparseTable<X, Index>& table, std::size_t feature,
                             std::vector<float>& column, std::vector<float>& scratch) {
  std::vector<Value> values = count_values(column, scratch);
  const auto n_stored =
      static_cast<std::size_t>(table.column_start[feature + 1] - table.column_start[feature]);
  const std::size_t step = std::max<std::size_t>(n_stored / kSample, 1);
  const auto n_zeros = static_cast<std::uint32_t>((table.n_rows() - n_stored) / step);
  if (n_zeros == 0) return values;
  const auto place = std::ranges::lower_bound(values, 0.0f, {}, &Value::x);
  if (place != values.end() && place->x == 0) {
    place->count += n_zeros;
  } else {
    values.insert(place, {0.0f, n_zeros});
  }
  return values;
}

/// `n_present`: values that the sample has.
template <class X>
bool any_missing(const DenseTable<X>& table, std::size_t feature, std::size_t n_present) {
  if (table.n_rows() <= kSample) return n_present < table.n_rows();
  for (std::size_t i = 0; i < table.n_rows(); ++i) {
    if (std::isnan(table.x(i, feature))) return true;
  }
  return false;
}

template <class X, class Index>
bool any_missing(const SparseTable<X, Index>& table, std::size_t feature, std::size_t) {
  const auto begin = static_cast<std::size_t>(table.column_start[feature]);
  const auto end = static_cast<std::size_t>(table.column_start[feature + 1]);
  return std::ranges::any_of(table.x.subspan(begin, end - begin),
                             [](X x) { return std::isnan(x); });
}

/// Rows [begin, end) of one column, spelled out.
template <class X>
void read_column(const DenseTable<X>& table, std::size_t feature, std::size_t begin,
                 std::size_t end, X* out) {
  for (std::size_t i = begin; i < end; ++i) out[i - begin] = table.x(i, feature);
}

template <class X, class Index>
void read_column(const SparseTable<X, Index>& table, std::size_t feature, std::size_t begin,
                 std::size_t end, X* out) {
  std::fill_n(out, end - begin, X{0});
  const auto stored = table.row.subspan(
      static_cast<std::size_t>(table.column_start[feature]),
      static_cast<std::size_t>(table.column_start[feature + 1] - table.column_start[feature]));
  const X* x = table.x.data() + table.column_start[feature];
  auto i = static_cast<std::size_t>(std::ranges::lower_bound(stored, static_cast<Index>(begin)) -
                                    stored.begin());
  for (; i < stored.size() && static_cast<std::size_t>(stored[i]) < end; ++i) {
    out[static_cast<std::size_t>(stored[i]) - begin] = x[i];
  }
}

template <class X>
X value_type(const DenseTable<X>&);
template <class X, class Index>
X value_type(const SparseTable<X, Index>&);

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
      has_missing_(table.n_features()) {
  if (max_bins < 2 || max_bins > 256) {
    throw std::invalid_argument(
        "max_bins must be from 2 to 256, got max_bins=" + std::to_string(max_bins) + ".");
  }
  choose_all_edges(table, reach, max_bins, n_threads);
  codes_ = Buffer<Code>(n_blocks() * width_ * n_rows_);
  columns_ = Buffer<Code>(n_features() * n_rows_);
  encode(table, n_threads);
}

template <class Table>
void Binned::choose_all_edges(const Table& table, std::span<const Reach> reach,
                              std::size_t max_bins, int n_threads) {
  // In groups, so that the sample of a wide table is never in memory as a whole.
  struct Workspace {
    std::vector<std::vector<float>> columns{kGroup};
    std::vector<float> scratch;
  };
  std::vector<Workspace> workspaces(static_cast<std::size_t>(std::max(n_threads, 1)));
  const std::size_t n = n_features();
  const std::size_t group =
      std::clamp<std::size_t>(n / static_cast<std::size_t>(std::max(n_threads, 1)), 1, kGroup);
  parallel_blocks(n, group, n_threads, [&](std::size_t first, std::size_t last, int thread) {
    auto& [columns, scratch] = workspaces[static_cast<std::size_t>(thread)];
    sample_columns(table, first, last, columns);
    for (std::size_t f = first; f < last; ++f) {
      const std::vector<Value> values = values_of(table, f, columns[f - first], scratch);
      // One code is kept for missing values, unless just that one makes every value a bin.
      const bool needs_all = values.size() == n_codes_ && max_bins == n_codes_;
      const bool takes_all = needs_all && !any_missing(table, f, columns[f - first].size());
      edges_[f] =
          choose_edges(values, reach[f], takes_all ? max_bins : std::min(max_bins, n_codes_ - 1));
    }
  });
}

template <class Table>
void Binned::encode(const Table& table, int n_threads) {
  using X = decltype(value_type(table));
  const Code missing = missing_code();
  std::mutex merge_lock;
  // Enough tasks for the threads, few enough that merging their ranges costs nothing.
  const std::size_t n_chunks =
      std::max<std::size_t>(1, 4 * static_cast<std::size_t>(std::max(n_threads, 1)) /
                                   std::max<std::size_t>(n_blocks(), 1));
  const std::size_t chunk = std::max(kTile, (n_rows_ + n_chunks - 1) / n_chunks);
  const std::size_t chunks = (n_rows_ + chunk - 1) / chunk;
  parallel_for(n_blocks() * chunks, n_threads, [&](std::size_t task, int) {
    const std::size_t b = task % n_blocks();
    const std::size_t first = b * width_, last = std::min(first + width_, n_features());
    const std::size_t begin = task / n_blocks() * chunk, end = std::min(begin + chunk, n_rows_);
    Code* codes = codes_.data() + b * n_rows_ * width_;
    std::vector<SortedEdges> sorted;
    for (std::size_t f = first; f < last; ++f) sorted.emplace_back(edges_[f]);
    std::vector<X> smallest((last - first) * n_codes_, std::numeric_limits<X>::infinity());
    std::vector<X> largest((last - first) * n_codes_, -std::numeric_limits<X>::infinity());
    std::vector<std::uint8_t> saw_missing(last - first);
    X x[kTile];
    float rounded[kTile];
    Code code[kTile];
    for (std::size_t tile = begin; tile < end; tile += kTile) {
      const std::size_t n = std::min(kTile, end - tile);
      for (std::size_t j = 0; j < last - first; ++j) {
        read_column(table, first + j, tile, tile + n, x);
        std::copy_n(x, n, rounded);
        sorted[j].encode(std::span<const float>(rounded, n), code);
        X* low = smallest.data() + j * n_codes_;
        X* high = largest.data() + j * n_codes_;
        Code* out = codes + tile * width_ + j;
        Code* column = columns_.data() + (first + j) * n_rows_ + tile;
        for (std::size_t i = 0; i < n; ++i) {
          // NaN is not equal to itself and belongs to no range.
          const Code k = x[i] == x[i] ? code[i] : missing;
          if (x[i] < low[k]) low[k] = x[i];
          if (x[i] > high[k]) high[k] = x[i];
          saw_missing[j] |= x[i] != x[i];
          out[i * width_] = column[i] = k;
        }
      }
      for (std::size_t j = last - first; j < width_; ++j) {
        for (std::size_t i = tile; i < tile + n; ++i) codes[i * width_ + j] = 0;
      }
    }
    const std::lock_guard guard(merge_lock);
    for (std::size_t j = 0; j < last - first; ++j) {
      for (std::size_t k = 0; k < n_codes_; ++k) {
        BinRange& range = ranges_[(first + j) * n_codes_ + k];
        range.smallest = std::min(range.smallest, static_cast<double>(smallest[j * n_codes_ + k]));
        range.largest = std::max(range.largest, static_cast<double>(largest[j * n_codes_ + k]));
      }
      has_missing_[first + j] |= saw_missing[j];
    }
  });
}

template Binned::Binned(const DenseTable<float>&, std::span<const Reach>, std::size_t, int);
template Binned::Binned(const DenseTable<double>&, std::span<const Reach>, std::size_t, int);
template Binned::Binned(const SparseTable<double, std::int32_t>&, std::span<const Reach>,
                        std::size_t, int);
template Binned::Binned(const SparseTable<double, std::int64_t>&, std::span<const Reach>,
                        std::size_t, int);

}  // namespace hardwood::bins
