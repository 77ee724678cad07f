#include "hardwood/model/predict.hpp"

#include <algorithm>
#include <cmath>

#include "check.hpp"
#include "hardwood/model/leaf_boxes.hpp"
#include "small_trees.hpp"

namespace hardwood::tests {
namespace {

constexpr std::size_t kFeatures = 3;

bool holds(const std::vector<std::int32_t>& set, double x) {
  return x >= 0 && std::ranges::count(set, std::floor(x)) > 0;
}

/// The leaf by walking one row from node to node.
NodeId plain_leaf(const model::Trees& trees, std::size_t tree, std::span<const double> row) {
  const auto start = static_cast<std::size_t>(trees.tree_start[tree]);
  NodeId node = 0;
  while (trees.feature[start + static_cast<std::size_t>(node)] != kLeaf) {
    const std::size_t at = start + static_cast<std::size_t>(node);
    const double x = row[static_cast<std::size_t>(trees.feature[at])];
    const auto set = trees.categories(at);
    const double rounded = trees.x_float32 ? static_cast<float>(x) : x;
    const bool left = std::isnan(x)  ? trees.missing_left[at] != 0
                      : !set.empty() ? !holds({set.begin(), set.end()}, rounded)
                      : trees.x_float32
                          ? static_cast<float>(x) < static_cast<float>(trees.threshold[at])
                          : x < trees.threshold[at];
    node = left ? trees.left[at] : trees.right[at];
  }
  return node;
}

const Case same_as_a_walk{
    "predict: leaves, margins and leaf boxes agree with a plain walk, for any number of threads",
    [] {
      Random random(1);
      for (const auto& [float32, categories] :
           {std::pair{true, false}, {false, false}, {true, true}, {false, true}}) {
        model::Trees trees = random_trees(random, 9, 12, kFeatures, float32);
        if (categories) add_categories(random, trees);
        trees.check();
        const auto predictor = model::make_predictor(trees);
        for (const std::size_t n_rows : {1u, 2u, 3u, 8u, 9u, 700u}) {
          const std::vector<double> x = random_rows(random, n_rows, kFeatures);
          const Matrix<const double> rows{x.data(), n_rows, kFeatures};
          const auto leaf = predictor->apply(rows, 1);
          const auto margin = predictor->margin(rows, 1);
          bool same = true, held = true;
          for (std::size_t i = 0; i < n_rows; ++i) {
            double sum = trees.base[0];
            for (std::size_t k = 0; k < trees.n_trees(); ++k) {
              const NodeId expected = plain_leaf(trees, k, rows.row(i));
              same = same && leaf[i * trees.n_trees() + k] == expected;
              const double value =
                  trees.value[static_cast<std::size_t>(trees.tree_start[k] + expected)];
              sum = float32 ? static_cast<float>(sum) + static_cast<float>(value) : sum + value;
            }
            same = same && margin[i] == sum;
            const model::LeafBoxes boxes = model::leaf_boxes(trees, 0);
            for (std::size_t b = 0; b < boxes.n_leaves(); ++b) {
              bool inside = true;
              for (const model::Condition& condition : boxes.of(b)) {
                const double value = rows(i, static_cast<std::size_t>(condition.feature));
                const double rounded = float32 ? static_cast<float>(value) : value;
                const auto& [all_but, listed] = condition.categories;
                inside = inside && (std::isnan(value) ? condition.missing
                                                      : condition.interval.contains(value) &&
                                                            holds(listed, rounded) != all_but);
              }
              held = held && inside == (boxes.node[b] == leaf[i * trees.n_trees()]);
            }
          }
          check(same, "leaf or margin differ from the walk");
          check(held, "a row must lie in the box of its leaf and in no other");
          for (const int n_threads : {2, 7}) {
            check(predictor->apply(rows, n_threads) == leaf, "leaves depend on threads");
            check(predictor->margin(rows, n_threads) == margin, "margins depend on threads");
          }
        }
      }
    }};

}  // namespace
}  // namespace hardwood::tests
