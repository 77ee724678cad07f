#pragma once

#include <cstdint>

namespace hardwood::grow {

/// How the adversary's best reply to a split is found: exactly, or as the paper does it.
enum class Inner : std::uint8_t { kExact, kPaper };

}  // namespace hardwood::grow
