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
#include "hardwood/part.hpp"

namespace hardwood::grow {

/// Memory that trees reuse.
template <class Stat>
struct TreeMemory {
  RowSet<typename Stat::Row> rows;
  HistogramPool<typename Stat::Cell> pool;
  Pool aside;  ///< for rows that are being moved
};

/// The grower's table of bins: thresholds are edges, sums are histograms.
///
/// `Search` finds the best split in the cells of one pass: it has `Stat`, `Split` and `Criterion`,
/// `prepare(node, rows, n_threads)` for what all passes of a node share, and `search(plan, pass,
/// cells, monotonic, prepared, best)`, which keeps in `best` what beats it. Where `has_exceptions`
/// of what was prepared, it also needs the histogram of the `exceptions` of all parts.
///
/// Where others have rows of the table, too, all of them grow the same tree: nodes are split level
/// by level, so that everybody asks for the same sums at the same time, and many in one message.
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

  /// The rows of the tree are the first `n_rows` of `memory.rows`; `total` are the sums of all
  /// parts. `plan` goes by column if nodes draw columns. `leaves`: null if nobody wants to know.
  BinTable(const bins::Binned& binned, const HistogramPlan& plan,
           std::span<const std::int8_t> monotonic, const Criterion& criterion,
           typename Split::Sum total, std::size_t n_rows, const Search& search,
           TreeMemory<Stat>& memory, const RowLeaves* leaves, const Part& part)
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
        aside_(memory.aside),
        part_(part),
        sums_(plan, memory.rows, memory.pool, part),
        leaves_(leaves) {
    for (const Pass& pass : plan.passes) passes_.push_back(&pass);
  }

  const Criterion& criterion() const { return criterion_; }
  /// Nodes that draw go one by one: a draw goes by the node's number.
  Order order() const {
    return draws_ ? Order::kOneByOne : in_parts() ? Order::kLevels : Order::kTasks;
  }
  std::size_t most_together() const {
    return std::max<std::size_t>(kBytesTogether / std::max<std::size_t>(sums_.n_bytes(), 1), 1);
  }
  bool in_parts() const { return part_.others != nullptr; }
  int monotonic(Feature feature) const {
    return monotonic_.empty() ? 0 : monotonic_[static_cast<std::size_t>(feature)];
  }

  void plant(Node& root, Kept& kept) {
    root.end = n_rows_;
    root.n_elsewhere = static_cast<std::ptrdiff_t>(part_.sum(n_rows_) - n_rows_);
    root.total = total_;
    if (!may_split(root)) return;
    const int n_threads = std::max(criterion_.rules().n_threads, 1);
    if (draws_) return search_drawn(root, n_threads);
    kept = pool_.take(plan_.n_cells);
    if (in_parts()) {
      std::vector<Question> questions;
      questions.push_back({&root, kept.data(), nullptr});
      return search_together(questions, n_threads);
    }
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
    if (in_parts()) return split_together(families, n_threads);
    for (Family<BinTable>& family : families) {
      split(family, family.parent.n_rows() < kWorthThreads ? 1 : n_threads);
    }
  }

  void give_back(Kept kept) { pool_.give_back(std::move(kept)); }

  void finish(const std::vector<Node>& nodes, const std::vector<NodeId>& id_of, GrownTree& tree) {
    if (!leaves_) return;
    leaves_->find(binned_, rows_, nodes, id_of, std::max(criterion_.rules().n_threads, 1), tree);
  }

 private:
  static constexpr std::size_t kWorthThreads = 4096;  // rows below which a node stays on one thread
  static constexpr std::size_t kBytesTogether = 1 << 26;  // of the histograms of one message

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
    Node* const node = &parent;
    settle({&node, 1});
    move_rows(family, n_threads);
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

  /// Give the children rows of their own, unless both are leaves.
  void move_rows(Family<BinTable>& family, int n_threads) {
    auto& [parent, left, right, kept, left_kept, right_kept] = family;
    if (!may_split(left) && !may_split(right)) return;
    left.end = right.begin = with_sides(binned_, parent.split, [&](const auto& sides) {
      return rows_.partition(parent.begin, parent.end, sides, n_threads, aside_);
    });
    left.has_rows = right.has_rows = true;
  }

