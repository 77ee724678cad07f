#include "hardwood/bins/end_codes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "hardwood/ambiguity.hpp"
#include "hardwood/bins/candidates.hpp"
#include "hardwood/bins/sample.hpp"
#include "hardwood/bins/search.hpp"
#include "hardwood/box.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::bins {
namespace {

constexpr std::size_t kTile = 256;  // rows read together

/// The values of one feature in [begin, end) go to `out`.
template <class X>
void read_column(const DenseTable<X>& table, std::size_t feature, std::size_t begin,
                 std::size_t end, double* out) {
  for (std::size_t i = begin; i < end; ++i) *out++ = static_cast<double>(table.x(i, feature));
}
template <class X, class Index>
void read_column(const SparseTable<X, Index, false>& table, std::size_t feature, std::size_t begin,
                 std::size_t end, double* out) {
  std::fill_n(out, end - begin, 0.0);
  const Index* const indices = table.indices.data();
  const Index* const last = indices + table.indptr[feature + 1];
  const Index* stored =
      std::lower_bound(indices + table.indptr[feature], last, static_cast<Index>(begin));
  for (; stored < last && static_cast<std::size_t>(*stored) < end; ++stored) {
    out[static_cast<std::size_t>(*stored) - begin] =
        static_cast<double>(table.x[static_cast<std::size_t>(stored - indices)]);
  }
}

/// The values of neighbouring features in some rows, increasing; one line of memory serves several.
template <class X>
void read_rows(const DenseTable<X>& table, std::size_t first, std::span<const std::uint32_t> rows,
               std::span<std::vector<float>> out) {
  for (std::vector<float>& column : out) {
    column.clear();
    column.reserve(rows.size());
  }
  for (const std::uint32_t row : rows) {
    for (std::size_t j = 0; j < out.size(); ++j) {
      const auto x = static_cast<float>(table.x(row, first + j));
      if (!std::isnan(x)) out[j].push_back(x);
    }
  }
}
template <class X, class Index>
void read_rows(const SparseTable<X, Index, false>& table, std::size_t first,
               std::span<const std::uint32_t> rows, std::span<std::vector<float>> out) {
  for (std::size_t j = 0; j < out.size(); ++j) {
    out[j].clear();
    out[j].reserve(rows.size());
    auto stored = static_cast<std::size_t>(table.indptr[first + j]);
    const auto last = static_cast<std::size_t>(table.indptr[first + j + 1]);
    for (const std::uint32_t row : rows) {
      while (stored < last && static_cast<std::uint32_t>(table.indices[stored]) < row) ++stored;
      const bool there = stored < last && static_cast<std::uint32_t>(table.indices[stored]) == row;
      const float x = there ? static_cast<float>(table.x[stored]) : 0.0f;
      if (!std::isnan(x)) out[j].push_back(x);
    }
  }
}

}  // namespace

/// A table whose kind is forgotten: what follows is compiled once, not for each kind.
class ColumnReader {
 public:
  template <class Table>
  explicit ColumnReader(const Table& table)
      : table_(&table),
        n_rows_(table.n_rows()),
        read_column_([](const void* of, std::size_t feature, std::size_t begin, std::size_t end,
                        double* out) {
          read_column(*static_cast<const Table*>(of), feature, begin, end, out);
        }),
        read_rows_([](const void* of, std::size_t first, std::span<const std::uint32_t> rows,
                      std::span<std::vector<float>> out) {
          read_rows(*static_cast<const Table*>(of), first, rows, out);
        }) {}

  std::size_t n_rows() const { return n_rows_; }
  void column(std::size_t feature, std::size_t begin, std::size_t end, double* out) const {
    read_column_(table_, feature, begin, end, out);
  }
  void rows(std::size_t first, std::span<const std::uint32_t> rows,
            std::span<std::vector<float>> out) const {
    read_rows_(table_, first, rows, out);
  }

 private:
  const void* table_;
  std::size_t n_rows_;
  void (*read_column_)(const void*, std::size_t, std::size_t, std::size_t, double*);
  void (*read_rows_)(const void*, std::size_t, std::span<const std::uint32_t>,
                     std::span<std::vector<float>>);
};

