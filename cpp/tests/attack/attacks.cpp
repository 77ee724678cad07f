#include <algorithm>
#include <cmath>

#include "check.hpp"
#include "hardwood/attack/descent.hpp"
#include "hardwood/attack/lengths.hpp"
#include "hardwood/attack/moves.hpp"
#include "hardwood/attack/one_change.hpp"
#include "hardwood/attack/papernot.hpp"
#include "hardwood/attack/symbolic.hpp"
#include "hardwood/model/predict.hpp"
#include "hardwood/verify/distance.hpp"
#include "small_trees.hpp"

namespace hardwood::tests {
namespace {

constexpr std::size_t kFeatures = 4;
constexpr std::size_t kRows = 60;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Case examples_fool{
    "attack: examples change the label, none is nearer than the nearest, threads change nothing",
    [] {
      Random random(6);
      const std::vector<double> scale(kFeatures, 1.0);
      const std::vector<Reach> reach(kFeatures, Reach{10, 10, -10, 10});
      for (int repeat = 0; repeat < 40; ++repeat) {
        const std::size_t n_trees = repeat % 4 == 0 ? 1 : 9;
        const model::Trees trees = random_trees(random, n_trees, 8, kFeatures, repeat % 2 == 0);
        trees.check();
        const auto predictor = model::make_predictor(trees);
        const std::vector<double> x = random_rows(random, kRows, kFeatures);
        const Matrix<const double> rows{x.data(), kRows, kFeatures};
        std::vector<std::int32_t> y;
        for (const double margin : predictor->margin(rows, 1)) y.push_back(margin > 0);
        for (const auto norm : {cells::Norm::kInf, cells::Norm::kOne, cells::Norm::kTwo}) {
          const cells::Budget budget{norm, kInfinity, reach, scale, scale};
          Watch watch;
          const auto truth =
              verify::nearest_in_ensemble(trees, rows, y, budget, {kInfinity, 1}, watch);
          const auto try_out = [&](const auto& attack) {
            const std::vector<double> found = attack(1);
            const Matrix<const double> x_adv{found.data(), kRows, kFeatures};
            const std::vector<double> length = attack::lengths(rows, x_adv, budget);
            const std::vector<double> margin = predictor->margin(x_adv, 1);
            for (std::size_t i = 0; i < kRows; ++i) {
              // A row of missing values only is its own distance from a row that was not found.
              const auto values = x_adv.row(i);
              if (std::all_of(values.begin(), values.end(),
                              [](double v) { return std::isnan(v); })) {
                continue;
              }
              check((margin[i] > 0) != (y[i] == 1), "the example must change the label");
              check(length[i] >= truth.lower[i] * (1 - 1e-12), "nearer than the nearest");
            }
            for (const int n_threads : {2, 5}) {
              const std::vector<double> again = attack(n_threads);
              for (std::size_t k = 0; k < found.size(); ++k) {
                check(found[k] == again[k] || (std::isnan(found[k]) && std::isnan(again[k])),
                      "examples depend on threads");
              }
            }
          };
          try_out([&](int n) { return attack::descent(trees, rows, y, budget, n, watch); });
          try_out([&](int n) { return attack::symbolic(trees, rows, y, budget, n, watch); });
          if (n_trees == 1) {
            try_out([&](int n) { return attack::papernot(trees, rows, y, budget, n, watch); });
          }
        }
      }
    }};

const Case one_change_is_the_margin{
    "attack: symbolic prediction of one change is the model's margin there", [] {
      Random random(7);
      const std::vector<double> scale(kFeatures, 1.0);
      const std::vector<Reach> reach(kFeatures, Reach{10, 10, -10, 10});
      const cells::Budget budget{cells::Norm::kInf, 10, reach, scale, scale};
      for (int repeat = 0; repeat < 40; ++repeat) {
        const model::Trees trees = random_trees(random, 7, 9, kFeatures, false);
        const cells::Ensemble ensemble(trees);
        attack::OneChange changes(ensemble);
        const std::vector<double> x = random_rows(random, 1, kFeatures);
        const cells::Ball ball(ensemble, x, budget);
        std::vector<std::int32_t> point(ball.home().begin(), ball.home().end());
        const double lead = changes.read({0, cells::Question::kConstant, true}, ball, point);
        for (std::size_t f = 0; f < kFeatures; ++f) {
          if (point[f] == cells::kMissing) continue;
          const std::int32_t home = point[f];
          for (std::size_t c = 0; c < changes.gain(f).size(); ++c) {
            point[f] = static_cast<std::int32_t>(c);
            double margin = 0;
            ensemble.margin(point, {&margin, 1});
            check(std::abs(lead + changes.gain(f)[c] - margin) < 1e-12, "not the margin there");
          }
          point[f] = home;
        }
      }
    }};

const Case moves_know_the_margin{
    "attack: value, gains and cost of a point that moves are those of the model, within the budget",
    [] {
      Random random(8);
      const std::vector<double> scale(kFeatures, 1.0);
      const std::vector<Reach> reach(kFeatures, Reach{10, 10, -10, 10});
      const cells::Question question{0, cells::Question::kConstant, true};
      for (int repeat = 0; repeat < 60; ++repeat) {
        const auto norm = repeat % 2 == 0 ? cells::Norm::kOne : cells::Norm::kTwo;
        const cells::Budget any{norm, kInfinity, reach, scale, scale};
        const model::Trees trees = random_trees(random, 7, 9, kFeatures, false);
        const cells::Ensemble ensemble(trees);
        const std::vector<double> x = random_rows(random, 1, kFeatures);
        const cells::Ball ball(ensemble, x, any);
        const double budget = repeat % 3 == 0 ? kInfinity : 0.6;
        attack::NearTrees near(ensemble);
        near.build(ball, question, ensemble.members(question), 10, budget);
        attack::Moves moves;
        moves.build(near, ball);
        std::vector<std::int32_t> point(ball.home().begin(), ball.home().end());
        const auto compare = [&](double value, double paid) {
          double cost = 0;
          for (std::size_t f = 0; f < kFeatures; ++f) {
            if (point[f] != ball.home()[f]) cost += cells::cost_of(norm, ball.step(f, point[f]), 1);
          }
          check(std::abs(paid - cost) < 1e-9, "not the cost");
          if (cost > budget) return;  // left out
          double margin = 0;
          ensemble.margin(point, {&margin, 1});
          check(std::abs(value - margin) < 1e-9, "not the margin");
        };
        moves.start(point);
        std::vector<std::int32_t> places;
        for (int k = 0; k < 20 && moves.n_features() > 0; ++k) {
          for (std::size_t f = 0; f < moves.n_features(); ++f) {
            const double most = std::max(std::ranges::max(moves.gains(f)), 0.0);
            check(moves.most_gain(f) == most, "the largest gain");
            for (std::size_t c = 0; c < moves.costs(f).size(); ++c) {
              attack::Moves moved = moves;
              moved.move(f, c);
              moved.write(point);
              compare(moves.value() + moves.gains(f)[c], moved.cost());
              compare(moved.value(), moved.cost());
            }
          }
          const std::size_t f = random.below(moves.n_features());
          moves.move(f, random.below(moves.costs(f).size()));
          const std::size_t tree = random.below(moves.n_trees());
          const auto leaves = moves.leaves(tree);
          const auto& leaf = leaves[random.below(leaves.size())];
          const double before = moves.value(), gain = moves.gain_of(leaf);
          attack::Moves entered = moves;
          entered.enter(leaf);
          check(std::abs(entered.value() - before - gain) < 1e-9, "what a leaf gains in all trees");
          const attack::Moves::Entry entry = moves.entry(tree, leaf);
          const double paid = entered.cost() - moves.cost();
          check(std::abs(entry.cost - paid) < 1e-9, "what a leaf costs");
          if (k % 3 == 0) moves.enter(leaf);
          if (k % 7 == 4) {
            moves.save();
            places.assign(moves.places().begin(), moves.places().end());
          }
          if (k % 7 == 6) {
            moves.go_back();
            check(std::ranges::equal(moves.places(), places), "back where it was");
          }
        }
        moves.start_at_home();
        check(moves.cost() == 0, "home costs nothing");
      }
    }};

}  // namespace
}  // namespace hardwood::tests
