#include "hardwood/grow/certified_tree.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "hardwood/grow/driver.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/node_sums.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {
namespace {

constexpr std::size_t kBlock = 1 << 14;          // rows handled together
constexpr std::size_t kWorthThreads = 4096;      // rows below which a node stays on one thread
constexpr std::size_t kAhead = 16;               // rows whose codes are asked for in advance
constexpr std::size_t kBytesTogether = 1 << 26;  // of the histograms of one message

/// Rows carry whether another node owns them in the highest bit of their number.
constexpr std::uint32_t kShared = 1u << 31;

/// Buffers that are not in use, by size.
template <class T>
class Pool {
 public:
  Buffer<T> take(std::size_t n) {
    n = std::bit_ceil(std::max<std::size_t>(n, 64));
    const std::lock_guard guard(lock_);
    std::vector<Buffer<T>>& free = free_[n];
    if (free.empty()) return Buffer<T>(n);
    Buffer<T> buffer = std::move(free.back());
    free.pop_back();
    return buffer;
  }
  void give_back(Buffer<T> buffer) {
    if (!buffer.size()) return;
    const std::lock_guard guard(lock_);
    free_[buffer.size()].push_back(std::move(buffer));
  }

 private:
  std::mutex lock_;
  std::map<std::size_t, std::vector<Buffer<T>>> free_;
};

template <class Stat>
struct Memory {
  Pool<typename Stat::Row> rows;
  Pool<typename Stat::Cell> cells;
  Pool<std::uint8_t> sides;
};

struct Split {
  double gain = 0;  // at first what a split must exceed
  Feature feature = kLeaf;
  std::uint32_t candidate = 0;
  float threshold = 0;
  bool missing_left = false;
  bool left_is_lower = true;  // the value of the left child is the lower one
  Sums left{}, right{};       // with each ambiguous row where it is worse

  bool beats(const Split& other) const {
    return gain > other.gain || (gain == other.gain && feature != kLeaf &&
                                 (other.feature == kLeaf || feature < other.feature));
  }
};

struct Node {
  std::int32_t depth = 0;
  std::size_t n_rows = 0;  // of all parts
  GridSum total;
  double value_low = -std::numeric_limits<double>::infinity();
  double value_high = std::numeric_limits<double>::infinity();
  Split split;
  std::size_t left = 0, right = 0;  // 0: a leaf
};

GradientColumn column_of(const CertifiedRequest& request) {
  // No list of rows means all of them; a part can have none.
  const std::size_t n_rows = request.rows.empty() ? 0 : request.gradient.size();
  return {request.gradient.data(), request.hessian.data(), 1, n_rows,
          request.weight.empty() ? nullptr : request.weight.data()};
}

template <class Stat, class Code>
class Grower {
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;
  using Codes = bins::EndCodes<Code>;
  static constexpr std::size_t kWidth = Codes::kWidth, kRowCodes = Codes::kRowCodes;

  /// The rows of a node: first those that the adversary pushes down.
  struct Rows {
    Buffer<Row> data;
    std::size_t n = 0, n_down = 0;
  };

  /// A node that will be split, with its rows and histograms.
  struct Open {
    std::size_t node = 0;
    Rows rows;
    Buffer<Cell> cells;
    std::size_t number = 0;  // see ranked
    double priority = 0;
    std::size_t n_rows = 0;
  };

  /// The features of a block that the tree may use.
  struct Block {
    std::size_t index;
    std::vector<Feature> features;
  };

 public:
  Grower(const Codes& codes, const CertifiedRequest& request, const Grid& grid,
         Memory<Stat>& memory)
      : codes_(codes),
        request_(request),
        rules_(request.rules),
        part_(request.part),
        grid_(grid),
        memory_(memory),
        n_threads_(std::max(request.n_threads, 1)),
        n_codes_(codes.n_codes()),
        block_cells_(2 * kWidth * n_codes_) {
    rules_.min_split_gain = 0;  // see prune
    std::vector<Feature> features(request.features.begin(), request.features.end());
    if (features.empty()) {
      features.resize(codes.n_features());
      std::iota(features.begin(), features.end(), 0);
    }
    for (const Feature feature : features) {
      const auto f = static_cast<std::size_t>(feature);
      if (codes.candidates(f).empty()) continue;
      if (blocks_.empty() || blocks_.back().index != f / kWidth) {
        blocks_.push_back({f / kWidth, {}});
      }
      blocks_.back().features.push_back(feature);
    }
  }

