#include "hardwood/bins/binned.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "hardwood/bins/edges.hpp"
#include "hardwood/bins/sample.hpp"
#include "hardwood/bins/search.hpp"
#include "hardwood/bins/tiles.hpp"
#include "hardwood/box.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::bins {
namespace {

constexpr std::size_t kSampleValues = 1 << 22;  // held in memory at a time
constexpr BinRange kEmpty{std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};

/// The values of one feature in the sample. A `Row` is a value, with its count if rows have
/// weights.
template <class Row>
struct Sample {
  std::vector<Row> values;  // without zeros and missing ones
  std::uint64_t n_zeros = 0, n_missing = 0;
};

template <class X>
void add_to(Sample<float>& sample, const TileColumn<X>& column, std::size_t n_rows,
            const std::uint64_t*) {
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

/// `counts` are those of the rows of the tile.
template <class X>
void add_to(Sample<Value>& sample, const TileColumn<X>& column, std::size_t n_rows,
            const std::uint64_t* counts) {
  sample.n_zeros += std::accumulate(counts, counts + n_rows, std::uint64_t{0});
  for (std::size_t i = 0; i < column.n; ++i) {
    const std::uint64_t count = counts[column.at[i]];
    sample.n_zeros -= count;
    if (std::isnan(column.x[i])) {
      sample.n_missing += count;
    } else {
      sample.values.push_back({static_cast<float>(column.x[i]), count});
    }
  }
}

template <class Row>
std::vector<Value> values_of(Sample<Row>& sample, std::vector<Row>& scratch) {
  std::vector<Value> values = count_values(sample.values, scratch);
  if (sample.n_zeros == 0) return values;
  const auto place = std::ranges::lower_bound(values, 0.0f, {}, &Value::x);
  if (place != values.end() && place->x == 0) {
    place->count += sample.n_zeros;
  } else {
    values.insert(place, {0.0f, sample.n_zeros});
  }
  return values;
}

/// The code of most values.
Code most_frequent(std::span<const Value> values, std::span<const float> edges,
                   std::uint64_t n_missing, Code missing) {
  Code frequent = missing;
  std::uint64_t most = n_missing;
  std::size_t value = 0;
  for (std::size_t bin = 0; bin <= edges.size(); ++bin) {
    std::uint64_t count = 0;
    while (value < values.size() &&
           (bin == edges.size() || goes_left(values[value].x, edges[bin]))) {
      count += values[value++].count;
    }
    if (count > most) most = count, frequent = static_cast<Code>(bin);
  }
  return frequent;
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

template <class X>
bool any_missing(const TiledTable<X>& table, std::size_t n_rows, std::size_t feature,
                 Tile<X>& tile) {
  std::vector<std::uint32_t> rows(n_rows);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<std::size_t> next = table.starts(rows);
  bool any = false;
  for_each_tile(rows, next.data(), [&](std::span<const std::uint32_t> some, std::size_t* at) {
    table.read(feature, feature + 1, some, at, tile);
    const std::span<const X> x(tile[0].x.data(), tile[0].n);
    any = any || std::ranges::any_of(x, [](X value) { return std::isnan(value); });
  });
  return any;
}

/// Between every two of 0, 1, ..., n_categories - 1.
std::vector<float> edges_of_categories(std::int32_t n_categories) {
  std::vector<float> edges;
  for (std::int32_t k = 1; k < n_categories; ++k) edges.push_back(static_cast<float>(k) - 0.5f);
  return edges;
}

template <class X>
X value_type(const DenseTable<X>&);
template <class X, class Index, bool kIsCsr>
X value_type(const SparseTable<X, Index, kIsCsr>&);

}  // namespace

Cuts::Cuts(std::size_t n_features, std::size_t max_bins)
    : n_codes(max_bins <= 64 ? 64 : 256),
      edges(n_features),
      frequent(n_features),
      categorical(n_features) {
  if (max_bins < 2 || max_bins > 256) {
    throw std::invalid_argument(
        "max_bins must be from 2 to 256, got max_bins=" + std::to_string(max_bins) + ".");
  }
}

void Cuts::choose(std::size_t feature, std::span<const Value> values, std::uint64_t n_missing,
                  const Reach& reach, std::size_t max_bins, bool takes_all) {
  if (!categorical[feature]) {
    edges[feature] =
        choose_edges(values, reach, takes_all ? max_bins : std::min(max_bins, n_codes - 1));
  }
  frequent[feature] = most_frequent(values, edges[feature], n_missing, missing_code());
}

template <class Table>
Binned::Binned(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
               int n_threads, std::span<const double> weight,
               std::span<const std::int32_t> n_categories)
    : n_rows_(table.n_rows()),
      cuts_(table.n_features(), max_bins),
      ranges_(table.n_features() * n_codes(), kEmpty),
      has_missing_(table.n_features()),
      n_threads_(n_threads) {
  if (!weight.empty() && weight.size() != n_rows_) {
    throw std::invalid_argument("weight needs one entry for each of the table's " +
                                std::to_string(n_rows_) + " rows, got " +
                                std::to_string(weight.size()) + ".");
  }
  if (!n_categories.empty() && n_categories.size() != n_features()) {
    throw std::invalid_argument("n_categories needs one entry for each of the table's " +
                                std::to_string(n_features()) + " features, got " +
                                std::to_string(n_categories.size()) + ".");
  }
  const auto most = static_cast<std::int32_t>(std::min(max_bins, n_codes() - 1));
  for (std::size_t f = 0; f < n_categories.size(); ++f) {
    if (n_categories[f] > most) {
      throw std::invalid_argument("feature " + std::to_string(f) + " has " +
                                  std::to_string(n_categories[f]) +
                                  " categories; there is room for " + std::to_string(most) + ".");
    }
    cuts_.categorical[f] = n_categories[f] > 0;
    cuts_.edges[f] = edges_of_categories(n_categories[f]);
  }
  const TiledTable<decltype(value_type(table))> tiles(table);
  if (weight.empty()) {
    choose_all_edges<float>(tiles, reach, {sample_rows(n_rows_, kSampledRows), {}}, max_bins,
                            n_threads);
  } else {
    choose_all_edges<Value>(tiles, reach, sample_rows(weight, kSampledRows), max_bins, n_threads);
  }
  columns_ = Buffer<Code>(n_features() * n_rows_);
  encode(tiles, n_threads);
  for (std::size_t f = 0; f < n_categories.size(); ++f) {
    if (n_categories[f] == 0) continue;
    const double last = n_categories[f] - 1;
    const double largest = range(f, static_cast<std::size_t>(n_categories[f] - 1)).largest;
    if (largest > last) {
      throw std::invalid_argument("feature " + std::to_string(f) + " has categories from 0 to " +
                                  std::to_string(n_categories[f] - 1) + ", got " +
                                  std::to_string(largest) + ".");
    }
  }
}

template <class Table>
Binned::Binned(const Table& table, Cuts cuts, int n_threads)
    : n_rows_(table.n_rows()),
      cuts_(std::move(cuts)),
      ranges_(n_features() * n_codes(), kEmpty),
      has_missing_(n_features()),
      columns_(n_features() * n_rows_),
      n_threads_(n_threads) {
  encode(TiledTable<decltype(value_type(table))>(table), n_threads);
}

Binned::Binned(Cuts cuts, std::span<const CodedRows> pieces, const Part& part, int n_threads,
               const std::function<void(std::size_t)>& let_go)
    : n_rows_(std::transform_reduce(pieces.begin(), pieces.end(), std::size_t{0}, std::plus<>(),
                                    [](const CodedRows& piece) { return piece.n_rows; })),
      cuts_(std::move(cuts)),
      ranges_(n_features() * n_codes(), kEmpty),
      has_missing_(n_features()),
      in_parts_(true),
      blocks_alone_(!part.others),
      n_threads_(n_threads) {
  // Largest values, smallest ones with the other sign, what is missing: one message.
  const std::size_t n = ranges_.size();
  std::vector<double> most(2 * n + n_features(), -std::numeric_limits<double>::infinity());
  for (const CodedRows& piece : pieces) {
    for (std::size_t i = 0; i < n; ++i) {
      most[i] = std::max(most[i], piece.largest[i]);
      most[n + i] = std::max(most[n + i], -piece.smallest[i]);
    }
    for (std::size_t f = 0; f < n_features(); ++f) {
      most[2 * n + f] = std::max(most[2 * n + f], static_cast<double>(piece.missing[f]));
    }
  }
  part.max(most);
  for (std::size_t i = 0; i < n; ++i) ranges_[i] = {-most[n + i], most[i]};
  for (std::size_t f = 0; f < n_features(); ++f) has_missing_[f] = most[2 * n + f] > 0;
  blocks_alone_ ? keep_blocks(pieces, let_go) : keep_columns(pieces, part, let_go);
}

void Binned::keep_blocks(std::span<const CodedRows> pieces,
                         const std::function<void(std::size_t)>& let_go) {
  blocks_ = Blocks(n_rows_, cuts_.frequent);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < pieces.size(); begin += pieces[i++].n_rows) {
    blocks_.put(begin, pieces[i].columns, pieces[i].n_rows, n_threads_);
    let_go(i);
  }
  blocks_.close(n_threads_);
}

void Binned::keep_columns(std::span<const CodedRows> pieces, const Part& part,
                          const std::function<void(std::size_t)>& let_go) {
  columns_ = Buffer<Code>(n_features() * n_rows_);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < pieces.size(); begin += pieces[i++].n_rows) {
    for (std::size_t f = 0; f < n_features(); ++f) {
      std::copy_n(pieces[i].columns + f * pieces[i].n_rows, pieces[i].n_rows,
                  columns_.data() + f * n_rows_ + begin);
    }
    let_go(i);
  }
  // Which codes there may be, as all parts know it: not those that this one happens to have.
  std::vector<std::vector<Code>> present(n_features());
  for (std::size_t f = 0; f < n_features(); ++f) {
    present[f].resize(n_bins(f));
    std::iota(present[f].begin(), present[f].end(), Code{0});
    if (has_missing(f)) present[f].push_back(missing_code());
  }
  blocks_ = Blocks({columns_.data(), n_rows_, n_codes(), std::move(present), cuts_.frequent},
                   part.sum(n_rows_), n_threads_);
}

