#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "check.hpp"
#include "hardwood/model/predict.hpp"
#include "hardwood/verify/distance.hpp"
#include "hardwood/verify/tree.hpp"
#include "small_trees.hpp"

/// Numbers, whole numbers, categories and blanks: every answer equals that of trying all moves.
namespace hardwood::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kFeatures = 4;
constexpr std::int32_t kCodes = 6;
constexpr int kRounds = 120;
constexpr std::array kNorms{cells::Norm::kInf, cells::Norm::kOne, cells::Norm::kTwo,
                            cells::Norm::kZero};

enum class Kind { kNumber, kWhole, kCategory };

/// A model, a row and a threat.
struct Problem {
  model::Trees trees;
  std::array<Kind, kFeatures> kind{};
  std::vector<double> x;
  std::vector<Reach> reach;
  std::vector<double> scale;
  std::vector<std::int64_t> code_start{0};
  std::vector<std::int64_t> becomes_start{0};
  std::vector<std::int32_t> becomes;
  std::vector<std::uint8_t> blank;
  cells::Budget budget;
};

model::Trees make_trees(Random& random, std::span<const Kind> kind, bool float32, bool many) {
  model::Trees trees = random_trees(random, many ? 1 + random.below(6) : 1, 7, kFeatures, float32);
  const std::size_t coarse = random.below(2);
  trees.category_start.push_back(0);
  for (std::size_t at = 0; at < trees.n_nodes(); ++at) {
    if (trees.feature[at] == kLeaf) {
      // Coarse values make ties between leaves, and sums that are exact.
      if (coarse) trees.value[at] = static_cast<double>(random.below(5)) / 2 - 1;
    } else if (kind[static_cast<std::size_t>(trees.feature[at])] == Kind::kCategory) {
      const auto one = static_cast<std::int32_t>(random.below(kCodes));
      for (std::int32_t code = 0; code < kCodes; ++code) {
        if (code == one || random.below(2)) trees.category.push_back(code);
      }
    } else {
      trees.threshold[at] = (static_cast<double>(random.below(13)) - 6) / 2;
    }
    trees.category_start.push_back(static_cast<std::int64_t>(trees.category.size()));
  }
  if (trees.category.empty()) trees.category_start.clear();
  trees.base = {0.25};
  trees.check();
  return trees;
}

Problem make_problem(Random& random, cells::Norm norm, bool many, bool unlimited) {
  Problem problem;
  for (Kind& kind : problem.kind) kind = static_cast<Kind>(random.below(3));
  problem.trees = make_trees(random, problem.kind, random.below(2) != 0, many);
  const bool share = random.below(3) == 0;
  const double size = static_cast<double>(1 + random.below(5)) / 2;
  for (std::size_t f = 0; f < kFeatures; ++f) {
    double x = static_cast<double>(random.below(13)) / 2 - 3;
    if (problem.kind[f] == Kind::kWhole) x = std::floor(x);
    if (problem.kind[f] == Kind::kCategory) x = static_cast<double>(random.below(kCodes + 1));
    if (random.below(10) == 0) x = kNan;
    problem.x.push_back(x);
    const double scale = static_cast<double>(1 + random.below(2)) / 2;
    const double step = random.below(5) == 0 ? 0 : (unlimited ? kInfinity : scale * size);
    Reach reach{step, step, -4, 4, 0, 0, problem.kind[f] == Kind::kWhole};
    if (share && random.below(2)) {
      std::swap(reach.down, reach.down_share);
      std::swap(reach.up, reach.up_share);
    }
    if (random.below(4) == 0) reach.up = reach.up_share = 0;
    problem.reach.push_back(reach);
    problem.scale.push_back(scale);
    problem.blank.push_back(random.below(4) == 0);
    if (problem.kind[f] == Kind::kCategory && random.below(4) > 0) {
      for (std::int32_t code = 0; code <= kCodes; ++code) {
        for (std::int32_t to = 0; to < kCodes; ++to) {
          if (to == code || random.below(2)) problem.becomes.push_back(to);
        }
        problem.becomes_start.push_back(static_cast<std::int64_t>(problem.becomes.size()));
      }
    }
    problem.code_start.push_back(static_cast<std::int64_t>(problem.becomes_start.size()) - 1);
  }
  const double most = norm == cells::Norm::kZero ? static_cast<double>(1 + random.below(4)) : size;
  problem.budget.norm = norm;
  problem.budget.radius = unlimited ? kInfinity : most;
  problem.budget.unit = size;
  if (random.below(3) == 0) problem.budget.max_changes = static_cast<int>(1 + random.below(5));
  return problem;
}

