/// Models are the same bytes on every machine: fingerprints of some, equal with and without AVX2,
/// with every compiler, on every processor. A change of trees changes them, and is news for the
/// changelog ("Changed models").
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "check.hpp"
#include "hardwood/ensemble/certified.hpp"
#include "hardwood/ensemble/loss.hpp"
#include "hardwood/grow/hist_table.hpp"
#include "small_trees.hpp"

namespace hardwood::tests {
namespace {

using namespace grow;

/// FNV-1a over what a model file holds of a tree.
struct Fingerprint {
  std::uint64_t hash = 14695981039346656037u;

  template <class T>
  void add(const std::vector<T>& values) {
    for (const T value : values) {
      std::uint64_t word;
      if constexpr (std::is_floating_point_v<T>) {
        word = std::bit_cast<std::uint32_t>(value);
      } else {
        word = static_cast<std::uint64_t>(value);
      }
      hash = (hash ^ word) * 1099511628211u;
    }
  }
  void add(const GrownTree& tree) {
    add(tree.feature), add(tree.threshold), add(tree.left), add(tree.right);
    add(tree.missing_left), add(tree.value);
  }
};

/// Rows with missing values, and labels that depend on two columns.
struct Rows {
  static constexpr std::size_t n = 4000, d = 11;
  std::vector<float> x, y;
  std::vector<std::int32_t> label;
  std::vector<Reach> reach;

  Rows() : x(n * d), y(n), label(n) {
    Random random(3);
    for (float& value : x) {
      value = random.below(25) == 0 ? std::nanf("") : static_cast<float>(random.below(997)) / 997;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const bool noise = random.below(10) == 0;
      y[i] = static_cast<float>((x[i * d] + x[i * d + 1] > 1) != noise);
      label[i] = y[i] > 0 ? 2 : x[i * d + 2] > 0.5f;
    }
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < d; ++f) {
      reach.push_back({0.01 * static_cast<double>(f % 4), 0.03, -kInfinity, kInfinity});
    }
  }
};

std::uint64_t boosted(Inner inner) {
  const Rows rows;
  HistTable table(bins::DenseTable<float>{{rows.x.data(), rows.n, rows.d}}, rows.reach, 256, 2);
  std::vector<float> margin(rows.n), g(rows.n), h(rows.n);
  std::vector<std::int32_t> leaf(rows.n);
  Fingerprint print;
  for (std::uint64_t round = 0; round < 5; ++round) {
    ensemble::logistic_derivatives(rows.y, {margin.data(), rows.n, 1},
                                   {{g.data(), rows.n, 1}, {h.data(), rows.n, 1}}, 2);
    HistRequest request;
    request.gradient = {g.data(), rows.n, 1};
    request.hessian = {h.data(), rows.n, 1};
    request.rules.inner = inner;
    request.rules.max_depth = 6;
    request.rules.n_threads = 2;
    request.rules.seed = round;
    const GrownTree tree = table.grow(request, {leaf.data(), rows.n, 1})[0];
    print.add(tree);
    for (std::size_t i = 0; i < rows.n; ++i) {
      margin[i] += 0.3f * tree.value[static_cast<std::size_t>(leaf[i])];
    }
  }
  return print.hash;
}

std::uint64_t classes(Impurity impurity) {
  const Rows rows;
  HistTable table(bins::DenseTable<float>{{rows.x.data(), rows.n, rows.d}}, rows.reach, 64, 2);
  ClassTreeRules rules;
  rules.impurity = impurity;
  rules.max_depth = 7;
  rules.n_threads = 2;
  Fingerprint print;
  print.add(table.grow_classes({rows.label, 3, {}, {}}, rules, [] {}));
  return print.hash;
}

std::uint64_t certified() {
  const Rows rows;
  ensemble::CertifiedBoosting<std::uint8_t> boosting(
      bins::DenseTable<float>{{rows.x.data(), rows.n, rows.d}}, rows.reach, 256, false, 2);
  std::vector<float> low(rows.n), high(rows.n);
  ensemble::CertifiedRound round;
  round.y = rows.y;
  round.low = {low.data(), rows.n, 1};
  round.high = {high.data(), rows.n, 1};
  round.rules.max_depth = 4;
  round.rules.n_threads = 2;
  Fingerprint print;
  for (round.seed = 0; round.seed < 3; ++round.seed) print.add(boosting.step(round)[0]);
  print.add(low), print.add(high);
  return print.hash;
}

const Case same_everywhere{
    "models: the same bytes on every machine", [] {
      check(that(boosted(Inner::kExact)) == 16176714791504127721u, "boosting, inner exact");
      check(that(boosted(Inner::kPaper)) == 7446639571011002901u, "boosting, inner paper");
      check(that(classes(Impurity::kEntropy)) == 4909518762598432846u, "a tree, entropy");
      check(that(classes(Impurity::kGini)) == 628399375560184135u, "a tree, Gini");
      check(that(certified()) == 1128751225394341813u, "certified boosting");
    }};

}  // namespace
}  // namespace hardwood::tests