namespace {

void join(std::vector<float>& candidates, const std::vector<float>& more) {
  candidates.insert(candidates.end(), more.begin(), more.end());
  std::ranges::sort(candidates);
  candidates.erase(std::ranges::unique(candidates).begin(), candidates.end());
}

/// The number of candidates that are not above each value; of a missing one, any code.
class CodeFinder {
 public:
  explicit CodeFinder(std::span<const float> candidates) : candidates_(candidates) {
    if (candidates.size() < 256) sorted_ = std::make_unique<SortedEdges>(candidates);
  }
  void find(std::span<const float> x, std::uint8_t* code) const { sorted_->encode(x, code); }
  void find(std::span<const float> x, std::uint16_t* code) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto place = std::ranges::partition_point(
          candidates_, [&](float candidate) { return !goes_left(x[i], candidate); });
      code[i] = static_cast<std::uint16_t>(place - candidates_.begin());
    }
  }

 private:
  std::span<const float> candidates_;
  std::unique_ptr<SortedEdges> sorted_;
};

void check(std::size_t n_rows, std::size_t n_reaches, std::size_t n_features) {
  if (n_reaches != n_features) {
    throw std::invalid_argument("reach needs one entry for each of " + std::to_string(n_features) +
                                " features, got " + std::to_string(n_reaches) + ".");
  }
  if (n_rows >= std::size_t{1} << 31) {
    throw std::invalid_argument("certified boosting takes fewer than 2^31 rows, got " +
                                std::to_string(n_rows) + ".");
  }
}

}  // namespace

std::size_t EndCandidates::n_codes() const {
  std::size_t n = 2;
  for (std::size_t f = 0; f < of.size(); ++f) {
    n = std::max(n, std::bit_ceil(of[f].size() + 1 + missing[f]));
  }
  return n;
}

std::vector<float> choose_end_candidates(std::span<const Value> values, const Reach& reach,
                                         std::size_t max_bins, std::size_t most_codes, bool at_rest,
                                         bool missing) {
  // With missing values, one code is theirs, and one candidate tells them from all others.
  const std::size_t most = std::min(max_bins - 1, most_codes - 1 - missing) - missing;
  std::vector<float> chosen = choose_candidates(values, reach, at_rest ? (most + 1) / 2 : most);
  if (at_rest) {
    join(chosen, choose_candidates(values, reach.still(), most - chosen.size()));
  }
  if (missing) chosen.insert(chosen.begin(), std::numeric_limits<float>::lowest());
  return chosen;
}

template <class Code>
template <class Table>
EndCodes<Code>::EndCodes(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
                         bool at_rest, int n_threads)
    : n_rows_(table.n_rows() * (at_rest ? 2 : 1)),
      rest_(table.n_rows()),
      candidates_{std::vector<std::vector<float>>(table.n_features()),
                  std::vector<std::uint8_t>(table.n_features())} {
  check(n_rows_, reach.size(), n_features());
  const ColumnReader columns(table);
  choose_all(columns, reach, max_bins, at_rest, n_threads);
  encode(columns, reach, at_rest, n_threads);
  find_rare(n_threads);
}

template <class Code>
template <class Table>
EndCodes<Code>::EndCodes(const Table& table, std::span<const Reach> reach, EndCandidates candidates,
                         bool at_rest, int n_threads)
    : n_rows_(table.n_rows() * (at_rest ? 2 : 1)),
      rest_(table.n_rows()),
      candidates_(std::move(candidates)),
      n_codes_(candidates_.n_codes()) {
  check(n_rows_, reach.size(), n_features());
  encode(ColumnReader(table), reach, at_rest, n_threads);
}

template <class Code>
EndCodes<Code>::EndCodes(EndCandidates candidates, std::span<const EndRows<Code>> pieces,
                         bool at_rest, int n_threads)
    : n_rows_(0), rest_(0), candidates_(std::move(candidates)), n_codes_(candidates_.n_codes()) {
  std::vector<std::size_t> start;
  for (const EndRows<Code>& piece : pieces)
    start.push_back(std::exchange(rest_, rest_ + piece.n_rows));
  n_rows_ = rest_ * (at_rest ? 2 : 1);
  check(n_rows_, n_features(), n_features());
  codes_ = Buffer<Code>(n_blocks() * n_rows_ * kRowCodes);
  parallel_for(pieces.size(), n_threads, [&](std::size_t p, int) {
    const Code* from = pieces[p].codes;
    const std::size_t n = pieces[p].n_rows * kRowCodes;
    for (std::size_t b = 0; b < n_blocks(); ++b) {
      for (std::size_t copy = 0; copy < (at_rest ? 2u : 1u); ++copy, from += n) {
        std::copy_n(from, n, codes_.data() + (b * n_rows_ + copy * rest_ + start[p]) * kRowCodes);
      }
    }
  });
  find_rare(n_threads);
}

