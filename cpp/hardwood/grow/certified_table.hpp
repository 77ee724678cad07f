#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardwood/grow/certified_histograms.hpp"
#include "hardwood/grow/certified_rows.hpp"
#include "hardwood/grow/certified_search.hpp"
#include "hardwood/grow/certified_tree.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/newton_nodes.hpp"
#include "hardwood/grow/node_sums.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/pool.hpp"

namespace hardwood::grow {

inline RowList rows_of(const CertifiedRequest& request) {
  return {request.rows.data(), request.rows.size()};
}

inline GradientColumn column_of(const CertifiedRequest& request) {
  // No list of rows means all of them; a part can have none.
  const std::size_t n = request.slopes.size() / 2, n_rows = request.rows.size() ? n : 0;
  return {request.slopes.data(), request.slopes.data() + n, 1, n_rows,
          request.weight.empty() ? nullptr : request.weight.data()};
}

/// The Newton criterion, which notes beside the tree what certified boosting needs of a node.
class CertifiedCriterion : public NewtonTree {
 public:
  CertifiedCriterion(const NewtonRules& rules, const Grid& grid, CertifiedTree& beside)
      : NewtonTree(rules, grid), beside_(beside) {}

  void describe(const Node<CertifiedSplit>& node, GrownTree& tree) const {
    NewtonTree::describe(node, tree);
    beside_.candidate.push_back(node.split.candidate);
    const double step = rules().max_delta_step > 0 ? rules().max_delta_step : kInfinity;
    beside_.value_low.push_back(std::max(node.value_low, -step));
    beside_.value_high.push_back(std::min(node.value_high, step));
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  CertifiedTree& beside_;
};

/// The grower's table of rows that go wherever the adversary can send them.
template <class Stat, class Code>
class CertifiedTable {
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;
  using Codes = bins::EndCodes<Code>;
  using Rows = CertifiedRows<Stat>;
  using Router = CertifiedRouter<Stat, Code>;
  using Split = CertifiedSplit;

 public:
  using Node = grow::Node<CertifiedSplit>;
  struct Kept {
    std::size_t node = 0;  ///< its number
    Rows rows;
    Pooled<Cell> cells;
  };
  static constexpr bool kSmallFirst = true;

  CertifiedTable(const Codes& codes, CertifiedRequest& request, const Grid& grid, Pool& pool,
                 CertifiedTree& grown)
      : request_(request),
        rules_(while_growing(request)),
        criterion_(rules_, grid, grown),
        part_(request.part),
        pool_(pool),
        router_(codes, pool),
        histograms_(codes, request.features, pool),
        search_(histograms_, rules_, criterion_.grid(), request.monotonic),
        leaf_rows_(grown.leaf_rows) {}

  const CertifiedCriterion& criterion() const { return criterion_; }
  int monotonic(Feature feature) const { return search_.monotonic(feature); }
  Order order() const { return in_parts() ? Order::kLevels : Order::kTasks; }
  std::size_t most_together() const {
    return std::max<std::size_t>(kBytesTogether / (histograms_.n_cells() * sizeof(Cell) + 1), 1);
  }
  bool in_parts() const { return part_.others != nullptr; }

  void plant(Node& root, Kept& kept) {
    kept.rows = {pool_.take<Row>(request_.rows.size()), request_.rows.size(), request_.n_down};
    Rows& rows = kept.rows;
    const Grid& grid = criterion_.grid();
    const Grid coarse{grid.g_bits - 1, grid.h_bits - 1, grid.wide};  // see twice
    put_on_grid<Stat>(column_of(request_), rows_of(request_), coarse, request_.seed,
                      rows.data.data(), rules_.n_threads, {nullptr, part_.number});
    pool_.give_back(std::move(request_.slopes));
    pool_.give_back(std::move(request_.rows));
    std::vector<GridSum> sums((rows.n + kBlock - 1) / kBlock);
    parallel_blocks(rows.n, kBlock, rules_.n_threads, [&](std::size_t begin, std::size_t end, int) {
      GridSum& sum = sums[begin / kBlock];
      for (std::size_t i = begin; i < end; ++i) {
        rows.data[i] = twice(rows.data[i]);
        sum += {rows.data[i].g, rows.data[i].h, 1};
      }
    });
    root.total = std::accumulate(sums.begin(), sums.end(), GridSum{});
    add_cells<GridSum>(part_, [&](auto&& visit) { visit(&root.total, 1); });
    set_rows(root, rows.n, static_cast<std::size_t>(root.total.n));
    if (!may_split(root)) return;
    kept.cells = pool_.take<Cell>(histograms_.n_cells());
    histograms_.build_all(rows, kept.cells.data(), rules_.n_threads);
    histograms_.add_parts(part_, {kept.cells.data()});
    std::vector<Split> best(n_blocks(), nothing_yet());
    const SearchedNode searched = search_.searched(root);
    parallel_for(n_blocks(), rules_.n_threads, [&](std::size_t b, int) {
      search_.block(searched, b, kept.cells.data(), best[b]);
    });
    root.split = best_of(best);
  }

