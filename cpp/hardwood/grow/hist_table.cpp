#include "hardwood/grow/hist_table.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "hardwood/grow/bin_search.hpp"
#include "hardwood/grow/driver.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/histogram.hpp"
#include "hardwood/grow/row_set.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kBlock = 1 << 14;      // rows handled together
constexpr std::size_t kWorthThreads = 4096;  // rows below which a node stays on one thread

struct Node {
  std::size_t begin = 0, end = 0;  // its rows
  bool has_rows = true;            // false: they lie among its parent's
  std::int32_t depth = 0;
  GridSum total;
  double value_low = -std::numeric_limits<double>::infinity();
  double value_high = std::numeric_limits<double>::infinity();
  BinSplit split;
  std::size_t left = 0, right = 0;  // 0: a leaf

  std::size_t n_rows() const { return end - begin; }
};

/// Histograms that are not in use. Trees are grown depth first, so there are few.
template <class Cell>
class HistogramPool {
 public:
  Buffer<Cell> take(std::size_t n_cells) {
    const std::lock_guard guard(lock_);
    if (n_cells != n_cells_) free_.clear();
    n_cells_ = n_cells;
    if (free_.empty()) return Buffer<Cell>(n_cells);
    Buffer<Cell> buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(Buffer<Cell> buffer) {
    const std::lock_guard guard(lock_);
    if (buffer.size() == n_cells_) free_.push_back(std::move(buffer));
  }

 private:
  std::mutex lock_;
  std::size_t n_cells_ = 0;
  std::vector<Buffer<Cell>> free_;
};

template <class Stat>
struct TreeMemory {
  RowSet<typename Stat::Row> rows;
  HistogramPool<typename Stat::Cell> pool;
};

/// What all trees of a call share.
struct Shared {
  const bins::Binned& binned;
  std::span<const Window> windows;
  const HistRequest& request;
  const HistogramPlan& plan;
  RowList rows;          // that train; empty: all
  RowList rows_outside;  // that do not
};

template <class Stat>
class TreeGrower {
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;

 public:
  TreeGrower(const Shared& shared, const Grid& grid, TreeMemory<Stat>& memory, int n_threads)
      : binned_(shared.binned),
        windows_(shared.windows),
        request_(shared.request),
        rules_(shared.request.rules),
        plan_(shared.plan),
        shared_(shared),
        grid_(grid),
        rows_(memory.rows),
        pool_(memory.pool),
        n_threads_(n_threads) {}

  GrownTree grow(const GradientColumn& gradients, std::uint64_t seed, std::int32_t* leaf,
                 std::size_t leaf_stride, bool polls) {
    polls_ = polls;
    const std::size_t n = shared_.rows.empty() ? gradients.n_rows : shared_.rows.size();
    if (rows_.capacity() < n) rows_ = RowSet<Row>(n);
    const GridSum total =
        put_on_grid<Stat>(gradients, shared_.rows, grid_, seed, rows_.data(), n_threads_);
    if (plan_.n_sides == 2) survey_ratios(n);
    plant(n, total);
    if (rules_.max_leaf_nodes > 0) {
      grow_best_first();
    } else {
      grow_depth_first();
    }
    return write(leaf, leaf_stride);
  }

 private:
  /// A node that will be split, and its histogram.
  struct Open {
    std::size_t node;
    Buffer<Cell> cells;
  };

  void plant(std::size_t n, const GridSum& total) {
    Node root;
    root.end = n;
    root.total = total;
    Buffer<Cell> cells;
    if (may_split(root)) {
      cells = pool_.take(plan_.n_cells);
      std::vector<BinSplit> best(plan_.passes.size());
      const Searched searched(*this, root, n_threads_);
      const bool built = build_in_shares(root, cells.data(), n_threads_);
      parallel_for(plan_.passes.size(), n_threads_, [&](std::size_t p, int) {
        if (!built) build(root, plan_.passes[p], cells.data());
        search_pass(searched, plan_.passes[p], cells.data(), best[p]);
      });
      root.split = best_of(best);
    }
    nodes_.clear();
    nodes_.push_back(root);
    if (root.split.feature != kLeaf) open_.push_back({0, std::move(cells)});
  }

