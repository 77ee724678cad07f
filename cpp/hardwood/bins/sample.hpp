#pragma once

#include <cstdint>
#include <vector>

namespace hardwood::bins {

/// As many rows as wanted, increasing: one of every stretch of the table, not always the same one,
/// since data may be periodic.
std::vector<std::uint32_t> sample_rows(std::size_t n_rows, std::size_t n_sampled);

}  // namespace hardwood::bins
