#include "hardwood/grow/fixed_point.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "hardwood/parallel.hpp"
#include "hardwood/simd.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kBlock = 1 << 14;  // rows summed together, whatever the number of threads

/// Below this many steps of the grid for the mean gradient, 16 bits are too coarse.
constexpr double kLeastMean = 32;

/// Up to this many rows, speed is no reason to be coarse.
constexpr std::size_t kSmall = 1 << 13;

struct Extent {
  double sum = 0;
  double largest = 0;
};

/// How large gradients and hessians are. A sum that is not finite tells that one of them is not.
struct Extents {
  Extent g, h;  // of absolute gradients, of hessians
  double least_h = 0;

  void add(const Extents& other) {
    g.sum += other.g.sum;
    h.sum += other.h.sum;
    g.largest = std::max(g.largest, other.g.largest);
    h.largest = std::max(h.largest, other.h.largest);
    least_h = std::min(least_h, other.least_h);
  }
};

constexpr std::size_t kLanes = 8;  // so that no addition waits for the one before

/// Call `add(i, lane)` for all i; lanes are the same with every instruction set.
template <class Add>
[[gnu::always_inline]] inline void in_lanes(std::size_t n, Add&& add) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) add(i, lane);
}

[[gnu::always_inline]] inline Extents extents_of(std::size_t n, const float* g, const float* h) {
  std::array<double, kLanes> g_sum{}, h_sum{};
  std::array<float, kLanes> g_largest{}, h_largest{}, h_least{};
  in_lanes(n, [&](std::size_t i, std::size_t lane) {
    const float size = std::abs(g[i]);
    g_sum[lane] += double{size};
    h_sum[lane] += double{h[i]};
    g_largest[lane] = size > g_largest[lane] ? size : g_largest[lane];
    h_largest[lane] = h[i] > h_largest[lane] ? h[i] : h_largest[lane];
    h_least[lane] = h[i] < h_least[lane] ? h[i] : h_least[lane];
  });
  Extents all;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    all.add({{g_sum[lane], double{g_largest[lane]}},
             {h_sum[lane], double{h_largest[lane]}},
             double{h_least[lane]}});
  }
  return all;
}

/// Sums of absolute gradients and of hessians in whole steps, each number cut to steps: whoever
/// holds which rows, the sum is the same.
struct StepSums {
  std::int64_t g = 0, h = 0;
};

/// So many steps that the largest number has `kStepBits` bits.
struct StepScale {
  static constexpr int kStepBits = 28;
  int g_bits, h_bits;

  static int bits_of(double largest) {
    return largest > 0 ? std::min(kStepBits - 1 - std::ilogb(largest), 120) : 0;
  }
};

/// At most kBlock rows: doubles hold their sums.
[[gnu::always_inline]] inline StepSums steps_of(std::size_t n, const float* g, const float* h,
                                                const StepScale& scale) {
  const float g_scale = std::ldexp(1.0f, scale.g_bits), h_scale = std::ldexp(1.0f, scale.h_bits);
  std::array<double, kLanes> g_sum{}, h_sum{};
  in_lanes(n, [&](std::size_t i, std::size_t lane) {
    g_sum[lane] += static_cast<double>(static_cast<std::int32_t>(std::abs(g[i]) * g_scale));
    h_sum[lane] += static_cast<double>(static_cast<std::int32_t>(h[i] * h_scale));
  });
  return {static_cast<std::int64_t>(std::accumulate(g_sum.begin(), g_sum.end(), 0.0)),
          static_cast<std::int64_t>(std::accumulate(h_sum.begin(), h_sum.end(), 0.0))};
}

#if HARDWOOD_X86
[[gnu::target("avx2")]] Extents extents_avx2(std::size_t n, const float* g, const float* h) {
  return extents_of(n, g, h);
}
[[gnu::target("avx2")]] StepSums steps_avx2(std::size_t n, const float* g, const float* h,
                                            const StepScale& scale) {
  return steps_of(n, g, h, scale);
}
#endif

Extents extents_plain(std::size_t n, const float* g, const float* h) { return extents_of(n, g, h); }
StepSums steps_plain(std::size_t n, const float* g, const float* h, const StepScale& scale) {
  return steps_of(n, g, h, scale);
}

