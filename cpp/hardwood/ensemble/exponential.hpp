#pragma once

#include <bit>
#include <cstdint>

namespace hardwood::ensemble {

/// e^x to two units in the last place, the same bits on every machine, and plain enough for the
/// compiler to take several at a time. Beyond e^-87 and e^88 it stays at these.
[[gnu::always_inline]] inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  // e^x = 2^n e^r with |r| <= log(2) / 2. Adding 1.5 * 2^23 rounds to a whole number, which is
  // then found in the lowest bits; log(2) comes in two parts, so that n times the first is exact.
  constexpr float kRound = 12582912.0f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // Taylor's terms up to r^7 / 7!; the next one is below a tenth of a unit in the last place.
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r * r + r + 1.0f;
  const auto power = (std::bit_cast<std::uint32_t>(shifted) + 127u) << 23;
  return sum * std::bit_cast<float>(power);
}

}  // namespace hardwood::ensemble