  CertifiedTree grow() {
    plant();
    grow_nodes();
    prune();
    return write();
  }

 private:
  void plant() {
    Rows rows{memory_.rows.take(request_.rows.size()), request_.rows.size(), request_.n_down};
    const GradientColumn gradients = column_of(request_);
    // On every second place of the grid, so that half a row is on it as well.
    const Grid coarse{grid_.g_bits - 1, grid_.h_bits - 1, grid_.wide};
    put_on_grid<Stat>(gradients, request_.rows, coarse, request_.seed, rows.data.data(), n_threads_,
                      {nullptr, part_.number});
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
    Buffer<Cell> cells;
    if (may_split(root)) {
      cells = memory_.cells.take(n_cells());
      build(rows, cells.data(), n_threads_);
      add_parts({cells.data()});
      std::vector<Split> best(blocks_.size(), Split{rules_.least_gain});
      const NewtonCriterion criterion = criterion_of(root);
      parallel_for(blocks_.size(), n_threads_, [&](std::size_t b, int) {
        search_block(root, criterion, b, cells.data(), best[b]);
      });
      root.split = best_of(best);
    }
    nodes_ = {root};
    open_.clear();
    if (root.split.feature != kLeaf) {
      open_.push_back({0, std::move(rows), std::move(cells), 0, 0, 0});
    } else {
      memory_.rows.give_back(std::move(rows.data));
      memory_.cells.give_back(std::move(cells));
    }
  }

  static Packed::Row twice(Packed::Row row) {
    const int g = std::clamp<int>(row.g, -16383, 16383), h = std::min<int>(row.h, 32767);
    return {row.row, static_cast<std::int16_t>(2 * g), static_cast<std::uint16_t>(2 * h)};
  }
  static Wide::Row twice(Wide::Row row) { return {row.row, 2 * row.g, 2 * row.h}; }

  /// The row as it counts where another node owns it: by half, but only once.
  static Row shared(Row row) {
    const int halves = row.row & kShared ? 0 : 1;
    row.row |= kShared;
    row.g = static_cast<decltype(row.g)>(row.g >> halves);  // exact, see twice
    row.h = static_cast<decltype(row.h)>(row.h >> halves);
    return row;
  }

  bool in_parts() const { return part_.others != nullptr; }

  /// Large nodes are split by all threads together, the others by whoever is free. The smaller
  /// child is opened first, so that few histograms wait.
  void grow_nodes() {
    Driver<Open> driver(rules_.max_leaf_nodes, in_parts() ? Order::kLevels : Order::kTasks,
                        std::max<std::size_t>(kBytesTogether / (n_cells() * sizeof(Cell) + 1), 1));
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

  void close(Open open) {
    memory_.rows.give_back(std::move(open.rows.data));
    memory_.cells.give_back(std::move(open.cells));
  }

  bool may_split(const Node& node) const {
    return (rules_.max_depth < 0 || node.depth < rules_.max_depth) &&
           node.n_rows >= 2 * std::max<std::size_t>(rules_.min_samples_leaf, 1) &&
           grid_.real(node.total).h >= 2 * rules_.min_child_weight && !blocks_.empty();
  }

  NewtonCriterion criterion_of(const Node& node) const {
    return NewtonCriterion(grid_.real(node.total), rules_, node.value_low, node.value_high);
  }
  double value_of(const Node& node) const {
    return criterion_of(node).value(grid_.real(node.total));
  }

  // Routing

  /// A stretch of a node's rows, all pushed the same way, and what becomes of it at a split.
  struct Stretch {
    std::size_t begin, end;
    bool down;
    GridSum left, right;
    std::size_t n_left = 0, n_right = 0, n_both = 0, n_missing = 0;
    std::size_t to_left = 0, to_right = 0, to_both = 0;  // where its rows go
  };

  /// Where a row can go at a split.
  enum : std::uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };

  /// Call `place(i, side)` for every row of a stretch; missing values are counted.
  template <class Place>
  void find_sides(const Rows& rows, const Split& split, Stretch& stretch, Place&& place) const {
    const auto f = static_cast<std::size_t>(split.feature);
    const Code* const lower = codes_.lower(f);
    const Code missing = codes_.missing_code();
    const Row* const data = rows.data.data();
    const std::uint32_t candidate = split.candidate;
    const auto code_of = [=](std::size_t i) {
      return lower + std::size_t{data[i].row & ~kShared} * kRowCodes;
    };
    const auto find = [&](auto has_missing) {
      const auto put = [&](std::size_t i) {
        const Code* const code = code_of(i);
        auto side = static_cast<std::uint8_t>(kLeft * (candidate >= code[0]) |
                                              kRight * (candidate < code[kWidth]));
        if (has_missing() && code[0] == missing) {
          ++stretch.n_missing;
          side = split.missing_left ? kLeft : kRight;
        }
        place(i, side);
      };
      const std::size_t n_ahead = std::max(stretch.begin + kAhead, stretch.end) - kAhead;
      for (std::size_t i = stretch.begin; i < n_ahead; ++i) {
        __builtin_prefetch(code_of(i + kAhead));
        put(i);
      }
      for (std::size_t i = n_ahead; i < stretch.end; ++i) put(i);
    };
    codes_.has_missing(f) ? find(std::true_type{}) : find(std::false_type{});
  }

  /// Find the sides of all rows, and what they add up to.
  std::vector<Stretch> count(const Rows& rows, const Split& split, std::uint8_t* sides,
                             int n_threads) const {
    std::vector<Stretch> stretches;
    const auto cut = [&](std::size_t begin, std::size_t end, bool down) {
      for (; begin < end; begin += std::min(kBlock, end - begin)) {
        stretches.push_back({begin, std::min(begin + kBlock, end), down, {}, {}});
      }
    };
    cut(0, rows.n_down, true);
    cut(rows.n_down, rows.n, false);
    parallel_for(stretches.size(), n_threads, [&](std::size_t s, int) {
      Stretch& stretch = stretches[s];
      // Without a branch, as sides are random to a predictor.
      Cell all{}, left{}, both{}, half{};
      std::size_t n_left = 0, n_both = 0;
      find_sides(rows, split, stretch, [&](std::size_t i, std::uint8_t side) {
        const Row row = rows.data[i];
        const bool is_left = side & kLeft, is_both = side == kBoth;
        sides[i] = side;
        n_left += is_left;
        n_both += is_both;
        all += row.cell();
        left += where(is_left, row.cell());
        both += where(is_both, row.cell());
        half += where(is_both, shared(row).cell());
      });
      // A row in both counts on the left so far; the child that does not own it gets half of it.
      Cell right = all;
      right -= left;
      if (stretch.down == split.left_is_lower) {
        right += half;
      } else {
        right += both;
        left -= both;
        left += half;
      }
      stretch.left = Stat::sum(left);
      stretch.right = Stat::sum(right);
      stretch.n_left = n_left;
      stretch.n_right = stretch.end - stretch.begin - n_left + n_both;
      stretch.n_both = n_both;
    });
    return stretches;
  }

  /// The rows of both children, and those that are in both, as the child counts them that does not
  /// own them.
  struct Parted {
    Rows left, right, both;
  };

  Parted part(const Rows& rows, const Split& split, std::vector<Stretch>& stretches,
              const std::uint8_t* sides, bool wants_both, int n_threads) {
    Parted to;
    for (Stretch& stretch : stretches) {
      stretch.to_left = std::exchange(to.left.n, to.left.n + stretch.n_left);
      stretch.to_right = std::exchange(to.right.n, to.right.n + stretch.n_right);
      stretch.to_both = std::exchange(to.both.n, to.both.n + stretch.n_both);
      if (!stretch.down) continue;
      to.left.n_down = to.left.n;
      to.right.n_down = to.right.n;
      to.both.n_down = to.both.n;
    }
    to.left.data = memory_.rows.take(to.left.n);
    to.right.data = memory_.rows.take(to.right.n);
    if (wants_both) to.both.data = memory_.rows.take(to.both.n);
    parallel_for(stretches.size(), n_threads, [&](std::size_t s, int) {
      const Stretch& stretch = stretches[s];
      const bool left_owns = stretch.down == split.left_is_lower;
      Target left(to.left, stretch.to_left, stretch.n_left);
      Target right(to.right, stretch.to_right, stretch.n_right);
      Target& owner = left_owns ? left : right;
      Target& other = left_owns ? right : left;
      const std::uint8_t owner_side = left_owns ? kLeft : kRight;
      Target both(to.both, stretch.to_both, wants_both ? stretch.n_both : 0);
      for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
        const Row row = rows.data[i];
        const bool is_both = sides[i] == kBoth;
        const Row half = is_both ? shared(row) : row;
        owner.put(row, sides[i] & owner_side);
        other.put(half, sides[i] & (kBoth - owner_side));
        both.put(half, is_both);
      }
    });
    return to;
  }