  /// The histogram of the larger child is the parent's without the smaller child's, and with those
  /// rows added that are in both: a row counts by half more in the two than in the parent.
  void split(std::span<Family<CertifiedTable>> families, int n_threads) {
    if (in_parts()) return split_together(families, n_threads);
    for (Family<CertifiedTable>& family : families) {
      const int n_helpers = family.parent.n_rows() < kWorthThreads ? 1 : n_threads;
      Parting parting = part_rows(family, n_helpers);
      settle(parting);
      move_rows(parting, n_helpers);
      if (parting.searched) search_children(parting, n_helpers);
      pool_.give_back(std::move(parting.both.data));
    }
  }

  void give_back(Kept kept) {
    if (request_.wants_leaf_rows && kept.rows.n > 0) {
      keep_rows(kept.node, router_.list(kept.rows));
    }
    pool_.give_back(std::move(kept.rows.data));
    pool_.give_back(std::move(kept.cells));
  }

  /// From the leaves up, take back the splits that gain too little. Children stand behind their
  /// parents.
  void trim(std::vector<Node>& nodes) {
    std::vector<std::size_t> stays(nodes.size());  // where the rows of a node are then
    std::iota(stays.begin(), stays.end(), std::size_t{0});
    for (std::size_t i = nodes.size(); i-- > 0;) {
      Node& node = nodes[i];
      if (!node.left || nodes[node.left].left || nodes[node.right].left) continue;
      if (node.split.gain >= request_.rules.min_split_gain) continue;
      stays[node.left] = stays[node.right] = i;
      node.left = node.right = 0;
    }
    for (std::size_t& place : stays) place = stays[place];
    for (LeafRows& rows : leaf_rows_) {
      rows.leaf = static_cast<NodeId>(stays[static_cast<std::size_t>(rows.leaf)]);
    }
  }

  void finish(const std::vector<Node>&, const std::vector<NodeId>& id_of, GrownTree&) {
    for (LeafRows& rows : leaf_rows_) rows.leaf = id_of[static_cast<std::size_t>(rows.leaf)];
    std::ranges::sort(leaf_rows_, {}, &LeafRows::leaf);
  }

 private:
  static constexpr std::size_t kBlock = 1 << 14;      // rows handled together
  static constexpr std::size_t kWorthThreads = 4096;  // rows below which a node stays on one thread
  static constexpr std::size_t kBytesTogether = 1 << 26;  // of the histograms of one message

  /// Where the rows of a node that is split go in this part, and what is needed of its children.
  struct Parting {
    Family<CertifiedTable>* family = nullptr;
    Pooled<std::uint8_t> sides;  // of the rows
    std::vector<typename Router::Stretch> stretches;
    GridSum left_half, right_half;                  // of rows that the other child owns
    std::size_t n_left_here = 0, n_right_here = 0;  // rows of the children in this part,
    std::size_t n_left = 0, n_right = 0;            // and in all
    std::size_t n_both = 0, n_missing = 0;
    bool searched = false;  // a child may split
    bool derives = false;   // the histogram of the larger child comes from the parent's
    Rows both;
    Pooled<Cell> both_cells;  // in parts

    bool left_is_small() const { return n_left <= n_right; }
    Node& small() { return left_is_small() ? family->left : family->right; }
    Node& large() { return left_is_small() ? family->right : family->left; }
    Kept& small_kept() { return left_is_small() ? family->left_kept : family->right_kept; }
    Kept& large_kept() { return left_is_small() ? family->right_kept : family->left_kept; }
  };

  /// Splits that gain too little are taken back in the end, see trim.
  static NewtonRules while_growing(const CertifiedRequest& request) {
    NewtonRules rules = request.rules;
    rules.min_split_gain = 0;
    rules.n_threads = std::max(request.n_threads, 1);
    return rules;
  }