  /// For the exact inner rule: the largest g / h below 0 and the smallest one from 0 on.
  void survey_ratios(std::size_t n) {
    struct Part {
      double below = -std::numeric_limits<double>::infinity();
      double above = std::numeric_limits<double>::infinity();
    };
    std::vector<Part> parts((n + kBlock - 1) / kBlock);
    parallel_blocks(n, kBlock, n_threads_, [&](std::size_t begin, std::size_t end, int) {
      Part& part = parts[begin / kBlock];
      for (const Row& row : rows_.range(begin, end)) {
        const Sums sums = grid_.real({row.g, row.h, 1});
        if (sums.h == 0) continue;  // its residual is g
        const double ratio = sums.g / sums.h;
        if (row.g < 0) part.below = std::max(part.below, ratio);
        if (row.g >= 0) part.above = std::min(part.above, ratio);
      }
    });
    const Part none;
    below_ = none.below;
    above_ = none.above;
    for (const Part& part : parts) {
      below_ = std::max(below_, part.below);
      above_ = std::min(above_, part.above);
    }
  }

  /// Large nodes are split by all threads together, the others by whoever is free. The smaller
  /// child is opened first, so that few histograms wait.
  void grow_depth_first() {
    const auto n_threads = static_cast<std::size_t>(n_threads_);
    const std::size_t large = std::max(nodes_[0].n_rows() / (2 * n_threads), kWorthThreads);
    std::vector<Open> small;
    while (n_threads > 1 && !open_.empty()) {
      Open next = std::move(open_.back());
      open_.pop_back();
      if (nodes_[next.node].n_rows() < large) {
        small.push_back(std::move(next));
        continue;
      }
      if (polls_) request_.checkpoint();
      expand(std::move(next), n_threads_, open_);
    }
    for (Open& next : small) open_.push_back(std::move(next));
    parallel_tasks(std::exchange(open_, {}), n_threads_,
                   [&](Open next, int thread, std::vector<Open>& open) {
                     if (polls_ && thread == 0) request_.checkpoint();
                     expand(std::move(next), 1, open);
                   });
  }

  void grow_best_first() {
    Driver driver(rules_.max_leaf_nodes);
    std::vector<Buffer<Cell>> waiting;
    while (true) {
      for (Open& open : open_) {
        driver.push(open.node, nodes_[open.node].split.gain);
        waiting.resize(std::max(waiting.size(), open.node + 1));
        waiting[open.node] = std::move(open.cells);
      }
      open_.clear();
      if (!driver.wants_more()) break;
      if (polls_) request_.checkpoint();
      const std::size_t node = driver.pop();
      const int n_threads = nodes_[node].n_rows() < kWorthThreads ? 1 : n_threads_;
      expand({node, std::move(waiting[node])}, n_threads, open_);
    }
    for (Buffer<Cell>& cells : waiting) {
      if (cells.size()) pool_.give_back(std::move(cells));
    }
  }

  bool may_split(const Node& node) const {
    return (rules_.max_depth < 0 || node.depth < rules_.max_depth) &&
           node.n_rows() >= 2 * std::max<std::size_t>(rules_.min_samples_leaf, 1) &&
           grid_.real(node.total).h >= 2 * rules_.min_child_weight && !plan_.passes.empty();
  }