/// Call `visit(n, g, h)` for the rows that count from `begin` to `end`, as plain arrays.
template <class Visit>
void visit_arrays(const GradientColumn& gradients, RowList rows, std::size_t begin, std::size_t end,
                  Visit&& visit) {
  if (rows.empty() && gradients.stride == 1 && !gradients.weight) {
    return visit(end - begin, gradients.g + begin, gradients.h + begin);
  }
  std::array<float, 512> g, h;
  for (; begin < end; begin += std::min(g.size(), end - begin)) {
    const std::size_t n = std::min(g.size(), end - begin);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = rows.empty() ? begin + i : rows[begin + i];
      g[i] = gradients.gradient<float>(row);
      h[i] = gradients.hessian<float>(row);
    }
    visit(n, g.data(), h.data());
  }
}

/// The extents over all parts; `n` rows count here. They do not depend on who holds which rows.
Extents extents_of_all(const GradientColumn& gradients, RowList rows, std::size_t n, int n_threads,
                       const Part& part) {
  auto* extents = extents_plain;
  auto* steps = steps_plain;
#if HARDWOOD_X86
  if (has_avx2()) extents = extents_avx2, steps = steps_avx2;
#endif
  const std::size_t n_blocks = (n + kBlock - 1) / kBlock;
  std::vector<Extents> blocks(n_blocks);
  parallel_blocks(n, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    visit_arrays(gradients, rows, begin, end, [&](std::size_t m, const float* g, const float* h) {
      blocks[begin / kBlock].add(extents(m, g, h));
    });
  });
  Extents all;
  for (const Extents& block : blocks) all.add(block);
  // Everybody throws, not only who has the row.
  std::array<double, 5> most{all.g.largest, all.h.largest, -all.least_h,
                             std::isfinite(all.g.sum) ? 0.0 : 1.0,
                             std::isfinite(all.h.sum) ? 0.0 : 1.0};
  part.max(most);
  if (most[3] != 0) {
    throw std::invalid_argument("gradient must be finite; the loss gave NaN or inf.");
  }
  if (most[2] > 0 || most[4] != 0) {
    throw std::invalid_argument(
        "hessian must be finite and >= 0; the loss gave a negative number, NaN or inf.");
  }
  const StepScale scale{StepScale::bits_of(most[0]), StepScale::bits_of(most[1])};
  std::vector<StepSums> sums(n_blocks);
  parallel_blocks(n, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    visit_arrays(gradients, rows, begin, end, [&](std::size_t m, const float* g, const float* h) {
      const StepSums sum = steps(m, g, h, scale);
      sums[begin / kBlock].g += sum.g;
      sums[begin / kBlock].h += sum.h;
    });
  });
  std::array<std::int64_t, 2> total{};
  for (const StepSums& sum : sums) total[0] += sum.g, total[1] += sum.h;
  part.sum(total);
  return {{std::ldexp(static_cast<double>(total[0]), -scale.g_bits), most[0]},
          {std::ldexp(static_cast<double>(total[1]), -scale.h_bits), most[1]},
          0};
}

/// The finest power of two with every number below `max_one` and the sum of `n` below `max_sum`,
/// each of them rounded up.
int bits_for(const Extent& extent, std::size_t n, double max_one, double max_sum) {
  if (extent.largest == 0) return 0;
  const double by_one = max_one / extent.largest;
  // What was cut off in `steps_of` is less than what the last dither leaves of a step.
  const double by_sum = (max_sum - static_cast<double>(n)) / extent.sum;
  // Hessians of 1e-30 need no finer grid than a double can scale.
  return std::min(static_cast<int>(std::floor(std::log2(std::min(by_one, by_sum)))), 900);
}

/// A number in (0, 1) with nine bits: added to a 15-bit number it is exact in float, so that
/// numbers on the grid stay where they are.
inline float dither(std::uint32_t row, std::uint32_t seed) {
  std::uint32_t z = row * 0x9e3779b9u + seed;
  z = (z ^ (z >> 15)) * 0x85ebca6bu;
  z ^= z >> 13;
  return static_cast<float>((z >> 24) * 2 + 1) * 0x1p-9f;
}

/// Where the dithering of a tree starts.
struct Seeds {
  std::uint32_t g, h;