  /// Where a stretch puts the rows of a child: without a branch, but not into the next stretch.
  class Target {
   public:
    Target(Rows& rows, std::size_t begin, std::size_t n)
        : next_(n ? rows.data.data() + begin : &spare_), end_(next_ + n) {}
    void put(const Row& row, bool is) {
      *(next_ < end_ ? next_ : &spare_) = row;
      next_ += is && next_ < end_;
    }

   private:
    Row* next_;
    Row* end_;
    Row spare_;
  };

  // Histograms: for each feature of a block, sums by code when the left value is the lower one,
  // then sums when it is the higher one.

  std::size_t n_cells() const { return blocks_.size() * block_cells_; }

  /// Add rows to the histograms of a block. Where the left value is the lower one, the adversary
  /// has a row that it pushes down on the left if it can: from its lower code on.
  void add(const Rows& rows, std::size_t begin, std::size_t end, std::size_t b, Cell* cells) const {
    add_pushed(rows.data.data(), begin, std::min(end, rows.n_down), b, 0, kWidth, cells);
    add_pushed(rows.data.data(), std::max(begin, rows.n_down), end, b, kWidth, 0, cells);
  }

  void add_pushed(const Row* rows, std::size_t begin, std::size_t end, std::size_t b,
                  std::size_t first, std::size_t second, Cell* cells) const {
    if (begin >= end) return;
    // The stride of the usual 256 codes is known to the compiler.
    if (n_codes_ == 256) {
      add_strided<256>(rows, begin, end, b, first, second, cells);
    } else {
      add_strided<0>(rows, begin, end, b, first, second, cells);
    }
  }

