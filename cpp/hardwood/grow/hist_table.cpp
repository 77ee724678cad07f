#include "hardwood/grow/hist_table.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "hardwood/grow/bin_table.hpp"
#include "hardwood/grow/class_bins.hpp"
#include "hardwood/grow/newton_bins.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

/// How the histograms of a tree are laid out. `n_sides(moves)`: `moves` tells whether the adversary
/// can move any row across any threshold.
template <class Sides>
HistogramPlan plan_for(const bins::Binned& binned, std::span<const Window> windows,
                       const TreeRules& rules, std::span<const Feature> wanted, Sides&& n_sides) {
  std::vector<Feature> features(wanted.begin(), wanted.end());
  if (wanted.empty()) {
    features.resize(binned.n_features());
    std::iota(features.begin(), features.end(), 0);
  }
  const bool draws = FeatureDraw::needed(rules, features.size());
  if (!draws) {  // draws are among all features, as if each could be split
    std::erase_if(features, [&](Feature feature) {
      const auto f = static_cast<std::size_t>(feature);
      return windows[f].first == windows[f].last && !binned.has_missing(f);
    });
  }
  const bool moves = std::ranges::any_of(
      features, [&](Feature feature) { return windows[static_cast<std::size_t>(feature)].moves; });
  return HistogramPlan(binned, features, n_sides(moves), draws);
}

void fail(const std::string& what) { throw std::invalid_argument(what); }

void check_size(const std::string& name, std::size_t size, std::size_t wanted,
                const std::string& of) {
  if (size == wanted) return;
  fail(name + " needs one entry for each of the table's " + std::to_string(wanted) + " " + of +
       ", got " + std::to_string(size) + ".");
}

void check(const HistRequest& request, const Matrix<std::int32_t>& leaf, std::size_t n_rows,
           std::size_t n_features) {
  const auto shape = [](const auto& matrix) {
    return std::to_string(matrix.n_rows) + " x " + std::to_string(matrix.n_cols);
  };
  if (request.gradient.n_rows != n_rows || request.hessian.n_rows != n_rows ||
      request.gradient.n_cols != request.hessian.n_cols) {
    fail("gradient and hessian need one row for each of the table's " + std::to_string(n_rows) +
         " rows and equal shapes, got " + shape(request.gradient) + " and " +
         shape(request.hessian) + ".");
  }
  if (leaf.n_rows != n_rows || leaf.n_cols != request.gradient.n_cols) {
    fail("leaf must be " + shape(request.gradient) + " like the gradient, got " + shape(leaf) +
         ".");
  }
  if (!request.weight.empty()) check_size("weight", request.weight.size(), n_rows, "rows");
  if (!request.sampled.empty()) check_size("rows", request.sampled.size(), n_rows, "rows");
  if (!request.monotonic.empty()) {
    check_size("monotonic", request.monotonic.size(), n_features, "features");
  }
  for (std::size_t i = 0; i < request.features.size(); ++i) {
    const Feature feature = request.features[i];
    if (feature < 0 || static_cast<std::size_t>(feature) >= n_features ||
        (i > 0 && feature <= request.features[i - 1])) {
      fail("features must be increasing and from 0 to " + std::to_string(n_features - 1) +
           ", got " + std::to_string(feature) + " at position " + std::to_string(i) + ".");
    }
  }
}

void check(const ClassSample& sample, std::size_t n_rows, std::size_t n_features) {
  check_size("label", sample.label.size(), n_rows, "rows");
  if (!sample.weight.empty()) check_size("weight", sample.weight.size(), n_rows, "rows");
  if (!sample.monotonic.empty()) {
    check_size("monotonic", sample.monotonic.size(), n_features, "features");
  }
}

}  // namespace

struct HistTable::Workspace {
  TreeMemory<Packed> packed;
  TreeMemory<Wide> wide;
  TreeMemory<ClassCounts> counts;
  TreeMemory<ClassWeights> weights;
};