  explicit Seeds(std::uint64_t seed)
      : g(static_cast<std::uint32_t>(seed * 0x9e3779b97f4a7c15u >> 32)), h(g * 31 + 7) {}
};

/// Rounding down is cutting off the fraction of what was shifted to be positive.
constexpr std::int32_t kShift = 32768;

GridSum quantise(const GradientColumn& gradients, RowList rows, const Grid& grid, Seeds seeds,
                 std::size_t begin, std::size_t end, Packed::Row* out, const Part& part) {
  const float g_scale = std::ldexp(1.0f, grid.g_bits), h_scale = std::ldexp(1.0f, grid.h_bits);
  GridSum sum;
  for (std::size_t i = begin; i < end; ++i) {
    const auto row = rows.empty() ? static_cast<std::uint32_t>(i) : rows[i];
    const std::uint32_t number = part.number_of(row);
    const float g =
        gradients.gradient<float>(row) * g_scale + float{kShift} + dither(number, seeds.g);
    const float h = gradients.hessian<float>(row) * h_scale + dither(number, seeds.h);
    out[i] = {row, static_cast<std::int16_t>(static_cast<std::int32_t>(g) - kShift),
              static_cast<std::uint16_t>(static_cast<std::int32_t>(h))};
    sum += {out[i].g, out[i].h, 1};
  }
  return sum;
}

GridSum quantise(const GradientColumn& gradients, RowList rows, const Grid& grid, Seeds seeds,
                 std::size_t begin, std::size_t end, Wide::Row* out, const Part& part) {
  GridSum sum;
  for (std::size_t i = begin; i < end; ++i) {
    const auto row = rows.empty() ? static_cast<std::uint32_t>(i) : rows[i];
    const auto on_grid = [number = part.number_of(row)](double x, int bits, std::uint32_t seed) {
      return static_cast<std::int64_t>(
          std::floor(std::ldexp(x, bits) + static_cast<double>(dither(number, seed))));
    };
    out[i] = {row, on_grid(gradients.gradient<double>(row), grid.g_bits, seeds.g),
              on_grid(gradients.hessian<double>(row), grid.h_bits, seeds.h)};
    sum += {out[i].g, out[i].h, 1};
  }
  return sum;
}

#if HARDWOOD_X86
[[gnu::target("avx2")]] inline __m256i times_avx2(__m256i a, std::uint32_t b) {
  return _mm256_mullo_epi32(a, _mm256_set1_epi32(static_cast<int>(b)));
}

[[gnu::target("avx2")]] inline __m256 dither_avx2(__m256i row, std::uint32_t seed) {
  __m256i z =
      _mm256_add_epi32(times_avx2(row, 0x9e3779b9u), _mm256_set1_epi32(static_cast<int>(seed)));
  z = times_avx2(_mm256_xor_si256(z, _mm256_srli_epi32(z, 15)), 0x85ebca6bu);
  z = _mm256_xor_si256(z, _mm256_srli_epi32(z, 13));
  const __m256i odd = _mm256_or_si256(_mm256_srli_epi32(z, 23), _mm256_set1_epi32(1));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(odd), _mm256_set1_ps(0x1p-9f));
}

