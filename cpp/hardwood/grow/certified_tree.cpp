#include "hardwood/grow/certified_tree.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "hardwood/grow/certified_histograms.hpp"
#include "hardwood/grow/certified_rows.hpp"
#include "hardwood/grow/certified_search.hpp"
#include "hardwood/grow/driver.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/node_sums.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kBlock = 1 << 14;          // rows handled together
constexpr std::size_t kWorthThreads = 4096;      // rows below which a node stays on one thread
constexpr std::size_t kBytesTogether = 1 << 26;  // of the histograms of one message

using Split = CertifiedSplit;
using Node = CertifiedNode;

RowList rows_of(const CertifiedRequest& request) {
  return {request.rows.data(), request.rows.size()};
}

GradientColumn column_of(const CertifiedRequest& request) {
  // No list of rows means all of them; a part can have none.
  const std::size_t n = request.slopes.size() / 2, n_rows = request.rows.size() ? n : 0;
  return {request.slopes.data(), request.slopes.data() + n, 1, n_rows,
          request.weight.empty() ? nullptr : request.weight.data()};
}

template <class Stat, class Code>
class Grower {
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;
  using Codes = bins::EndCodes<Code>;
  using Rows = CertifiedRows<Stat>;
  using Router = CertifiedRouter<Stat, Code>;

  /// A node that will be split, with its rows and histograms.
  struct Open {
    std::size_t node = 0;
    Rows rows;
    Pooled<Cell> cells;
    std::size_t number = 0;  // see ranked
    double priority = 0;
    std::size_t n_rows = 0;
  };

 public:
  Grower(const Codes& codes, CertifiedRequest& request, const Grid& grid, Pool& pool)
      : request_(request),
        rules_(without_least_gain(request.rules)),
        part_(request.part),
        grid_(grid),
        pool_(pool),
        n_threads_(std::max(request.n_threads, 1)),
        router_(codes, pool),
        histograms_(codes, request.features, pool),
        search_(histograms_, rules_, grid, request.monotonic) {}

  CertifiedTree grow() {
    plant();
    grow_nodes();
    prune();
    return write();
  }

 private:
  void plant() {
    Rows rows{pool_.take<Row>(request_.rows.size()), request_.rows.size(), request_.n_down};
    const GradientColumn gradients = column_of(request_);
    const Grid coarse{grid_.g_bits - 1, grid_.h_bits - 1, grid_.wide};  // see twice
    put_on_grid<Stat>(gradients, rows_of(request_), coarse, request_.seed, rows.data.data(),
                      n_threads_, {nullptr, part_.number});
    pool_.give_back(std::move(request_.slopes));
    pool_.give_back(std::move(request_.rows));
    std::vector<GridSum> sums((rows.n + kBlock - 1) / kBlock);
    parallel_blocks(rows.n, kBlock, n_threads_, [&](std::size_t begin, std::size_t end, int) {
      GridSum& sum = sums[begin / kBlock];
      for (std::size_t i = begin; i < end; ++i) {
        rows.data[i] = twice(rows.data[i]);
        sum += {rows.data[i].g, rows.data[i].h, 1};
      }
    });
    Node root;
    root.total = std::accumulate(sums.begin(), sums.end(), GridSum{});
    add_cells<GridSum>(part_, [&](auto&& visit) { visit(&root.total, 1); });
    root.n_rows = static_cast<std::size_t>(root.total.n);
    Pooled<Cell> cells;
    if (may_split(root)) {
      cells = pool_.take<Cell>(histograms_.n_cells());
      histograms_.build_all(rows, cells.data(), n_threads_);
      histograms_.add_parts(part_, {cells.data()});
      std::vector<Split> best(n_blocks(), Split{rules_.least_gain});
      const SearchedNode searched = search_.searched(root);
      parallel_for(n_blocks(), n_threads_,
                   [&](std::size_t b, int) { search_.block(searched, b, cells.data(), best[b]); });
      root.split = best_of(best);
    }
    nodes_ = {root};
    open_.clear();
    if (root.split.feature != kLeaf) {
      open_.push_back({0, std::move(rows), std::move(cells), 0, 0, 0});
    } else {
      close({0, std::move(rows), std::move(cells), 0, 0, 0});
    }
  }