template <class Table>
HistTable::HistTable(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
                     int n_threads, std::span<const double> weight, const Kinds& kinds)
    : binned_(table, reach, max_bins, n_threads, weight, kinds.n_categories), only_(kinds.only) {
  for (std::size_t f = 0; f < n_features(); ++f) windows_.emplace_back(binned_, f, reach[f], kinds);
}

HistTable::HistTable(bins::Cuts cuts, std::span<const bins::CodedRows> pieces,
                     std::span<const Reach> reach, std::vector<std::uint32_t> number,
                     std::shared_ptr<Communicator> others, int n_threads, const Kinds& kinds,
                     const std::function<void(std::size_t)>& let_go)
    : others_(std::move(others)),
      number_(std::move(number)),
      binned_(std::move(cuts), pieces, part(), n_threads, let_go),
      only_(kinds.only) {
  if (!number_.empty()) check_size("number", number_.size(), n_rows(), "rows");
  for (std::size_t f = 0; f < n_features(); ++f) windows_.emplace_back(binned_, f, reach[f], kinds);
}

HistTable::~HistTable() = default;

std::unique_ptr<HistTable::Workspace> HistTable::take_workspace() {
  const std::lock_guard guard(lock_);
  if (workspaces_.empty()) return std::make_unique<Workspace>();
  std::unique_ptr<Workspace> workspace = std::move(workspaces_.back());
  workspaces_.pop_back();
  return workspace;
}

void HistTable::give_back(std::unique_ptr<Workspace> workspace) {
  const std::lock_guard guard(lock_);
  workspaces_.push_back(std::move(workspace));
}

std::vector<GrownTree> HistTable::grow(const HistRequest& request, Matrix<std::int32_t> leaf) {
  check(request, leaf, n_rows(), n_features());
  const int n_threads = std::max(request.rules.n_threads, 1);
  std::vector<std::uint32_t> rows, rows_outside;
  for (std::size_t i = 0; i < request.sampled.size(); ++i) {
    (request.sampled[i] ? rows : rows_outside).push_back(static_cast<std::uint32_t>(i));
  }
  const std::size_t n_trained = request.sampled.empty() ? n_rows() : rows.size();
  if (part().sum(n_trained) == 0) {
    throw std::invalid_argument("rows must keep at least one row, got none.");
  }
  const HistogramPlan plan =
      plan_for(binned_, windows_, request.rules, request.features, [&](bool moves) -> std::size_t {
        return moves && (request.rules.inner == Inner::kExact || only_ >= 0) ? 2 : 1;
      });

  const std::size_t n_trees = request.gradient.n_cols;
  std::vector<GrownTree> trees(n_trees);
  const auto grow_one = [&](std::size_t k, int threads, bool polls) {
    // An empty list means all rows; here it may be that none of them trains.
    const GradientColumn gradients{request.gradient.data + k, request.hessian.data + k, n_trees,
                                   rows.empty() ? n_trained : n_rows(),
                                   request.weight.empty() ? nullptr : request.weight.data()};
    const Grid grid =
        choose_grid(gradients, rows, request.rules.min_samples_leaf > 1, threads, part());
    NewtonRules rules = request.rules;
    rules.n_threads = threads;
    rules.seed = request.rules.seed * n_trees + k + 1;
    const NewtonTree criterion(rules, grid);
    const RowLeaves leaves{leaf.data + k, n_trees, rows_outside, part()};
    const auto grow_on = [&]<class Stat>(TreeMemory<Stat>& memory) {
      const std::size_t n = n_trained;
      if (memory.rows.capacity() < n) memory.rows = RowSet<typename Stat::Row>(n);
      const GridSum total =
          put_on_grid<Stat>(gradients, rows, grid, rules.seed, memory.rows.data(), threads, part());
      // g is below 0 in the rows of the output's own class. Those of another class lie above, among
      // the rest: all of these count as movable, so none that can move counts as sure.
      const auto own = static_cast<std::int32_t>(n_trees == 1 ? 1 : k);
      const Movers movers = only_ < 0 || plan.n_sides == 1 ? Movers::kAll
                            : only_ == own                 ? Movers::kBelow
                                                           : Movers::kAbove;
      const NewtonBins<Stat> search(binned_, windows_, criterion, memory.rows.range(0, n),
                                    plan.n_sides, movers, request.portable, part());
      BinTable<NewtonBins<Stat>> table(binned_, plan, request.monotonic, criterion, total, n,
                                       search, memory, &leaves, part());
      const std::function<void()> poll = polls ? request.checkpoint : [] {};
      trees[k] = Grower(table, poll).grow();
    };
    std::unique_ptr<Workspace> workspace = take_workspace();
    grid.wide ? grow_on(workspace->wide) : grow_on(workspace->packed);
    give_back(std::move(workspace));
  };
  // A tree a thread needs no waiting for each other; the trees that are left over are shared. So
  // are all whose sums others add to: they are asked for in order.
  const std::size_t n_alone = others_ ? 0 : n_trees - n_trees % static_cast<std::size_t>(n_threads);
  if (n_threads > 1) {
    parallel_for(n_alone, n_threads,
                 [&](std::size_t k, int thread) { grow_one(k, 1, thread == 0); });
  }
  for (std::size_t k = n_threads > 1 ? n_alone : 0; k < n_trees; ++k) {
    grow_one(k, n_threads, true);
  }
  return trees;
}

