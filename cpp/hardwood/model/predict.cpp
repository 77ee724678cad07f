#include "hardwood/model/predict.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "hardwood/box.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::model {
namespace {

constexpr std::size_t kLanes = 8;            // rows that walk down together, to hide memory latency
constexpr std::size_t kFewRows = 2;          // so many are quicker one by one
constexpr std::size_t kBlockKeys = 1 << 16;  // keys of a block of rows stay in cache
constexpr std::size_t kBlockRows = 512;
constexpr std::uint32_t kStride = 8;  // steps between looks at whether all rows have arrived

/// Numbers as unsigned integers in the same order, -0 and 0 being one: a comparison of integers
/// costs less, and leaves room for keys beyond all numbers, infinities included.
template <class X>
struct Keys {
  using Key = std::conditional_t<sizeof(X) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

  static constexpr Key kMissingLeft = 0;                          // below every threshold
  static constexpr Key kNever = std::numeric_limits<Key>::max();  // a threshold nothing reaches
  static constexpr Key kMissingRight = kNever - 1;                // beyond every other threshold

  static Key of(X x) {
    constexpr unsigned kSign = 8 * sizeof(Key) - 1;
    const Key bits = std::bit_cast<Key>(x + X{0});
    // A negative number has all its bits turned, a positive one its sign; without a branch.
    return bits ^ ((Key{0} - (bits >> kSign)) | Key{1} << kSign);
  }

  /// The number of a key that is one.
  static X number(Key key) {
    constexpr Key kPositive = Key{1} << (8 * sizeof(Key) - 1);
    return std::bit_cast<X>(key >= kPositive ? key ^ kPositive : ~key);
  }
};

/// A node for reading. Siblings are neighbours, so the step to a child is an addition: a row goes
/// to `child` or, when not left, to `child + 1` (counted from the root). A leaf is its own child
/// and nothing goes right there: rows that arrive early wait until the whole group has arrived.
template <class Key, class Index>
struct Node {
  Key threshold;
  Index child;
  Index column;
};

/// Every feature is two columns of keys: for splits that send a missing value left and for those
/// that send it right. So walking down has no branch, with and without missing values.
constexpr std::size_t column_of(std::size_t feature, bool missing_left) {
  return (2 * feature + (missing_left ? 0 : 1)) * kLanes;
}

template <class X, class Index, class V>
class FlatPredictor final : public Predictor {
 public:
  explicit FlatPredictor(const Trees& trees)
      : n_features_(static_cast<std::size_t>(trees.n_features)),
        n_values_(static_cast<std::size_t>(trees.n_values)),
        output_(trees.tree_output.begin(), trees.tree_output.end()),
        base_(trees.base.begin(), trees.base.end()),
        category_start_(trees.has_categories() ? trees.category_start
                                               : std::vector<std::int64_t>{}),
        category_(trees.category) {
    nodes_.reserve(trees.n_nodes());
    origin_.reserve(trees.n_nodes());
    value_.reserve(trees.value.size());
    for (std::size_t k = 0; k < trees.n_trees(); ++k) add_tree(trees, k);
  }

  std::vector<double> margin(Matrix<const double> x, int n_threads) const override {
    const std::size_t n_outputs = base_.size();
    std::vector<double> out(x.n_rows * n_outputs);
    for_each_block(x, n_threads, [&](std::size_t begin, const Block& block) {
      std::vector<V> sums;
      sums.reserve(block.n_rows * n_outputs);
      for (std::size_t r = 0; r < block.n_rows; ++r) {
        sums.insert(sums.end(), base_.begin(), base_.end());
      }
      for_each_leaf(block, [&](std::size_t tree, std::size_t row, std::size_t leaf) {
        V* sum = sums.data() + row * n_outputs + output_[tree];
        const V* value = value_.data() + leaf * n_values_;
        for (std::size_t v = 0; v < n_values_; ++v) sum[v] += value[v];
      });
      std::ranges::copy(sums, out.begin() + static_cast<std::ptrdiff_t>(begin * n_outputs));
    });
    return out;
  }

