#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/model/trees.hpp"
#include "hardwood/verify/tree.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::verify {

enum class Ending : std::uint8_t {
  kExact,     ///< lower equals upper; or, for a decision, certified or broken
  kTime,      ///< the clock stopped the search
  kRounding,  ///< the proof hangs on less than the rounding of the model's own sum
  kStopped,   ///< somebody stopped the search
};

struct Limits {
  double row_seconds;  ///< for each row; the watch has the time for all rows together
  int n_threads;
};

struct Distances {
  std::vector<double> lower;         ///< proven
  std::vector<double> upper;         ///< found, infinity where nothing was
  std::vector<std::uint8_t> ending;  ///< an Ending
  std::vector<double> x_adv;         ///< n_rows x n_features; NaN where nothing was found
  std::vector<double> seconds;       ///< of processor time
};

/// The smallest change of every row that fools the model, of any number of trees. A row whose turn
/// never comes has lower 0 and upper infinity.
Distances nearest_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                              std::span<const std::int32_t> y, const Budget& budget,
                              const Limits& limits, Watch& watch);

/// The same without the proof: a near example of every row, quickly.
Distances near_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                           std::span<const std::int32_t> y, const Budget& budget,
                           const Limits& limits, Watch& watch);

/// Whether any change within the budget fools the model: `lower` is infinity where it is proven
/// that none does, `upper` the distance of an example, not necessarily the nearest.
Distances decide_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                             std::span<const std::int32_t> y, const Budget& budget,
                             const Limits& limits, Watch& watch);

/// The smallest change of every row that brings the only output out of the row's range: below its
/// first number or above its second.
Distances leaving_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                              Matrix<const double> range, const Budget& budget,
                              const Limits& limits, Watch& watch);

/// How far an output can be pushed.
struct Extremes {
  std::vector<double> proven;        ///< no output is beyond this one
  std::vector<double> found;         ///< the output of the example
  std::vector<std::uint8_t> ending;  ///< an Ending
  std::vector<double> x_adv;         ///< n_rows x n_features
  std::vector<double> seconds;       ///< of processor time
};

/// The largest output that the budget allows, or the least where not `up`. A row whose turn never
/// comes has infinite bounds and itself as its example.
Extremes farthest_in_ensemble(const model::Trees& trees, Matrix<const double> x, bool up,
                              const Budget& budget, const Limits& limits, Watch& watch);

}  // namespace hardwood::verify
