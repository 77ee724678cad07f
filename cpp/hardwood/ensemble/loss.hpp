#pragma once

#include <cstdint>
#include <span>

#include "hardwood/types.hpp"

namespace hardwood::ensemble {

/// First and second derivative of a loss by the margin, one row of each for a row of the margin.
struct Derivatives {
  Matrix<float> gradient;
  Matrix<float> hessian;
};

/// Hessians are no smaller than this, as XGBoost has it.
inline constexpr float kLeastHessian = 1e-16f;

/// Log loss of two classes: `label` is 0 or 1, the margin has one column.
void logistic_derivatives(std::span<const float> label, Matrix<const float> margin,
                          const Derivatives& out, int n_threads);

/// Log loss of many classes: `label` is a column of the margin.
void softmax_derivatives(std::span<const float> label, Matrix<const float> margin,
                         const Derivatives& out, int n_threads);

/// Add to every row's margins the values of its leaves: `leaf` has a column for every output, and
/// the nodes of output k have their values from `first[k]` on.
void add_leaf_values(Matrix<const std::int32_t> leaf, std::span<const float> value,
                     std::span<const std::int64_t> first, Matrix<float> margin, int n_threads);

}  // namespace hardwood::ensemble