  template <std::size_t kStride>
  void add_strided(const Row* rows, std::size_t begin, std::size_t end, std::size_t b,
                   std::size_t first, std::size_t second, Cell* cells) const {
    const std::size_t stride = kStride ? kStride : n_codes_;  // a copy: cells may be anything
    const Block& block = blocks_[b];
    const Code* const codes = codes_.block(block.index);
    const bool whole = block.features.size() == kWidth;
    const auto code_of = [&](std::size_t i) {
      return codes + std::size_t{rows[i].row & ~kShared} * kRowCodes;
    };
    const auto add_whole = [=](const Code* code, const Cell& cell) {
      for (std::size_t j = 0; j < kWidth; ++j) {
        cells[2 * j * stride + code[first + j]] += cell;
        cells[(2 * j + 1) * stride + code[second + j]] += cell;
      }
    };
    const auto add_some = [&](const Code* code, const Cell& cell) {
      for (const Feature feature : block.features) {
        const std::size_t j = static_cast<std::size_t>(feature) % kWidth;
        cells[2 * j * stride + code[first + j]] += cell;
        cells[(2 * j + 1) * stride + code[second + j]] += cell;
      }
    };
    const auto add_to = [&](const Code* code, const Cell& cell) {
      whole ? add_whole(code, cell) : add_some(code, cell);
    };
    if (const std::uint64_t* const busy = codes_.busy(block.index)) {
      // Rows that are not busy are added as one.
      Cell others[2] = {Cell{}, Cell{}};
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t row = rows[i].row & ~kShared;
        if (busy[row / 64] >> (row % 64) & 1) {
          add_to(code_of(i), rows[i].cell());
        } else {
          others[row >= codes_.rest()] += rows[i].cell();
        }
      }
      for (const bool at_rest : {false, true}) {
        add_to(codes_.usual(block.index, at_rest), others[at_rest]);
      }
      return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (i + kAhead < end) __builtin_prefetch(code_of(i + kAhead));
      add_to(code_of(i), rows[i].cell());
    }
  }

  void build_block(const Rows& rows, std::size_t b, Cell* cells) const {
    cells += b * block_cells_;
    std::fill_n(cells, block_cells_, Cell{});
    add(rows, 0, rows.n, b, cells);
  }

  /// All blocks; with fewer of them than threads, the rows are shared out, too.
  void build(const Rows& rows, Cell* cells, int n_threads) {
    const std::size_t n_shares =
        (static_cast<std::size_t>(n_threads) + blocks_.size() - 1) / blocks_.size();
    std::vector<Buffer<Cell>> parts;
    for (std::size_t share = 1; share < n_shares; ++share) {
      parts.push_back(memory_.cells.take(n_cells()));
    }
    parallel_for(blocks_.size() * n_shares, n_threads, [&](std::size_t task, int) {
      const std::size_t b = task % blocks_.size(), share = task / blocks_.size();
      Cell* const to = (share ? parts[share - 1].data() : cells) + b * block_cells_;
      std::fill_n(to, block_cells_, Cell{});
      add(rows, rows.n * share / n_shares, rows.n * (share + 1) / n_shares, b, to);
    });
    for (Buffer<Cell>& part : parts) {
      for (std::size_t i = 0; i < n_cells(); ++i) cells[i] += part[i];
      memory_.cells.give_back(std::move(part));
    }
  }

  // Growing

  /// A node that is being split, and its children.
  struct Family {
    Open parent;
    Node node;
    Buffer<std::uint8_t> sides;  // of the rows
    std::vector<Stretch> stretches;
    Node left, right;
    std::size_t n_both = 0, n_missing = 0;
    Open left_open, right_open;
    bool searched = false;  // a child may split
    bool derives = false;   // the histogram of the larger child comes from the parent's
    Rows both;
    Buffer<Cell> both_cells;  // in parts

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
        family.both_cells = memory_.cells.take(n_cells());
        asked.push_back({&family.both, family.both_cells.data()});
      } else if (may_split(family.large())) {
        asked.push_back({&family.large_open().rows, family.large_open().cells.data()});
      }
    }
    parallel_for(asked.size() * blocks_.size(), n_threads, [&](std::size_t i, int) {
      const Asked& one = asked[i / blocks_.size()];
      build_block(*one.rows, i % blocks_.size(), one.cells);
    });
    std::vector<Cell*> tables;
    for (const Asked& one : asked) tables.push_back(one.cells);
    add_parts(tables);
    parallel_for(families.size(), n_threads, [&](std::size_t i, int) {
      if (families[i].searched) search_children_of_all(families[i]);
    });
    for (Family& family : families) {
      memory_.cells.give_back(std::move(family.both_cells));
      finish(std::move(family), open);
    }
  }

  /// Where the rows of a node go, and what its children add up to, in this part.
  Family family_of(Open parent, int n_threads) {
    Family family;
    family.node = node_at(parent.node);
    family.sides = memory_.sides.take(parent.rows.n);
    family.stretches = count(parent.rows, family.node.split, family.sides.data(), n_threads);
    family.parent = std::move(parent);
    for (const Stretch& stretch : family.stretches) {
      family.left.total += stretch.left;
      family.right.total += stretch.right;
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
      Parted rows = part(parent.rows, family.node.split, family.stretches, family.sides.data(),
                         family.derives, n_threads);
      memory_.rows.give_back(std::move(parent.rows.data));
      family.left_open.rows = std::move(rows.left);
      family.right_open.rows = std::move(rows.right);
      family.both = std::move(rows.both);
      family.small_open().cells = memory_.cells.take(n_cells());
      family.large_open().cells = std::move(parent.cells);
    } else {
      memory_.rows.give_back(std::move(parent.rows.data));
      memory_.cells.give_back(std::move(parent.cells));
    }
    memory_.sides.give_back(std::move(family.sides));
  }

  void finish(Family family, std::vector<Open>& open) {
    memory_.rows.give_back(std::move(family.both.data));
    family.left_open.node =
        add_children(family.parent.node, family.node, family.left, family.right);
    family.right_open.node = family.left_open.node + 1;
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

  /// Add up over all parts what these tables have: only cells travel that somebody reads.
  void add_parts(const std::vector<Cell*>& tables) const {
    if (tables.empty()) return;
    add_cells<Cell>(part_, [&](auto&& visit) {
      for (Cell* const table : tables) {
        Cell* cells = table;
        for (const Block& block : blocks_) {
          for (const Feature feature : block.features) {
            const auto f = static_cast<std::size_t>(feature);
            Cell* const of_feature = cells + 2 * (f % kWidth) * n_codes_;
            for (const std::size_t side : {0, 1}) {
              visit(of_feature + side * n_codes_, codes_.candidates(f).size());
            }
            if (codes_.has_missing(f)) visit(of_feature + codes_.missing_code(), std::size_t{1});
          }
          cells += block_cells_;
        }
      }
    });
  }

  /// `search_children` of histograms that are those of all parts.
  void search_children_of_all(Family& family) {
    Cell* const small_cells = family.small_open().cells.data();
    Cell* const large_cells = family.large_open().cells.data();
    if (family.derives) {
      subtract(small_cells, large_cells, n_cells());
      for (std::size_t i = 0; i < n_cells(); ++i) large_cells[i] += family.both_cells[i];
    }
    for (const auto& [child, cells] :
         {std::pair{&family.small(), small_cells}, std::pair{&family.large(), large_cells}}) {
      child->split = Split{rules_.least_gain};
      if (!may_split(*child)) continue;
      const NewtonCriterion criterion = criterion_of(*child);
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        search_block(*child, criterion, b, cells, child->split);
      }
    }
  }

  void search_children(Family& family, int n_threads) {
    Node &small = family.small(), &large = family.large();
    Open &small_open = family.small_open(), &large_open = family.large_open();
    const Rows& both = family.both;
    const bool derives = family.derives;
    const bool small_splits = may_split(small), large_splits = may_split(large);
    const bool builds_small = small_splits || derives;
    Cell* const small_cells = small_open.cells.data();
    Cell* const large_cells = large_open.cells.data();
    const bool in_shares = blocks_.size() < static_cast<std::size_t>(n_threads);
    if (in_shares) {
      if (builds_small) build(small_open.rows, small_cells, n_threads);
      if (large_splits && !derives) build(large_open.rows, large_cells, n_threads);
    }
    const NewtonCriterion small_criterion = criterion_of(small);
    const NewtonCriterion large_criterion = criterion_of(large);
    // One thread lets each block profit from the best split so far; more keep them apart.
    const std::size_t n_best = n_threads > 1 ? blocks_.size() : 1;
    std::vector<Split> small_best(n_best, Split{rules_.least_gain}), large_best(small_best);
    parallel_for(blocks_.size(), n_threads, [&](std::size_t b, int) {
      if (builds_small && !in_shares) build_block(small_open.rows, b, small_cells);
      if (derives) {
        const Cell* const from = small_cells + b * block_cells_;
        Cell* const to = large_cells + b * block_cells_;
        subtract(from, to, block_cells_);
        add(both, 0, both.n, b, to);
      } else if (large_splits && !in_shares) {
        build_block(large_open.rows, b, large_cells);
      }
      if (small_splits) {
        search_block(small, small_criterion, b, small_cells, small_best[b % n_best]);
      }
      if (large_splits) {
        search_block(large, large_criterion, b, large_cells, large_best[b % n_best]);
      }
    });
    small.split = best_of(small_best);
    large.split = best_of(large_best);
  }

  static void subtract(const Cell* __restrict from, Cell* __restrict to, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] -= from[i];
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
    const int sign = monotonic(node.split.feature);
    if (sign == 0) return;
    const NewtonCriterion criterion = criterion_of(node);
    const double middle =
        (criterion.value(node.split.left) + criterion.value(node.split.right)) / 2;
    (sign > 0 ? left : right).value_high = middle;
    (sign > 0 ? right : left).value_low = middle;
  }

  int monotonic(Feature feature) const {
    return request_.monotonic.empty() ? 0 : request_.monotonic[static_cast<std::size_t>(feature)];
  }

  // Search

  void search_block(const Node& node, const NewtonCriterion& criterion, std::size_t b,
                    const Cell* cells, Split& best) const {
    cells += b * block_cells_;
    for (const Feature feature : blocks_[b].features) {
      const auto f = static_cast<std::size_t>(feature);
      const Cell* const of_feature = cells + 2 * (f % kWidth) * n_codes_;
      search(node, criterion, feature, of_feature, false, best);
      const Cell& missing = of_feature[codes_.missing_code()];
      if (codes_.has_missing(f) && missing != Cell{}) {
        search(node, criterion, feature, of_feature, true, best);
      }
    }
  }

  void search(const Node& node, const NewtonCriterion& criterion, Feature feature,
              const Cell* cells, bool missing_left, Split& best) const {
    const std::span<const float> candidates = codes_.candidates(static_cast<std::size_t>(feature));
    const int sign = monotonic(feature);
    const std::int64_t least = static_cast<std::int64_t>(rules_.min_samples_leaf);
    Cell below[2] = {Cell{}, Cell{}};
    if (missing_left) below[0] = below[1] = cells[codes_.missing_code()];
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      for (const bool left_is_lower : {true, false}) {
        const Cell& cell = cells[(left_is_lower ? 0 : n_codes_) + k];
        if (cell == Cell{} && (k > 0 || !missing_left)) continue;  // as good as the one before
        Cell& left_cell = below[left_is_lower ? 0 : 1];
        left_cell += cell;
        const int order = left_is_lower ? 1 : -1;
        if (sign == -order) continue;
        const GridSum left_sum = Stat::sum(left_cell);
        const Sums left = grid_.real(left_sum), right = grid_.real(node.total - left_sum);
        if (!criterion.can_exceed(best.gain, left, right)) continue;
        if (criterion.too_light(left) || criterion.too_light(right)) continue;
        if (Stat::kCounts && (left_sum.n < least || node.total.n - left_sum.n < least)) continue;
        if (!criterion.keeps_order(order, left, right)) continue;
        const double gain = criterion.gain(left, right);
        if (!(gain > best.gain)) continue;
        best = {gain,          feature,      static_cast<std::uint32_t>(k),
                candidates[k], missing_left, left_is_lower,
                left,          right};
      }
    }
  }

  // The finished tree

  /// From the leaves up, take back the splits that gain too little. Children stand behind their
  /// parents.
  void prune() {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      Node& node = nodes_[i];
      if (!node.left || nodes_[node.left].left || nodes_[node.right].left) continue;
      if (node.split.gain < request_.rules.min_split_gain) node.left = node.right = 0;
    }
  }

  CertifiedTree write() const {
    CertifiedTree grown;
    grown.g_total = grid_.g_total;
    grown.h_total = grid_.h_total;
    in_preorder(nodes_, grown.tree, [&](GrownTree& to, const Node& node) {
      to.value.push_back(static_cast<float>(value_of(node)));
      to.cover.push_back(grid_.real(node.total).h);
      to.n_samples.push_back(static_cast<std::int64_t>(node.n_rows));
      grown.candidate.push_back(node.split.candidate);
      const double step = rules_.max_delta_step > 0 ? rules_.max_delta_step : 1 / 0.0;
      grown.value_low.push_back(std::max(node.value_low, -step));
      grown.value_high.push_back(std::min(node.value_high, step));
    });
    return grown;
  }

  const Codes& codes_;
  const CertifiedRequest& request_;
  NewtonRules rules_;
  Part part_;
  const Grid& grid_;
  Memory<Stat>& memory_;
  int n_threads_;
  std::size_t n_codes_;      // cells of one histogram
  std::size_t block_cells_;  // of all histograms of a block
  std::vector<Block> blocks_;
  std::vector<Node> nodes_;  // in any order: the tree is written in preorder
  std::mutex nodes_lock_;
  std::vector<Open> open_;
};

}  // namespace