const Blocks& Binned::blocks() const {
  if (in_parts_) return blocks_;
  std::call_once(blocks_asked_, [this] {
    blocks_ =
        Blocks({columns_.data(), n_rows_, n_codes(), present_codes(), cuts_.frequent}, n_threads_);
  });
  return blocks_;
}

template <class Row, class X>
void Binned::choose_all_edges(const TiledTable<X>& table, std::span<const Reach> reach,
                              const WeightedRows& sampled, std::size_t max_bins, int n_threads) {
  // In groups, so that the sample of a wide table is never in memory as a whole.
  struct Workspace {
    Tile<X> tile;
    std::array<Sample<Row>, kTileWidth> samples;
    std::vector<Row> scratch;
    std::vector<std::size_t> next;
    std::size_t last = 0;  // feature that was read
  };
  std::vector<std::unique_ptr<Workspace>> workspaces(
      static_cast<std::size_t>(std::max(n_threads, 1)));
  const std::vector<std::uint32_t>& rows = sampled.rows;
  const std::size_t n = n_features();
  const std::size_t share = n / static_cast<std::size_t>(std::max(n_threads, 1));
  const std::size_t most = kSampleValues / std::max<std::size_t>(rows.size(), 1);
  const std::size_t group = std::clamp<std::size_t>(std::min(share, most), 1, kTileWidth);
  parallel_blocks(n, group, n_threads, [&](std::size_t first, std::size_t last, int thread) {
    auto& workspace = workspaces[static_cast<std::size_t>(thread)];
    if (!workspace) workspace = std::make_unique<Workspace>();
    auto& [tile, samples, scratch, next, last_read] = *workspace;
    if (last_read == 0 || first < last_read) next = table.starts(rows);
    last_read = last;
    for (auto& sample : samples) sample.values.clear(), sample.n_zeros = sample.n_missing = 0;
    for_each_tile(rows, next.data(), [&](std::span<const std::uint32_t> some, std::size_t* at) {
      table.read(first, last, some, at, tile);
      const std::uint64_t* const counts = sampled.counts.data() + (some.data() - rows.data());
      for (std::size_t j = 0; j < last - first; ++j) {
        add_to(samples[j], tile[j], some.size(), counts);
      }
    });
    for (std::size_t f = first; f < last; ++f) {
      Sample<Row>& sample = samples[f - first];
      const std::vector<Value> values = values_of(sample, scratch);
      // One code is kept for missing values, unless just that one makes every value a bin.
      const bool needs_all = values.size() == n_codes() && max_bins == n_codes();
      const bool takes_all = needs_all && sample.n_missing == 0 &&
                             (rows.size() == n_rows_ || !any_missing(table, n_rows_, f, tile));
      cuts_.choose(f, values, sample.n_missing, reach[f], max_bins, takes_all);
    }
  });
}