  std::vector<NodeId> apply(Matrix<const double> x, int n_threads) const override {
    const std::size_t n_trees = root_.size();
    std::vector<NodeId> out(x.n_rows * n_trees);
    for_each_block(x, n_threads, [&](std::size_t begin, const Block& block) {
      for_each_leaf(block, [&](std::size_t tree, std::size_t row, std::size_t leaf) {
        out[(begin + row) * n_trees + tree] = origin_[leaf];
      });
    });
    return out;
  }

 private:
  using Key = typename Keys<X>::Key;

  /// Keys of a block of rows: groups of kLanes rows, in a group column by column.
  struct Block {
    std::vector<Key> keys;
    std::size_t n_rows;
  };

  std::size_t n_keys_of_row() const { return 2 * n_features_; }

  void add_tree(const Trees& trees, std::size_t tree) {
    const auto start = static_cast<std::size_t>(trees.tree_start[tree]);
    const std::size_t root = nodes_.size();
    root_.push_back(root);
    first_.push_back(start);
    nodes_.emplace_back();
    origin_.push_back(0);
    std::uint32_t depth = 0;
    // Level by level: the nodes that all rows visit lie together.
    for (std::size_t begin = root, end = nodes_.size();; ++depth) {
      for (std::size_t at = begin; at < end; ++at) {
        const std::size_t from = start + static_cast<std::size_t>(origin_[at]);
        if (trees.feature[from] == kLeaf) {
          nodes_[at] = {Keys<X>::kNever, static_cast<Index>(at - root), 0};
          continue;
        }
        const auto feature = static_cast<std::size_t>(trees.feature[from]);
        nodes_[at] = {Keys<X>::of(static_cast<X>(trees.threshold[from])),
                      static_cast<Index>(nodes_.size() - root),
                      static_cast<Index>(column_of(feature, trees.missing_left[from] != 0))};
        for (const NodeId id : {trees.left[from], trees.right[from]}) {
          nodes_.emplace_back();
          origin_.push_back(id);
        }
      }
      begin = end;
      end = nodes_.size();
      if (begin == end) break;
    }
    depth_.push_back(depth);
    for (std::size_t at = root; at < nodes_.size(); ++at) {
      const std::size_t from = (start + static_cast<std::size_t>(origin_[at])) * n_values_;
      for (std::size_t v = 0; v < n_values_; ++v) {
        value_.push_back(static_cast<V>(trees.value[from + v]));
      }
    }
  }

  template <class Body>
  void for_each_block(Matrix<const double> x, int n_threads, Body&& body) const {
    const std::size_t n_groups = std::max<std::size_t>(kBlockKeys / n_keys_of_row() / kLanes, 1);
    const std::size_t n_rows = std::min(n_groups * kLanes, kBlockRows);
    parallel_blocks(x.n_rows, n_rows, n_threads, [&](std::size_t begin, std::size_t end, int) {
      const std::size_t n_padded = (end - begin + kLanes - 1) / kLanes * kLanes;
      Block block{std::vector<Key>(n_padded * n_keys_of_row()), end - begin};
      for (std::size_t row = 0; row < block.n_rows; ++row) {
        Key* key = block.keys.data() + row / kLanes * kLanes * n_keys_of_row() + row % kLanes;
        for (const double given : x.row(begin + row)) {
          const auto value = static_cast<X>(given);
          const Key of_value = Keys<X>::of(value);
          const bool missing = std::isnan(value);
          key[column_of(0, true)] = missing ? Keys<X>::kMissingLeft : of_value;
          key[column_of(0, false)] = missing ? Keys<X>::kMissingRight : of_value;
          key += column_of(1, true);
        }
      }
      body(begin, block);
    });
  }

  /// Call visit(tree, row, leaf) for every row of the block, tree by tree.
  template <class Visit>
  void for_each_leaf(const Block& block, Visit&& visit) const {
    for (std::size_t tree = 0; tree < root_.size(); ++tree) {
      for (std::size_t row = 0; row < block.n_rows; row += kLanes) {
        const Key* keys = block.keys.data() + row * n_keys_of_row();
        const std::size_t n = std::min(kLanes, block.n_rows - row);
        if (!category_.empty()) {
          for (std::size_t lane = 0; lane < n; ++lane) {
            visit(tree, row + lane, walk_categories(tree, keys + lane));
          }
        } else if (n <= kFewRows) {
          for (std::size_t lane = 0; lane < n; ++lane) {
            visit(tree, row + lane, root_[tree] + walk<1>(tree, keys + lane)[0]);
          }
        } else {
          const auto leaf = walk<kLanes>(tree, keys);
          for (std::size_t lane = 0; lane < n; ++lane) {
            visit(tree, row + lane, root_[tree] + leaf[lane]);
          }
        }
      }
    }
  }

