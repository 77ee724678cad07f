#include "hardwood/bins/search.hpp"

#include "hardwood/box.hpp"
#include "hardwood/simd.hpp"

namespace hardwood::bins {
namespace {

#if HARDWOOD_X86

/// The search of eight values. The first three of its eight steps choose among seven edges, which
/// fit a register.
[[gnu::target("avx2")]] __m256i bins_of(const float* edges, __m256 first_edges, __m256 x) {
  const auto step_if = [x](__m256 edge, int step) __attribute__((target("avx2"))) {
    // x < edge goes left; the rest, with missing values, goes on.
    return _mm256_and_si256(_mm256_castps_si256(_mm256_cmp_ps(x, edge, _CMP_NLT_UQ)),
                            _mm256_set1_epi32(step));
  };
  __m256i bin = step_if(_mm256_set1_ps(edges[127]), 4);
  const auto first = [&](int ahead) __attribute__((target("avx2"))) {
    return _mm256_permutevar8x32_ps(first_edges, _mm256_add_epi32(bin, _mm256_set1_epi32(ahead)));
  };
  bin = _mm256_add_epi32(bin, step_if(first(1), 2));
  bin = _mm256_add_epi32(bin, step_if(first(0), 1));
  bin = _mm256_slli_epi32(bin, 5);
#pragma GCC unroll 5
  for (int step = 16; step > 0; step /= 2) {
    bin = _mm256_add_epi32(bin, step_if(_mm256_i32gather_ps(edges + step - 1, bin, 4), step));
  }
  return bin;
}

[[gnu::target("avx2")]] std::size_t encode_avx2(const float* edges, std::span<const float> x,
                                                std::uint8_t* code) {
  const __m256 first_edges = _mm256_setr_ps(edges[31], edges[63], edges[95], edges[127], edges[159],
                                            edges[191], edges[223], edges[255]);
  std::size_t i = 0;
  for (; i + 16 <= x.size(); i += 16) {
    const __m256i low = bins_of(edges, first_edges, _mm256_loadu_ps(x.data() + i));
    const __m256i high = bins_of(edges, first_edges, _mm256_loadu_ps(x.data() + i + 8));
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(code + i), bytes);
  }
  return i;
}

#endif

}  // namespace

void SortedEdges::encode(std::span<const float> x, std::uint8_t* code) const {
  std::size_t n_done = 0;
#if HARDWOOD_X86
  if (has_avx2()) n_done = encode_avx2(padded_.data(), x, code);
#endif
  encode_portable(x.subspan(n_done), code + n_done);
}

void SortedEdges::encode_portable(std::span<const float> x, std::uint8_t* code) const {
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t bin = 0;
    for (std::size_t step = 128; step > 0; step /= 2) {
      bin += step * !goes_left(x[i], padded_[bin + step - 1]);  // no branch: sides are random
    }
    code[i] = static_cast<std::uint8_t>(bin);
  }
}

}  // namespace hardwood::bins