template <class Code>
std::size_t EndCodes<Code>::candidate(std::size_t feature, double threshold) const {
  const std::span<const float> all = candidates(feature);
  const auto at = std::ranges::lower_bound(all, static_cast<float>(threshold));
  if (at == all.end() || double{*at} != threshold) {
    throw std::invalid_argument("the trees were grown on a table of other candidates.");
  }
  return static_cast<std::size_t>(at - all.begin());
}

template <class Code>
void EndCodes<Code>::choose_all(const ColumnReader& table, std::span<const Reach> reach,
                                std::size_t max_bins, bool at_rest, int n_threads) {
  // Missing values of all rows, not only of the sample.
  std::vector<std::vector<std::uint8_t>> missing_of(static_cast<std::size_t>(n_threads),
                                                    candidates_.missing);
  parallel_blocks(table.n_rows(), kTile, n_threads,
                  [&](std::size_t begin, std::size_t end, int thread) {
                    std::array<double, kTile> x;
                    for (std::size_t f = 0; f < n_features(); ++f) {
                      table.column(f, begin, end, x.data());
                      bool missing = false;
                      for (std::size_t i = 0; i < end - begin; ++i) missing |= std::isnan(x[i]);
                      missing_of[static_cast<std::size_t>(thread)][f] |= missing;
                    }
                  });
  for (const std::vector<std::uint8_t>& found : missing_of) {
    for (std::size_t f = 0; f < n_features(); ++f) candidates_.missing[f] |= found[f];
  }
  const std::vector<std::uint32_t> rows = sample_rows(table.n_rows(), kSampledRows);
  parallel_for(n_blocks(), n_threads, [&](std::size_t b, int) {
    const std::size_t first = first_feature(b), n = first_feature(b + 1) - first;
    std::array<std::vector<float>, kWidth> samples;
    std::vector<float> scratch;
    table.rows(first, rows, {samples.data(), n});
    for (std::size_t f = first; f < first + n; ++f) {
      const std::vector<Value> values = count_values(samples[f - first], scratch);
      candidates_.of[f] = choose_end_candidates(values, reach[f], max_bins,
                                                std::size_t{1} << std::numeric_limits<Code>::digits,
                                                at_rest, candidates_.missing[f] != 0);
    }
  });
  n_codes_ = candidates_.n_codes();
}

template <class Code>
void EndCodes<Code>::encode(const ColumnReader& table, std::span<const Reach> reach, bool at_rest,
                            int n_threads) {
  codes_ = Buffer<Code>(n_blocks() * n_rows_ * kRowCodes);
  encode(table, reach, std::size_t{0}, n_threads);
  if (!at_rest) return;
  std::vector<Reach> nobody;
  for (const Reach& one : reach) nobody.push_back(one.still());
  encode(table, nobody, rest_, n_threads);
}

template <class Code>
void EndCodes<Code>::encode(const ColumnReader& table, std::span<const Reach> reach,
                            std::size_t first_row, int n_threads) {
  std::vector<CodeFinder> finders;
  for (std::size_t f = 0; f < n_features(); ++f) finders.emplace_back(candidates_.of[f]);
  parallel_blocks(table.n_rows(), kTile, n_threads, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t n = end - begin;
    std::array<double, kTile> x;
    std::array<float, kTile> lowest, highest;
    std::array<Code, kTile> lower, upper;
    for (std::size_t place = 0; place < n_blocks() * kWidth; ++place) {
      const std::size_t b = place / kWidth, f = first_feature(b) + place % kWidth;
      Code* const to =
          codes_.data() + (b * n_rows_ + first_row + begin) * kRowCodes + place % kWidth;
      if (f >= first_feature(b + 1) || candidates_.of[f].empty()) {
        for (std::size_t i = 0; i < n; ++i) to[i * kRowCodes] = to[i * kRowCodes + kWidth] = 0;
        continue;
      }
      table.column(f, begin, end, x.data());
      for (std::size_t i = 0; i < n; ++i) {
        const BallEnds<float> ends(reach[f], x[i]);
        lowest[i] = ends.lowest;
        highest[i] = ends.highest;
      }
      finders[f].find({lowest.data(), n}, lower.data());
      finders[f].find({highest.data(), n}, upper.data());
      if (has_missing(f)) {
        for (std::size_t i = 0; i < n; ++i) {
          if (std::isnan(x[i])) lower[i] = upper[i] = missing_code();
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        to[i * kRowCodes] = lower[i];
        to[i * kRowCodes + kWidth] = upper[i];
      }
    }
  });
}

