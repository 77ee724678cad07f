#include "hardwood/bins/blocks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>
#include <numeric>

#include "hardwood/bins/sample.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::bins {
namespace {

constexpr std::size_t kTile = 512;      // rows filled together
constexpr std::size_t kArranged = 512;  // rows that tell which columns go together
constexpr std::ptrdiff_t kLook = 128;   // columns among which the next one of a block is chosen
constexpr std::size_t kMaxWidth = 16;
/// Rows from which on it pays to share columns: a node must take the features apart again.
constexpr std::size_t kWorthSharing = 1 << 16;

/// The features of each column, in a table of `n_rows` rows.
std::vector<std::vector<std::size_t>> choose_sharers(const Columns& columns, std::size_t n_rows) {
  const auto n_codes = [&](std::size_t feature) { return columns.present[feature].size(); };
  std::vector<std::size_t> features(columns.n_features());
  std::iota(features.begin(), features.end(), 0);
  const bool worth_it = n_rows >= kWorthSharing;
  if (worth_it) std::ranges::stable_sort(features, {}, n_codes);
  std::vector<std::vector<std::size_t>> sharers;
  std::size_t n_combinations = 0;
  for (const std::size_t feature : features) {
    n_combinations *= n_codes(feature);
    if (!worth_it || sharers.empty() || n_combinations > columns.n_codes) {
      sharers.emplace_back();
      n_combinations = n_codes(feature);
    }
    sharers.back().push_back(feature);
  }
  return sharers;
}

std::size_t blocks_for(std::size_t n_columns) {
  return std::max<std::size_t>((n_columns + kMaxWidth - 1) / kMaxWidth, 1);
}

/// Whether so few rows of a sample are rare in a block that it pays to know which.
bool worth_marking(std::size_t n_rare, std::size_t n_rows) { return n_rare * 4 <= n_rows * 3; }

void add(Code& code, Code digit) { code = static_cast<Code>(code + digit); }

}  // namespace

Blocks::Blocks(const Columns& columns, int n_threads)
    : n_rows_(columns.n_rows), place_(columns.n_features()), shared_(columns.n_features()) {
  const auto sharers = choose_sharers(columns, n_rows_);
  for (const auto& features : sharers) {
    if (features.size() > 1) share(columns, features);
  }
  arrange(columns, sharers);
  fill(columns, n_threads);
}

Blocks::Blocks(const Columns& columns, std::size_t n_all, int n_threads)
    : n_rows_(columns.n_rows), place_(columns.n_features()), shared_(columns.n_features()) {
  auto sharers = choose_sharers(columns, n_all);
  // Histograms travel, and those of many features of two codes are smaller than of combinations.
  std::size_t n_alone = 0, n_together = 0;
  for (const auto& features : sharers) {
    std::size_t n_combinations = 1;
    for (const std::size_t f : features) {
      n_alone += columns.present[f].size();
      n_combinations *= columns.present[f].size();
    }
    n_together += n_combinations;
  }
  if (n_together > n_alone + n_alone / 8) sharers = choose_sharers(columns, 0);
  const std::size_t n_in_block = set_width(sharers.size());
  for (std::size_t c = 0; c < sharers.size(); ++c) {
    if (sharers[c].size() > 1) share(columns, sharers[c]);
    for (const std::size_t f : sharers[c]) place_[f] = c / n_in_block * width_ + c % n_in_block;
  }
  fill(columns, n_threads);
  close(n_threads);
}

/// As even as possible: 28 columns are two blocks of 14, not one of 16 and one of 12. But a row of
/// them takes 16 bytes, so that it never lies in two cache lines. Returns the columns of a block.
std::size_t Blocks::set_width(std::size_t n_columns) {
  const std::size_t n_blocks = blocks_for(n_columns);
  const std::size_t n_in_block = std::max<std::size_t>((n_columns + n_blocks - 1) / n_blocks, 1);
  width_ = std::bit_ceil(n_in_block);
  rare_.resize(n_blocks);
  return n_in_block;
}

/// The code of a shared column is a number whose digits are the codes of its features.
void Blocks::share(const Columns& columns, std::span<const std::size_t> features) {
  std::size_t n_combinations = 1, unit = 1;
  for (const std::size_t f : features) n_combinations *= columns.present[f].size();
  for (const std::size_t f : features) {
    const std::vector<Code>& present = columns.present[f];
    for (std::size_t code = 0; code < n_combinations; ++code) {
      shared_[f].push_back(present[code / unit % present.size()]);
    }
    unit *= present.size();
  }
}

