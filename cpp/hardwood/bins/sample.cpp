#include "hardwood/bins/sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hardwood::bins {
namespace {

std::uint64_t scramble(std::uint64_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 31);
}

constexpr int kWeightBits = 44;  // of the sum of all weights: times a size of a sample no overflow

bool are_whole(std::span<const double> weight, double sum) {
  return sum < std::ldexp(1.0, kWeightBits) &&
         std::ranges::all_of(weight, [](double w) { return w == std::floor(w); });
}

}  // namespace

std::vector<std::uint64_t> sample_places(std::uint64_t n, std::size_t n_sampled) {
  n_sampled = std::min<std::size_t>(n, n_sampled);
  std::vector<std::uint64_t> places(n_sampled);
  for (std::size_t i = 0; i < n_sampled; ++i) {
    const std::uint64_t begin = i * n / n_sampled, end = (i + 1) * n / n_sampled;
    places[i] = begin + scramble(i) % (end - begin);
  }
  return places;
}

std::vector<std::uint32_t> sample_rows(std::size_t n_rows, std::size_t n_sampled) {
  const std::vector<std::uint64_t> places = sample_places(n_rows, n_sampled);
  return {places.begin(), places.end()};
}

WeightedRows sample_rows(std::span<const double> weight, std::size_t n_sampled) {
  const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
  const bool whole = are_whole(weight, sum);
  // Weights of mean 1 add up to a number of rows, but for rounding: that must not decide.
  const int bits = whole ? 0 : kWeightBits - 1 - std::ilogb(sum * (1 + 0x1p-40));
  WeightedRows all;
  std::uint64_t total = 0;
  for (const double w : weight) {
    all.rows.push_back(static_cast<std::uint32_t>(all.rows.size()));
    all.counts.push_back(
        static_cast<std::uint64_t>(std::max(std::nearbyint(std::ldexp(w, bits)), 1.0)));
    total += all.counts.back();
  }
  if ((whole ? total : weight.size()) <= n_sampled) return all;
  WeightedRows drawn;
  std::size_t row = 0;
  std::uint64_t end = all.counts[0];  // of the row, where each takes as much room as it weighs
  for (const std::uint64_t place : sample_places(total, n_sampled)) {
    while (end <= place) end += all.counts[++row];
    if (drawn.rows.empty() || drawn.rows.back() != row) {
      drawn.rows.push_back(static_cast<std::uint32_t>(row));
      drawn.counts.push_back(0);
    }
    ++drawn.counts.back();
  }
  return drawn;
}

}  // namespace hardwood::bins
