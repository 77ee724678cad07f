#include "hardwood/model/trees.hpp"

#include <limits>

#include "check.hpp"

namespace hardwood::tests {
namespace {

using model::Trees;

/// 0 -> (1 -> (3, 4), 2), two features.
Trees two_splits() {
  Trees trees;
  trees.feature = {0, 1, -1, -1, -1};
  trees.threshold = {0.5, 0.25, 0, 0, 0};
  trees.left = {1, 3, 0, 0, 0};
  trees.right = {2, 4, 0, 0, 0};
  trees.missing_left = {1, 0, 0, 0, 0};
  trees.value = {0, 0, 1, 2, 3};
  trees.tree_start = {0, 5};
  trees.tree_output = {0};
  trees.base = {0.0};
  trees.n_features = 2;
  return trees;
}

template <auto kChange>
void refused(const char* words, std::source_location where = std::source_location::current()) {
  check_refused(
      [] {
        Trees trees = two_splits();
        kChange(trees);
        trees.check();
      },
      words, where);
}

const Case good_trees{"trees: proper trees pass", [] { two_splits().check(); }};

const Case bad_trees{
    "trees: the door names tree and node", [] {
      constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
      refused<[](Trees& t) { t.left[1] = 0; }>("tree 0, node 0 is reached twice");
      refused<[](Trees& t) { t.left[1] = 2; }>("tree 0, node 2 is reached twice");
      refused<[](Trees& t) { t.feature[1] = kLeaf; }>("tree 0, node 3 is an orphan");
      refused<[](Trees& t) { t.right[1] = 5; }>("tree 0, node 1 has child 5");
      refused<[](Trees& t) { t.right[0] = -1; }>("tree 0, node 0 has child -1");
      refused<[](Trees& t) { t.feature[1] = 2; }>("tree 0, node 1 splits on feature 2");
      refused<[](Trees& t) { t.threshold[1] = kNan; }>("tree 0, node 1 has threshold NaN");
      refused<[](Trees& t) { t.threshold[0] = 0.1; }>("threshold 0.1, which float32 cannot hold");
      refused<[](Trees& t) { t.value[3] = kNan; }>("tree 0, node 3 has value nan");
      refused<[](Trees& t) { t.tree_start = {0, 0, 5}, t.tree_output = {0, 0}; }>(
          "tree 0 has no nodes");
      refused<[](Trees& t) { t.tree_start = {}; }>("at least one tree");
      refused<[](Trees& t) { t.tree_output[0] = 1; }>("from output 1 on");
      refused<[](Trees& t) { t.n_features = 0; }>("n_features must be 1 to 134217728, got 0");
      refused<[](Trees& t) { t.left.pop_back(); }>("left has 4 entries");
    }};

const Case labels{"trees: the label is the sign, or the first of the largest", [] {
                    const auto label = [](std::vector<double> margin) {
                      return model::Decision{}.label(margin);
                    };
                    check(that(label({0.0})) == 0, "0 is the first class");
                    check(that(label({0.5})) == 1, "positive is the second class");
                    check(that(label({1, 2, 2})) == 1, "the first of two equals");
                    check(that(label({3, 3, 3})) == 0, "all equal");
                  }};

}  // namespace
}  // namespace hardwood::tests
