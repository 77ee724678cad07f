#pragma once

#include <cmath>

namespace hardwood::model {

/// The C library's logf. XGBoost's base margins are computed with it, and numpy's own logarithm
/// differs in the last bit.
inline float log_float32(float x) { return std::log(x); }

}  // namespace hardwood::model
