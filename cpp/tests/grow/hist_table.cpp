#include "hardwood/grow/hist_table.hpp"

#include <cmath>
#include <random>

#include "check.hpp"

namespace hardwood::tests {
namespace {

using namespace grow;

struct Data {
  std::size_t n = 6000, d = 19, n_trees = 3;
  std::vector<float> x, gradient, hessian;
  std::vector<Reach> reach;

  Data() : x(n * d), gradient(n * n_trees), hessian(n * n_trees) {
    std::mt19937 random(6);
    std::normal_distribution<float> normal;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < d; ++f) {
      reach.push_back({0.05 * static_cast<double>(f % 3), 0.1, -kInfinity, kInfinity});
    }
    for (float& value : x) value = random() % 20 == 0 ? std::nanf("") : normal(random);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n_trees; ++k) {
        const float signal = std::isnan(x[i * d + k]) ? 0.3f : std::sin(3 * x[i * d + k]);
        gradient[i * n_trees + k] = signal + 0.5f * normal(random);
        hessian[i * n_trees + k] = 0.1f + std::abs(normal(random));
      }
    }
  }

  HistRequest request(Inner inner) const {
    HistRequest request;
    request.gradient = {gradient.data(), n, n_trees};
    request.hessian = {hessian.data(), n, n_trees};
    request.rules.inner = inner;
    request.rules.seed = 9;
    return request;
  }
};

struct Answer {
  std::vector<GrownTree> trees;
  std::vector<std::int32_t> leaf;

  bool operator==(const Answer& other) const {
    if (leaf != other.leaf || trees.size() != other.trees.size()) return false;
    for (std::size_t k = 0; k < trees.size(); ++k) {
      const GrownTree &a = trees[k], &b = other.trees[k];
      if (a.feature != b.feature || a.threshold != b.threshold || a.left != b.left ||
          a.right != b.right || a.missing_left != b.missing_left || a.value != b.value ||
          a.gain != b.gain || a.cover != b.cover || a.n_samples != b.n_samples) {
        return false;
      }
    }
    return true;
  }
};

Answer grow_on(HistTable& table, const HistRequest& request) {
  Answer answer;
  answer.leaf.resize(request.gradient.n_rows * request.gradient.n_cols);
  answer.trees =
      table.grow(request, {answer.leaf.data(), request.gradient.n_rows, request.gradient.n_cols});
  return answer;
}

const Case same_bytes{
    "grow: the same bytes for any number of threads and on any processor", [] {
      const Data data;
      const bins::DenseTable<float> x{{data.x.data(), data.n, data.d}};
      for (const std::size_t max_bins : {256, 40}) {
        HistTable table(x, data.reach, max_bins, 1);
        for (const Inner inner : {Inner::kPaper, Inner::kExact}) {
          for (int variant = 0; variant < 4; ++variant) {
            HistRequest request = data.request(inner);
            std::vector<std::uint8_t> sampled(data.n, 1);
            for (std::size_t i = 0; i < data.n; i += 3) sampled[i] = 0;
            const std::vector<Feature> features{0, 1, 5, 17};
            const std::vector<std::int8_t> monotonic(data.d, 1);
            if (variant == 1) request.sampled = sampled, request.rules.max_leaf_nodes = 11;
            if (variant == 2) request.features = features, request.rules.max_depth = -1;
            if (variant == 3) request.monotonic = monotonic, request.rules.min_samples_leaf = 20;
            const Answer first = grow_on(table, request);
            check(that(first.trees[0].feature.size()) > 8, "a tree that says something");
            for (const int n_threads : {1, 2, 7}) {
              HistTable other(x, data.reach, max_bins, n_threads);
              for (const bool portable : {false, true}) {
                request.rules.n_threads = n_threads;
                request.portable = portable;
                check(that(grow_on(other, request)) == first,
                      std::to_string(n_threads) + " threads, variant " + std::to_string(variant) +
                          (portable ? ", portable" : ""));
              }
            }
          }
        }
      }
    }};

const Case same_class_trees{
    "grow: the same class trees for any number of threads, and for rows repeated or weighted", [] {
      const Data data;
      const bins::DenseTable<float> x{{data.x.data(), data.n, data.d}};
      std::vector<std::int32_t> label(data.n);
      std::vector<double> counts(data.n), weights(data.n);
      for (std::size_t i = 0; i < data.n; ++i) {
        label[i] = data.gradient[i * data.n_trees] > 0.5f ? 2 : data.gradient[i * 3 + 1] > 0;
        counts[i] = static_cast<double>(i % 4);  // some rows are left out
        weights[i] = counts[i] / 2;              // not whole: the other kind of cells
      }
      HistTable table(x, data.reach, 256, 1);
      for (int variant = 0; variant < 6; ++variant) {
        ClassTreeRules rules;
        rules.impurity = variant % 2 ? Impurity::kGini : Impurity::kEntropy;
        rules.max_depth = 7;
        if (variant >= 2) rules.max_features = 5;
        if (variant >= 4) rules.max_leaf_nodes = 20, rules.min_samples_leaf = 4;
        const auto grow_with = [&](const std::vector<double>& weight, int n_threads) {
          rules.n_threads = n_threads;
          Answer answer;
          answer.trees.push_back(table.grow_classes({label, 3, weight, {}}, rules, [] {}));
          return answer;
        };
        const Answer first = grow_with(counts, 1);
        check(that(first.trees[0].feature.size()) > 8, "a tree that says something");
        for (const int n_threads : {2, 7}) {
          check(that(grow_with(counts, n_threads)) == first,
                std::to_string(n_threads) + " threads");
        }
        const GrownTree scaled = grow_with(weights, 2).trees[0];
        check(scaled.feature == first.trees[0].feature &&
                  scaled.threshold == first.trees[0].threshold &&
                  scaled.n_samples == first.trees[0].n_samples,
              "the unit of weights does not matter");
      }
    }};

const Case stops{
    "grow: an exception of the checkpoint leaves the work", [] {
      const Data data;
      HistTable table(bins::DenseTable<float>{{data.x.data(), data.n, data.d}}, data.reach, 256, 2);
      HistRequest request = data.request(Inner::kPaper);
      request.rules.n_threads = 2;
      request.checkpoint = [] { throw std::runtime_error("stop"); };
      bool stopped = false;
      try {
        grow_on(table, request);
      } catch (const std::runtime_error&) {
        stopped = true;
      }
      check(stopped, "the exception must come out");
      request.checkpoint = [] {};
      check(that(grow_on(table, request).trees.size()) == 3, "and the table still works");
    }};

const Case bad_gradients{
    "grow: gradients that no loss should give are refused", [] {
      check_refused(
          [] {
            Data data;
            data.gradient[7] = std::nanf("");
            HistTable table(bins::DenseTable<float>{{data.x.data(), data.n, data.d}}, data.reach,
                            256, 1);
            grow_on(table, data.request(Inner::kPaper));
          },
          "gradient must be finite");
      check_refused(
          [] {
            Data data;
            data.hessian[8] = -1;
            HistTable table(bins::DenseTable<float>{{data.x.data(), data.n, data.d}}, data.reach,
                            256, 1);
            grow_on(table, data.request(Inner::kPaper));
          },
          "hessian must be finite and >= 0");
    }};

}  // namespace
}  // namespace hardwood::tests