  /// Split a node: route its rows, build the histogram of the smaller child, get the larger one's
  /// as the difference, and search both, all three pass by pass while the bins are in the cache.
  void expand(Open parent, int n_threads, std::vector<Open>& open) {
    Node node = node_at(parent.node);
    settle_missing(node);
    auto [left, right] = children_of(node);
    Buffer<Cell> small_cells;
    if (may_split(left) || may_split(right)) {
      left.end = right.begin =
          rows_.partition(left.begin, right.end, code_split(node.split), n_threads);
      left.has_rows = right.has_rows = true;
      const bool left_is_small = left.n_rows() <= right.n_rows();
      Node& small = left_is_small ? left : right;
      Node& large = left_is_small ? right : left;
      if (may_split(small) || may_split(large)) {
        small_cells = pool_.take(plan_.n_cells);
        search_children(small, large, small_cells.data(), parent.cells.data(), n_threads);
      }
    }
    const std::size_t at = add_children(parent.node, node, left, right);
    const bool left_is_small = left.n_rows() <= right.n_rows();
    // Last in, first out: the smaller child goes first.
    const auto keep = [&](const Node& child, std::size_t place, Buffer<Cell> cells) {
      if (child.split.feature != kLeaf) {
        open.push_back({place, std::move(cells)});
      } else if (cells.size()) {
        pool_.give_back(std::move(cells));
      }
    };
    keep(left_is_small ? right : left, at + left_is_small, std::move(parent.cells));
    keep(left_is_small ? left : right, at + !left_is_small, std::move(small_cells));
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

  void search_children(Node& small, Node& large, Cell* small_cells, Cell* large_cells,
                       int n_threads) {
    const Searched small_searched(*this, small, n_threads), large_searched(*this, large, n_threads);
    const bool built = build_in_shares(small, small_cells, n_threads);
    // One thread lets each pass profit from the best split so far; more keep them apart.
    const std::size_t n_best = n_threads > 1 ? plan_.passes.size() : 1;
    std::vector<BinSplit> small_best(n_best), large_best(n_best);
    parallel_for(plan_.passes.size(), n_threads, [&](std::size_t p, int) {
      const Pass& pass = plan_.passes[p];
      if (!built) build(small, pass, small_cells);
      if (may_split(large)) {
        const Cell* from = small_cells + pass.first_cell;
        Cell* to = large_cells + pass.first_cell;
        if (!subtract_few_rows<Stat>(rows_.range(small.begin, small.end), plan_, pass, to)) {
          for (std::size_t i = 0; i < plan_.cells(pass); ++i) to[i] -= from[i];
        }
        search_pass(large_searched, pass, large_cells, large_best[p % n_best]);
      }
      if (may_split(small)) search_pass(small_searched, pass, small_cells, small_best[p % n_best]);
    });
    small.split = best_of(small_best);
    large.split = best_of(large_best);
  }

  static BinSplit best_of(const std::vector<BinSplit>& splits) {
    return *std::ranges::max_element(
        splits, [](const BinSplit& a, const BinSplit& b) { return b.beats(a); });
  }

  void build(const Node& node, const Pass& pass, Cell* cells) {
    std::fill_n(cells + pass.first_cell, plan_.cells(pass), Cell{});
    add_rows<Stat>(rows_.range(node.begin, node.end), plan_, pass, cells + pass.first_cell);
  }

  /// With fewer passes than threads, the rows are shared out, too. Returns whether it was so.
  bool build_in_shares(const Node& node, Cell* cells, int n_threads) {
    const std::size_t n_passes = plan_.passes.size();
    const std::size_t n_shares = (static_cast<std::size_t>(n_threads) + n_passes - 1) / n_passes;
    if (n_shares < 2) return false;
    std::vector<Buffer<Cell>> parts;
    for (std::size_t share = 1; share < n_shares; ++share) {
      parts.push_back(pool_.take(plan_.n_cells));
    }
    parallel_for(n_passes * n_shares, n_threads, [&](std::size_t task, int) {
      const std::size_t share = task / n_passes;
      Node part = node;
      part.begin = node.begin + node.n_rows() * share / n_shares;
      part.end = node.begin + node.n_rows() * (share + 1) / n_shares;
      build(part, plan_.passes[task % n_passes], share ? parts[share - 1].data() : cells);
    });
    parallel_for(n_passes, n_threads, [&](std::size_t p, int) {
      const Pass& pass = plan_.passes[p];
      for (const Buffer<Cell>& part : parts) {
        for (std::size_t i = pass.first_cell; i < pass.first_cell + plan_.cells(pass); ++i) {
          cells[i] += part[i];
        }
      }
    });
    for (Buffer<Cell>& part : parts) pool_.give_back(std::move(part));
    return true;
  }

  /// A node in search, with the rows whose residual has another sign than their gradient.
  struct Searched {
    SearchedNode node;
    std::vector<Row> exceptions;

    Searched(const TreeGrower& grower, const Node& from, int n_threads)
        : node(from.total, grower.grid_, grower.rules_, from.value_low, from.value_high) {
      if (grower.plan_.n_sides == 1 || !grower.may_split(from)) return;
      // The residual g - m h changes sign at g / h = m; often no row of the tree is between.
      const double m = -node.criterion.residual({0, 1});
      const double slack = 1e-9 * std::abs(m);
      if (grower.below_ < m - slack && m + slack < grower.above_) return;
      const bool join = from.total.g >= 0;
      std::vector<std::vector<Row>> parts((from.n_rows() + kBlock - 1) / kBlock);
      parallel_blocks(
          from.n_rows(), kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
            for (const Row& row : grower.rows_.range(from.begin + begin, from.begin + end)) {
              const bool negative = node.criterion.residual(node.sums({row.g, row.h, 1})) < 0;
              if (join ? row.g >= 0 && negative : row.g < 0 && !negative) {
                parts[begin / kBlock].push_back(row);
              }
            }
          });
      for (const std::vector<Row>& part : parts) {
        exceptions.insert(exceptions.end(), part.begin(), part.end());
      }
    }
  };

