#include "hardwood/grow/newton.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "hardwood/grow/newton_tree.hpp"

namespace hardwood::tests {
namespace {

using grow::NewtonCriterion;
using grow::Sums;

bool near(double a, double b) { return std::abs(a - b) <= 1e-10 * (1 + std::abs(a)); }

/// A node at one threshold: rows with their side, some of them ambiguous.
struct Situation {
  grow::NewtonRules rules;
  Sums total;
  grow::SplitSums split;
  Sums negative;
  std::vector<grow::RankedRow> ambiguous;

  explicit Situation(std::mt19937& random) {
    std::uniform_real_distribution<double> unit(0, 1);
    rules.min_child_weight = 0;
    rules.reg_alpha = unit(random) < 0.5 ? 0 : 0.4;
    rules.max_delta_step = unit(random) < 0.5 ? 0 : 0.5;
    const auto row = [&] { return Sums{2 * unit(random) - 1, 0.05 + unit(random)}; };
    for (int i = 0; i < 6; ++i) {
      (unit(random) < 0.5 ? split.sure_left : split.sure_right) += row();
    }
    const int n_ambiguous = static_cast<int>(random() % 6);
    std::vector<Sums> rows;
    for (int i = 0; i < n_ambiguous; ++i) rows.push_back(row());
    std::ranges::sort(rows, [](const Sums& a, const Sums& b) { return a.g / a.h < b.g / b.h; });
    for (std::size_t i = 0; i < rows.size(); ++i) {
      (i % 2 ? split.ambiguous_left : split.ambiguous_right) += rows[i];
      ambiguous.push_back({static_cast<std::uint32_t>(i), rows[i]});
    }
    total = split.left() + split.right();
    const NewtonCriterion criterion(total, rules);
    for (const Sums& each : rows) {
      if (criterion.residual(each) < 0) negative += each;
    }
  }

  /// The least gain of all 2^k replies.
  double least() const {
    const NewtonCriterion criterion(total, rules);
    double least = std::numeric_limits<double>::infinity();
    for (unsigned reply = 0; reply < 1u << ambiguous.size(); ++reply) {
      Sums left = split.sure_left;
      for (std::size_t i = 0; i < ambiguous.size(); ++i) {
        if (reply >> i & 1) left += ambiguous[i].sums;
      }
      least = std::min(least, criterion.gain(left, total - left));
    }
    return least;
  }
};

const Case replies{
    "newton: no reply of whole rows beats the scan, which never leaves more than the other rules",
    [] {
      std::mt19937 random(7);
      int n_void = 0, n_sharp = 0;
      for (int i = 0; i < 5000; ++i) {
        Situation at(random);
        const NewtonCriterion criterion(at.total, at.rules);
        const double paper = criterion.paper_gain(at.split);
        const double sign = criterion.sign_gain(at.split, at.negative);
        const double scan = criterion.scan_gain(at.split, at.negative, at.ambiguous);
        const double least = at.least();
        check(that(scan) <= sign + 1e-12, "scan <= sign");
        check(that(sign) <= paper + 1e-12, "sign <= paper");
        check(that(paper) <= criterion.gain(at.split.left(), at.split.right()) + 1e-12,
              "paper <= plain");
        check(that(scan) <= least + 1e-12, "the scan is a lower bound");
        check(that(least) <= paper + 1e-12, "the four cases are replies");
        if (scan == NewtonCriterion::kVoid) {
          ++n_void;
        } else {
          n_sharp += near(scan, least);
        }
        for (const double bar : {0.0, 0.01, 0.1}) {
          check(paper <= bar || criterion.can_exceed(bar, at.split), "a cheap no is a true no");
          check(sign <= bar || criterion.can_exceed(bar, at.split, &at.negative), "by sign, too");
        }
      }
      check(n_void > 500 && n_sharp > 500, "both kinds of situations came up");
    }};

const Case light{
    "newton: a child that can be made too light voids the split", [] {
      grow::NewtonRules rules;
      rules.min_child_weight = 2;
      const grow::SplitSums split{{-9, 1.5}, {-9, 5}, {9, 5}, {9, 5}};
      const NewtonCriterion criterion(split.left() + split.right(), rules);
      check(that(criterion.gain(split.left(), split.right())) > 0, "it is a good split");
      check(that(criterion.paper_gain(split)) == NewtonCriterion::kVoid, "but left is light");
      check(that(criterion.sign_gain(split, {-9, 5})) == NewtonCriterion::kVoid, "by sign");
      check(that(criterion.value({-9, 1.5})) == 0, "a light leaf says nothing");
      check(near(criterion.value({-9, 8}), 1), "a heavy one does");
    }};

const Case threads{
    "newton: the same tree for any number of threads, and every row in its leaf", [] {
      std::mt19937 random(3);
      std::normal_distribution<double> normal;
      constexpr std::size_t kRows = 3000, kFeatures = 6;
      std::vector<double> x(kRows * kFeatures);
      for (double& value : x) value = random() % 10 ? normal(random) : std::nan("");
      std::vector<float> g(kRows), h(kRows, 1.0f);
      for (std::size_t i = 0; i < kRows; ++i) {
        const double signal = x[i * kFeatures];
        g[i] = static_cast<float>((std::isnan(signal) ? 1 : signal) + normal(random));
      }
      const std::vector<Reach> reach(kFeatures, Reach{0.05, 0.1, -5, 5});
      const std::vector<Feature> features{0, 2, 5};
      for (const grow::Inner inner : {grow::Inner::kPaper, grow::Inner::kExact}) {
        std::vector<grow::NewtonTrees> grown;
        for (const int n_threads : {1, 2, 7}) {
          grow::NewtonRules rules;
          rules.inner = inner;
          rules.n_threads = n_threads;
          grow::ExactTable table({x.data(), kRows, kFeatures}, reach, n_threads);
          grown.push_back(table.grow({g.data(), kRows, 1}, {h.data(), kRows, 1}, {},
                                     {{}, features, {}}, rules, [] {}));
        }
        const grow::GrownTree& tree = grown[0].trees[0];
        check(that(tree.feature.size()) > 10, "a tree with splits");
        for (const grow::NewtonTrees& other : grown) {
          check(that(other.trees[0].threshold) == tree.threshold, "the same thresholds");
          check(that(other.trees[0].feature) == tree.feature, "the same features");
          check(that(other.trees[0].value) == tree.value, "the same values");
          check(that(other.leaf) == grown[0].leaf, "the same leaves");
        }
        std::vector<std::int64_t> n_rows(tree.feature.size());
        for (const NodeId leaf : grown[0].leaf) ++n_rows[static_cast<std::size_t>(leaf)];
        for (std::size_t node = 0; node < n_rows.size(); ++node) {
          check(tree.feature[node] == kLeaf ? n_rows[node] == tree.n_samples[node]
                                            : n_rows[node] == 0,
                "as many rows in a leaf as training put there");
          check(
              tree.feature[node] == kLeaf || tree.feature[node] % 5 == 0 || tree.feature[node] == 2,
              "only the features that were given");
        }
      }
    }};

}  // namespace
}  // namespace hardwood::tests