/// Spans of what the problem holds, which has to stay where it is.
cells::Budget budget_of(const Problem& problem) {
  cells::Budget budget = problem.budget;
  budget.reach = problem.reach;
  budget.down_scale = budget.up_scale = problem.scale;
  budget.changes = {problem.code_start, problem.becomes_start, problem.becomes};
  budget.blank = problem.blank;
  return budget;
}

struct Move {
  double value;
  double step;
};

/// Everything that one feature can become, as far as any tree can tell.
std::vector<Move> moves_of(const Problem& problem, std::size_t f) {
  const double x = problem.x[f];
  std::vector<Move> moves{{x, 0}};
  if (std::isnan(x)) return moves;
  const Reach& reach = problem.reach[f];
  const auto add = [&](double z) {
    if (z == x || z < reach.lowest(x) || z > reach.highest(x)) return;
    const double share = z < x ? reach.down_share : reach.up_share;
    const double scale = problem.scale[f] * (share > 0 ? std::abs(x) : 1);
    moves.push_back({z, std::min(cells::step_between(x, z) / scale, problem.budget.radius)});
  };
  if (problem.kind[f] == Kind::kCategory) {
    const auto first = static_cast<std::size_t>(problem.code_start[f]);
    if (static_cast<std::size_t>(problem.code_start[f + 1]) > first) {
      const std::size_t code = first + static_cast<std::size_t>(std::min(x, double{kCodes}));
      for (auto i = static_cast<std::size_t>(problem.becomes_start[code]);
           i < static_cast<std::size_t>(problem.becomes_start[code + 1]); ++i) {
        if (problem.becomes[i] != x)
          moves.push_back({double(problem.becomes[i]), problem.budget.unit});
      }
    }
  } else if (problem.kind[f] == Kind::kWhole) {
    for (int z = -4; z <= 4; ++z) add(z);
  } else {
    for (std::size_t at = 0; at < problem.trees.n_nodes(); ++at) {
      if (problem.trees.feature[at] != static_cast<Feature>(f)) continue;
      add(problem.trees.edge(at));
      add(std::nextafter(problem.trees.edge(at), -kInfinity));
    }
  }
  if (problem.blank[f]) moves.push_back({kNan, problem.budget.unit});
  return moves;
}

struct Truth {
  double distance = kInfinity;
  double least = kInfinity;
  double most = -kInfinity;
};

double margin_at(const model::Predictor& predictor, const std::vector<double>& x) {
  return predictor.margin({x.data(), 1, x.size()}, 1)[0];
}

Truth enumerate(const Problem& problem, const model::Predictor& predictor, std::int32_t y) {
  std::array<std::vector<Move>, kFeatures> moves;
  for (std::size_t f = 0; f < kFeatures; ++f) moves[f] = moves_of(problem, f);
  Truth truth;
  std::array<std::size_t, kFeatures> at{};
  std::vector<double> z(kFeatures);
  while (true) {
    cells::Length length{problem.budget.norm};
    int n_changes = 0;
    for (std::size_t f = 0; f < kFeatures; ++f) {
      z[f] = moves[f][at[f]].value;
      if (at[f] == 0) continue;
      length.add(moves[f][at[f]].step);
      ++n_changes;
    }
    const bool few = problem.budget.max_changes == 0 || n_changes <= problem.budget.max_changes;
    if (few && length.total <= problem.budget.radius) {
      const double margin = margin_at(predictor, z);
      if ((margin > 0) != (y == 1)) truth.distance = std::min(truth.distance, length.total);
      truth.least = std::min(truth.least, margin);
      truth.most = std::max(truth.most, margin);
    }
    std::size_t f = 0;
    while (f < kFeatures && ++at[f] == moves[f].size()) at[f++] = 0;
    if (f == kFeatures) return truth;
  }
}

bool same(double a, double b) { return a == b || std::abs(a - b) <= 1e-9 * std::abs(b); }