template <class Code>
void EndCodes<Code>::find_rare(int n_threads) {
  constexpr std::size_t kLooked = 4096;  // rows that say what is frequent
  constexpr double kMost = 0.6;          // share of rare rows above which looking does not pay
  frequent_.resize(2 * n_blocks() * kRowCodes);
  rare_.resize(n_blocks());
  const bool twice = rest_ < n_rows_;
  const std::vector<std::uint32_t> looked = sample_rows(rest_, kLooked);
  parallel_for(n_blocks(), n_threads, [&](std::size_t b, int) {
    std::size_t n_rare = 0;
    std::vector<std::uint32_t> pairs(looked.size());
    for (std::size_t copy = 0; copy < (twice ? 2u : 1u); ++copy) {
      Code* const common = frequent_.data() + (2 * b + copy) * kRowCodes;
      for (std::size_t j = 0; j < kWidth; ++j) {
        for (std::size_t i = 0; i < looked.size(); ++i) {
          const Code* const code = block(b) + (looked[i] + copy * rest_) * kRowCodes + j;
          pairs[i] = static_cast<std::uint32_t>(code[0]) << 16 | code[kWidth];
        }
        std::ranges::sort(pairs);
        std::size_t longest = 0;
        for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
          while (end < pairs.size() && pairs[end] == pairs[begin]) ++end;
          if (end - begin <= longest) continue;
          longest = end - begin;
          common[j] = static_cast<Code>(pairs[begin] >> 16);
          common[j + kWidth] = static_cast<Code>(pairs[begin]);
        }
      }
      for (const std::uint32_t row : looked) {
        n_rare +=
            !std::equal(common, common + kRowCodes, block(b) + (row + copy * rest_) * kRowCodes);
      }
    }
    const auto n_looked = static_cast<double>(looked.size() * (twice ? 2 : 1));
    if (static_cast<double>(n_rare) > kMost * n_looked) return;
    rare_[b] = Buffer<std::uint64_t>((n_rows_ + 63) / 64);
    std::fill_n(rare_[b].data(), rare_[b].size(), std::uint64_t{0});
    for (std::size_t i = 0; i < n_rows_; ++i) {
      const Code* const common = frequent(b, i >= rest_);
      const bool is_rare = !std::equal(common, common + kRowCodes, block(b) + i * kRowCodes);
      rare_[b][i / 64] |= std::uint64_t{is_rare} << (i % 64);
    }
  });
}

#define HARDWOOD_TABLE(Code, ...)                                                                  \
  template EndCodes<Code>::EndCodes(const __VA_ARGS__&, std::span<const Reach>, std::size_t, bool, \
                                    int);
#define HARDWOOD_CHOSEN(Code, ...)                                                             \
  template EndCodes<Code>::EndCodes(const __VA_ARGS__&, std::span<const Reach>, EndCandidates, \
                                    bool, int);
HARDWOOD_CHOSEN(std::uint8_t, DenseTable<float>)
HARDWOOD_CHOSEN(std::uint8_t, DenseTable<double>)
#undef HARDWOOD_CHOSEN
#define HARDWOOD_TABLES(Code)                                    \
  HARDWOOD_TABLE(Code, DenseTable<float>)                        \
  HARDWOOD_TABLE(Code, DenseTable<double>)                       \
  HARDWOOD_TABLE(Code, SparseTable<float, std::int32_t, false>)  \
  HARDWOOD_TABLE(Code, SparseTable<float, std::int64_t, false>)  \
  HARDWOOD_TABLE(Code, SparseTable<double, std::int32_t, false>) \
  HARDWOOD_TABLE(Code, SparseTable<double, std::int64_t, false>)
HARDWOOD_TABLES(std::uint8_t)
HARDWOOD_TABLES(std::uint16_t)
#undef HARDWOOD_TABLES
#undef HARDWOOD_TABLE

template class EndCodes<std::uint8_t>;
template class EndCodes<std::uint16_t>;

}  // namespace hardwood::bins