/// Eight rows at a time, all rows of the table, neighbours in memory and without weights; how many
/// are done. At most kBlock rows: their sums fit 32 bits.
[[gnu::target("avx2")]] std::size_t quantise_avx2(const GradientColumn& gradients, const Grid& grid,
                                                  Seeds seeds, std::size_t begin, std::size_t end,
                                                  Packed::Row* out, GridSum& sum,
                                                  const Part& part) {
  const __m256 g_scale = _mm256_set1_ps(std::ldexp(1.0f, grid.g_bits));
  const __m256 h_scale = _mm256_set1_ps(std::ldexp(1.0f, grid.h_bits));
  const __m256i first_eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i g_sum = _mm256_setzero_si256(), h_sum = g_sum;
  std::size_t i = begin;
  for (; i + 8 <= end; i += 8) {
    const __m256i row = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(i)), first_eight);
    const __m256i number =
        part.number.empty()
            ? row
            : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(part.number.data() + i));
    __m256 g = _mm256_mul_ps(_mm256_loadu_ps(gradients.g + i), g_scale);
    g = _mm256_add_ps(_mm256_add_ps(g, _mm256_set1_ps(kShift)), dither_avx2(number, seeds.g));
    const __m256 h = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(gradients.h + i), h_scale),
                                   dither_avx2(number, seeds.h));
    const __m256i g_int = _mm256_sub_epi32(_mm256_cvttps_epi32(g), _mm256_set1_epi32(kShift));
    const __m256i h_int = _mm256_cvttps_epi32(h);
    g_sum = _mm256_add_epi32(g_sum, g_int);
    h_sum = _mm256_add_epi32(h_sum, h_int);
    const __m256i both = _mm256_or_si256(_mm256_and_si256(g_int, _mm256_set1_epi32(0xffff)),
                                         _mm256_slli_epi32(h_int, 16));
    const __m256i low = _mm256_unpacklo_epi32(row, both), high = _mm256_unpackhi_epi32(row, both);
    auto* const to = reinterpret_cast<__m256i*>(out + i);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
  alignas(32) std::array<std::int32_t, 8> g_lanes, h_lanes;
  _mm256_store_si256(reinterpret_cast<__m256i*>(g_lanes.data()), g_sum);
  _mm256_store_si256(reinterpret_cast<__m256i*>(h_lanes.data()), h_sum);
  for (std::size_t k = 0; k < 8; ++k) sum += {g_lanes[k], h_lanes[k], 0};
  sum.n += static_cast<std::int64_t>(i - begin);
  return i - begin;
}
#endif

template <class Stat>
Grid grid_for(const Extent& g, const Extent& h, std::size_t n) {
  Grid grid{bits_for(g, n, Stat::kMaxG, Stat::kMaxSum), bits_for(h, n, Stat::kMaxH, Stat::kMaxSum),
            Stat::kCounts};
  grid.g_total = g.sum;
  grid.h_total = h.sum;
  return grid;
}

}  // namespace

Grid choose_grid(const GradientColumn& gradients, RowList rows, bool wide, int n_threads,
                 const Part& part) {
  const std::size_t n_here = rows.empty() ? gradients.n_rows : rows.size();
  const Extents all = extents_of_all(gradients, rows, n_here, n_threads, part);
  const std::size_t n = part.sum(n_here);
  const Grid grid = grid_for<Packed>(all.g, all.h, n);
  const auto too_coarse = [n](const Extent& extent, int bits) {
    return extent.sum > 0 && std::ldexp(extent.sum, bits) < kLeastMean * static_cast<double>(n);
  };
  wide = wide || n <= kSmall || too_coarse(all.g, grid.g_bits) || too_coarse(all.h, grid.h_bits) ||
         std::abs(grid.g_bits) > 120 || std::abs(grid.h_bits) > 120;
  return wide ? grid_for<Wide>(all.g, all.h, n) : grid;
}

template <class Stat>
GridSum put_on_grid(const GradientColumn& gradients, RowList rows, const Grid& grid,
                    std::uint64_t seed, typename Stat::Row* rows_out, int n_threads,
                    const Part& part) {
  const std::size_t n = rows.empty() ? gradients.n_rows : rows.size();
  const Seeds seeds(seed);
  std::vector<GridSum> sums((n + kBlock - 1) / kBlock);
  parallel_blocks(n, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    GridSum& sum = sums[begin / kBlock];
#if HARDWOOD_X86
    if constexpr (std::is_same_v<Stat, Packed>) {
      if (rows.empty() && gradients.stride == 1 && !gradients.weight && has_avx2()) {
        begin += quantise_avx2(gradients, grid, seeds, begin, end, rows_out, sum, part);
      }
    }
#endif
    sum += quantise(gradients, rows, grid, seeds, begin, end, rows_out, part);
  });
  GridSum sum = std::accumulate(sums.begin(), sums.end(), GridSum{});
  std::array<std::int64_t, 3> all{sum.g, sum.h, sum.n};
  part.sum(all);
  return {all[0], all[1], all[2]};
}

template GridSum put_on_grid<Packed>(const GradientColumn&, RowList, const Grid&, std::uint64_t,
                                     Packed::Row*, int, const Part&);
template GridSum put_on_grid<Wide>(const GradientColumn&, RowList, const Grid&, std::uint64_t,
                                   Wide::Row*, int, const Part&);

}  // namespace hardwood::grow
