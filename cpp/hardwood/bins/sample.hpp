#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hardwood::bins {

/// Rows whose values stand for those of all where edges and candidates are chosen.
constexpr std::size_t kSampledRows = 200'000;

/// As many places of [0, n) as wanted, at most n, increasing: one of every stretch, not always the
/// same one, since data may be periodic.
std::vector<std::uint64_t> sample_places(std::uint64_t n, std::size_t n_sampled);

/// Rows at such places.
std::vector<std::uint32_t> sample_rows(std::size_t n_rows, std::size_t n_sampled);

/// Rows that stand for a table, increasing, and how often each of them counts.
struct WeightedRows {
  std::vector<std::uint32_t> rows;
  std::vector<std::uint64_t> counts;
};

/// The same for rows with weights, all > 0. A row of weight 2 is two rows: where all weights are
/// whole numbers, the sample is that of the table in which every row is repeated. Other weights are
/// counted in steps so small that nothing is lost.
WeightedRows sample_rows(std::span<const double> weight, std::size_t n_sampled);

}  // namespace hardwood::bins
