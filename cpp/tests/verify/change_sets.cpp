#include "hardwood/verify/change_sets.hpp"

#include <limits>
#include <vector>

#include "check.hpp"
#include "hardwood/verify/distance.hpp"

namespace hardwood::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int32_t kFeatures = 14;

/// Two stumps a feature that cannot both gain: one wants it above 1, the other below -1. Every set
/// of four features passes the plain bound, with 8 - 5.5 > 0; none gets further than 4 - 5.5.
model::Trees torn_trees(double base) {
  model::Trees trees;
  trees.n_features = kFeatures;
  trees.base = {base};
  trees.x_float32 = trees.sum_float32 = false;
  trees.tree_start = {0};
  for (std::int32_t f = 0; f < kFeatures; ++f) {
    for (const bool up : {false, true}) {
      trees.feature.insert(trees.feature.end(), {f, kLeaf, kLeaf});
      trees.threshold.insert(trees.threshold.end(), {up ? 1.0 : -1.0, 0, 0});
      trees.left.insert(trees.left.end(), {1, -1, -1});
      trees.right.insert(trees.right.end(), {2, -1, -1});
      trees.missing_left.insert(trees.missing_left.end(), 3, 0);
      trees.value.insert(trees.value.end(), {0, up ? 0.0 : 1.0, up ? 1.0 : 0.0});
      trees.tree_start.push_back(static_cast<std::int64_t>(trees.n_nodes()));
      trees.tree_output.push_back(0);
    }
  }
  trees.check();
  return trees;
}

struct Asked {
  explicit Asked(double base) : trees(torn_trees(base)) {
    budget.radius = kInfinity;
    budget.reach = reach;
    budget.down_scale = budget.up_scale = scale;
    budget.max_changes = 4;
  }

  model::Trees trees;
  std::vector<double> x = std::vector<double>(kFeatures, 0.0);
  std::vector<Reach> reach = std::vector<Reach>(kFeatures, {9, 9, -9, 9});
  std::vector<double> scale = std::vector<double>(kFeatures, 1.0);
  cells::Budget budget;
};

/// How many sets a question sees.
int count_sets(const Asked& asked, double radius, bool& too_many) {
  const cells::Ensemble ensemble(asked.trees, asked.reach);
  const cells::Ball ball(ensemble, asked.x, asked.budget);
  const cells::Question question = ensemble.questions({0}).front();
  verify::ChangeSets sets(ball, question, ensemble.members(question), kInfinity);
  int n = 0;
  sets.any_of(radius, [&](verify::ChangeSets::Features features) {
    check(features.size() == 4, "a set has as many features as may change");
    ++n;
    return false;
  });
  too_many = sets.too_many();
  return n;
}

const Case counts{"change sets: none, or too many", [] {
                    bool too_many = false;
                    check(count_sets(Asked(-8.5), kInfinity, too_many) == 0, "no set is enough");
                    check(!too_many, "nothing was given up");
                    check(count_sets(Asked(-5.5), 0.9, too_many) == 0, "no step is enough");
                    check(!too_many, "nothing was given up");
                    check(count_sets(Asked(-5.5), 2, too_many) < 1001, "looking ends early");
                    check(too_many, "looking was given up");
                  }};

const Case answers{
    "change sets: where there are too many, answers are the same", [] {
      for (const double base : {-5.5, -3.5}) {
        const Asked asked(base);
        const Matrix<const double> rows{asked.x.data(), 1, kFeatures};
        const std::vector<std::int32_t> label{0};
        const verify::Limits limits{kInfinity, 1};
        Watch watch;
        const double truth = base < -4 ? kInfinity : 1.0;
        const verify::Distances near =
            verify::nearest_in_ensemble(asked.trees, rows, label, asked.budget, limits, watch);
        check(near.lower[0] == truth && near.upper[0] == truth, "the distance is right");
        const verify::Distances decided =
            verify::decide_in_ensemble(asked.trees, rows, label, asked.budget, limits, watch);
        check((decided.lower[0] == kInfinity) == (truth == kInfinity), "the decision is right");
      }
    }};

}  // namespace
}  // namespace hardwood::tests