void Blocks::arrange(const Columns& columns, const std::vector<std::vector<std::size_t>>& sharers) {
  const std::size_t n = sharers.size(), n_in_block = set_width(n);
  // Which rows of a sample have a rare code.
  using Rows = std::bitset<kArranged>;
  std::vector<Rows> rare_in(n);
  const std::vector<std::uint32_t> rows = sample_rows(n_rows_, kArranged);
  for (std::size_t c = 0; c < n; ++c) {
    for (const std::size_t f : sharers[c]) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (columns.of(f)[rows[i]] != columns.frequent[f]) rare_in[c].set(i);
      }
    }
  }
  // Blocks are filled one after the other, each time with the column that has the fewest rare
  // rows that the block has not yet. The busiest blocks come first: their features often make the
  // best splits, and with these known the others are searched faster.
  std::vector<std::size_t> waiting(n);
  std::iota(waiting.begin(), waiting.end(), 0);
  std::ranges::stable_sort(waiting, {}, [&](std::size_t c) { return rare_in[c].count(); });
  for (std::size_t b = n_blocks(); b-- > 0;) {
    Rows rare;
    const std::size_t n_here = std::min(n_in_block, n - b * n_in_block);
    for (std::size_t place = b * width_; place < b * width_ + n_here; ++place) {
      const auto end = waiting.begin() + std::min(std::ssize(waiting), kLook);
      const auto next = std::ranges::min_element(
          waiting.begin(), end, {}, [&](std::size_t c) { return (rare_in[c] & ~rare).count(); });
      rare |= rare_in[*next];
      for (const std::size_t f : sharers[*next]) place_[f] = place;
      waiting.erase(next);
    }
    if (!worth_marking(rare.count(), rows.size())) continue;
    rare_[b] = Buffer<std::uint64_t>((n_rows_ + 63) / 64);
  }
}

void Blocks::fill(const Columns& columns, int n_threads) {
  // What a feature's code adds to the code of a shared column: the least code of the column that
  // tells it, since there all other digits are 0.
  std::vector<std::array<Code, 256>> adds(columns.n_features());
  frequent_.resize(n_blocks() * width_);
  for (std::size_t f = 0; f < columns.n_features(); ++f) {
    for (std::size_t code = shared_[f].size(); code-- > 0;) {
      adds[f][shared_[f][code]] = static_cast<Code>(code);
    }
    const Code frequent = columns.frequent[f];
    add(frequent_[place_[f]], shared_[f].empty() ? frequent : adds[f][frequent]);
  }
  codes_ = Buffer<Code>(n_blocks() * width_ * n_rows_);
  parallel_blocks(n_rows_, kTile, n_threads, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t n = end - begin;
    for (std::size_t b = 0; b < n_blocks(); ++b) {
      std::fill_n(at(b * width_, begin), n * width_, Code{0});
    }
    for (std::size_t f = 0; f < columns.n_features(); ++f) {
      const Code* from = columns.of(f) + begin;
      Code* to = at(place_[f], begin);
      if (shared_[f].empty()) {
        for (std::size_t i = 0; i < n; ++i) to[i * width_] = from[i];
      } else {
        for (std::size_t i = 0; i < n; ++i) add(to[i * width_], adds[f][from[i]]);
      }
    }
    for (std::size_t b = 0; b < n_blocks(); ++b) {
      if (rare_[b].size()) mark_rare(b, begin, end);
    }
  });
}

bool Blocks::is_rare(std::size_t block, std::size_t row) const {
  const Code* const frequent = frequent_.data() + block * width_;
  return std::memcmp(at(block * width_, row), frequent, width_) != 0;
}

/// `begin` is a multiple of 64.
void Blocks::mark_rare(std::size_t block, std::size_t begin, std::size_t end) {
  for (std::size_t first = begin; first < end; first += 64) {
    std::uint64_t bits = 0;
    for (std::size_t row = first; row < std::min(end, first + 64); ++row) {
      bits |= std::uint64_t{is_rare(block, row)} << (row % 64);
    }
    rare_[block][first / 64] = bits;
  }
}

Blocks::Blocks(std::size_t n_rows, std::span<const Code> frequent)
    : n_rows_(n_rows), place_(frequent.size()), shared_(frequent.size()) {
  const std::size_t n = frequent.size(), n_blocks = blocks_for(n);
  width_ = std::max<std::size_t>((n + n_blocks - 1) / n_blocks, 1);
  rare_.resize(n_blocks);
  std::iota(place_.begin(), place_.end(), 0);
  frequent_.assign(frequent.begin(), frequent.end());
  frequent_.resize(n_blocks * width_);
  codes_ = Buffer<Code>(n_blocks * width_ * n_rows);
}

void Blocks::put(std::size_t begin, const Code* codes, std::size_t n_rows, int n_threads) {
  parallel_blocks(n_rows, kTile, n_threads, [&](std::size_t first, std::size_t last, int) {
    for (std::size_t place = 0; place < frequent_.size(); ++place) {
      const Code* const from = place < place_.size() ? codes + place * n_rows : nullptr;
      Code* const to = at(place, begin);
      for (std::size_t i = first; i < last; ++i) to[i * width_] = from ? from[i] : Code{0};
    }
  });
}

void Blocks::close(int n_threads) {
  const std::vector<std::uint32_t> rows = sample_rows(n_rows_, kArranged);
  for (std::size_t b = 0; b < n_blocks(); ++b) {
    const auto n_rare = std::ranges::count_if(rows, [&](auto row) { return is_rare(b, row); });
    if (!worth_marking(static_cast<std::size_t>(n_rare), rows.size())) continue;
    rare_[b] = Buffer<std::uint64_t>((n_rows_ + 63) / 64);
    parallel_blocks(n_rows_, kTile, n_threads,
                    [&](std::size_t begin, std::size_t end, int) { mark_rare(b, begin, end); });
  }
}

}  // namespace hardwood::bins