  /// A histogram that is asked for: that of `node`. If `larger`, also the one of its sibling, whose
  /// cells are still the parent's.
  struct Question {
    Node* node;
    Cell* cells;
    Node* larger;
    Cell* larger_cells = nullptr;
  };

  /// `split` for a table in parts.
  void split_together(std::span<Family<BinTable>> families, int n_threads) {
    std::vector<Node*> parents;
    for (Family<BinTable>& family : families) parents.push_back(&family.parent);
    settle(parents);
    std::vector<std::int64_t> n_left;
    for (Family<BinTable>& family : families) {
      move_rows(family, n_threads);
      n_left.push_back(static_cast<std::int64_t>(family.left.end - family.left.begin));
    }
    part_.sum(n_left);
    std::vector<Question> questions;
    for (std::size_t i = 0; i < families.size(); ++i) {
      auto& [parent, left, right, kept, left_kept, right_kept] = families[i];
      if (!left.has_rows) {
        pool_.give_back(std::move(kept));
        continue;
      }
      const auto set_elsewhere = [](Node& node, std::size_t n_rows) {
        node.n_elsewhere = static_cast<std::ptrdiff_t>(n_rows - (node.end - node.begin));
      };
      set_elsewhere(left, static_cast<std::size_t>(n_left[i]));
      set_elsewhere(right, parent.n_rows() - static_cast<std::size_t>(n_left[i]));
      if (draws_) {
        for (Node* child : {&left, &right}) {
          if (may_split(*child)) search_drawn(*child, n_threads);
        }
        continue;
      }
      if (!may_split(left) && !may_split(right)) {
        pool_.give_back(std::move(kept));
        continue;
      }
      const bool left_is_small = left.n_rows() <= right.n_rows();
      Kept& small_kept = left_is_small ? left_kept : right_kept;
      Kept& large_kept = left_is_small ? right_kept : left_kept;
      small_kept = pool_.take(plan_.n_cells);
      large_kept = std::move(kept);
      questions.push_back({left_is_small ? &left : &right, small_kept.data(),
                           left_is_small ? &right : &left, large_kept.data()});
    }
    search_together(questions, n_threads);
  }

  void search_together(std::span<const Question> questions, int n_threads) {
    const std::size_t n_passes = plan_.passes.size();
    parallel_for(questions.size() * n_passes, n_threads, [&](std::size_t i, int) {
      const Question& question = questions[i / n_passes];
      sums_.one(question.node->begin, question.node->end, plan_.passes[i % n_passes],
                question.cells);
    });
    struct Searched {
      Node* node;
      const Cell* cells;
      typename Search::Prepared prepared;
      Kept exceptions;
    };
    std::vector<Cell*> tables;
    std::vector<Searched> searched;
    for (const Question& question : questions) {
      tables.push_back(question.cells);
      for (const auto& [node, cells] : {std::pair{question.node, question.cells},
                                        std::pair{question.larger, question.larger_cells}}) {
        if (node && may_split(*node)) {
          searched.push_back({node, cells, prepare(*node, n_threads), {}});
        }
      }
    }
    for (Searched& one : searched) {
      if (!one.prepared.has_exceptions) continue;
      one.exceptions = pool_.take(plan_.n_cells);
      add_exceptions(one.prepared, passes_, one.exceptions.data());
      tables.push_back(one.exceptions.data());
    }
    sums_.add_parts(tables, passes_, binned_);
    parallel_for(questions.size(), n_threads, [&](std::size_t i, int) {
      const Question& question = questions[i];
      if (!question.larger || !may_split(*question.larger)) return;
      for (std::size_t c = 0; c < plan_.n_cells; ++c) {
        question.larger_cells[c] -= question.cells[c];
      }
    });
    parallel_for(searched.size(), n_threads, [&](std::size_t i, int) {
      const Searched& one = searched[i];
      for (const Pass& pass : plan_.passes) {
        search_.search(plan_, pass, one.cells + pass.first_cell, monotonic_, one.prepared,
                       one.node->split,
                       one.exceptions.size() ? one.exceptions.data() + pass.first_cell : nullptr);
      }
    });
    for (Searched& one : searched) pool_.give_back(std::move(one.exceptions));
  }