  std::size_t n_blocks() const { return histograms_.blocks().size(); }
  bool may_split(const Node& node) const {
    return n_blocks() > 0 && grow::may_split(criterion_, node);
  }
  static void set_rows(Node& node, std::size_t n_here, std::size_t n_rows) {
    node.begin = 0;
    node.end = n_here;
    node.n_elsewhere = static_cast<std::ptrdiff_t>(n_rows - n_here);
  }

  Split nothing_yet() const {
    Split split;
    split.gain = rules_.least_gain;
    return split;
  }

  void keep_rows(std::size_t node, LeafRows rows) {
    const std::lock_guard guard(lock_);
    rows.leaf = static_cast<NodeId>(node);  // its number so far
    leaf_rows_.push_back(std::move(rows));
  }

  /// `split` for all nodes of a level of a table in parts: one message says how many rows go where,
  /// another one adds up the histograms.
  void split_together(std::span<Family<CertifiedTable>> families, int n_threads) {
    std::vector<Parting> partings;
    for (auto& family : families) partings.push_back(part_rows(family, n_threads));
    std::vector<std::int64_t> sums;
    const auto each = [&](auto&& visit) {
      for (Parting& parting : partings) {
        visit(parting.left_half.g), visit(parting.left_half.h), visit(parting.n_left);
        visit(parting.right_half.g), visit(parting.right_half.h), visit(parting.n_right);
        visit(parting.n_both), visit(parting.n_missing);
      }
    };
    each([&](const auto& sum) { sums.push_back(static_cast<std::int64_t>(sum)); });
    part_.sum(sums);
    std::size_t next = 0;
    each([&](auto& sum) {
      sum = static_cast<std::remove_reference_t<decltype(sum)>>(sums[next++]);
    });
    struct Asked {
      const Rows* rows;
      Cell* cells;
    };
    std::vector<Asked> asked;
    for (Parting& parting : partings) {
      settle(parting);
      move_rows(parting, n_threads);
      if (!parting.searched) continue;
      if (parting.derives || may_split(parting.small())) {
        asked.push_back({&parting.small_kept().rows, parting.small_kept().cells.data()});
      }
      if (parting.derives) {
        parting.both_cells = pool_.take<Cell>(histograms_.n_cells());
        asked.push_back({&parting.both, parting.both_cells.data()});
      } else if (may_split(parting.large())) {
        asked.push_back({&parting.large_kept().rows, parting.large_kept().cells.data()});
      }
    }
    parallel_for(asked.size() * n_blocks(), n_threads, [&](std::size_t i, int) {
      const Asked& one = asked[i / n_blocks()];
      histograms_.build(*one.rows, i % n_blocks(), one.cells);
    });
    std::vector<Cell*> tables;
    for (const Asked& one : asked) tables.push_back(one.cells);
    histograms_.add_parts(part_, tables);
    parallel_for(partings.size(), n_threads, [&](std::size_t i, int) {
      if (partings[i].searched) search_children_of_all(partings[i]);
    });
    for (Parting& parting : partings) {
      pool_.give_back(std::move(parting.both_cells));
      pool_.give_back(std::move(parting.both.data));
    }
  }

  Parting part_rows(Family<CertifiedTable>& family, int n_threads) {
    Parting parting;
    parting.family = &family;
    const Rows& rows = family.kept.rows;
    const Split& split = family.parent.split;
    parting.sides = pool_.take<std::uint8_t>(rows.n);
    parting.stretches = router_.count(
        rows, {split.feature, split.candidate, split.missing_left, split.left_is_lower},
        parting.sides.data(), n_threads);
    for (const typename Router::Stretch& stretch : parting.stretches) {
      (stretch.left_owns ? parting.right_half : parting.left_half) += stretch.half;
      parting.n_left += stretch.n_left;
      parting.n_right += stretch.n_right;
      parting.n_both += stretch.n_both;
      parting.n_missing += stretch.n_missing;
    }
    parting.n_left_here = parting.n_left;
    parting.n_right_here = parting.n_right;
    return parting;
  }

  /// With the sums of all parts.
  void settle(Parting& parting) const {
    auto& [parent, left, right, kept, left_kept, right_kept] = *parting.family;
    set_rows(left, parting.n_left_here, parting.n_left);
    set_rows(right, parting.n_right_here, parting.n_right);
    left.total += parting.left_half;
    right.total += parting.right_half;
    left.total.n = static_cast<std::int64_t>(parting.n_left);
    right.total.n = static_cast<std::int64_t>(parting.n_right);
    // Without missing values they would go with the larger number of rows.
    if (parting.n_missing == 0) parent.split.missing_left = parting.n_left >= parting.n_right;
    parting.searched = may_split(left) || may_split(right);
    const std::size_t cost =
        parting.n_both + (may_split(parting.small()) ? 0 : parting.small().n_rows());
    parting.derives = may_split(parting.large()) && cost < parting.large().n_rows();
  }

