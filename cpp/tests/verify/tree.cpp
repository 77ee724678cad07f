#include "hardwood/verify/tree.hpp"

#include <cmath>

#include "check.hpp"
#include "hardwood/model/predict.hpp"
#include "small_trees.hpp"

namespace hardwood::tests {
namespace {

constexpr std::size_t kFeatures = 2;
constexpr std::size_t kRows = 300;

const Case examples_fool{
    "verify: examples change the label at their distance, for any number of threads", [] {
      Random random(2);
      const std::vector<double> scale(kFeatures, 1.0);
      const std::vector<Reach> reach(kFeatures, Reach{10, 10, -10, 10});
      for (int repeat = 0; repeat < 20; ++repeat) {
        model::Trees trees = random_trees(random, 1, 8, kFeatures, repeat % 2 == 0);
        trees.base = {0.0};
        trees.check();
        const auto predictor = model::make_predictor(trees);
        const std::vector<double> x = random_rows(random, kRows, kFeatures);
        const Matrix<const double> rows{x.data(), kRows, kFeatures};
        std::vector<std::int32_t> y;
        for (const double margin : predictor->margin(rows, 1)) y.push_back(margin > 0);
        for (const auto norm :
             {cells::Norm::kInf, cells::Norm::kOne, cells::Norm::kTwo, cells::Norm::kZero}) {
          const cells::Budget budget{norm, 10, reach, scale, scale};
          Watch watch;
          const verify::Nearest nearest = verify::nearest_in_tree(trees, rows, y, budget, 1, watch);
          const auto fooled = predictor->margin({nearest.x_adv.data(), kRows, kFeatures}, 1);
          for (std::size_t i = 0; i < kRows; ++i) {
            check(nearest.distance[i] > 0, "a right row is at a distance");
            if (std::isinf(nearest.distance[i])) continue;
            check((fooled[i] > 0) != (y[i] == 1), "the example must change the label");
            double largest = 0;
            for (std::size_t f = 0; f < kFeatures; ++f) {
              const double step = std::abs(nearest.x_adv[i * kFeatures + f] - rows(i, f));
              if (step > largest) largest = step;
            }
            if (norm == cells::Norm::kInf) {
              check(std::abs(largest - nearest.distance[i]) <= 1e-15, "not its distance");
            }
          }
          for (const int n_threads : {2, 7}) {
            check(verify::nearest_in_tree(trees, rows, y, budget, n_threads, watch).distance ==
                      nearest.distance,
                  "distances depend on threads");
          }
        }
      }
    }};

}  // namespace
}  // namespace hardwood::tests
