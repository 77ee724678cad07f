#include "hardwood/ensemble/certified.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "check.hpp"
#include "hardwood/ensemble/certified_ends.hpp"
#include "hardwood/ensemble/joint_refit.hpp"
#include "small_trees.hpp"

namespace hardwood::ensemble {
namespace {

using tests::Case;
using tests::check;
using tests::that;

struct Run {
  std::vector<float> low, high;
  std::vector<grow::GrownTree> trees;

  void check_same(const Run& other) const {
    check(low == other.low && high == other.high, "the same margins");
    for (std::size_t k = 0; k < trees.size(); ++k) {
      check(that(trees[k].feature) == other.trees[k].feature, "the same features");
      check(that(trees[k].threshold) == other.trees[k].threshold, "the same thresholds");
      check(that(trees[k].value) == other.trees[k].value, "the same values");
    }
  }
};

/// A few rounds, of which `adjust` can change what is asked; three classes against the rest, and a
/// feature with missing values.
Run boost(std::size_t n_rows, int n_threads,
          const std::function<void(CertifiedRound&)>& adjust = {}) {
  constexpr std::size_t kFeatures = 3, kClasses = 3;
  tests::Random random(1);
  std::vector<double> x(n_rows * kFeatures);
  for (double& value : x) value = static_cast<double>(random.below(1000)) / 1000;
  std::vector<float> y(n_rows);
  for (std::size_t i = 0; i < n_rows; ++i) {
    y[i] = static_cast<float>(static_cast<int>(2.999 * x[i * kFeatures]));
    if (random.below(20) == 0) x[i * kFeatures + 2] = std::nan("");
  }
  const std::vector<Reach> reach(kFeatures, {0.02, 0.02, -9, 9});
  CertifiedBoosting<std::uint8_t> boosting(bins::DenseTable<double>{{x.data(), n_rows, kFeatures}},
                                           reach, 256, false, n_threads);
  Run run{std::vector<float>(n_rows * kClasses), std::vector<float>(n_rows * kClasses), {}};
  CertifiedRound round;
  round.y = y;
  round.low = {run.low.data(), n_rows, kClasses};
  round.high = {run.high.data(), n_rows, kClasses};
  round.rules.max_depth = 4;
  round.rules.n_threads = n_threads;
  if (adjust) adjust(round);
  for (round.seed = 0; round.seed < 3; ++round.seed) run.trees = boosting.step(round);
  return run;
}

const Case any_number_of_threads{
    "ensemble: certified boosting has the same bytes for any number of threads", [] {
      for (const std::size_t n_rows : {300u, 20'000u}) {  // both grids
        const Run one = boost(n_rows, 1);
        for (const int n_threads : {2, 4}) {
          one.check_same(boost(n_rows, n_threads));
        }
        check(that(one.low) != one.high, "somebody can be moved");
      }
    }};

const Case screened{"ensemble: certified boosting judges every candidate that might win", [] {
                      // With a penalty so small that no sum feels it, all candidates are judged one
                      // by one.
                      const auto judge_all = [](CertifiedRound& round) {
                        round.rules.reg_alpha = 1e-300;
                      };
                      boost(20'000, 1).check_same(boost(20'000, 1, judge_all));
                    }};

const Case reached{
    "ensemble: certified trees note the rows of their leaves as these are found from outside", [] {
      for (const std::size_t n_rows : {300u, 20'000u}) {
        for (const double min_split_gain : {0.0, 1.0}) {
          const auto noted = [&](CertifiedRound& round) {
            round.rules.min_split_gain = min_split_gain;
          };
          const std::vector<std::uint8_t> all(n_rows, 1);
          const auto found = [&](CertifiedRound& round) {
            noted(round);
            round.sampled = all;  // where rows are drawn, nobody notes anything
          };
          const Run run = boost(n_rows, 2, noted);
          run.check_same(boost(n_rows, 2, found));
          check(run.trees[0].feature.size() > 1, "there are splits");
          const bool fewer = run.trees[0].feature.size() < boost(n_rows, 2).trees[0].feature.size();
          check(that(fewer) == (min_split_gain > 0), "some are taken back");
        }
      }
    }};

const Case ends_hold{
    "ensemble: certified ends enclose the margins of moved rows", [] {
      tests::Random random(7);
      for (int trial = 0; trial < 50; ++trial) {
        model::Trees trees = tests::random_trees(random, 5, 6, 2, true);
        const std::vector<Reach> reach(2, {0.3, 0.3, -9, 9});
        const std::vector<double> x{static_cast<double>(random.below(30)) / 10 - 1,
                                    static_cast<double>(random.below(30)) / 10 - 1};
        float low = 0.5f, high = 0.5f;
        add_certified_ends<double>(trees, {x.data(), 1, 2}, reach, {&low, 1, 1}, {&high, 1, 1}, 1);
        for (int move = 0; move < 20; ++move) {
          float margin = 0.5f;
          const double step[2] = {static_cast<double>(random.below(61)) / 100 - 0.3,
                                  static_cast<double>(random.below(61)) / 100 - 0.3};
          for (std::size_t k = 0; k < trees.n_trees(); ++k) {
            const auto first = static_cast<std::size_t>(trees.tree_start[k]);
            std::size_t node = first;
            while (trees.feature[node] != kLeaf) {
              const auto f = static_cast<std::size_t>(trees.feature[node]);
              const bool left = trees.sends_left(node, x[f] + step[f]);
              node = first + static_cast<std::size_t>(left ? trees.left[node] : trees.right[node]);
            }
            margin += static_cast<float>(trees.value[node]);
          }
          check(low <= margin && margin <= high, "between the ends");
        }
      }
    }};

/// Two stumps, one a class.
model::Trees stumps() {
  model::Trees trees;
  trees.feature = {0, kLeaf, kLeaf, 0, kLeaf, kLeaf};
  trees.threshold = {0.5, 0, 0, 0.5, 0, 0};
  trees.left = {1, -1, -1, 1, -1, -1};
  trees.right = {2, -1, -1, 2, -1, -1};
  trees.missing_left = {0, 0, 0, 0, 0, 0};
  trees.value = {0, 0.1, -0.1, 0, -0.1, 0.1};
  trees.tree_start = {0, 3, 6};
  trees.tree_output = {0, 1};
  trees.base = {0, 0};
  trees.n_features = 1;
  return trees;
}

const Case refits_together{
    "ensemble: the joint refit moves all leaves to where the rows want them", [] {
      const std::vector<double> x{0.1, 0.2, 0.8, 0.9, 0.48};
      const std::vector<float> y{0, 0, 1, 1, 0};
      const std::vector<Reach> reach{{0.05, 0.05, -9, 9}};
      const std::vector<JointRows> rows{{reach, 1.0}};
      JointRefit how;
      const std::vector<float> one =
          joint_refit<double>(stumps(), {x.data(), 5, 1}, y, {}, rows, how);
      how.n_threads = 3;
      check(one == joint_refit<double>(stumps(), {x.data(), 5, 1}, y, {}, rows, how),
            "the same bytes for any number of threads");
      check(one[1] > 0.1f && one[2] < -0.1f && one[4] < -0.1f && one[5] > 0.1f, "further apart");
    }};

}  // namespace
}  // namespace hardwood::ensemble