  /// The leaves, counted from the root, of the rows in the first `kRows` lanes of a group.
  template <std::size_t kRows>
  std::array<std::uint32_t, kRows> walk(std::size_t tree, const Key* keys) const {
    const Node<Key, Index>* nodes = nodes_.data() + root_[tree];
    std::array<std::uint32_t, kRows> at{};
    for (std::uint32_t left = depth_[tree]; left > 0;) {
      const std::uint32_t stride = kRows == 1 ? 1 : std::min(left, kStride);
      for (std::uint32_t step = 0; step < stride; ++step) {
        for (std::size_t lane = 0; lane < kRows; ++lane) {
          const Node<Key, Index>& node = nodes[at[lane]];
          at[lane] =
              std::uint32_t{node.child} + !goes_left(keys[node.column + lane], node.threshold);
        }
      }
      left -= stride;
      // Chains are deep for few rows: stop where all are waiting.
      if (left > 0 && std::ranges::all_of(at, [&](auto a) { return nodes[a].child == a; })) break;
    }
    return at;
  }

  /// The leaf of one row in a model with categories.
  std::size_t walk_categories(std::size_t tree, const Key* keys) const {
    std::size_t at = root_[tree];
    for (;;) {
      const Node<Key, Index>& node = nodes_[at];
      const std::size_t child = root_[tree] + node.child;
      if (child == at) return at;
      const std::size_t from = first_[tree] + static_cast<std::size_t>(origin_[at]);
      const Key key = keys[node.column];
      const bool compares = category_start_[from] == category_start_[from + 1] ||
                            key == Keys<X>::kMissingLeft || key == Keys<X>::kMissingRight;
      const bool left = compares ? goes_left(key, node.threshold) : !in_set(from, key);
      at = child + !left;
    }
  }

  bool in_set(std::size_t from, Key key) const {
    return std::binary_search(category_.begin() + category_start_[from],
                              category_.begin() + category_start_[from + 1],
                              category_of(Keys<X>::number(key)));
  }

  std::size_t n_features_;
  std::size_t n_values_;
  std::vector<std::int32_t> output_;
  std::vector<V> base_;
  std::vector<Node<Key, Index>> nodes_;
  std::vector<NodeId> origin_;  // of each node for reading: its position in its tree
  std::vector<V> value_;
  std::vector<std::size_t> root_;
  std::vector<std::uint32_t> depth_;
  std::vector<std::size_t> first_;            // first node of each tree, as the model counts
  std::vector<std::int64_t> category_start_;  // of each node, as the model counts
  std::vector<std::int32_t> category_;
};

/// Whether positions of nodes and columns fit the short index that makes a node eight bytes.
bool is_small(const Trees& trees) {
  constexpr std::size_t kMost = std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;
  for (std::size_t k = 0; k < trees.n_trees(); ++k) {
    if (static_cast<std::size_t>(trees.tree_start[k + 1] - trees.tree_start[k]) > kMost) {
      return false;
    }
  }
  return column_of(static_cast<std::size_t>(trees.n_features), true) <= kMost;
}

template <class V>
std::unique_ptr<Predictor> predictor_adding(const Trees& trees) {
  if (!trees.x_float32) return std::make_unique<FlatPredictor<double, std::uint32_t, V>>(trees);
  if (is_small(trees)) return std::make_unique<FlatPredictor<float, std::uint16_t, V>>(trees);
  return std::make_unique<FlatPredictor<float, std::uint32_t, V>>(trees);
}

}  // namespace

std::unique_ptr<Predictor> make_predictor(const Trees& trees) {
  return trees.sum_float32 ? predictor_adding<float>(trees) : predictor_adding<double>(trees);
}

}  // namespace hardwood::model
