#include "hardwood/grow/newton_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hardwood/box.hpp"
#include "hardwood/grow/column_table.hpp"
#include "hardwood/parallel.hpp"
#include "hardwood/sort.hpp"

namespace hardwood::grow {
namespace {

/// The place of every row in the order of g / h.
std::vector<std::uint32_t> ranks(std::span<const Sums> gradient) {
  std::vector<std::uint32_t> order(gradient.size()), rank(gradient.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto ratio = [&](std::uint32_t row) { return gradient[row].g / gradient[row].h; };
  sort_in_pieces(order, [&](std::uint32_t a, std::uint32_t b) {
    const double ratio_a = ratio(a), ratio_b = ratio(b);
    return ratio_a != ratio_b ? ratio_a < ratio_b : a < b;
  });
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  return rank;
}

Sums sum_of(std::span<const Sums> gradient, std::span<const std::uint8_t> rows) {
  Sums total;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (rows.empty() || rows[i]) total += gradient[i];
  }
  return total;
}

}  // namespace

ExactTable::ExactTable(Matrix<const double> x, std::span<const Reach> reach, int n_threads)
    : n_features_(x.n_cols),
      x_(x.data, x.data + x.n_rows * x.n_cols),
      sorted_(x, n_threads, [&](std::size_t feature, double value, std::uint32_t row) {
        return NewtonEntry{static_cast<float>(value), BallEnds<float>(reach[feature], value), row};
      }) {}

NewtonTrees ExactTable::grow(Matrix<const float> gradient, Matrix<const float> hessian,
                             std::span<const float> weight, const NewtonSample& sample,
                             const NewtonRules& rules,
                             const std::function<void()>& between_levels) {
  const std::size_t n_rows = gradient.n_rows, n_outputs = gradient.n_cols;
  NewtonTrees out;
  out.leaf.resize(n_rows * n_outputs);
  std::vector<Sums> of_row(n_rows);
  for (std::size_t k = 0; k < n_outputs; ++k) {
    for (std::size_t i = 0; i < n_rows; ++i) {  // in double, so that a weight loses nothing
      of_row[i] = (weight.empty() ? 1.0 : weight[i]) * Sums{gradient(i, k), hessian(i, k)};
    }
    columns_.take(sorted_, sample.features, sample.rows, rules.n_threads);
    const auto rank = rules.inner == Inner::kExact ? ranks(of_row) : std::vector<std::uint32_t>{};
    const NewtonTree criterion(rules);
    ColumnTable<NewtonSearch> table(columns_, sample.features, sample.monotonic, criterion,
                                    sum_of(of_row, sample.rows), n_rows,
                                    NewtonSearch(of_row, rank, rules));
    out.trees.push_back(Grower(table, between_levels).grow());
    apply(out.trees.back(), std::span(out.leaf).subspan(k), n_outputs, rules.n_threads);
  }
  return out;
}

void ExactTable::apply(const GrownTree& tree, std::span<NodeId> leaf, std::size_t stride,
                       int n_threads) const {
  parallel_blocks(n_rows(), 4096, n_threads, [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* row = x_.data() + i * n_features_;
      std::size_t node = 0;
      while (tree.feature[node] != kLeaf) {
        const float x = row[tree.feature[node]];
        const bool left =
            std::isnan(x) ? tree.missing_left[node] != 0 : goes_left(x, tree.threshold[node]);
        node = static_cast<std::size_t>(left ? tree.left[node] : tree.right[node]);
      }
      leaf[i * stride] = static_cast<NodeId>(node);
    }
  });
}

}  // namespace hardwood::grow
