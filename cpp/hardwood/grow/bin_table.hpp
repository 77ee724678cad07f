#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/grow/feature_draw.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/node_sums.hpp"
#include "hardwood/grow/row_leaves.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {

/// Memory that trees reuse.
template <class Stat>
struct TreeMemory {
  RowSet<typename Stat::Row> rows;
  HistogramPool<typename Stat::Cell> pool;
};

/// The grower's table of bins: thresholds are edges, sums are histograms.
///
/// `Search` finds the best split in the cells of one pass: it has `Stat`, `Split` and `Criterion`,
/// `prepare(node, rows, n_threads)` for what all passes of a node share, and `search(plan, pass,
/// cells, monotonic, prepared, best)`, which keeps in `best` what beats it.
template <class Search>
class BinTable {
 public:
  using Stat = typename Search::Stat;
  using Split = typename Search::Split;
  using Criterion = typename Search::Criterion;
  using Cell = typename Stat::Cell;
  using Node = grow::Node<Split>;
  using Kept = Buffer<Cell>;  // the node's histogram
  static constexpr bool kSmallFirst = true;

  /// The rows of the tree are the first `n_rows` of `memory.rows`; `total` are their sums. `plan`
  /// goes by column if nodes draw columns.
  BinTable(const bins::Binned& binned, const HistogramPlan& plan,
           std::span<const std::int8_t> monotonic, const Criterion& criterion,
           typename Split::Sum total, std::size_t n_rows, const Search& search,
           TreeMemory<Stat>& memory, const RowLeaves& leaves)
      : binned_(binned),
        plan_(plan),
        monotonic_(monotonic),
        criterion_(criterion),
        total_(std::move(total)),
        n_rows_(n_rows),
        search_(search),
        draws_(plan.by_column),
        rows_(memory.rows),
        pool_(memory.pool),
        sums_(plan, memory.rows, memory.pool),
        leaves_(leaves) {}

  const Criterion& criterion() const { return criterion_; }
  /// Nodes that draw go one by one: a draw goes by the node's number.
  Order order() const { return draws_ ? Order::kOneByOne : Order::kTasks; }
  int monotonic(Feature feature) const {
    return monotonic_.empty() ? 0 : monotonic_[static_cast<std::size_t>(feature)];
  }

  void plant(Node& root, Kept& kept) {
    root.end = n_rows_;
    root.total = total_;
    if (!may_split(root)) return;
    const int n_threads = std::max(criterion_.rules().n_threads, 1);
    if (draws_) return search_drawn(root, n_threads);
    kept = pool_.take(plan_.n_cells);
    const auto prepared = prepare(root, n_threads);
    const bool built = sums_.all(root.begin, root.end, kept.data(), n_threads);
    std::vector<Split> best(plan_.passes.size());
    parallel_for(plan_.passes.size(), n_threads, [&](std::size_t p, int) {
      const Pass& pass = plan_.passes[p];
      if (!built) sums_.one(root.begin, root.end, pass, kept.data());
      search_.search(plan_, pass, kept.data() + pass.first_cell, monotonic_, prepared, best[p]);
    });
    root.split = best_of(best);
  }

  void split(std::span<Family<BinTable>> families, int n_threads) {
    for (Family<BinTable>& family : families) {
      split(family, family.parent.n_rows() < kWorthThreads ? 1 : n_threads);
    }
  }

  void give_back(Kept kept) { pool_.give_back(std::move(kept)); }

  void finish(const std::vector<Node>& nodes, const std::vector<NodeId>& id_of, GrownTree& tree) {
    if (!leaves_.leaf) return;
    leaves_.find(binned_, rows_, nodes, id_of, std::max(criterion_.rules().n_threads, 1), tree);
  }

 private:
  static constexpr std::size_t kWorthThreads = 4096;  // rows below which a node stays on one thread

  bool may_split(const Node& node) const {
    return !plan_.passes.empty() && grow::may_split(criterion_, node);
  }

  auto prepare(const Node& node, int n_threads) const {
    return search_.prepare(node, rows_.range(node.begin, node.end), n_threads);
  }

  /// Route the rows of a node, build the histogram of the smaller child, get the larger one's as
  /// the difference, and search both, all three pass by pass while the bins are in the cache.
  void split(Family<BinTable>& family, int n_threads) {
    auto& [parent, left, right, kept, left_kept, right_kept] = family;
    settle(parent);
    if (may_split(left) || may_split(right)) {
      left.end = right.begin =
          rows_.partition(parent.begin, parent.end, CodeSplit(binned_, parent.split), n_threads);
      left.has_rows = right.has_rows = true;
    }
    const bool left_is_small = left.n_rows() <= right.n_rows();
    Node& small = left_is_small ? left : right;
    Node& large = left_is_small ? right : left;
    Kept small_kept;
    if (left.has_rows && (may_split(small) || may_split(large))) {
      if (draws_) {
        for (Node* child : {&left, &right}) {
          if (may_split(*child)) search_drawn(*child, n_threads);
        }
      } else {
        small_kept = pool_.take(plan_.n_cells);
        search_children(small, large, small_kept.data(), kept.data(), n_threads);
      }
    }
    (left_is_small ? left_kept : right_kept) = std::move(small_kept);
    (left_is_small ? right_kept : left_kept) = std::move(kept);
  }

