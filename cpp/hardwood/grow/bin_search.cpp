#include "hardwood/grow/bin_search.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>
#include <vector>

#include "hardwood/grow/bin_screen.hpp"
#include "hardwood/grow/set_search.hpp"
#include "hardwood/simd.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kMaxBins = 256;
constexpr std::size_t kLanes = 8;

/// Sums over the bins below each threshold; filled a few places past the last one.
template <class Stat>
struct Prefix {
  using Cell = typename Stat::Cell;
  using Int = std::conditional_t<Stat::kCounts, std::int64_t, std::int32_t>;
  alignas(32) Int g[kMaxBins + kLanes];
  alignas(32) Int h[kMaxBins + kLanes];
  Int n[Stat::kCounts ? kMaxBins + kLanes : 1];

  GridSum operator[](std::size_t k) const {
    if constexpr (Stat::kCounts) return {g[k], h[k], n[k]};
    return {g[k], h[k], 0};
  }

  /// The sums of `cells`, plus or minus those of `more` unless it is null.
  void fill(std::size_t n_bins, const Cell* cells, const Cell* more, bool minus) {
    Cell sum{};
    for (std::size_t k = 0;; ++k) {
      const GridSum below = Stat::sum(sum);
      g[k] = static_cast<Int>(below.g);
      h[k] = static_cast<Int>(below.h);
      if constexpr (Stat::kCounts) n[k] = below.n;
      if (k == n_bins) break;
      sum += cells[k];
      if (more) minus ? sum -= more[k] : sum += more[k];
    }
  }
};

template <class Stat>
class EdgeSearch {
 public:
  EdgeSearch(const FeatureBins<Stat>& bins, const SearchedNode& node, BinSplit& best)
      : bins_(bins),
        node_(node),
        best_(best),
        missing_(bins.has_missing ? missing_of(bins) : GridSum{}),
        saw_missing_(missing_.g != 0 || missing_.h != 0 || bins.window.blank),
        tells_signs_(bins.below && bins.window.moves && node.rules.inner == Inner::kExact) {}

  void run() {
    all_.fill(n_bins(), bins_.cells, bins_.below, false);
    if (bins_.movers != Movers::kAll) {
      movers_.fill(n_bins(), bins_.movers == Movers::kBelow ? bins_.below : bins_.cells, nullptr,
                   false);
    }
    if (tells_signs_) fill_negative();
    if (saw_missing_) judge(0, true);
    for (std::size_t k = bins_.window.first; k < bins_.window.last; ++k) {
      judge(k, false);
      if (saw_missing_) judge(k, true);
    }
  }

#if HARDWOOD_X86
  bool can_screen() const {
    return node_.template can_screen<Stat>() && bins_.movers == Movers::kAll && !bins_.window.blank;
  }

  void run_screened();
#endif

 private:
  static GridSum missing_of(const FeatureBins<Stat>& bins) {
    GridSum sum = Stat::sum(bins.cells[bins.missing_code]);
    if (bins.below) sum += Stat::sum(bins.below[bins.missing_code]);
    return sum;
  }

  std::size_t n_bins() const { return bins_.window.n_bins; }

  /// The exceptions have g >= 0 and a residual below 0; otherwise the other way round.
  bool exceptions_join() const { return node_.total.g >= 0; }

  /// Of the movable rows, those with a residual below 0.
  void fill_negative() {
    const bool minus = !exceptions_join();
    switch (bins_.movers) {
      case Movers::kAll:
        return negative_.fill(n_bins(), bins_.below, bins_.exceptions, minus);
      case Movers::kBelow:
        return negative_.fill(n_bins(), bins_.below, minus ? bins_.exceptions : nullptr, minus);
      case Movers::kAbove:  // the exceptions alone, if they are above
        const std::vector<typename Stat::Cell> none(n_bins());
        return negative_.fill(n_bins(), none.data(), minus ? nullptr : bins_.exceptions, false);
    }
  }

  const Prefix<Stat>& movers() const { return bins_.movers == Movers::kAll ? all_ : movers_; }

  /// What a gain must exceed.
  double bar() const { return best_.feature == kLeaf ? node_.rules.least_gain : best_.gain; }

  bool beats(double gain, std::size_t k) const {
    return gain > bar() ||
           (gain == best_.gain &&
            (bins_.feature < best_.feature || (bins_.feature == best_.feature && k < best_.bin)));
  }