  /// The cells of the exceptions of this part, pass after pass.
  void add_exceptions(const typename Search::Prepared& prepared,
                      std::span<const Pass* const> passes, Cell* cells) const {
    for (const Pass* const pass : passes) {
      std::fill_n(cells, plan_.cells(*pass), Cell{});
      add_rows<Stat>(prepared.exceptions, plan_, *pass, cells);
      cells += plan_.cells(*pass);
    }
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
    if (in_parts()) return search_drawn_together(node, draw, prepared, n_threads);
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

  /// The same for a table in parts: one message for all columns of a draw.
  void search_drawn_together(Node& node, FeatureDraw& draw,
                             const typename Search::Prepared& prepared, int n_threads) {
    for (auto columns = draw.first(); !columns.empty() && node.split.feature == kLeaf;
         columns = draw.next()) {
      std::vector<const Pass*> passes;
      for (const std::uint32_t column : columns) {
        if (search_.can_split(plan_.passes[column])) passes.push_back(&plan_.passes[column]);
      }
      const std::size_t n_cells = plan_.n_sides * plan_.n_codes;  // of one column
      std::vector<Cell> cells(passes.size() * n_cells), exceptions;
      const std::size_t n_groups = (passes.size() + kColumnsTogether - 1) / kColumnsTogether;
      parallel_for(n_groups, n_threads, [&](std::size_t group, int) {
        const std::size_t begin = group * kColumnsTogether;
        const std::size_t end = std::min(begin + kColumnsTogether, passes.size());
        sums_.some(node.begin, node.end, std::span(passes).subspan(begin, end - begin),
                   cells.data() + begin * n_cells);
      });
      std::vector<Cell*> tables{cells.data()};
      if (prepared.has_exceptions) {
        exceptions.resize(cells.size());
        add_exceptions(prepared, passes, exceptions.data());
        tables.push_back(exceptions.data());
      }
      sums_.add_parts(tables, passes, binned_);
      for (std::size_t i = 0; i < passes.size(); ++i) {
        search_.search(plan_, *passes[i], cells.data() + i * n_cells, monotonic_, prepared,
                       node.split,
                       prepared.has_exceptions ? exceptions.data() + i * n_cells : nullptr);
      }
    }
  }

  /// Fill in the thresholds, and the side of missing values where the histogram did not tell:
  /// without such rows they go with the larger number of rows, otherwise (gradients all 0) to the
  /// right.
  void settle(std::span<Node* const> nodes) const {
    std::vector<Node*> open;
    std::vector<std::int64_t> counts;  // of each open node: missing ones, rows that go left
    for (Node* const node : nodes) {
      Split& split = node->split;
      const auto feature = static_cast<std::size_t>(split.feature);
      if (binned_.categorical(feature)) continue;
      split.threshold =
          split.bin ? binned_.edges(feature)[split.bin - 1] : std::numeric_limits<float>::lowest();
      if (split.saw_missing || !binned_.has_missing(feature)) continue;
      std::int64_t n_missing = 0, n_left = 0;
      const CodeSplit right(binned_, split);
      for (const auto& row : rows_.range(node->begin, node->end)) {
        n_missing += *right.code(row.row) == binned_.missing_code();
        n_left += right.goes_left(row.row);
      }
      open.push_back(node);
      counts.insert(counts.end(), {n_missing, n_left});
    }
    if (!open.empty()) part_.sum(counts);
    for (std::size_t i = 0; i < open.size(); ++i) {
      Split& split = open[i]->split;
      split.saw_missing = true;  // settled
      if (counts[2 * i] > 0) continue;
      split.missing_left = 2 * static_cast<std::size_t>(counts[2 * i + 1]) >= open[i]->n_rows();
    }
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
  Pool& aside_;
  Part part_;
  NodeSums<Stat> sums_;
  std::vector<const Pass*> passes_;
  const RowLeaves* leaves_;
};

}  // namespace hardwood::grow