  void search_children(Node& small, Node& large, Cell* small_cells, Cell* large_cells,
                       int n_threads) {
    const bool small_open = may_split(small), large_open = may_split(large);
    const auto small_prepared = prepare(small, n_threads);
    const auto large_prepared = prepare(large, n_threads);
    const bool built = sums_.all(small.begin, small.end, small_cells, n_threads);
    // One thread lets each pass profit from the best split so far; more keep them apart.
    const std::size_t n_best = n_threads > 1 ? plan_.passes.size() : 1;
    std::vector<Split> small_best(n_best), large_best(n_best);
    parallel_for(plan_.passes.size(), n_threads, [&](std::size_t p, int) {
      const Pass& pass = plan_.passes[p];
      if (!built) sums_.one(small.begin, small.end, pass, small_cells);
      const Cell* from = small_cells + pass.first_cell;
      if (large_open) {
        Cell* to = large_cells + pass.first_cell;
        if (!subtract_few_rows<Stat>(rows_.range(small.begin, small.end), plan_, pass, to)) {
          for (std::size_t i = 0; i < plan_.cells(pass); ++i) to[i] -= from[i];
        }
        search_.search(plan_, pass, to, monotonic_, large_prepared, large_best[p % n_best]);
      }
      if (small_open) {
        search_.search(plan_, pass, from, monotonic_, small_prepared, small_best[p % n_best]);
      }
    });
    small.split = best_of(small_best);
    large.split = best_of(large_best);
  }

  /// A node that looks at few columns has no use for its parent's histogram: other columns were
  /// drawn there.
  void search_drawn(Node& node, int n_threads) {
    FeatureDraw draw(plan_.passes.size(), criterion_.rules(), node.number);
    const auto prepared = prepare(node, n_threads);
    auto columns = draw.first();
    while (!columns.empty() && node.split.feature == kLeaf) {
      const std::size_t n_groups = (columns.size() + kColumnsTogether - 1) / kColumnsTogether;
      const std::size_t n_best = n_threads > 1 ? n_groups : 1;
      std::vector<Split> best(n_best);
      std::vector<Kept> cells(n_best);
      for (Kept& buffer : cells) buffer = pool_.take(plan_.n_cells);
      parallel_for(n_groups, n_threads, [&](std::size_t group, int) {
        const std::size_t begin = group * kColumnsTogether;
        std::array<const Pass*, kColumnsTogether> passes;
        std::size_t n = 0;
        for (std::size_t i = begin; i < std::min(begin + kColumnsTogether, columns.size()); ++i) {
          const Pass& pass = plan_.passes[columns[i]];
          if (search_.can_split(pass)) passes[n++] = &pass;
        }
        const Cell* const from = cells[group % n_best].data();
        sums_.some(node.begin, node.end, {passes.data(), n}, cells[group % n_best].data());
        for (std::size_t i = 0; i < n; ++i) {
          search_.search(plan_, *passes[i], from + i * plan_.cells(*passes[i]), monotonic_,
                         prepared, best[group % n_best]);
        }
      });
      for (Kept& buffer : cells) pool_.give_back(std::move(buffer));
      node.split = best_of(best);
      columns = draw.next();
    }
  }

  static Split best_of(const std::vector<Split>& splits) {
    return *std::ranges::max_element(splits,
                                     [](const Split& a, const Split& b) { return b.beats(a); });
  }

  /// Fill in the threshold, and the side of missing values where the histogram did not tell:
  /// without such rows they go with the larger number of rows, otherwise (gradients all 0) to the
  /// right.
  void settle(Node& node) const {
    Split& split = node.split;
    const auto feature = static_cast<std::size_t>(split.feature);
    split.threshold =
        split.bin ? binned_.edges(feature)[split.bin - 1] : std::numeric_limits<float>::lowest();
    if (split.saw_missing || !binned_.has_missing(feature)) return;
    std::size_t n_left = 0;
    const CodeSplit right(binned_, split);
    for (const auto& row : rows_.range(node.begin, node.end)) {
      if (*right.code(row.row) == binned_.missing_code()) split.saw_missing = true;
      n_left += right.goes_left(row.row);
    }
    if (split.saw_missing) return;
    split.missing_left = 2 * n_left >= node.n_rows();
    split.saw_missing = true;  // settled
  }

  const bins::Binned& binned_;
  const HistogramPlan& plan_;
  std::span<const std::int8_t> monotonic_;
  const Criterion& criterion_;
  typename Split::Sum total_;
  std::size_t n_rows_;
  const Search& search_;
  bool draws_;
  RowSet<typename Stat::Row>& rows_;
  HistogramPool<Cell>& pool_;
  NodeSums<Stat> sums_;
  RowLeaves leaves_;
};

}  // namespace hardwood::grow
