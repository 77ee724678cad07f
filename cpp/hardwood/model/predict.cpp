#include "hardwood/model/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "hardwood/box.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::model {
namespace {

constexpr std::size_t kLanes = 8;  // rows that walk down together, to hide memory latency
constexpr std::size_t kBlockValues = 1 << 14;  // rounded values of a block of rows stay in cache

/// A node for reading. Siblings are neighbours, so the step to a child is an addition: a row goes
/// to `child` or, when not left, to `child + 1`. A leaf has a NaN threshold, which nothing reaches,
/// and is its own child: rows that arrive early wait there until the whole group has arrived.
template <class X>
struct Node {
  X threshold;
  std::uint32_t feature;  // the highest bit: a missing value goes right
  std::uint32_t child;
};
constexpr std::uint32_t kMissingRight = 1u << 31;

template <class X, class V>
class FlatPredictor final : public Predictor {
 public:
  explicit FlatPredictor(const Trees& trees)
      : n_features_(static_cast<std::size_t>(trees.n_features)),
        n_values_(static_cast<std::size_t>(trees.n_values)),
        output_(trees.tree_output.begin(), trees.tree_output.end()),
        base_(trees.base.begin(), trees.base.end()) {
    nodes_.reserve(trees.n_nodes());
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
      for (std::size_t k = 0; k < root_.size(); ++k) {
        for (std::size_t r = 0; r < block.n_rows; r += kLanes) {
          const auto leaf = walk(k, block, r);
          const std::size_t n = std::min(kLanes, block.n_rows - r);
          for (std::size_t lane = 0; lane < n; ++lane) {
            V* sum = sums.data() + (r + lane) * n_outputs + static_cast<std::size_t>(output_[k]);
            const V* value = value_.data() + leaf[lane] * n_values_;
            for (std::size_t v = 0; v < n_values_; ++v) sum[v] += value[v];
          }
        }
      }
      std::copy(sums.begin(), sums.end(),
                out.begin() + static_cast<std::ptrdiff_t>(begin * n_outputs));
    });
    return out;
  }

  std::vector<NodeId> apply(Matrix<const double> x, int n_threads) const override {
    const std::size_t n_trees = root_.size();
    std::vector<NodeId> out(x.n_rows * n_trees);
    for_each_block(x, n_threads, [&](std::size_t begin, const Block& block) {
      for (std::size_t k = 0; k < n_trees; ++k) {
        for (std::size_t r = 0; r < block.n_rows; r += kLanes) {
          const auto leaf = walk(k, block, r);
          const std::size_t n = std::min(kLanes, block.n_rows - r);
          for (std::size_t lane = 0; lane < n; ++lane) {
            out[(begin + r + lane) * n_trees + k] = origin_[leaf[lane]];
          }
        }
      }
    });
    return out;
  }

 private:
  struct Block {
    std::vector<X> x;  // rounded to the model's precision, padded to a multiple of kLanes rows
    std::size_t n_rows;
    bool missing;
  };

  void add_tree(const Trees& trees, std::size_t tree) {
    const auto start = static_cast<std::size_t>(trees.tree_start[tree]);
    const std::size_t root = nodes_.size();
    root_.push_back(static_cast<std::uint32_t>(root));
    nodes_.emplace_back();
    origin_.push_back(0);
    std::vector<std::uint32_t> level{static_cast<std::uint32_t>(root)};
    std::uint32_t depth = 0;
    while (true) {  // level by level: the nodes that all rows visit lie together
      std::vector<std::uint32_t> next;
      for (const std::uint32_t at : level) {
        const std::size_t from = start + static_cast<std::size_t>(origin_[at]);
        if (trees.feature[from] == kLeaf) {
          nodes_[at] = {std::numeric_limits<X>::quiet_NaN(), 0, at};
          continue;
        }
        const auto child = static_cast<std::uint32_t>(nodes_.size());
        nodes_[at] = {static_cast<X>(trees.threshold[from]),
                      static_cast<std::uint32_t>(trees.feature[from]) |
                          (trees.missing_left[from] ? 0u : kMissingRight),
                      child};
        for (const NodeId id : {trees.left[from], trees.right[from]}) {
          next.push_back(static_cast<std::uint32_t>(nodes_.size()));
          nodes_.emplace_back();
          origin_.push_back(id);
        }
      }
      if (next.empty()) break;
      level = std::move(next);
      ++depth;
    }
    depth_.push_back(depth);
    value_.resize(nodes_.size() * n_values_);
    for (std::size_t at = root; at < nodes_.size(); ++at) {
      const std::size_t from = start + static_cast<std::size_t>(origin_[at]);
      for (std::size_t v = 0; v < n_values_; ++v) {
        value_[at * n_values_ + v] = static_cast<V>(trees.value[from * n_values_ + v]);
      }
    }
  }

  template <class Body>
  void for_each_block(Matrix<const double> x, int n_threads, Body&& body) const {
    const std::size_t fit = std::max<std::size_t>(kBlockValues / n_features_ / kLanes, 1) * kLanes;
    const std::size_t n_rows = std::min<std::size_t>(fit, 512);
    parallel_blocks(x.n_rows, n_rows, n_threads, [&](std::size_t begin, std::size_t end, int) {
      Block block;
      block.n_rows = end - begin;
      const std::size_t padded = (block.n_rows + kLanes - 1) / kLanes * kLanes;
      block.x.resize(padded * n_features_);
      const double* from = x.data + begin * n_features_;
      bool missing = false;
      for (std::size_t i = 0; i < block.n_rows * n_features_; ++i) {
        missing |= std::isnan(from[i]);
        block.x[i] = static_cast<X>(from[i]);
      }
      block.missing = missing;
      body(begin, block);
    });
  }

  std::array<std::uint32_t, kLanes> walk(std::size_t tree, const Block& block,
                                         std::size_t row) const {
    return block.missing ? walk_lanes<true>(tree, block, row) : walk_lanes<false>(tree, block, row);
  }

  template <bool kMissing>
  std::array<std::uint32_t, kLanes> walk_lanes(std::size_t tree, const Block& block,
                                               std::size_t row) const {
    const Node<X>* nodes = nodes_.data();
    const X* x = block.x.data() + row * n_features_;
    const std::size_t stride = n_features_;
    std::array<std::uint32_t, kLanes> at;
    at.fill(root_[tree]);
    for (std::uint32_t step = depth_[tree]; step > 0; --step) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const Node<X>& node = nodes[at[lane]];
        const X value = x[lane * stride + (node.feature & ~kMissingRight)];
        // Not "not left": a NaN threshold (leaf) must keep the row where it is.
        bool right = node.threshold <= value;
        if constexpr (kMissing) right |= std::isnan(value) && (node.feature & kMissingRight);
        at[lane] = node.child + static_cast<std::uint32_t>(right);
      }
    }
    return at;
  }

  std::size_t n_features_;
  std::size_t n_values_;
  std::vector<std::int32_t> output_;
  std::vector<V> base_;
  std::vector<Node<X>> nodes_;
  std::vector<NodeId> origin_;  // of each node for reading: its position in its tree
  std::vector<V> value_;
  std::vector<std::uint32_t> root_;
  std::vector<std::uint32_t> depth_;
};

}  // namespace

std::unique_ptr<Predictor> make_predictor(const Trees& trees) {
  if (trees.x_float32) {
    if (trees.sum_float32) return std::make_unique<FlatPredictor<float, float>>(trees);
    return std::make_unique<FlatPredictor<float, double>>(trees);
  }
  if (trees.sum_float32) return std::make_unique<FlatPredictor<double, float>>(trees);
  return std::make_unique<FlatPredictor<double, double>>(trees);
}

}  // namespace hardwood::model