  void judge(std::size_t k, bool missing_left) {
    const GridSum with = missing_left ? missing_ : GridSum{};
    const GridSum left = all_[k] + with;
    if constexpr (Stat::kCounts) {
      const auto least = static_cast<std::int64_t>(node_.rules.min_samples_leaf);
      if (left.n < least || node_.total.n - left.n < least) return;
    }
    const NewtonCriterion& criterion = node_.criterion;
    double gain = criterion.gain(node_.sums(left), node_.sums(node_.total - left));
    if (!beats(gain, k)) return;  // the adversary can only lower it
    std::size_t sure_bin = bins_.window.sure[k], possible_bin = bins_.window.possible[k];
    if (bins_.window.blank) (missing_left ? possible_bin : sure_bin) = missing_left ? n_bins() : 0;
    const GridSum ambiguous_left = movers()[k] - movers()[sure_bin];
    const GridSum ambiguous_right = movers()[possible_bin] - movers()[k];
    const SplitSums split{node_.sums(left - ambiguous_left), node_.sums(ambiguous_left),
                          node_.sums(ambiguous_right),
                          node_.sums(node_.total - left - ambiguous_right)};
    gain = tells_signs_ ? criterion.sign_gain(
                              split, node_.sums(negative_[possible_bin] - negative_[sure_bin]))
                        : criterion.paper_gain(split);
    if (!beats(gain, k)) return;
    if (bins_.monotonic != 0 &&
        !criterion.keeps_order(bins_.monotonic, split.left(), split.right())) {
      return;
    }
    best_.feature = bins_.feature;
    best_.bin = k;
    best_.missing_left = missing_left;
    best_.saw_missing = saw_missing_;
    best_.gain = gain;
    best_.left = left;
    best_.right_bins = {};
  }

  const FeatureBins<Stat>& bins_;
  const SearchedNode& node_;
  BinSplit& best_;
  GridSum missing_;
  bool saw_missing_;
  bool tells_signs_;
  Prefix<Stat> all_;
  Prefix<Stat> negative_;
  Prefix<Stat> movers_;  // unless all are
};

#if HARDWOOD_X86

[[gnu::target("avx2")]] void store(std::int32_t* to, __m256i sums) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sums);
}

/// Eight bins, as numbers to gather with.
[[gnu::target("avx2")]] __m256i eight_bins(const std::uint16_t* bin) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bin)));
}

/// Prefix::fill, four bins at a time.
[[gnu::target("avx2")]] void fill_fast(Prefix<Packed>& prefix, std::size_t n_bins,
                                       const std::uint64_t* cells, const std::uint64_t* more,
                                       bool minus) {
  const auto load = [=](std::size_t k) __attribute__((target("avx2"))) {
    __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cells + k));
    if (more) {
      const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(more + k));
      x = minus ? _mm256_sub_epi64(x, y) : _mm256_add_epi64(x, y);
    }
    return x;
  };
  __m256i sum = _mm256_setzero_si256();  // of all bins before, in every lane
  // Four sums that end before each bin: (0, x0, x0 + x1, x0 + x1 + x2) + sum.
  const auto next = [&](std::size_t k) __attribute__((target("avx2"))) {
    const __m256i x = load(k), inclusive = running_sums(x);
    const __m256i exclusive = _mm256_add_epi64(_mm256_sub_epi64(inclusive, x), sum);
    sum = _mm256_add_epi64(sum, _mm256_permute4x64_epi64(inclusive, 0xff));
    return exclusive;
  };
  // A feature has a multiple of eight cells, so those read past n_bins are its own.
  for (std::size_t k = 0; k < n_bins; k += kLanes) {
    const __m256i first = next(k), second = next(k + 4);
    store(prefix.h + k, hessians(first, second));
    store(prefix.g + k, gradients(first, second));
  }
  if (n_bins % kLanes == 0) {
    const auto total = _mm256_extract_epi64(sum, 0);
    store(prefix.g + n_bins, _mm256_set1_epi32(static_cast<int>(total >> 32)));
    store(prefix.h + n_bins, _mm256_set1_epi32(static_cast<int>(total)));
  }
}

