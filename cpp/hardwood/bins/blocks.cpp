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

/// The features of each column.
std::vector<std::vector<std::size_t>> choose_sharers(const Columns& columns) {
  const auto n_codes = [&](std::size_t feature) { return columns.present[feature].size(); };
  std::vector<std::size_t> features(columns.n_features());
  std::iota(features.begin(), features.end(), 0);
  const bool worth_it = columns.n_rows >= kWorthSharing && !columns.in_order;
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

void add(Code& code, Code digit) { code = static_cast<Code>(code + digit); }

}  // namespace

Blocks::Blocks(const Columns& columns, int n_threads)
    : n_rows_(columns.n_rows), place_(columns.n_features()), shared_(columns.n_features()) {
  const auto sharers = choose_sharers(columns);
  for (const auto& features : sharers) {
    if (features.size() > 1) share(columns, features);
  }
  arrange(columns, sharers);
  fill(columns, n_threads);
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
  const std::size_t n = sharers.size();
  const std::size_t n_blocks = std::max<std::size_t>((n + kMaxWidth - 1) / kMaxWidth, 1);
  // As even as possible: 28 columns are two blocks of 14, not one of 16 and one of 12. But a row
  // of them takes 16 bytes, so that it never lies in two cache lines.
  const std::size_t n_in_block = (n + n_blocks - 1) / n_blocks;
  width_ = std::bit_ceil(n_in_block);
  rare_.resize(n_blocks);
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
  if (!columns.in_order) {
    std::ranges::stable_sort(waiting, {}, [&](std::size_t c) { return rare_in[c].count(); });
  }
  for (std::size_t b = n_blocks; b-- > 0;) {
    Rows rare;
    const std::size_t n_here = std::min(n_in_block, n - b * n_in_block);
    for (std::size_t place = b * width_; place < b * width_ + n_here; ++place) {
      const auto end = waiting.begin() + std::min(std::ssize(waiting), kLook);
      const auto next =
          columns.in_order ? waiting.begin() + static_cast<std::ptrdiff_t>(b * n_in_block)
                           : std::ranges::min_element(waiting.begin(), end, {}, [&](std::size_t c) {
                               return (rare_in[c] & ~rare).count();
                             });
      rare |= rare_in[*next];
      for (const std::size_t f : sharers[*next]) place_[f] = place;
      waiting.erase(next);
    }
    if (rare.count() * 4 > rows.size() * 3) continue;
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
  const auto out = [&](std::size_t place, std::size_t row) {
    return codes_.data() + (at(place, row) - codes_.data());
  };
  parallel_blocks(n_rows_, kTile, n_threads, [&](std::size_t begin, std::size_t end, int) {
    const std::size_t n = end - begin;
    for (std::size_t b = 0; b < n_blocks(); ++b) {
      std::fill_n(out(b * width_, begin), n * width_, Code{0});
    }
    for (std::size_t f = 0; f < columns.n_features(); ++f) {
      const Code* from = columns.of(f) + begin;
      Code* to = out(place_[f], begin);
      if (shared_[f].empty()) {
        for (std::size_t i = 0; i < n; ++i) to[i * width_] = from[i];
      } else {
        for (std::size_t i = 0; i < n; ++i) add(to[i * width_], adds[f][from[i]]);
      }
    }
    for (std::size_t b = 0; b < n_blocks(); ++b) {
      if (!rare_[b].size()) continue;
      const Code* frequent = frequent_.data() + b * width_;
      for (std::size_t word = 0; word * 64 < n; ++word) {
        std::uint64_t bits = 0;
        for (std::size_t i = word * 64; i < std::min(n, word * 64 + 64); ++i) {
          const bool rare = std::memcmp(at(b * width_, begin + i), frequent, width_) != 0;
          bits |= std::uint64_t{rare} << (i % 64);
        }
        rare_[b][begin / 64 + word] = bits;
      }
    }
  });
}

}  // namespace hardwood::bins