template <class X>
void Binned::encode(const TiledTable<X>& table, int n_threads) {
  std::vector<Encoder<X>> encoders;
  for (const auto& edges : cuts_.edges) encoders.emplace_back(edges, missing_code());
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
    if (!workspace) workspace = std::make_unique<Workspace>(n_features(), n_codes());
    auto& [tile, rows, smallest, largest, saw_missing] = *workspace;
    const std::size_t n = end - begin;
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin));
    const std::span<const std::uint32_t> some(rows.data(), n);
    std::vector<std::size_t> next = table.starts(some);
    for (std::size_t first = 0; first < n_features(); first += kTileWidth) {
      const std::size_t last = std::min(first + kTileWidth, n_features());
      table.read(first, last, some, next.data(), tile);
      for (std::size_t f = first; f < last; ++f) {
        const TileColumn<X>& column = tile[f - first];
        std::array<Code, kTile> code;
        encoders[f].encode(column, code.data());
        X* low = smallest.data() + f * n_codes();
        X* high = largest.data() + f * n_codes();
        Code* out = columns_.data() + f * n_rows_ + begin;
        for (std::size_t i = 0; i < column.n; ++i) {
          const X x = column.x[i];
          const Code k = code[i];
          if (x < low[k]) low[k] = x;
          if (x > high[k]) high[k] = x;
          saw_missing[f] |= x != x;
        }
        if (column.n == n) {
          std::copy_n(code.begin(), n, out);
        } else {
          std::fill_n(out, n, encoders[f].zero());
          for (std::size_t i = 0; i < column.n; ++i) out[column.at[i]] = code[i];
        }
        if (column.n < n) {
          const Code k = encoders[f].zero();
          low[k] = std::min(low[k], X{0});
          high[k] = std::max(high[k], X{0});
        }
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

std::vector<std::vector<Code>> Binned::present_codes() const {
  std::vector<std::vector<Code>> present(n_features());
  for (std::size_t f = 0; f < n_features(); ++f) {
    for (std::size_t code = 0; code < n_codes(); ++code) {
      const bool missing = has_missing(f) && code == missing_code();
      if (missing || !range(f, code).empty()) present[f].push_back(static_cast<Code>(code));
    }
  }
  return present;
}

#define HARDWOOD_TABLE(...)                                                             \
  template Binned::Binned(const __VA_ARGS__&, std::span<const Reach>, std::size_t, int, \
                          std::span<const double>, std::span<const std::int32_t>);
HARDWOOD_EACH_TABLE(HARDWOOD_TABLE)
#undef HARDWOOD_TABLE
template Binned::Binned(const DenseTable<float>&, Cuts, int);
template Binned::Binned(const DenseTable<double>&, Cuts, int);

}  // namespace hardwood::bins
