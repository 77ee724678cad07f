#include "hardwood/grow/fixed_point.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "hardwood/parallel.hpp"

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

  void add(const Extent& other) {
    sum += other.sum;
    largest = std::max(largest, other.largest);
  }
};

/// The finest power of two with every number below `max_one` and the sum of `n` below `max_sum`,
/// each of them rounded up.
int bits_for(const Extent& extent, std::size_t n, double max_one, double max_sum) {
  if (extent.largest == 0) return 0;
  const double by_one = max_one / extent.largest;
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

void quantise(const GradientColumn& gradients, RowList rows, const Grid& grid, std::uint32_t g_seed,
              std::uint32_t h_seed, std::size_t begin, std::size_t end, Packed::Row* out) {
  const float g_scale = std::ldexp(1.0f, grid.g_bits), h_scale = std::ldexp(1.0f, grid.h_bits);
  for (std::size_t i = begin; i < end; ++i) {
    const auto row = rows.empty() ? static_cast<std::uint32_t>(i) : rows[i];
    // Shifted to be positive, where cutting off the fraction is rounding down.
    const float g = gradients.gradient<float>(row) * g_scale + 32768.0f + dither(row, g_seed);
    const float h = gradients.hessian<float>(row) * h_scale + dither(row, h_seed);
    out[i] = {row, static_cast<std::int16_t>(static_cast<std::int32_t>(g) - 32768),
              static_cast<std::uint16_t>(static_cast<std::int32_t>(h))};
  }
}

void quantise(const GradientColumn& gradients, RowList rows, const Grid& grid, std::uint32_t g_seed,
              std::uint32_t h_seed, std::size_t begin, std::size_t end, Wide::Row* out) {
  for (std::size_t i = begin; i < end; ++i) {
    const auto row = rows.empty() ? static_cast<std::uint32_t>(i) : rows[i];
    const auto on_grid = [row](double x, int bits, std::uint32_t seed) {
      return static_cast<std::int64_t>(
          std::floor(std::ldexp(x, bits) + static_cast<double>(dither(row, seed))));
    };
    out[i] = {row, on_grid(gradients.gradient<double>(row), grid.g_bits, g_seed),
              on_grid(gradients.hessian<double>(row), grid.h_bits, h_seed)};
  }
}

template <class Stat>
Grid grid_for(const Extent& g, const Extent& h, std::size_t n) {
  return {bits_for(g, n, Stat::kMaxG, Stat::kMaxSum), bits_for(h, n, Stat::kMaxH, Stat::kMaxSum),
          Stat::kCounts};
}

}  // namespace

Grid choose_grid(const GradientColumn& gradients, RowList rows, bool wide, int n_threads) {
  const std::size_t n = rows.empty() ? gradients.n_rows : rows.size();
  struct Part {
    Extent g, h;
    bool bad_g = false, bad_h = false;
  };
  std::vector<Part> parts((n + kBlock - 1) / kBlock);
  parallel_blocks(n, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    Part& part = parts[begin / kBlock];
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t row = rows.empty() ? i : rows[i];
      const float g = std::abs(gradients.gradient<float>(row)), h = gradients.hessian<float>(row);
      part.bad_g |= !std::isfinite(g);
      part.bad_h |= !(h >= 0 && std::isfinite(h));
      part.g.add({g, g});
      part.h.add({h, h});
    }
  });
  Part all;
  for (const Part& part : parts) {
    all.g.add(part.g);
    all.h.add(part.h);
    all.bad_g |= part.bad_g;
    all.bad_h |= part.bad_h;
  }
  if (all.bad_g) throw std::invalid_argument("gradient must be finite; the loss gave NaN or inf.");
  if (all.bad_h) {
    throw std::invalid_argument(
        "hessian must be finite and >= 0; the loss gave a negative number, NaN or inf.");
  }
  const Grid grid = grid_for<Packed>(all.g, all.h, n);
  const auto too_coarse = [n](const Extent& extent, int bits) {
    return extent.sum > 0 && std::ldexp(extent.sum, bits) < kLeastMean * static_cast<double>(n);
  };
  wide = wide || n <= kSmall || too_coarse(all.g, grid.g_bits) || too_coarse(all.h, grid.h_bits) ||
         std::abs(grid.g_bits) > 120 || std::abs(grid.h_bits) > 120;
  return wide ? grid_for<Wide>(all.g, all.h, n) : grid;
}

template <class Stat>
void put_on_grid(const GradientColumn& gradients, RowList rows, const Grid& grid,
                 std::uint64_t seed, typename Stat::Row* rows_out, int n_threads) {
  const std::size_t n = rows.empty() ? gradients.n_rows : rows.size();
  const auto g_seed = static_cast<std::uint32_t>(seed * 0x9e3779b97f4a7c15u >> 32);
  const auto h_seed = g_seed * 31 + 7;
  parallel_blocks(n, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    quantise(gradients, rows, grid, g_seed, h_seed, begin, end, rows_out);
  });
}

template void put_on_grid<Packed>(const GradientColumn&, RowList, const Grid&, std::uint64_t,
                                  Packed::Row*, int);
template void put_on_grid<Wide>(const GradientColumn&, RowList, const Grid&, std::uint64_t,
                                Wide::Row*, int);

}  // namespace hardwood::grow
