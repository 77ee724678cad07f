#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hardwood/model/trees.hpp"
#include "hardwood/types.hpp"

namespace hardwood::model {

/// Trees laid out for reading: built once a model, used for every batch of rows.
class Predictor {
 public:
  virtual ~Predictor() = default;

  /// The margin of every row, n_rows x n_outputs, added up in the model's own precision.
  virtual std::vector<double> margin(Matrix<const double> x, int n_threads) const = 0;

  /// The leaf of every row in every tree, n_rows x n_trees, as positions inside the tree.
  virtual std::vector<NodeId> apply(Matrix<const double> x, int n_threads) const = 0;
};

/// `trees` must have passed its check; nothing of it is kept.
std::unique_ptr<Predictor> make_predictor(const Trees& trees);

}  // namespace hardwood::model