/// The example fools the model, is a possible row, and is as far as it says.
void check_example(const Problem& problem, const model::Predictor& predictor, std::int32_t y,
                   std::span<const double> z, double distance, const std::string& what) {
  check((margin_at(predictor, {z.begin(), z.end()}) > 0) != (y == 1), what + ": fools nobody");
  cells::Length length{problem.budget.norm};
  int n_changes = 0;
  for (std::size_t f = 0; f < kFeatures; ++f) {
    const double x = problem.x[f];
    if (z[f] == x || (std::isnan(x) && std::isnan(z[f]))) continue;
    ++n_changes;
    double step = kInfinity;
    if (problem.kind[f] == Kind::kNumber && !std::isnan(z[f])) {
      const Reach& reach = problem.reach[f];
      if (z[f] < reach.lowest(x) || z[f] > reach.highest(x)) continue;
      const double share = z[f] < x ? reach.down_share : reach.up_share;
      step = std::min(std::abs(z[f] - x) / (problem.scale[f] * (share > 0 ? std::abs(x) : 1)),
                      problem.budget.radius);
    } else {
      for (const Move& move : moves_of(problem, f)) {
        const bool hit = move.value == z[f] || (std::isnan(move.value) && std::isnan(z[f]));
        if (hit) step = std::min(step, move.step);
      }
    }
    length.add(step);
  }
  check(same(length.total, distance), what + ": is at another distance");
  check(problem.budget.max_changes == 0 || n_changes <= problem.budget.max_changes,
        what + ": changes too much");
}

void check_all(bool many) {
  Random random(many ? 7 : 8);
  for (int round = 0; round < kRounds; ++round) {
    for (const cells::Norm norm : kNorms) {
      const bool unlimited = random.below(2) != 0;
      const Problem problem = make_problem(random, norm, many, unlimited);
      const cells::Budget budget = budget_of(problem);
      const auto predictor = model::make_predictor(problem.trees);
      const std::int32_t y = margin_at(*predictor, problem.x) > 0;
      const Truth truth = enumerate(problem, *predictor, y);
      const Matrix<const double> rows{problem.x.data(), 1, kFeatures};
      const std::vector<std::int32_t> label{y};
      const std::string what = "round " + std::to_string(round) + ", norm " +
                               std::to_string(static_cast<int>(norm)) + ", changes " +
                               std::to_string(budget.max_changes);
      Watch watch;
      if (!many) {
        const verify::Nearest found =
            verify::nearest_in_tree(problem.trees, rows, label, budget, 1, watch);
        check(same(found.distance[0], truth.distance), what + ": tree");
        if (found.distance[0] < kInfinity) {
          check_example(problem, *predictor, y, found.x_adv, truth.distance, what + ", tree");
        }
      }
      const verify::Limits limits{kInfinity, 1};
      const verify::Distances decided =
          verify::decide_in_ensemble(problem.trees, rows, label, budget, limits, watch);
      check((decided.upper[0] < kInfinity) == (truth.distance < kInfinity), what + ": decision");
      check((decided.lower[0] == kInfinity) == (truth.distance == kInfinity), what + ": proof");
      if (decided.upper[0] < kInfinity) {
        check_example(problem, *predictor, y, decided.x_adv, decided.upper[0], what + ", decision");
      }
      if (unlimited) {
        const verify::Distances found =
            verify::nearest_in_ensemble(problem.trees, rows, label, budget, limits, watch);
        check(same(found.upper[0], truth.distance), what + ": distance");
        check(found.lower[0] == found.upper[0], what + ": lower");
        if (found.upper[0] < kInfinity) {
          check_example(problem, *predictor, y, found.x_adv, truth.distance, what + ", distance");
        }
      }
      if (unlimited) {
        const verify::Distances found =
            verify::near_in_ensemble(problem.trees, rows, label, budget, limits, watch);
        check(found.lower[0] <= truth.distance * (1 + 1e-9), what + ": quick bound");
        if (found.upper[0] < kInfinity) {
          check_example(problem, *predictor, y, found.x_adv, found.upper[0], what + ", quick");
        }
      }
      for (const bool up : {false, true}) {
        const verify::Extremes pushed =
            verify::farthest_in_ensemble(problem.trees, rows, up, budget, limits, watch);
        check(pushed.found[0] == (up ? truth.most : truth.least), what + ": output");
        check(pushed.found[0] == pushed.proven[0], what + ": proof of the output");
      }
    }
  }
}

const Case single{"verify: all variables of one tree, against all moves", [] { check_all(false); }};
const Case several{"verify: all variables of several trees, against all moves",
                   [] { check_all(true); }};

}  // namespace
}  // namespace hardwood::tests
