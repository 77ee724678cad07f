#include "hardwood/verify/messages.hpp"

#include <cstdint>
#include <limits>
#include <random>

#include "check.hpp"
#include "hardwood/verify/merge.hpp"
#include "hardwood/verify/search.hpp"

namespace hardwood::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Random trees on few features and thresholds, so that cuts are small enough to enumerate.
model::Trees random_trees(std::mt19937& random, bool whole) {
  model::Trees trees;
  trees.n_features = 3;
  trees.base = {0.0};
  trees.tree_start = {0};
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int k = 0; k < 6; ++k) {
    const auto start = static_cast<NodeId>(trees.n_nodes());
    std::vector<int> depth{0};
    for (std::size_t at = 0; at < depth.size(); ++at) {
      const bool leaf = depth[at] == 3 || draw(5) == 0;
      trees.feature.push_back(leaf ? kLeaf : draw(3));
      trees.threshold.push_back(leaf ? 0.0 : static_cast<float>(1 + draw(4)) / 5);
      trees.left.push_back(leaf ? -1 : static_cast<NodeId>(depth.size()));
      trees.right.push_back(leaf ? -1 : static_cast<NodeId>(depth.size() + 1));
      trees.missing_left.push_back(0);
      trees.value.push_back(static_cast<float>(draw(9) - 4) / (whole ? 2.0f : 7.0f));
      if (!leaf) depth.insert(depth.end(), 2, depth[at] + 1);
    }
    trees.tree_start.push_back(start + static_cast<std::int64_t>(depth.size()));
    trees.tree_output.push_back(0);
  }
  trees.check();
  return trees;
}

std::int64_t value_of(const verify::Cut& cut, const std::vector<std::int32_t>& point) {
  std::int64_t value = 0;
  for (std::size_t f = 0; f < point.size(); ++f) {
    value += cut.alone[static_cast<std::size_t>(cut.cell_start[f] + point[f])];
  }
  for (std::int32_t at : cut.roots) {
    while (cut.nodes[static_cast<std::size_t>(at)].feature != kLeaf) {
      const verify::Cut::Node& node = cut.nodes[static_cast<std::size_t>(at)];
      at = point[static_cast<std::size_t>(node.feature)] <= node.rank ? node.left : node.right;
    }
    value += cut.nodes[static_cast<std::size_t>(at)].value;
  }
  return value;
}

template <class Body>
void for_each_point(const verify::Cut& cut, Body&& body) {
  std::vector<std::int32_t> point(cut.n_features(), 0);
  while (true) {
    body(point);
    std::size_t f = 0;
    while (f < point.size() && ++point[f] == cut.n_cells(f)) point[f++] = 0;
    if (f == point.size()) return;
  }
}

void check_bounds(bool costs) {
  std::mt19937 random(costs ? 1 : 0);
  for (int round = 0; round < 300; ++round) {
    const model::Trees trees = random_trees(random, round % 2 == 0);
    const cells::Ensemble ensemble(trees);
    const std::vector<double> x{0.3, 0.5, 0.9};
    const std::vector<double> scale(3, 1.0);
    const std::vector<Reach> reach(3, Reach{kInfinity, kInfinity, -10, 10});
    const cells::Budget budget{cells::Norm::kOne, kInfinity, reach, scale, scale};
    const cells::Ball ball(ensemble, x, budget);
    for (const std::int32_t y : {0, 1}) {
      const cells::Question question = ensemble.questions({y}).front();
      verify::CutBuilder builder(ensemble);
      verify::Cut cut;
      builder.build(ball, question, ensemble.members(question), {0.6}, cut);
      if (cut.empty) continue;
      const double most = 0.5;
      verify::Messages messages;
      verify::State state;
      if (costs) {
        messages.start(cut, state, 1e6, most);
      } else {
        messages.start(cut, state);
      }
      std::vector<cells::Cells> asked = state.cells;
      for (int sweep = 0; sweep < 8; ++sweep) {
        if (sweep == 3 && !state.dead())
          verify::merge_factors(cut, state, costs ? most : kInfinity);
        if (sweep >= 5 && !state.dead() &&
            cut.n_features() > 0) {  // half of a feature's cells, laid out anew
          const auto f = static_cast<std::size_t>(sweep) % cut.n_features();
          const cells::Cells cells = state.cells[f];
          const std::int32_t middle = (cells.lo + cells.hi) / 2;
          asked[f] = y == 0 ? cells::Cells{cells.lo, middle} : cells::Cells{middle, cells.hi};
          state.cells[f] = asked[f];
          state.changed[f] = 1;
          verify::compact_factors(cut, state);
        }
        if (!state.dead()) messages.sweep(cut, state);
        if (costs && !state.dead()) messages.reprice(cut, state, most);
        for_each_point(cut, [&](const std::vector<std::int32_t>& point) {
          double cost = 0;
          bool inside = true;
          bool wanted = true;
          for (std::size_t f = 0; f < point.size(); ++f) {
            cost += cut.cost[static_cast<std::size_t>(cut.cell_start[f] + point[f])];
            inside &= state.cells[f].lo <= point[f] && point[f] <= state.cells[f].hi;
            wanted &= asked[f].lo <= point[f] && point[f] <= asked[f].hi;
          }
          const std::int64_t value = value_of(cut, point);
          if (!wanted || value < cut.needed || (costs && cost > most)) return;
          check(!state.dead() && state.bound >= value, "the bound is below a point");
          check(inside, "a cell of a point that is good enough was dropped");
        });
      }
    }
  }
}

const Case bounds{"verify: no sweep or layout brings the bound below a point that is good enough",
                  [] { check_bounds(false); }};
const Case priced{"verify: nor below one that is also cheap enough", [] { check_bounds(true); }};

}  // namespace
}  // namespace hardwood::tests
