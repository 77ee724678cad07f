#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "check.hpp"
#include "hardwood/grow/hist_table.hpp"

namespace hardwood::tests {
namespace {

using namespace grow;

/// Threads that hold rows of one table.
class Round final : public Communicator {
 public:
  explicit Round(std::size_t n) : n_(n) {}

  void sum(std::span<std::int64_t> values) override {
    together(values, sums_, [](std::int64_t& a, std::int64_t b) { a += b; });
  }
  void max(std::span<double> values) override {
    together(values, most_, [](double& a, double b) { a = std::max(a, b); });
  }

 private:
  template <class T, class Add>
  void together(std::span<T> values, std::vector<T>& all, Add&& add) {
    std::unique_lock guard(lock_);
    if (n_here_ == 0) {
      all.assign(values.begin(), values.end());
    } else {
      check(all.size() == values.size(), "everybody asks the same question");
      for (std::size_t i = 0; i < values.size(); ++i) add(all[i], values[i]);
    }
    meet(guard);
    std::ranges::copy(all, values.begin());
    meet(guard);
  }

  void meet(std::unique_lock<std::mutex>& guard) {
    const std::size_t round = round_;
    if (++n_here_ == n_) {
      n_here_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(guard, [&] { return round_ != round; });
  }

  std::size_t n_, n_here_ = 0, round_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::int64_t> sums_;
  std::vector<double> most_;
};

struct Data {
  std::size_t n, d = 6, n_trees;
  std::vector<float> x, gradient, hessian, weight;
  std::vector<std::int32_t> label;
  std::vector<double> count;
  std::vector<std::uint8_t> sampled;
  std::vector<Reach> reach;

  Data(std::size_t n_rows, std::size_t n_outputs) : n(n_rows), n_trees(n_outputs) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < d; ++f) {
      reach.push_back({0.05 * static_cast<double>(f % 3), 0.1, -kInfinity, kInfinity});
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t f = 0; f < d; ++f) {
        x.push_back(f % 2 && random() % 20 == 0 ? std::nanf("") : normal(random));
      }
      x[i * d + 4] = static_cast<float>(random() % 3);
      if (!std::isnan(x[i * d + 5])) x[i * d + 5] = static_cast<float>(random() % 2);
      const float* const row = x.data() + i * d;
      for (std::size_t k = 0; k < n_trees; ++k) {
        gradient.push_back(std::sin(3 * row[2 * k]) + 0.5f * normal(random));
        hessian.push_back(0.1f + std::abs(normal(random)));
      }
      weight.push_back(0.5f + static_cast<float>(random() % 100) / 64);
      label.push_back(row[0] > 0.3f ? 2 : row[2] + normal(random) > 0);
      count.push_back(static_cast<double>(random() % 3));
      sampled.push_back(random() % 3 != 0);
    }
  }

  /// Some rows, in the order given.
  template <class T>
  static std::vector<T> rows_of(const std::vector<T>& all, std::size_t width,
                                const std::vector<std::uint32_t>& rows) {
    std::vector<T> out;
    for (const std::uint32_t row : rows) {
      for (std::size_t j = 0; j < width; ++j) out.push_back(all[row * width + j]);
    }
    return out;
  }
};

struct Variant {
  Inner inner = Inner::kExact;
  bool sampled = false, weighted = false, few_features = false, monotonic = false;
  std::size_t max_leaf_nodes = 0, min_samples_leaf = 1, max_features = 0;
};

constexpr std::array<std::int8_t, 6> kRising{1, 0, 1, 0, 0, -1};
constexpr std::array<Feature, 3> kFew{0, 2, 5};

template <class Rules>
void fill(Rules& rules, const Variant& variant) {
  rules.inner = variant.inner;
  rules.max_depth = 5;
  rules.max_leaf_nodes = variant.max_leaf_nodes;
  rules.min_samples_leaf = variant.min_samples_leaf;
  rules.max_features = variant.max_features;
  rules.seed = 5;
}

/// The trees of a part, Newton's first, then one of classes.
std::vector<GrownTree> grow_on(HistTable& table, const Data& data,
                               const std::vector<std::uint32_t>& rows, const Variant& variant,
                               std::vector<std::int32_t>& leaf) {
  const auto gradient = Data::rows_of(data.gradient, data.n_trees, rows);
  const auto hessian = Data::rows_of(data.hessian, data.n_trees, rows);
  const auto weight = Data::rows_of(data.weight, 1, rows);
  const auto sampled = Data::rows_of(data.sampled, 1, rows);
  const auto label = Data::rows_of(data.label, 1, rows);
  auto count = Data::rows_of(data.count, 1, rows);
  HistRequest request;
  fill(request.rules, variant);
  request.gradient = {gradient.data(), rows.size(), data.n_trees};
  request.hessian = {hessian.data(), rows.size(), data.n_trees};
  if (variant.sampled) request.sampled = sampled;
  if (variant.weighted) request.weight = weight;
  if (variant.few_features) request.features = kFew;
  if (variant.monotonic) request.monotonic = kRising;
  leaf.resize(rows.size() * data.n_trees);
  std::vector<GrownTree> trees = table.grow(request, {leaf.data(), rows.size(), data.n_trees});
  ClassTreeRules rules;
  fill(rules, variant);
  if (variant.weighted) {
    for (std::size_t i = 0; i < count.size(); ++i) count[i] *= static_cast<double>(weight[i]);
  }
  trees.push_back(table.grow_classes({label, 3, count, {}}, rules, [] {}));
  return trees;
}