  void search_pass(const Searched& searched, const Pass& pass, const Cell* cells, BinSplit& best) {
    cells += pass.first_cell;
    const std::size_t side = pass.n_columns() * plan_.n_codes;
    std::vector<Cell> exceptions;
    const Cell* exception_cells = nullptr;
    if (!searched.exceptions.empty()) {
      exceptions.resize(plan_.cells(pass));
      add_rows<Stat>(searched.exceptions, plan_, pass, exceptions.data());
      exception_cells = exceptions.data() + (searched.exceptions.front().g < 0 ? side : 0);
    }
    // Features that share a column are taken apart: a table each for cells, below and exceptions.
    std::array<std::vector<Cell>, 3> apart;
    for (std::size_t i = 0; i < pass.feature.size(); ++i) {
      const auto feature = static_cast<std::size_t>(pass.feature[i]);
      const auto of_feature = [&](const Cell* from, std::size_t table) {
        if (!from) return from;
        from += pass.column[i] * plan_.n_codes;
        const std::span<const bins::Code> codes = binned_.blocks().shared(feature);
        if (codes.empty()) return from;
        apart[table].assign(plan_.n_codes, Cell{});
        for (std::size_t code = 0; code < codes.size(); ++code) {
          apart[table][codes[code]] += from[code];
        }
        return static_cast<const Cell*>(apart[table].data());
      };
      const FeatureBins<Stat> bins{of_feature(cells, 0),
                                   of_feature(plan_.n_sides == 2 ? cells + side : nullptr, 1),
                                   of_feature(exception_cells, 2),
                                   binned_.missing_code(),
                                   binned_.has_missing(feature),
                                   windows_[feature],
                                   pass.feature[i],
                                   request_.monotonic.empty() ? 0 : request_.monotonic[feature]};
      // One child gets none of the rows with the usual code.
      const bins::Code usual_code = binned_.usual_code(feature);
      GridSum usual = Stat::sum(bins.cells[usual_code]);
      if (bins.below) usual += Stat::sum(bins.below[usual_code]);
      const double most = grid_.real(searched.node.total - usual).h;
      if (most < rules_.min_child_weight) continue;
      search_bins<Stat>(bins, searched.node, request_.portable, best);
    }
  }