GrownTree HistTable::grow_classes(const ClassSample& sample, const ClassTreeRules& rules,
                                  const std::function<void()>& checkpoint) {
  check(sample, n_rows(), n_features());
  const GridWeights weights(sample.weight, part());
  const auto n_classes = static_cast<std::size_t>(sample.n_classes);
  const HistogramPlan plan =
      plan_for(binned_, windows_, rules, {}, [&](bool) { return n_classes; });
  GrownTree tree;
  const auto grow_on = [&]<class Stat>(TreeMemory<Stat>& memory) {
    using Row = typename Stat::Row;
    if (memory.rows.capacity() < n_rows()) memory.rows = RowSet<Row>(n_rows());
    ClassSum total{std::vector<double>(n_classes)};
    Row* out = memory.rows.data();
    for (std::size_t i = 0; i < n_rows(); ++i) {
      const double weight = weights.of(i);
      if (weight == 0) continue;
      total.weights[static_cast<std::size_t>(sample.label[i])] += weight;
      *out++ = {static_cast<std::uint32_t>(i), static_cast<decltype(Row::label)>(sample.label[i]),
                static_cast<decltype(Row::weight)>(weight)};
    }
    std::vector<std::int64_t> steps(total.weights.begin(), total.weights.end());
    part().sum(steps);
    total.weights.assign(steps.begin(), steps.end());
    const ClassTree criterion(rules, total, weights.step);
    const ClassBins<Stat> search(binned_, windows_, criterion, only_);
    BinTable<ClassBins<Stat>> table(binned_, plan, sample.monotonic, criterion, total,
                                    static_cast<std::size_t>(out - memory.rows.data()), search,
                                    memory, nullptr, part());
    tree = Grower(table, checkpoint).grow();
  };
  std::unique_ptr<Workspace> workspace = take_workspace();
  weights.counts&& weights.largest <= ClassCounts::kMaxWeight&& n_classes <= 65536
      ? grow_on(workspace->counts)
      : grow_on(workspace->weights);
  give_back(std::move(workspace));
  return tree;
}

#define HARDWOOD_TABLE(...)                                                                    \
  template HistTable::HistTable(const bins::__VA_ARGS__&, std::span<const Reach>, std::size_t, \
                                int, std::span<const double>, const Kinds&);
HARDWOOD_EACH_TABLE(HARDWOOD_TABLE)
#undef HARDWOOD_TABLE

}  // namespace hardwood::grow
