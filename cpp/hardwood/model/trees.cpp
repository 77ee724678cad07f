#include "hardwood/model/trees.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>

namespace hardwood::model {
namespace {

/// The shortest text that reads back as x.
std::string number(double x) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x).ptr;
  return {text.data(), end};
}

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::string place(std::size_t tree, std::int64_t node) {
  return "tree " + std::to_string(tree) + ", node " + std::to_string(node);
}

void check_sizes(const Trees& trees) {
  const std::size_t n = trees.n_nodes();
  const auto same = [&](const char* name, std::size_t got, std::size_t want) {
    if (got != want) {
      refuse(std::string(name) + " has " + std::to_string(got) + " entries but feature has " +
             std::to_string(n) + " nodes; expected " + std::to_string(want) + ".");
    }
  };
  if (trees.n_values < 1) refuse("value must have at least one column, got 0.");
  same("threshold", trees.threshold.size(), n);
  same("left", trees.left.size(), n);
  same("right", trees.right.size(), n);
  same("missing_left", trees.missing_left.size(), n);
  same("value", trees.value.size(), n * static_cast<std::size_t>(trees.n_values));
  if (trees.base.empty()) refuse("base must have at least one entry, got 0.");
  if (trees.n_features < 1 || trees.n_features > kMostFeatures) {
    refuse("n_features must be 1 to " + std::to_string(kMostFeatures) + ", got " +
           std::to_string(trees.n_features) + ".");
  }
}

void check_layout(const Trees& trees) {
  if (trees.tree_start.size() < 2 || trees.tree_start.front() != 0 ||
      trees.tree_start.back() != static_cast<std::int64_t>(trees.n_nodes())) {
    refuse("tree_start must begin with 0 and end with the number of nodes, " +
           std::to_string(trees.n_nodes()) + "; a model has at least one tree.");
  }
  if (trees.tree_output.size() != trees.n_trees()) {
    refuse("tree_output has " + std::to_string(trees.tree_output.size()) +
           " entries but there are " + std::to_string(trees.n_trees()) + " trees.");
  }
  for (std::size_t k = 0; k < trees.n_trees(); ++k) {
    if (trees.tree_start[k] >= trees.tree_start[k + 1]) {
      refuse("tree " + std::to_string(k) + " has no nodes; tree_start must increase.");
    }
    if (trees.tree_start[k + 1] - trees.tree_start[k] > INT32_MAX) {
      refuse("tree " + std::to_string(k) + " has more than 2147483647 nodes.");
    }
    const std::int64_t first = trees.tree_output[k];
    if (first < 0 || first + trees.n_values > static_cast<std::int64_t>(trees.n_outputs())) {
      refuse("tree " + std::to_string(k) + " adds " + std::to_string(trees.n_values) +
             " value(s) from output " + std::to_string(first) + " on, but the model has " +
             std::to_string(trees.n_outputs()) + " output(s).");
    }
  }
}

void check_threshold(const Trees& trees, std::size_t tree, std::int64_t node, double threshold) {
  if (std::isnan(threshold)) refuse(place(tree, node) + " has threshold NaN; it must be a number.");
  if (trees.x_float32 && static_cast<double>(static_cast<float>(threshold)) != threshold) {
    refuse(place(tree, node) + " has threshold " + number(threshold) +
           ", which float32 cannot hold, but the model compares in float32.");
  }
}

void check_tree(const Trees& trees, std::size_t tree, std::vector<std::uint8_t>& reached) {
  const std::int64_t start = trees.tree_start[tree];
  const std::int64_t size = trees.tree_start[tree + 1] - start;
  reached.assign(static_cast<std::size_t>(size), 0);
  reached[0] = 1;
  std::vector<std::int64_t> open{0};
  while (!open.empty()) {
    const std::int64_t node = open.back();
    open.pop_back();
    const auto at = static_cast<std::size_t>(start + node);
    const Feature feature = trees.feature[at];
    if (feature == kLeaf) continue;
    if (feature < 0 || feature >= trees.n_features) {
      refuse(place(tree, node) + " splits on feature " + std::to_string(feature) +
             ", but the model has " + std::to_string(trees.n_features) + " features (0 to " +
             std::to_string(trees.n_features - 1) + "; -1 marks a leaf).");
    }
    check_threshold(trees, tree, node, trees.threshold[at]);
    for (const NodeId child : {trees.left[at], trees.right[at]}) {
      if (child < 0 || child >= size) {
        refuse(place(tree, node) + " has child " + std::to_string(child) + ", but its tree has " +
               std::to_string(size) + " nodes.");
      }
      if (reached[static_cast<std::size_t>(child)]) {
        refuse(place(tree, child) + " is reached twice (again from node " + std::to_string(node) +
               "); every node but the root needs exactly one parent.");
      }
      reached[static_cast<std::size_t>(child)] = 1;
      open.push_back(child);
    }
  }
  for (std::int64_t node = 0; node < size; ++node) {
    if (!reached[static_cast<std::size_t>(node)]) {
      refuse(place(tree, node) + " is an orphan: no path leads to it from the root.");
    }
  }
}

/// The sets lie one after the other; each is increasing.
void check_categories(const Trees& trees) {
  if (trees.category_start.empty() && trees.category.empty()) return;
  const std::size_t n = trees.n_nodes();
  const auto& start = trees.category_start;
  if (start.size() != n + 1 || start.front() != 0 ||
      start.back() != static_cast<std::int64_t>(trees.category.size()) ||
      !std::ranges::is_sorted(start)) {
    refuse("category_start must have " + std::to_string(n + 1) +
           " entries that do not fall, from 0 to the number of categories, " +
           std::to_string(trees.category.size()) + ".");
  }
  for (std::size_t tree = 0; tree < trees.n_trees(); ++tree) {
    const auto first = static_cast<std::size_t>(trees.tree_start[tree]);
    for (std::size_t at = first; at < static_cast<std::size_t>(trees.tree_start[tree + 1]); ++at) {
      std::int32_t last = kNoCategory;
      for (const std::int32_t category : trees.categories(at)) {
        const std::string where = place(tree, static_cast<std::int64_t>(at - first));
        if (trees.feature[at] == kLeaf) refuse(where + " is a leaf, but has categories.");
        if (category <= last || category >= kMostCategories) {
          refuse(where + " has category " + std::to_string(category) + " after " +
                 std::to_string(last) + "; they must increase, from 0 to " +
                 std::to_string(kMostCategories - 1) + ".");
        }
        last = category;
      }
    }
  }
}

void check_values(const Trees& trees) {
  const auto n_values = static_cast<std::size_t>(trees.n_values);
  for (std::size_t tree = 0; tree < trees.n_trees(); ++tree) {
    const auto start = static_cast<std::size_t>(trees.tree_start[tree]);
    const auto end = static_cast<std::size_t>(trees.tree_start[tree + 1]);
    for (std::size_t i = start * n_values; i < end * n_values; ++i) {
      if (!std::isfinite(trees.value[i])) {
        refuse(place(tree, static_cast<std::int64_t>(i / n_values - start)) + " has value " +
               number(trees.value[i]) + "; values must be finite.");
      }
    }
  }
  for (const double base : trees.base) {
    if (!std::isfinite(base)) refuse("base must be finite, got " + number(base) + ".");
  }
}

}  // namespace

void Trees::check() const {
  check_sizes(*this);
  check_layout(*this);
  check_values(*this);
  check_categories(*this);
  std::vector<std::uint8_t> reached;
  for (std::size_t tree = 0; tree < n_trees(); ++tree) check_tree(*this, tree, reached);
}

}  // namespace hardwood::model