  CodeSplit code_split(const BinSplit& split) const {
    return CodeSplit(binned_, static_cast<std::size_t>(split.feature), split.bin,
                     split.missing_left);
  }

  /// Where the histogram did not tell the sides of missing values apart: without such rows they go
  /// with the larger number of rows, otherwise (gradients all 0) to the right.
  void settle_missing(Node& node) {
    BinSplit& split = node.split;
    const auto feature = static_cast<std::size_t>(split.feature);
    split.threshold =
        split.bin ? binned_.edges(feature)[split.bin - 1] : std::numeric_limits<float>::lowest();
    if (split.saw_missing || !binned_.has_missing(feature)) return;
    std::size_t n_left = 0;
    const CodeSplit right = code_split(split);
    for (const Row& row : rows_.range(node.begin, node.end)) {
      if (*right.code(row.row) == binned_.missing_code()) split.saw_missing = true;
      n_left += right.goes_left(row.row);
    }
    if (split.saw_missing) return;
    split.missing_left = 2 * n_left >= node.n_rows();
    split.saw_missing = true;  // settled
  }

  std::pair<Node, Node> children_of(const Node& node) const {
    Node left, right;
    left.begin = right.begin = node.begin;
    left.end = right.end = node.end;
    left.has_rows = right.has_rows = false;
    left.depth = right.depth = node.depth + 1;
    left.total = node.split.left;
    right.total = node.total - node.split.left;
    left.value_low = right.value_low = node.value_low;
    left.value_high = right.value_high = node.value_high;
    const int sign = request_.monotonic.empty()
                         ? 0
                         : request_.monotonic[static_cast<std::size_t>(node.split.feature)];
    if (sign != 0) {
      const double middle = (value_of(left) + value_of(right)) / 2;
      (sign > 0 ? left : right).value_high = middle;
      (sign > 0 ? right : left).value_low = middle;
    }
    return {left, right};
  }

  double value_of(const Node& node) const {
    const SearchedNode searched(node.total, grid_, rules_, node.value_low, node.value_high);
    return searched.criterion.value(searched.sums(node.total));
  }

