#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/model/trees.hpp"
#include "hardwood/verify/tree.hpp"

namespace hardwood::verify {

/// Seen by two threads: one that searches, one that waits, shows progress, and may stop it.
struct Watch {
  std::atomic<bool> stop{false};
  std::atomic<std::int64_t> n_done{0};
  std::atomic<std::int64_t> n_open{0};  ///< of those done: left without an exact answer
};

enum class Ending : std::uint8_t {
  kExact,     ///< lower equals upper; or, for a decision, certified or broken
  kTime,      ///< the clock stopped the search
  kRounding,  ///< the proof hangs on less than the rounding of the model's own sum
  kStopped,   ///< somebody stopped the search
};

struct Limits {
  double row_seconds;    ///< for each row
  double total_seconds;  ///< for all rows together
  int n_threads;
};

struct Distances {
  std::vector<double> lower;         ///< proven
  std::vector<double> upper;         ///< found, infinity where nothing was
  std::vector<std::uint8_t> ending;  ///< an Ending
  std::vector<double> x_adv;         ///< n_rows x n_features; NaN where nothing was found
  std::vector<double> seconds;       ///< of processor time
};

/// The smallest change of every row that fools the model, of any number of trees.
Distances nearest_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                              std::span<const std::int32_t> y, const Budget& budget,
                              const Limits& limits, Watch& watch);

/// Whether any change within the budget fools the model: `lower` is infinity where it is proven
/// that none does, `upper` the distance of an example, not necessarily the nearest.
Distances any_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                          std::span<const std::int32_t> y, const Budget& budget,
                          const Limits& limits, Watch& watch);

/// The smallest change of every row that brings the only output out of the row's range: below its
/// first number or above its second.
Distances leaving_in_ensemble(const model::Trees& trees, Matrix<const double> x,
                              Matrix<const double> range, const Budget& budget,
                              const Limits& limits, Watch& watch);

/// The largest output that the budget allows, or the least where not `up`: `upper` is the output of
/// the example, `lower` is proven to be as far or farther.
Distances farthest_in_ensemble(const model::Trees& trees, Matrix<const double> x, bool up,
                               const Budget& budget, const Limits& limits, Watch& watch);

}  // namespace hardwood::verify
