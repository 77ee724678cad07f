#pragma once

#include <memory>

#include "hardwood/model/predict.hpp"
#include "hardwood/model/trees.hpp"

namespace hardwood::bind {

/// What Python holds: checked trees and their layout for reading.
struct CheckedTrees {
  explicit CheckedTrees(model::Trees from) : trees(std::move(from)) {
    trees.check();
    predictor = model::make_predictor(trees);
  }

  model::Trees trees;
  std::unique_ptr<model::Predictor> predictor;
};

}  // namespace hardwood::bind