  /// Give the children rows of their own, unless both are leaves.
  void move_rows(Parting& parting, int n_threads) {
    auto& [parent, left, right, kept, left_kept, right_kept] = *parting.family;
    left_kept.node = left.number;
    right_kept.node = right.number;
    const std::uint8_t* const sides = parting.sides.data();
    if (parting.searched) {
      typename Router::Parted rows =
          router_.part(kept.rows, parting.stretches, sides, parting.derives, n_threads);
      left_kept.rows = std::move(rows.left);
      right_kept.rows = std::move(rows.right);
      parting.both = std::move(rows.both);
      parting.small_kept().cells = pool_.take<Cell>(histograms_.n_cells());
      parting.large_kept().cells = std::move(kept.cells);
    } else {
      if (request_.wants_leaf_rows) {
        typename Router::Listed rows = router_.list(kept.rows, parting.stretches, sides, n_threads);
        keep_rows(left.number, std::move(rows.left));
        keep_rows(right.number, std::move(rows.right));
      }
      pool_.give_back(std::move(kept.cells));
    }
    pool_.give_back(std::move(kept.rows.data));
    pool_.give_back(std::move(parting.sides));
  }

  /// `search_children` of histograms that are those of all parts.
  void search_children_of_all(Parting& parting) {
    Cell* const small_cells = parting.small_kept().cells.data();
    Cell* const large_cells = parting.large_kept().cells.data();
    if (parting.derives) {
      histograms_.derive_all(small_cells, parting.both_cells.data(), large_cells);
    }
    for (const auto& [child, cells] :
         {std::pair{&parting.small(), small_cells}, std::pair{&parting.large(), large_cells}}) {
      child->split = nothing_yet();
      if (!may_split(*child)) continue;
      const SearchedNode searched = search_.searched(*child);
      for (std::size_t b = 0; b < n_blocks(); ++b) {
        search_.block(searched, b, cells, child->split);
      }
    }
  }

  void search_children(Parting& parting, int n_threads) {
    Node &small = parting.small(), &large = parting.large();
    const Rows &small_rows = parting.small_kept().rows, &large_rows = parting.large_kept().rows;
    const bool derives = parting.derives;
    const bool small_splits = may_split(small), large_splits = may_split(large);
    const bool builds_small = small_splits || derives;
    Cell* const small_cells = parting.small_kept().cells.data();
    Cell* const large_cells = parting.large_kept().cells.data();
    const bool in_shares = n_blocks() < static_cast<std::size_t>(n_threads);
    if (in_shares) {
      if (builds_small) histograms_.build_all(small_rows, small_cells, n_threads);
      if (large_splits && !derives) histograms_.build_all(large_rows, large_cells, n_threads);
    }
    const SearchedNode small_searched = search_.searched(small);
    const SearchedNode large_searched = search_.searched(large);
    // One thread lets each block profit from the best split so far; more keep them apart.
    const std::size_t n_best = n_threads > 1 ? n_blocks() : 1;
    std::vector<Split> small_best(n_best, nothing_yet()), large_best(small_best);
    parallel_for(n_blocks(), n_threads, [&](std::size_t b, int) {
      if (builds_small && !in_shares) histograms_.build(small_rows, b, small_cells);
      if (derives) {
        histograms_.derive(small_cells, parting.both, b, large_cells);
      } else if (large_splits && !in_shares) {
        histograms_.build(large_rows, b, large_cells);
      }
      if (small_splits) {
        search_.block(small_searched, b, small_cells, small_best[b % n_best]);
      }
      if (large_splits) {
        search_.block(large_searched, b, large_cells, large_best[b % n_best]);
      }
    });
    small.split = best_of(small_best);
    large.split = best_of(large_best);
  }

  CertifiedRequest& request_;
  const NewtonRules rules_;
  const CertifiedCriterion criterion_;
  const Part part_;
  Pool& pool_;
  const Router router_;
  CertifiedHistograms<Stat, Code> histograms_;
  CertifiedSearch<Stat, Code> search_;
  std::mutex lock_;  // of the rows of leaves: the grower may split several nodes at a time
  std::vector<LeafRows>& leaf_rows_;
};

}  // namespace hardwood::grow