struct CertifiedMemory::Parts {
  Memory<Packed> packed;
  Memory<Wide> wide;
};

CertifiedMemory::CertifiedMemory() : parts_(std::make_unique<Parts>()) {}
CertifiedMemory::~CertifiedMemory() = default;

template <class Code>
CertifiedTree grow_certified(const bins::EndCodes<Code>& codes, const CertifiedRequest& request,
                             CertifiedMemory& memory) {
  if (request.gradient.size() != codes.n_rows() || request.hessian.size() != codes.n_rows()) {
    throw std::invalid_argument("gradient and hessian need one entry for each of the table's " +
                                std::to_string(codes.n_rows()) + " rows, got " +
                                std::to_string(request.gradient.size()) + " and " +
                                std::to_string(request.hessian.size()) + ".");
  }
  if (request.rows.empty() && !request.part.others) {
    throw std::invalid_argument("rows must keep at least one row.");
  }
  const Grid grid =
      choose_grid(column_of(request), request.rows, request.rules.min_samples_leaf > 1,
                  request.n_threads, request.part);
  CertifiedMemory::Parts& parts = memory.parts();
  return grid.wide ? Grower<Wide, Code>(codes, request, grid, parts.wide).grow()
                   : Grower<Packed, Code>(codes, request, grid, parts.packed).grow();
}

template CertifiedTree grow_certified(const bins::EndCodes<std::uint8_t>&, const CertifiedRequest&,
                                      CertifiedMemory&);
template CertifiedTree grow_certified(const bins::EndCodes<std::uint16_t>&, const CertifiedRequest&,
                                      CertifiedMemory&);

}  // namespace hardwood::grow
