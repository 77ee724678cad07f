#include "hardwood/ensemble/loss.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "hardwood/ensemble/exponential.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/simd.hpp"

namespace hardwood::ensemble {
namespace {

constexpr std::size_t kBlock = 1 << 14;  // rows handled together

std::string shape(std::size_t n_rows, std::size_t n_cols) {
  return std::to_string(n_rows) + " x " + std::to_string(n_cols);
}

template <class A, class B>
void check_same_shape(const char* name, const Matrix<A>& a, const Matrix<B>& margin) {
  if (a.n_rows == margin.n_rows && a.n_cols == margin.n_cols) return;
  throw std::invalid_argument(std::string(name) + " must be " +
                              shape(margin.n_rows, margin.n_cols) + " like the margin, got " +
                              shape(a.n_rows, a.n_cols) + ".");
}

void check(std::span<const float> label, Matrix<const float> margin, const Derivatives& out) {
  check_same_shape("gradient", out.gradient, margin);
  check_same_shape("hessian", out.hessian, margin);
  check_same_shape("label", Matrix<const float>{label.data(), label.size(), margin.n_cols}, margin);
}

/// No two of these arrays overlap, which lets the compiler take several rows at a time.
[[gnu::always_inline]] inline void logistic_block(std::size_t n, const float* __restrict label,
                                                  const float* __restrict margin,
                                                  float* __restrict gradient,
                                                  float* __restrict hessian) {
  for (std::size_t i = 0; i < n; ++i) {
    const float probability = 1.0f / (1.0f + exponential(-margin[i]));
    const float product = probability * (1.0f - probability);
    hessian[i] = product > kLeastHessian ? product : kLeastHessian;
    gradient[i] = probability - label[i];
  }
}

#if HARDWOOD_X86
[[gnu::target("avx2")]] void logistic_block_avx2(std::size_t n, const float* label,
                                                 const float* margin, float* gradient,
                                                 float* hessian) {
  logistic_block(n, label, margin, gradient, hessian);
}
#endif

void logistic_block_plain(std::size_t n, const float* label, const float* margin, float* gradient,
                          float* hessian) {
  logistic_block(n, label, margin, gradient, hessian);
}

}  // namespace

void logistic_derivatives(std::span<const float> label, Matrix<const float> margin,
                          const Derivatives& out, int n_threads) {
  check(label, margin, out);
  auto* block = logistic_block_plain;
#if HARDWOOD_X86
  if (has_avx2()) block = logistic_block_avx2;
#endif
  parallel_blocks(label.size(), kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    block(end - begin, label.data() + begin, margin.data + begin, out.gradient.data + begin,
          out.hessian.data + begin);
  });
}

void softmax_derivatives(std::span<const float> label, Matrix<const float> margin,
                         const Derivatives& out, int n_threads) {
  check(label, margin, out);
  const std::size_t n_classes = margin.n_cols;
  parallel_blocks(label.size(), kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* const row = margin.data + i * n_classes;
      float* const gradient = out.gradient.data + i * n_classes;
      float* const hessian = out.hessian.data + i * n_classes;
      const float largest = *std::max_element(row, row + n_classes);
      float sum = 0;
      for (std::size_t k = 0; k < n_classes; ++k) gradient[k] = exponential(row[k] - largest);
      for (std::size_t k = 0; k < n_classes; ++k) sum += gradient[k];
      for (std::size_t k = 0; k < n_classes; ++k) {
        const float probability = gradient[k] /= sum;
        const float product = 2.0f * (probability * (1.0f - probability));
        hessian[k] = product > kLeastHessian ? product : kLeastHessian;
      }
      if (!(label[i] >= 0 && label[i] < static_cast<float>(n_classes))) {
        throw std::invalid_argument("label must be from 0 to " + std::to_string(n_classes - 1) +
                                    ", got " + std::to_string(label[i]) + ".");
      }
      gradient[static_cast<std::size_t>(label[i])] -= 1.0f;
    }
  });
}

void add_leaf_values(Matrix<const std::int32_t> leaf, std::span<const float> value,
                     std::span<const std::int64_t> first, Matrix<float> margin, int n_threads) {
  check_same_shape("leaf", leaf, margin);
  const std::size_t n_outputs = margin.n_cols;
  parallel_blocks(margin.n_rows, kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin * n_outputs; i < end * n_outputs; i += n_outputs) {
      for (std::size_t k = 0; k < n_outputs; ++k) {
        margin.data[i + k] += value[static_cast<std::size_t>(first[k] + leaf.data[i + k])];
      }
    }
  });
}

}  // namespace hardwood::ensemble