  /// Splits that gain too little are taken back in the end, see prune.
  static NewtonRules without_least_gain(NewtonRules rules) {
    rules.min_split_gain = 0;
    return rules;
  }

  std::size_t n_blocks() const { return histograms_.blocks().size(); }
  bool in_parts() const { return part_.others != nullptr; }

  /// Large nodes are split by all threads together, the others by whoever is free. The smaller
  /// child is opened first, so that few histograms wait.
  void grow_nodes() {
    Driver<Open> driver(
        rules_.max_leaf_nodes, in_parts() ? Order::kLevels : Order::kTasks,
        std::max<std::size_t>(kBytesTogether / (histograms_.n_cells() * sizeof(Cell) + 1), 1));
    for (Open& open : open_) driver.push(ranked(std::move(open)));
    driver.run(n_threads_, checkpoint,
               [&](std::vector<Open> nodes, int n_threads, std::vector<Open>& more) {
                 std::vector<Open> children;
                 if (in_parts()) {
                   expand_together(std::move(nodes), n_threads, children);
                 } else {
                   for (Open& next : nodes) {
                     const int n_helpers = next.n_rows < kWorthThreads ? 1 : n_threads;
                     expand(std::move(next), n_helpers, children);
                   }
                 }
                 for (Open& child : children) more.push_back(ranked(std::move(child)));
               });
    for (Open& open : driver.rest()) close(std::move(open));
  }

  /// What the driver goes by.
  Open ranked(Open open) {
    open.number = open.node;
    open.priority = node_at(open.node).split.gain;
    open.n_rows = open.rows.n;
    return open;
  }

  /// A node that stays a leaf.
  void close(Open open) {
    if (request_.wants_leaf_rows) keep_rows(open.node, router_.list(open.rows));
    pool_.give_back(std::move(open.rows.data));
    pool_.give_back(std::move(open.cells));
  }

  void keep_rows(std::size_t node, LeafRows rows) {
    const std::lock_guard guard(nodes_lock_);
    rows.leaf = static_cast<NodeId>(node);  // its place so far
    leaf_rows_.push_back(std::move(rows));
  }

  bool may_split(const Node& node) const {
    return (rules_.max_depth < 0 || node.depth < rules_.max_depth) &&
           node.n_rows >= 2 * std::max<std::size_t>(rules_.min_samples_leaf, 1) &&
           grid_.real(node.total).h >= 2 * rules_.min_child_weight && n_blocks() > 0;
  }

  // Growing

  /// A node that is being split, and its children.
  struct Family {
    Open parent;
    Node node;
    Pooled<std::uint8_t> sides;  // of the rows
    std::vector<typename Router::Stretch> stretches;
    Node left, right;
    std::size_t n_both = 0, n_missing = 0;
    Open left_open, right_open;
    bool searched = false;  // a child may split
    bool derives = false;   // the histogram of the larger child comes from the parent's
    Rows both;
    Pooled<Cell> both_cells;            // in parts
    typename Router::Listed leaf_rows;  // where both children are leaves

    bool left_is_small() const { return left.n_rows <= right.n_rows; }
    Node& small() { return left_is_small() ? left : right; }
    Node& large() { return left_is_small() ? right : left; }
    Open& small_open() { return left_is_small() ? left_open : right_open; }
    Open& large_open() { return left_is_small() ? right_open : left_open; }
  };

  /// Split a node. The histogram of the larger child is the parent's without the smaller child's,
  /// and with those rows added that are in both: a row counts by half more in the two than in the
  /// parent.
  void expand(Open parent, int n_threads, std::vector<Open>& open) {
    Family family = family_of(std::move(parent), n_threads);
    settle(family);
    move_rows(family, n_threads);
    if (family.searched) search_children(family, n_threads);
    finish(std::move(family), open);
  }

