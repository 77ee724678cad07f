#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hardwood/model/trees.hpp"

/// Random small trees, and rows on their thresholds, next to them and missing.
namespace hardwood::tests {

inline constexpr std::array kThresholds{0.0, 0.25, 0.5, -0.5, 2.0};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return engine_() % n; }

 private:
  std::mt19937 engine_;
};

inline model::Trees random_trees(Random& random, std::size_t n_trees, std::size_t most_splits,
                                 std::size_t n_features, bool float32) {
  model::Trees trees;
  trees.tree_start.push_back(0);
  trees.n_features = static_cast<std::int32_t>(n_features);
  trees.x_float32 = trees.sum_float32 = float32;
  trees.base = {0.5};
  for (std::size_t tree = 0; tree < n_trees; ++tree) {
    const std::size_t start = trees.n_nodes();
    const auto add_leaf = [&] {
      trees.feature.push_back(kLeaf);
      trees.threshold.push_back(0);
      trees.left.push_back(0);
      trees.right.push_back(0);
      trees.missing_left.push_back(0);
      const double value = static_cast<double>(random.below(1000)) / 999 - 0.5;
      trees.value.push_back(float32 ? static_cast<float>(value) : value);
    };
    add_leaf();
    for (std::size_t split = random.below(most_splits + 1); split > 0; --split) {
      std::size_t at = start;
      while (trees.feature[at] != kLeaf) {
        at = start + static_cast<std::size_t>(random.below(2) ? trees.left[at] : trees.right[at]);
      }
      trees.feature[at] = static_cast<Feature>(random.below(n_features));
      trees.threshold[at] = kThresholds[random.below(kThresholds.size())];
      trees.missing_left[at] = random.below(2) != 0;
      trees.left[at] = static_cast<NodeId>(trees.n_nodes() - start);
      trees.right[at] = trees.left[at] + 1;
      add_leaf();
      add_leaf();
    }
    trees.tree_start.push_back(static_cast<std::int64_t>(trees.n_nodes()));
    trees.tree_output.push_back(0);
  }
  return trees;
}

/// Turn about half of the splits into splits on categories.
inline void add_categories(Random& random, model::Trees& trees) {
  trees.category_start.push_back(0);
  for (std::size_t at = 0; at < trees.n_nodes(); ++at) {
    if (trees.feature[at] != kLeaf && random.below(2)) {
      for (const std::int32_t category : {0, 1, 2, 9}) {
        if (random.below(2)) trees.category.push_back(category);
      }
    }
    trees.category_start.push_back(static_cast<std::int64_t>(trees.category.size()));
  }
}

inline std::vector<double> random_rows(Random& random, std::size_t n_rows, std::size_t n_features) {
  std::vector<double> rows(n_rows * n_features);
  for (double& x : rows) {
    x = kThresholds[random.below(kThresholds.size())];
    switch (random.below(6)) {
      case 0:
        x = std::numeric_limits<double>::quiet_NaN();
        break;
      case 1:
        x = std::nextafter(x, -10.0);
        break;
      case 2:
        x = std::nextafter(static_cast<float>(x), -10.0f);
        break;
      case 3:
        x = std::nextafter(x, 10.0);
        break;
      default:
        break;
    }
  }
  return rows;
}

}  // namespace hardwood::tests