  /// Write the tree down and find the leaf of every row.
  GrownTree write(std::int32_t* leaf, std::size_t stride) {
    GrownTree tree;
    const std::vector<NodeId> id_of =
        in_preorder(nodes_, tree, [&](GrownTree& to, const Node& node) {
          to.value.push_back(static_cast<float>(value_of(node)));
          to.cover.push_back(grid_.real(node.total).h);
          to.n_samples.push_back(static_cast<std::int64_t>(node.n_rows()));
        });
    // Rows of leaves lie together; those of children that never got rows of their own are still
    // told apart by their parent's split.
    struct Task {
      std::size_t node, begin, end, n_left = 0;
    };
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (!node.has_rows || (node.left && nodes_[node.left].has_rows)) continue;
      for (std::size_t begin = node.begin; begin < node.end; begin += kBlock) {
        tasks.push_back({i, begin, std::min(begin + kBlock, node.end)});
      }
    }
    parallel_for(tasks.size(), n_threads_, [&](std::size_t t, int) {
      Task& task = tasks[t];
      const Node& node = nodes_[task.node];
      const auto rows = rows_.range(task.begin, task.end);
      constexpr std::size_t kAhead = RowSet<Row>::kAhead;
      const auto ask = [&](std::size_t i) { __builtin_prefetch(leaf + rows[i].row * stride, 1); };
      if (!node.left) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
          if (i + kAhead < rows.size()) ask(i + kAhead);
          leaf[rows[i].row * stride] = id_of[task.node];
        }
        return;
      }
      const CodeSplit split = code_split(node.split);
      const NodeId left = id_of[node.left], right = id_of[node.right];
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i + kAhead < rows.size()) {
          __builtin_prefetch(split.code(rows[i + kAhead].row));
          ask(i + kAhead);
        }
        const bool goes_left = split.goes_left(rows[i].row);
        leaf[rows[i].row * stride] = goes_left ? left : right;
        task.n_left += goes_left;
      }
    });
    // Now the rows of these children can be counted, and the larger one gets the missing values
    // of features that had none.
    for (const Task& task : tasks) {
      const Node& node = nodes_[task.node];
      if (!node.left) continue;
      std::int64_t* n_samples = tree.n_samples.data();
      if (task.begin == node.begin) {
        n_samples[id_of[node.left]] = n_samples[id_of[node.right]] = 0;
      }
      n_samples[id_of[node.left]] += static_cast<std::int64_t>(task.n_left);
      n_samples[id_of[node.right]] +=
          static_cast<std::int64_t>(task.end - task.begin - task.n_left);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].left || nodes_[i].split.saw_missing) continue;
      const auto n_left = tree.n_samples[static_cast<std::size_t>(id_of[nodes_[i].left])];
      const auto n_right = tree.n_samples[static_cast<std::size_t>(id_of[nodes_[i].right])];
      nodes_[i].split.missing_left = n_left >= n_right;
      tree.missing_left[static_cast<std::size_t>(id_of[i])] = n_left >= n_right;
    }
    const auto& outside = shared_.rows_outside;
    parallel_blocks(
        outside.size(), kBlock, n_threads_, [&](std::size_t begin, std::size_t end, int) {
          for (std::size_t i = begin; i < end; ++i) {
            std::size_t node = 0;
            while (nodes_[node].left) {
              node = code_split(nodes_[node].split).goes_left(outside[i]) ? nodes_[node].left
                                                                          : nodes_[node].right;
            }
            leaf[outside[i] * stride] = id_of[node];
          }
        });
    return tree;
  }

  const bins::Binned& binned_;
  std::span<const Window> windows_;
  const HistRequest& request_;
  const NewtonRules& rules_;
  const HistogramPlan& plan_;
  const Shared& shared_;
  const Grid& grid_;
  RowSet<Row>& rows_;
  HistogramPool<Cell>& pool_;
  int n_threads_;
  bool polls_ = true;
  double below_ = 0, above_ = 0;  // see survey_ratios
  std::vector<Node> nodes_;       // in any order: the tree is written in preorder
  std::mutex nodes_lock_;
  std::vector<Open> open_;
};

std::vector<Feature> searched_features(const bins::Binned& binned, std::span<const Window> windows,
                                       std::span<const Feature> wanted) {
  std::vector<Feature> features(wanted.begin(), wanted.end());
  if (wanted.empty()) {
    features.resize(binned.n_features());
    std::iota(features.begin(), features.end(), 0);
  }
  std::erase_if(features, [&](Feature feature) {
    const auto f = static_cast<std::size_t>(feature);
    return windows[f].first == windows[f].last && !binned.has_missing(f);
  });
  return features;
}

