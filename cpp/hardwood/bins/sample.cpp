#include "hardwood/bins/sample.hpp"

#include <algorithm>

namespace hardwood::bins {
namespace {

std::size_t scramble(std::size_t i) {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return static_cast<std::size_t>(z ^ (z >> 31));
}

}  // namespace

std::vector<std::uint32_t> sample_rows(std::size_t n_rows, std::size_t n_sampled) {
  n_sampled = std::min(n_rows, n_sampled);
  std::vector<std::uint32_t> rows(n_sampled);
  for (std::size_t i = 0; i < n_sampled; ++i) {
    const std::size_t begin = i * n_rows / n_sampled, end = (i + 1) * n_rows / n_sampled;
    rows[i] = static_cast<std::uint32_t>(begin + scramble(i) % (end - begin));
  }
  return rows;
}

}  // namespace hardwood::bins
