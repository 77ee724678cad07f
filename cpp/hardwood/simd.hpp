#pragma once

/// Which instructions the processor has, asked when the program runs: the build stays portable.
/// Kernels for AVX2 stand beside a plain one that gives the same bytes.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(HARDWOOD_PORTABLE)
#define HARDWOOD_X86 1
#include <immintrin.h>
#else
#define HARDWOOD_X86 0
#endif

namespace hardwood {

inline bool has_avx2() {
#if HARDWOOD_X86
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

}  // namespace hardwood