template <>
[[gnu::target("avx2")]] void EdgeSearch<Packed>::run_screened() {
  fill_fast(all_, n_bins(), bins_.cells, bins_.below, false);
  if (tells_signs_) {
    fill_fast(negative_, n_bins(), bins_.below, bins_.exceptions, !exceptions_join());
  }
  Screen screen(node_);
  const auto set_need = [&]() __attribute__((target("avx2"))) {
    screen.need(2 * (bar() + node_.rules.min_split_gain) + node_.score);
  };
  set_need();
  if (saw_missing_) judge(0, true), set_need();

  const Window& window = bins_.window;
  const auto promising = [&](std::size_t k, const GridSum& with)
                             __attribute__((target("avx2"))) -> unsigned {
    const __m256i with_g = _mm256_set1_epi32(static_cast<int>(with.g));
    const __m256i with_h = _mm256_set1_epi32(static_cast<int>(with.h));
    const auto load = [&](const std::int32_t* sums, __m256i more) __attribute__((target("avx2"))) {
      return _mm256_add_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + k)), more);
    };
    const __m256i g = load(all_.g, with_g), h = load(all_.h, with_h);
    __m256 good =
        _mm256_and_ps(_mm256_and_ps(screen.heavy(h), screen.rest_heavy(h)), screen.good(g, h));
    int lanes = _mm256_movemask_ps(good);
    if (lanes == 0 || !window.moves) return static_cast<unsigned>(lanes);

    const __m256i sure = eight_bins(window.sure.data() + k);
    const __m256i possible = eight_bins(window.possible.data() + k);
    const __m256i sure_g = _mm256_add_epi32(_mm256_i32gather_epi32(all_.g, sure, 4), with_g);
    const __m256i sure_h = _mm256_add_epi32(_mm256_i32gather_epi32(all_.h, sure, 4), with_h);
    const __m256i all_g = _mm256_add_epi32(_mm256_i32gather_epi32(all_.g, possible, 4), with_g);
    const __m256i all_h = _mm256_add_epi32(_mm256_i32gather_epi32(all_.h, possible, 4), with_h);
    good = _mm256_and_ps(good, _mm256_and_ps(screen.heavy(sure_h), screen.rest_heavy(all_h)));
    good =
        _mm256_and_ps(good, _mm256_and_ps(screen.good(sure_g, sure_h), screen.good(all_g, all_h)));
    const __m256i swapped_g = _mm256_add_epi32(sure_g, _mm256_sub_epi32(all_g, g));
    const __m256i swapped_h = _mm256_add_epi32(sure_h, _mm256_sub_epi32(all_h, h));
    good = _mm256_and_ps(good, screen.good(swapped_g, swapped_h));
    lanes = _mm256_movemask_ps(good);
    if (lanes == 0 || !tells_signs_) return static_cast<unsigned>(lanes);

    const auto difference = [&](const std::int32_t* sums) __attribute__((target("avx2"))) {
      return _mm256_sub_epi32(_mm256_i32gather_epi32(sums, possible, 4),
                              _mm256_i32gather_epi32(sums, sure, 4));
    };
    const __m256i negative_g = difference(negative_.g), negative_h = difference(negative_.h);
    const __m256i low_g = _mm256_add_epi32(sure_g, negative_g);
    const __m256i low_h = _mm256_add_epi32(sure_h, negative_h);
    const __m256i high_g = _mm256_sub_epi32(all_g, negative_g);
    const __m256i high_h = _mm256_sub_epi32(all_h, negative_h);
    const __m256 straddles = _mm256_and_ps(screen.surely_not_above(low_g, low_h),
                                           screen.surely_not_below(high_g, high_h));
    good = _mm256_andnot_ps(straddles, good);
    good =
        _mm256_and_ps(good, _mm256_and_ps(screen.good(low_g, low_h), screen.good(high_g, high_h)));
    return static_cast<unsigned>(_mm256_movemask_ps(good));
  };

  for (std::size_t group = window.first / kLanes * kLanes; group < window.last; group += kLanes) {
    unsigned inside = 0xff;
    if (group < window.first) inside &= 0xffu << (window.first - group);
    if (group + kLanes > window.last) inside &= 0xffu >> (group + kLanes - window.last);
    const unsigned right = inside & promising(group, {});
    const unsigned left = saw_missing_ ? inside & promising(group, missing_) : 0;
    for (unsigned lanes = left | right; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
      if (right >> lane & 1) judge(group + lane, false);
      if (left >> lane & 1) judge(group + lane, true);
    }
    if (left | right) set_need();
  }
}

#endif

}  // namespace

template <class Stat>
void search_bins(const FeatureBins<Stat>& bins, const SearchedNode& node,
                 [[maybe_unused]] bool portable, BinSplit& best) {
  if (bins.window.categorical) return SetSearch<Stat>(bins, node, best).run();
  EdgeSearch<Stat> search(bins, node, best);
#if HARDWOOD_X86
  if constexpr (!Stat::kCounts) {
    if (!portable && search.can_screen() && has_avx2()) return search.run_screened();
  }
#endif
  search.run();
}

template void search_bins<Packed>(const FeatureBins<Packed>&, const SearchedNode&, bool, BinSplit&);
template void search_bins<Wide>(const FeatureBins<Wide>&, const SearchedNode&, bool, BinSplit&);

}  // namespace hardwood::grow
