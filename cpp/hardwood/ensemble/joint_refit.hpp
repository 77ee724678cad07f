#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/model/trees.hpp"
#include "hardwood/part.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::ensemble {

/// How the leaves of a model of many classes are refitted together.
struct JointRefit {
  double penalty = 1;        ///< L2, on all leaf values
  double temperature = .02;  ///< of the soft minimum over the leaves that a row can reach
  double patience = .75;     ///< rows this far (in log odds) beyond hope count by half
  int n_steps = 25;          ///< of L-BFGS
  int n_threads = 1;
};

/// Rows of the table and what may be done to them; the shares of all add up to the loss.
struct JointRows {
  std::span<const Reach> reach;
  double share = 1;
};

/// New leaf values (one a node) for the trees of a model with one output a class.
///
/// The trees stay. All values together minimise the log loss of the softmax of certified margins:
/// the lowest one of the row's own class against the highest ones of the others, soft minima and
/// maxima in their place so that the loss is smooth. Rows that are beyond hope at the start count
/// less. Same bytes for any number of threads.
template <class X>
std::vector<float> joint_refit(const model::Trees& trees, Matrix<const X> x,
                               std::span<const float> y, std::span<const float> weight,
                               std::span<const JointRows> rows, const JointRefit& how);

/// The same for rows in codes, of which others may have more: everybody gets the same values, those
/// of all rows. Thresholds of the trees are candidates of the codes. Rows at rest, if the codes
/// have them, count by what `robustness` leaves.
std::vector<float> joint_refit(const model::Trees& trees, const bins::EndCodes<std::uint8_t>& codes,
                               std::span<const float> y, std::span<const float> weight,
                               double robustness, const JointRefit& how, const Part& part);

}  // namespace hardwood::ensemble
