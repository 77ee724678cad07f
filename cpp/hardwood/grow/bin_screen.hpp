#pragma once

#include <algorithm>
#include <cmath>

#include "hardwood/grow/bin_search.hpp"
#include "hardwood/simd.hpp"

#if HARDWOOD_X86

namespace hardwood::grow {

/// Of four packed cells: x0, x0 + x1, x0 + x1 + x2, and all.
[[gnu::target("avx2")]] inline __m256i running_sums(__m256i x) {
  const __m256i pairs = _mm256_add_epi64(x, _mm256_slli_si256(x, 8));  // x0, x0+x1, x2, x2+x3
  const __m256i low = _mm256_permute4x64_epi64(pairs, 0x50);           // twice x0, twice x0+x1
  return _mm256_add_epi64(pairs, _mm256_blend_epi32(_mm256_setzero_si256(), low, 0xf0));
}

/// Undo the order in which shuffling two registers leaves their halves.
[[gnu::target("avx2")]] inline __m256i in_order(__m256 mixed) {
  return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
}
/// The upper halves of eight packed cells, and the lower ones.
[[gnu::target("avx2")]] inline __m256i gradients(__m256i first, __m256i second) {
  return in_order(_mm256_shuffle_ps(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0xdd));
}
[[gnu::target("avx2")]] inline __m256i hessians(__m256i first, __m256i second) {
  return in_order(_mm256_shuffle_ps(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second), 0x88));
}

/// Eight thresholds at once, in float, with a slack that covers its rounding: what cannot win is
/// passed over, what might is judged in double by the same code as everywhere. So speed comes from
/// here and the answer does not.
///
/// All sums are integers until they are put together, and a score is a sum of positive terms: no
/// difference of rounded numbers is ever formed, so a few units in the last place are slack enough.
/// The straddle test is such a difference; there the slack goes by the size of its terms.
class Screen {
 public:
  using Ints = __m256i;
  using Floats = __m256;

  [[gnu::target("avx2")]] Screen(const SearchedNode& node)
      : total_g_(_mm256_set1_epi32(static_cast<int>(node.total.g))),
        total_h_(_mm256_set1_epi32(static_cast<int>(node.total.h))),
        // H < min_child_weight, for integers: H <= this.
        too_light_(_mm256_set1_epi32(static_cast<int>(
            std::min(std::ceil(node.rules.min_child_weight / node.grid.h_step), 0x1p31 - 1) - 1))),
        g_step_(_mm256_set1_ps(static_cast<float>(node.grid.g_step))),
        h_step_(_mm256_set1_ps(static_cast<float>(node.grid.h_step))),
        lambda_(_mm256_set1_ps(static_cast<float>(node.rules.reg_lambda))),
        slope_(_mm256_set1_ps(static_cast<float>(-node.criterion.residual({0, 1})))) {}

  /// The score of both children must not be below this.
  [[gnu::target("avx2")]] void need(double score) {
    need_ = _mm256_set1_ps(static_cast<float>(std::min(score, 1e30) * (1 - 2e-6)));
  }

  /// One bit a lane: the left sums g, h make a split worth more than `need`.
  [[gnu::target("avx2")]] Floats good(Ints g, Ints h) const {
    const Floats a = weight(h), b = weight(_mm256_sub_epi32(total_h_, h));
    const Floats left = gradient(g), right = gradient(_mm256_sub_epi32(total_g_, g));
    const Floats top = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(left, left), b),
                                     _mm256_mul_ps(_mm256_mul_ps(right, right), a));
    return _mm256_cmp_ps(top, _mm256_mul_ps(_mm256_mul_ps(a, b), need_), _CMP_GE_OQ);
  }

  [[gnu::target("avx2")]] Floats heavy(Ints h) const {
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(h, too_light_));
  }
  [[gnu::target("avx2")]] Floats rest_heavy(Ints h) const {
    return heavy(_mm256_sub_epi32(total_h_, h));
  }

  /// One bit a lane: T of the left sums, g - m (h + lambda), is surely not above 0; not below 0.
  [[gnu::target("avx2")]] Floats surely_not_above(Ints g, Ints h) const {
    return _mm256_cmp_ps(tilt(g, h), slack(g, h), _CMP_LE_OQ);
  }
  [[gnu::target("avx2")]] Floats surely_not_below(Ints g, Ints h) const {
    const Floats zero = _mm256_setzero_ps();
    return _mm256_cmp_ps(_mm256_sub_ps(zero, tilt(g, h)), slack(g, h), _CMP_LE_OQ);
  }

 private:
  [[gnu::target("avx2")]] Floats gradient(Ints g) const {
    return _mm256_mul_ps(_mm256_cvtepi32_ps(g), g_step_);
  }
  [[gnu::target("avx2")]] Floats weight(Ints h) const {
    return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(h), h_step_), lambda_);
  }
  [[gnu::target("avx2")]] Floats tilt(Ints g, Ints h) const {
    return _mm256_sub_ps(gradient(g), _mm256_mul_ps(slope_, weight(h)));
  }
  /// Below 0 by more than the rounding of `tilt`.
  [[gnu::target("avx2")]] Floats slack(Ints g, Ints h) const {
    const Floats magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    const Floats size = _mm256_add_ps(_mm256_and_ps(magnitude, gradient(g)),
                                      _mm256_and_ps(magnitude, _mm256_mul_ps(slope_, weight(h))));
    return _mm256_mul_ps(_mm256_set1_ps(-1e-6f), size);
  }

  Ints total_g_, total_h_, too_light_;
  Floats g_step_, h_step_, lambda_, slope_, need_;
};

}  // namespace hardwood::grow

#endif