  /// The same for all nodes of a level of a table in parts: one message says how many rows go
  /// where, another one adds up the histograms.
  void expand_together(std::vector<Open> parents, int n_threads, std::vector<Open>& open) {
    std::vector<Family> families;
    for (Open& parent : parents) families.push_back(family_of(std::move(parent), n_threads));
    std::vector<std::int64_t> sums;
    const auto each = [&](auto&& visit) {
      for (Family& family : families) {
        for (Node* const child : {&family.left, &family.right}) {
          visit(child->total.g), visit(child->total.h), visit(child->n_rows);
        }
        visit(family.n_both), visit(family.n_missing);
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
    for (Family& family : families) {
      settle(family);
      move_rows(family, n_threads);
      if (!family.searched) continue;
      Cell* const small_cells = family.small_open().cells.data();
      if (family.derives || may_split(family.small())) {
        asked.push_back({&family.small_open().rows, small_cells});
      }
      if (family.derives) {
        family.both_cells = pool_.take<Cell>(histograms_.n_cells());
        asked.push_back({&family.both, family.both_cells.data()});
      } else if (may_split(family.large())) {
        asked.push_back({&family.large_open().rows, family.large_open().cells.data()});
      }
    }
    parallel_for(asked.size() * n_blocks(), n_threads, [&](std::size_t i, int) {
      const Asked& one = asked[i / n_blocks()];
      histograms_.build(*one.rows, i % n_blocks(), one.cells);
    });
    std::vector<Cell*> tables;
    for (const Asked& one : asked) tables.push_back(one.cells);
    histograms_.add_parts(part_, tables);
    parallel_for(families.size(), n_threads, [&](std::size_t i, int) {
      if (families[i].searched) search_children_of_all(families[i]);
    });
    for (Family& family : families) {
      pool_.give_back(std::move(family.both_cells));
      finish(std::move(family), open);
    }
  }

  /// Where the rows of a node go in this part. Of what the children add up to, only the halves so
  /// far that a child gets which does not own a row.
  Family family_of(Open parent, int n_threads) {
    Family family;
    family.node = node_at(parent.node);
    const Split& split = family.node.split;
    family.sides = pool_.take<std::uint8_t>(parent.rows.n);
    family.stretches = router_.count(
        parent.rows, {split.feature, split.candidate, split.missing_left, split.left_is_lower},
        family.sides.data(), n_threads);
    family.parent = std::move(parent);
    for (const typename Router::Stretch& stretch : family.stretches) {
      (stretch.left_owns ? family.right : family.left).total += stretch.half;
      family.left.n_rows += stretch.n_left;
      family.right.n_rows += stretch.n_right;
      family.n_both += stretch.n_both;
      family.n_missing += stretch.n_missing;
    }
    return family;
  }

  /// With the sums of all parts.
  void settle(Family& family) const {
    Node &left = family.left, &right = family.right;
    left.total += family.node.split.left;
    right.total += family.node.total - family.node.split.left;
    left.total.n = static_cast<std::int64_t>(left.n_rows);
    right.total.n = static_cast<std::int64_t>(right.n_rows);
    // Without missing values they would go with the larger number of rows.
    if (family.n_missing == 0) family.node.split.missing_left = left.n_rows >= right.n_rows;
    bound(family.node, left, right);
    family.searched = may_split(left) || may_split(right);
    const std::size_t cost =
        family.n_both + (may_split(family.small()) ? 0 : family.small().n_rows);
    family.derives = may_split(family.large()) && cost < family.large().n_rows;
  }

  /// Give the children rows of their own, unless both are leaves.
  void move_rows(Family& family, int n_threads) {
    Open& parent = family.parent;
    if (family.searched) {
      typename Router::Parted rows = router_.part(parent.rows, family.stretches,
                                                  family.sides.data(), family.derives, n_threads);
      pool_.give_back(std::move(parent.rows.data));
      family.left_open.rows = std::move(rows.left);
      family.right_open.rows = std::move(rows.right);
      family.both = std::move(rows.both);
      family.small_open().cells = pool_.take<Cell>(histograms_.n_cells());
      family.large_open().cells = std::move(parent.cells);
    } else {
      if (request_.wants_leaf_rows) {
        family.leaf_rows =
            router_.list(parent.rows, family.stretches, family.sides.data(), n_threads);
      }
      pool_.give_back(std::move(parent.rows.data));
      pool_.give_back(std::move(parent.cells));
    }
    pool_.give_back(std::move(family.sides));
  }

  void finish(Family family, std::vector<Open>& open) {
    pool_.give_back(std::move(family.both.data));
    family.left_open.node =
        add_children(family.parent.node, family.node, family.left, family.right);
    family.right_open.node = family.left_open.node + 1;
    if (!family.searched) {
      if (request_.wants_leaf_rows) {
        keep_rows(family.left_open.node, std::move(family.leaf_rows.left));
        keep_rows(family.right_open.node, std::move(family.leaf_rows.right));
      }
      return;
    }
    const auto keep = [&](const Node& child, Open child_open) {
      if (child.split.feature != kLeaf) {
        open.push_back(std::move(child_open));
      } else {
        close(std::move(child_open));
      }
    };
    // Last in, first out: the smaller child goes first.
    keep(family.large(), std::move(family.large_open()));
    keep(family.small(), std::move(family.small_open()));
  }

  /// `search_children` of histograms that are those of all parts.
  void search_children_of_all(Family& family) {
    Cell* const small_cells = family.small_open().cells.data();
    Cell* const large_cells = family.large_open().cells.data();
    if (family.derives) {
      histograms_.derive_all(small_cells, family.both_cells.data(), large_cells);
    }
    for (const auto& [child, cells] :
         {std::pair{&family.small(), small_cells}, std::pair{&family.large(), large_cells}}) {
      child->split = Split{rules_.least_gain};
      if (!may_split(*child)) continue;
      const SearchedNode searched = search_.searched(*child);
      for (std::size_t b = 0; b < n_blocks(); ++b) {
        search_.block(searched, b, cells, child->split);
      }
    }
  }

  void search_children(Family& family, int n_threads) {
    Node &small = family.small(), &large = family.large();
    Open &small_open = family.small_open(), &large_open = family.large_open();
    const bool derives = family.derives;
    const bool small_splits = may_split(small), large_splits = may_split(large);
    const bool builds_small = small_splits || derives;
    Cell* const small_cells = small_open.cells.data();
    Cell* const large_cells = large_open.cells.data();
    const bool in_shares = n_blocks() < static_cast<std::size_t>(n_threads);
    if (in_shares) {
      if (builds_small) histograms_.build_all(small_open.rows, small_cells, n_threads);
      if (large_splits && !derives) {
        histograms_.build_all(large_open.rows, large_cells, n_threads);
      }
    }
    const SearchedNode small_searched = search_.searched(small);
    const SearchedNode large_searched = search_.searched(large);
    // One thread lets each block profit from the best split so far; more keep them apart.
    const std::size_t n_best = n_threads > 1 ? n_blocks() : 1;
    std::vector<Split> small_best(n_best, Split{rules_.least_gain}), large_best(small_best);
    parallel_for(n_blocks(), n_threads, [&](std::size_t b, int) {
      if (builds_small && !in_shares) histograms_.build(small_open.rows, b, small_cells);
      if (derives) {
        histograms_.derive(small_cells, family.both, b, large_cells);
      } else if (large_splits && !in_shares) {
        histograms_.build(large_open.rows, b, large_cells);
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

  static Split best_of(const std::vector<Split>& splits) {
    return *std::ranges::max_element(splits,
                                     [](const Split& a, const Split& b) { return b.beats(a); });
  }

  Node node_at(std::size_t place) {
    const std::lock_guard guard(nodes_lock_);
    return nodes_[place];
  }

  /// Returns the place of the left child; the right one is next to it.
  std::size_t add_children(std::size_t place, Node node, const Node& left, const Node& right) {
    const std::lock_guard guard(nodes_lock_);
    node.left = nodes_.size();
    node.right = nodes_.size() + 1;
    nodes_[place] = node;
    nodes_.push_back(left);
    nodes_.push_back(right);
    return node.left;
  }

  /// Depth and limits of the children; a monotone feature parts the limits between them.
  void bound(const Node& node, Node& left, Node& right) const {
    left.depth = right.depth = node.depth + 1;
    left.value_low = right.value_low = node.value_low;
    left.value_high = right.value_high = node.value_high;
    const int sign = search_.monotonic(node.split.feature);
    if (sign == 0) return;
    const SearchedNode searched = search_.searched(node);
    const auto value = [&](const GridSum& sum) {
      return searched.criterion.value(searched.sums(sum));
    };
    const double middle = (value(node.split.left) + value(node.total - node.split.left)) / 2;
    (sign > 0 ? left : right).value_high = middle;
    (sign > 0 ? right : left).value_low = middle;
  }

  // The finished tree

  /// From the leaves up, take back the splits that gain too little. Children stand behind their
  /// parents.
  void prune() {
    std::vector<std::size_t> stays(nodes_.size());  // where the rows of a node are then
    std::iota(stays.begin(), stays.end(), std::size_t{0});
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      Node& node = nodes_[i];
      if (!node.left || nodes_[node.left].left || nodes_[node.right].left) continue;
      if (node.split.gain >= request_.rules.min_split_gain) continue;
      stays[node.left] = stays[node.right] = i;
      node.left = node.right = 0;
    }
    for (std::size_t& place : stays) place = stays[place];
    for (LeafRows& rows : leaf_rows_) {
      rows.leaf = static_cast<NodeId>(stays[static_cast<std::size_t>(rows.leaf)]);
    }
  }

  CertifiedTree write() {
    CertifiedTree grown;
    grown.g_total = grid_.g_total;
    grown.h_total = grid_.h_total;
    const auto describe = [&](GrownTree& to, const Node& node) {
      to.value.push_back(
          static_cast<float>(search_.searched(node).criterion.value(grid_.real(node.total))));
      to.cover.push_back(grid_.real(node.total).h);
      to.n_samples.push_back(static_cast<std::int64_t>(node.n_rows));
      grown.candidate.push_back(node.split.candidate);
      const double step = rules_.max_delta_step > 0 ? rules_.max_delta_step : 1 / 0.0;
      grown.value_low.push_back(std::max(node.value_low, -step));
      grown.value_high.push_back(std::min(node.value_high, step));
    };
    const std::vector<NodeId> id_of = in_preorder(nodes_, grown.tree, describe);
    for (LeafRows& rows : leaf_rows_) rows.leaf = id_of[static_cast<std::size_t>(rows.leaf)];
    std::ranges::sort(leaf_rows_, {}, &LeafRows::leaf);
    grown.leaf_rows = std::move(leaf_rows_);
    return grown;
  }

  CertifiedRequest& request_;
  const NewtonRules rules_;
  Part part_;
  const Grid& grid_;
  Pool& pool_;
  int n_threads_;
  Router router_;
  CertifiedHistograms<Stat, Code> histograms_;
  CertifiedSearch<Stat, Code> search_;
  std::vector<Node> nodes_;  // in any order: the tree is written in preorder
  std::vector<LeafRows> leaf_rows_;
  std::mutex nodes_lock_;  // of both
  std::vector<Open> open_;
};

}  // namespace

template <class Code>
CertifiedTree grow_certified(const bins::EndCodes<Code>& codes, CertifiedRequest request,
                             Pool& pool) {
  if (request.slopes.size() != 2 * codes.n_rows()) {
    throw std::invalid_argument("slopes needs two entries for each of the table's " +
                                std::to_string(codes.n_rows()) + " rows, got " +
                                std::to_string(request.slopes.size()) + ".");
  }
  if (!request.rows.size() && !request.part.others) {
    throw std::invalid_argument("rows must keep at least one row.");
  }
  const Grid grid =
      choose_grid(column_of(request), rows_of(request), request.rules.min_samples_leaf > 1,
                  request.n_threads, request.part);
  return grid.wide ? Grower<Wide, Code>(codes, request, grid, pool).grow()
                   : Grower<Packed, Code>(codes, request, grid, pool).grow();
}

template CertifiedTree grow_certified(const bins::EndCodes<std::uint8_t>&, CertifiedRequest, Pool&);
template CertifiedTree grow_certified(const bins::EndCodes<std::uint16_t>&, CertifiedRequest,
                                      Pool&);

}  // namespace hardwood::grow
