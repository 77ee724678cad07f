#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "hardwood/box.hpp"
#include "hardwood/grow/columns.hpp"
#include "hardwood/grow/feature_draw.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {

/// The grower's table of presorted columns: every threshold is tried.
///
/// `Search` finds the best split of one column of a node: it has `Entry`, `Split` and `Criterion`,
/// `prepare(node)` for what all columns of a node share, and `search(column, feature, monotonic,
/// prepared, best)`, which keeps in `best` what beats it. Each thread has its own.
template <class Search>
class ColumnTable {
 public:
  using Entry = typename Search::Entry;
  using Split = typename Search::Split;
  using Criterion = typename Search::Criterion;
  using Node = grow::Node<Split>;
  struct Kept {};
  static constexpr bool kSmallFirst = false;

  /// `features`: of the columns, increasing; `monotonic`: a sign a feature of the data, or empty.
  ColumnTable(Columns<Entry>& columns, std::span<const Feature> features,
              std::span<const std::int8_t> monotonic, const Criterion& criterion,
              typename Split::Sum total, std::size_t n_rows_of_data, const Search& search)
      : columns_(columns),
        features_(features),
        monotonic_(monotonic),
        criterion_(criterion),
        total_(std::move(total)),
        draws_(FeatureDraw::needed(criterion.rules(), columns.n_columns())),
        row_goes_left_(n_rows_of_data),
        threads_(static_cast<std::size_t>(std::max(criterion.rules().n_threads, 1)),
                 {search, {}, {}}) {}

  const Criterion& criterion() const { return criterion_; }
  /// Nodes that draw go one by one: a draw goes by the node's number.
  Order order() const { return draws_ ? Order::kOneByOne : Order::kLevels; }
  std::size_t most_together() const { return std::numeric_limits<std::size_t>::max(); }
  bool in_parts() const { return false; }
  int monotonic(Feature feature) const {
    return monotonic_.empty() ? 0 : monotonic_[static_cast<std::size_t>(feature)];
  }

  void plant(Node& root, Kept&) {
    root.end = columns_.n_rows();
    root.total = total_;
    Node* const wanted = &root;
    if (may_split(criterion_, root)) find_splits(std::span(&wanted, 1), {}, n_threads());
  }

  void split(std::span<Family<ColumnTable>> families, int n_threads) {
    std::vector<Node*> wanted;        // nodes to be searched
    std::vector<const Node*> parted;  // leaves for sure need their sums only, not their rows
    for (Family<ColumnTable>& family : families) {
      const std::size_t n_before = wanted.size();
      for (Node* child : {&family.left, &family.right}) {
        if (may_split(criterion_, *child)) wanted.push_back(child);
      }
      if (wanted.size() > n_before) parted.push_back(&family.parent);
    }
    if (!wanted.empty()) find_splits(wanted, parted, n_threads);
  }

  void give_back(Kept) {}
  void finish(const std::vector<Node>&, const std::vector<NodeId>&, GrownTree&) {}

 private:
  static constexpr std::size_t kWorthThreads = 1 << 14;  // entries below which one thread is faster

  struct Thread {
    Search search;
    std::vector<Entry> put_aside;
    std::vector<Split> best;  // of every node that is searched
  };
  using Prepared = decltype(std::declval<const Search&>().prepare(std::declval<const Node&>()));

  int n_threads() const { return static_cast<int>(threads_.size()); }

  /// Part the rows of nodes that were split, and search others: a column is read again while it is
  /// still in the cache.
  void find_splits(std::span<Node* const> wanted, std::span<const Node* const> parted,
                   int n_threads) {
    std::size_t n_rows = 0;
    for (const Node* node : wanted) n_rows += node->n_rows();
    if (n_rows * columns_.n_columns() < kWorthThreads) n_threads = 1;
    parallel_for(parted.size(), n_threads, [&](std::size_t i, int) { mark_sides(*parted[i]); });

    std::vector<Prepared> prepared;
    std::vector<FeatureDraw> draws;
    for (const Node* node : wanted) {
      prepared.push_back(threads_[0].search.prepare(*node));
      if (draws_) draws.emplace_back(columns_.n_columns(), criterion_.rules(), node->number);
    }
    for (Thread& thread : threads_) thread.best.assign(wanted.size(), {});
    const auto search = [&](std::size_t i, std::size_t column, Thread& thread) {
      const Feature feature = features_[column];
      thread.search.search(columns_.entries(column, wanted[i]->begin, wanted[i]->end), feature,
                           monotonic(feature), prepared[i], thread.best[i]);
    };
    parallel_for(columns_.n_columns(), n_threads, [&](std::size_t column, int id) {
      Thread& thread = threads_[static_cast<std::size_t>(id)];
      for (const Node* node : parted) {
        columns_.partition(column, node->begin, node->end, row_goes_left_, thread.put_aside);
      }
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (draws_ && !std::ranges::binary_search(draws[i].first(), column)) continue;
        search(i, column, thread);
      }
    });
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Split& best = wanted[i]->split;
      for (const Thread& thread : threads_) {
        if (thread.best[i].beats(best)) best = thread.best[i];
      }
      while (draws_ && best.feature == kLeaf) {
        const auto more = draws[i].next();
        if (more.empty()) break;
        search(i, more.front(), threads_[0]);
        best = threads_[0].best[i];
      }
    }
  }

  void mark_sides(const Node& node) {
    const auto column = static_cast<std::size_t>(
        std::ranges::lower_bound(features_, node.split.feature) - features_.begin());
    for (const Entry& entry : columns_.entries(column, node.begin, node.end)) {
      row_goes_left_[entry.row] =
          std::isnan(entry.x) ? node.split.missing_left
                              : goes_left(static_cast<float>(entry.x), node.split.threshold);
    }
  }

  Columns<Entry>& columns_;
  std::span<const Feature> features_;
  std::span<const std::int8_t> monotonic_;
  const Criterion& criterion_;
  typename Split::Sum total_;
  bool draws_;
  std::vector<std::uint8_t> row_goes_left_;
  std::vector<Thread> threads_;
};

}  // namespace hardwood::grow
