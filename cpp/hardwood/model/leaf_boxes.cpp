#include "hardwood/model/leaf_boxes.hpp"

#include <algorithm>
#include <iterator>

namespace hardwood::model {
namespace {

Condition& condition_on(std::vector<Condition>& path, Feature feature) {
  const auto found = std::ranges::find(path, feature, &Condition::feature);
  if (found != path.end()) return *found;
  return path.emplace_back(Condition{feature, Interval{}, true});
}

/// Keep the categories of a set, or those outside of it.
void narrow(Categories& kept, std::span<const std::int32_t> set, bool inside) {
  std::vector<std::int32_t> listed;
  const auto out = std::back_inserter(listed);
  if (kept.all_but && inside) {
    std::ranges::set_difference(set, kept.listed, out);
  } else if (kept.all_but) {
    std::ranges::set_union(kept.listed, set, out);
  } else if (inside) {
    std::ranges::set_intersection(kept.listed, set, out);
  } else {
    std::ranges::set_difference(kept.listed, set, out);
  }
  kept = {kept.all_but && !inside, std::move(listed)};
}

}  // namespace

LeafBoxes leaf_boxes(const Trees& trees, std::size_t tree) {
  struct Visit {
    NodeId node;
    std::vector<Condition> path;
  };
  const auto start = static_cast<std::size_t>(trees.tree_start[tree]);
  LeafBoxes boxes;
  boxes.start.push_back(0);
  std::vector<Visit> open;
  open.push_back({0, {}});
  while (!open.empty()) {
    Visit visit = std::move(open.back());
    open.pop_back();
    const std::size_t at = start + static_cast<std::size_t>(visit.node);
    if (trees.feature[at] == kLeaf) {
      boxes.node.push_back(visit.node);
      boxes.conditions.insert(boxes.conditions.end(), visit.path.begin(), visit.path.end());
      boxes.start.push_back(boxes.conditions.size());
      continue;
    }
    const double edge = trees.edge(at);
    const auto set = trees.categories(at);
    const bool missing_left = trees.missing_left[at] != 0;
    Visit right{trees.right[at], visit.path};
    Condition& above = condition_on(right.path, trees.feature[at]);
    if (set.empty()) {
      above.interval.low = std::max(above.interval.low, edge);
    } else {
      narrow(above.categories, set, true);
    }
    above.missing = above.missing && !missing_left;
    Visit left{trees.left[at], std::move(visit.path)};
    Condition& below = condition_on(left.path, trees.feature[at]);
    if (set.empty()) {
      below.interval.high = std::min(below.interval.high, edge);
    } else {
      narrow(below.categories, set, false);
    }
    below.missing = below.missing && missing_left;
    open.push_back(std::move(right));
    open.push_back(std::move(left));
  }
  return boxes;
}

std::vector<std::int32_t> leaf_labels(const Trees& trees, const LeafBoxes& boxes) {
  const auto rounded = [&](double sum) {
    return trees.sum_float32 ? static_cast<float>(sum) : sum;
  };
  const auto n_values = static_cast<std::size_t>(trees.n_values);
  std::vector<std::int32_t> labels;
  for (const NodeId node : boxes.node) {
    std::vector<double> margin = trees.base;
    std::ranges::transform(margin, margin.begin(), rounded);
    for (std::size_t v = 0; v < n_values; ++v) {
      double& sum = margin[static_cast<std::size_t>(trees.tree_output[0]) + v];
      sum = rounded(sum + trees.value[static_cast<std::size_t>(node) * n_values + v]);
    }
    labels.push_back(trees.decision.label(margin));
  }
  return labels;
}

}  // namespace hardwood::model