bool same(const GrownTree& a, const GrownTree& b) {
  return a.feature == b.feature && a.threshold == b.threshold && a.left == b.left &&
         a.right == b.right && a.missing_left == b.missing_left && a.value == b.value &&
         a.gain == b.gain && a.cover == b.cover && a.n_samples == b.n_samples;
}

/// Grow in parts, one of which may have no rows; compare with the tables of all rows.
void check_parts(const Data& data, std::size_t n_parts, const Variant& variant,
                 const std::string& what) {
  bins::Cuts cuts(data.d, 256);
  std::vector<std::uint32_t> everyone(data.n);
  for (std::size_t i = 0; i < data.n; ++i) everyone[i] = static_cast<std::uint32_t>(i);
  HistTable whole(bins::DenseTable<float>{{data.x.data(), data.n, data.d}}, data.reach, 256, 1);
  for (std::size_t f = 0; f < data.d; ++f) {
    const auto edges = whole.binned().edges(f);
    cuts.edges[f].assign(edges.begin(), edges.end());
    cuts.frequent[f] = whole.binned().frequent_code(f);
  }
  std::vector<std::int32_t> leaf;
  const std::vector<GrownTree> trees = grow_on(whole, data, everyone, variant, leaf);
  check(trees[0].feature.size() > 8, "a tree that says something");

  std::vector<std::vector<std::uint32_t>> rows(n_parts);
  for (std::uint32_t row = 0; row < data.n; ++row) {
    const std::size_t stretch = row / 37 % 5;
    rows[n_parts == 1 ? 0 : stretch % (n_parts - 1)].push_back(row);  // the last one gets none
  }
  const auto others = std::make_shared<Round>(n_parts);
  std::vector<std::jthread> threads;
  for (std::size_t p = 0; p < n_parts; ++p) {
    threads.emplace_back([&, p] {
      const std::vector<float> x = Data::rows_of(data.x, data.d, rows[p]);
      const bins::Binned binned(bins::DenseTable<float>{{x.data(), rows[p].size(), data.d}}, cuts,
                                1);
      std::vector<double> smallest, largest;
      std::vector<std::uint8_t> missing;
      for (std::size_t f = 0; f < data.d; ++f) {
        missing.push_back(binned.has_missing(f));
        for (std::size_t code = 0; code < cuts.n_codes; ++code) {
          smallest.push_back(binned.range(f, code).smallest);
          largest.push_back(binned.range(f, code).largest);
        }
      }
      const bins::CodedRows piece{binned.column(0), rows[p].size(), smallest.data(), largest.data(),
                                  missing.data()};
      HistTable table(cuts, {&piece, 1}, data.reach, rows[p], others, 1);
      std::vector<std::int32_t> leaf_here;
      const std::vector<GrownTree> here = grow_on(table, data, rows[p], variant, leaf_here);
      for (std::size_t k = 0; k < trees.size(); ++k) {
        check(same(here[k], trees[k]), what + ", tree " + std::to_string(k));
      }
      check(leaf_here == Data::rows_of(leaf, data.n_trees, rows[p]), what + ", leaves");
    });
  }
}

const Case same_trees_in_parts{
    "grow: the same trees whoever holds which rows, without a sum that depends on it", [] {
      const std::vector<Variant> variants{
          {.inner = Inner::kPaper},
          {.inner = Inner::kExact, .monotonic = true},
          {.inner = Inner::kExact, .sampled = true, .weighted = true, .max_leaf_nodes = 9},
          {.inner = Inner::kPaper, .few_features = true, .min_samples_leaf = 30},
          {.inner = Inner::kExact, .sampled = true, .max_features = 3},
      };
      // In wide cells, in packed ones, with features that share a column.
      for (const std::size_t n_rows : {1500, 9000, 70'000}) {
        const Data data(n_rows, n_rows > 8192 ? 1 : 2);
        for (std::size_t v = 0; v < variants.size(); ++v) {
          check_parts(data, 1 + v % 4, variants[v],
                      std::to_string(n_rows) + " rows, variant " + std::to_string(v));
        }
      }
    }};

}  // namespace
}  // namespace hardwood::tests