void check(const HistRequest& request, const Matrix<std::int32_t>& leaf, std::size_t n_rows,
           std::size_t n_features) {
  const auto fail = [](const std::string& what) { throw std::invalid_argument(what); };
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
  if (!request.weight.empty() && request.weight.size() != n_rows) {
    fail("weight needs one entry for each of the table's " + std::to_string(n_rows) +
         " rows, got " + std::to_string(request.weight.size()) + ".");
  }
  if (!request.sampled.empty() && request.sampled.size() != n_rows) {
    fail("rows needs one entry for each of the table's " + std::to_string(n_rows) + " rows, got " +
         std::to_string(request.sampled.size()) + ".");
  }
  if (!request.monotonic.empty() && request.monotonic.size() != n_features) {
    fail("monotonic needs one entry for each of the table's " + std::to_string(n_features) +
         " features, got " + std::to_string(request.monotonic.size()) + ".");
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

}  // namespace

struct HistTable::Workspace {
  TreeMemory<Packed> packed;
  TreeMemory<Wide> wide;
};

template <class Table>
HistTable::HistTable(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
                     int n_threads)
    : binned_(table, reach, max_bins, n_threads) {
  for (std::size_t f = 0; f < n_features(); ++f) windows_.emplace_back(binned_, f, reach[f]);
}

HistTable::~HistTable() = default;

std::vector<GrownTree> HistTable::grow(const HistRequest& request, Matrix<std::int32_t> leaf) {
  check(request, leaf, n_rows(), n_features());
  const std::lock_guard guard(busy_);
  const int n_threads = std::max(request.rules.n_threads, 1);
  std::vector<std::uint32_t> rows, rows_outside;
  for (std::size_t i = 0; i < request.sampled.size(); ++i) {
    (request.sampled[i] ? rows : rows_outside).push_back(static_cast<std::uint32_t>(i));
  }
  if (!request.sampled.empty() && rows.empty()) {
    throw std::invalid_argument("rows must keep at least one row, got none.");
  }
  const auto features = searched_features(binned_, windows_, request.features);
  const bool moves = std::ranges::any_of(
      features, [&](Feature feature) { return windows_[static_cast<std::size_t>(feature)].moves; });
  const HistogramPlan plan(binned_, features,
                           moves && request.rules.inner == Inner::kExact ? 2 : 1);
  const Shared shared{binned_, windows_, request, plan, rows, rows_outside};

  const std::size_t n_trees = request.gradient.n_cols;
  std::vector<GrownTree> trees(n_trees);
  workspaces_.resize(std::max(workspaces_.size(), static_cast<std::size_t>(n_threads)));
  const auto grow_one = [&](std::size_t k, std::size_t slot, int threads, bool polls) {
    if (!workspaces_[slot]) workspaces_[slot] = std::make_unique<Workspace>();
    const GradientColumn gradients{request.gradient.data + k, request.hessian.data + k, n_trees,
                                   n_rows(),
                                   request.weight.empty() ? nullptr : request.weight.data()};
    const Grid grid = choose_grid(gradients, rows, request.rules.min_samples_leaf > 1, threads);
    const std::uint64_t seed = request.seed * n_trees + k + 1;
    trees[k] = grid.wide ? TreeGrower<Wide>(shared, grid, workspaces_[slot]->wide, threads)
                               .grow(gradients, seed, leaf.data + k, n_trees, polls)
                         : TreeGrower<Packed>(shared, grid, workspaces_[slot]->packed, threads)
                               .grow(gradients, seed, leaf.data + k, n_trees, polls);
  };
  // A tree a thread needs no waiting for each other; the trees that are left over are shared.
  const std::size_t n_alone = n_trees - n_trees % static_cast<std::size_t>(n_threads);
  if (n_threads > 1) {
    parallel_for(n_alone, n_threads, [&](std::size_t k, int thread) {
      grow_one(k, static_cast<std::size_t>(thread), 1, thread == 0);
    });
  }
  for (std::size_t k = n_threads > 1 ? n_alone : 0; k < n_trees; ++k) {
    grow_one(k, 0, n_threads, true);
  }
  return trees;
}

template HistTable::HistTable(const bins::DenseTable<float>&, std::span<const Reach>, std::size_t,
                              int);
template HistTable::HistTable(const bins::DenseTable<double>&, std::span<const Reach>, std::size_t,
                              int);
#define HARDWOOD_SPARSE(X, Index)                                                                  \
  template HistTable::HistTable(const bins::SparseTable<X, Index, true>&, std::span<const Reach>,  \
                                std::size_t, int);                                                 \
  template HistTable::HistTable(const bins::SparseTable<X, Index, false>&, std::span<const Reach>, \
                                std::size_t, int);
HARDWOOD_SPARSE(float, std::int32_t)
HARDWOOD_SPARSE(float, std::int64_t)
HARDWOOD_SPARSE(double, std::int32_t)
HARDWOOD_SPARSE(double, std::int64_t)
#undef HARDWOOD_SPARSE

}  // namespace hardwood::grow
