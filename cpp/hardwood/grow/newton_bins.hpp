#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "hardwood/grow/bin_search.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/histogram.hpp"
#include "hardwood/grow/newton_nodes.hpp"
#include "hardwood/parallel.hpp"

namespace hardwood::grow {

/// Finds the best split of a boosted tree's node in its histogram.
template <class S>
class NewtonBins {
 public:
  using Stat = S;
  using Split = BinSplit;
  using Criterion = NewtonTree;
  using Row = typename Stat::Row;
  using Cell = typename Stat::Cell;

  /// A node in search, with the rows whose residual has another sign than their gradient.
  struct Prepared {
    SearchedNode node;
    bool has_exceptions = false;  ///< whether any part may have some
    std::vector<Row> exceptions;  ///< of this part
  };

  /// `rows`: of the whole tree. `n_sides`: 2 where the signs of gradients are told apart.
  NewtonBins(const bins::Binned& binned, std::span<const Window> windows, const NewtonTree& tree,
             std::span<const Row> rows, std::size_t n_sides, Movers movers, bool portable,
             const Part& part)
      : binned_(binned),
        windows_(windows),
        tree_(tree),
        n_sides_(n_sides),
        movers_(movers),
        portable_(portable) {
    if (asks_residuals()) survey_ratios(rows, part);
  }

  bool can_split(const Pass& pass) const {
    const auto feature = static_cast<std::size_t>(pass.feature.front());
    return windows_[feature].first != windows_[feature].last || binned_.has_missing(feature);
  }

  Prepared prepare(const Node<BinSplit>& from, std::span<const Row> rows, int n_threads) const {
    Prepared prepared{
        {from.total, tree_.grid(), tree_.rules(), from.value_low, from.value_high}, false, {}};
    if (!asks_residuals() || !may_split(tree_, from)) return prepared;
    // The residual g - m h changes sign at g / h = m; often no row of the tree is between.
    const SearchedNode& node = prepared.node;
    const double m = -node.criterion.residual({0, 1});
    const double slack = 1e-9 * std::abs(m);
    if (below_ < m - slack && m + slack < above_) return prepared;
    prepared.has_exceptions = true;
    const bool join = from.total.g >= 0;
    std::vector<std::vector<Row>> parts((rows.size() + kBlock - 1) / kBlock);
    parallel_blocks(rows.size(), kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
      for (const Row& row : rows.subspan(begin, end - begin)) {
        const bool negative = node.criterion.residual(node.sums({row.g, row.h, 1})) < 0;
        if (join ? row.g >= 0 && negative : row.g < 0 && !negative) {
          parts[begin / kBlock].push_back(row);
        }
      }
    });
    for (const std::vector<Row>& part : parts) {
      prepared.exceptions.insert(prepared.exceptions.end(), part.begin(), part.end());
    }
    return prepared;
  }

  /// `all_exceptions`: the pass's cells of the exceptions of all parts; null: there is one part.
  void search(const HistogramPlan& plan, const Pass& pass, const Cell* cells,
              std::span<const std::int8_t> monotonic, const Prepared& prepared, BinSplit& best,
              const Cell* all_exceptions = nullptr) const {
    const std::size_t side = pass.n_columns() * plan.n_codes;
    std::vector<Cell> exceptions;
    if (!all_exceptions && !prepared.exceptions.empty()) {
      exceptions.resize(plan.cells(pass));
      add_rows<Stat>(prepared.exceptions, plan, pass, exceptions.data());
      all_exceptions = exceptions.data();
    }
    // All of them are on the side of the node's own sum.
    const Cell* const exception_cells =
        all_exceptions ? all_exceptions + (prepared.node.total.g < 0 ? side : 0) : nullptr;
    // Features that share a column are taken apart: a table each for cells, below and exceptions.
    std::array<std::vector<Cell>, 3> apart;
    for (std::size_t i = 0; i < pass.feature.size(); ++i) {
      const auto feature = static_cast<std::size_t>(pass.feature[i]);
      const auto of_feature = [&](const Cell* from, std::size_t table) {
        return from ? cells_of(plan, pass, i, from, apart[table]) : nullptr;
      };
      const FeatureBins<Stat> bins{of_feature(cells, 0),
                                   of_feature(n_sides_ == 2 ? cells + side : nullptr, 1),
                                   of_feature(exception_cells, 2),
                                   binned_.missing_code(),
                                   binned_.has_missing(feature),
                                   windows_[feature],
                                   pass.feature[i],
                                   monotonic.empty() ? 0 : monotonic[feature],
                                   movers_};
      // One child gets none of the rows with the frequent code.
      const bins::Code frequent_code = binned_.frequent_code(feature);
      GridSum frequent = Stat::sum(bins.cells[frequent_code]);
      if (bins.below) frequent += Stat::sum(bins.below[frequent_code]);
      const double most = prepared.node.sums(prepared.node.total - frequent).h;
      if (most < tree_.rules().min_child_weight) continue;
      search_bins<Stat>(bins, prepared.node, portable_, best);
    }
  }

 private:
  static constexpr std::size_t kBlock = 1 << 14;  // rows handled together

  bool asks_residuals() const { return n_sides_ == 2 && tree_.rules().inner == Inner::kExact; }

  /// For the exact inner rule: the largest g / h below 0 and the smallest one from 0 on.
  void survey_ratios(std::span<const Row> rows, const Part& all) {
    struct Block {
      double below = -std::numeric_limits<double>::infinity();
      double above = std::numeric_limits<double>::infinity();
    };
    std::vector<Block> blocks((rows.size() + kBlock - 1) / kBlock);
    const int n_threads = std::max(tree_.rules().n_threads, 1);
    parallel_blocks(rows.size(), kBlock, n_threads, [&](std::size_t begin, std::size_t end, int) {
      Block& block = blocks[begin / kBlock];
      for (const Row& row : rows.subspan(begin, end - begin)) {
        const Sums sums = tree_.grid().real({row.g, row.h, 1});
        if (sums.h == 0) continue;  // its residual is g
        const double ratio = sums.g / sums.h;
        if (row.g < 0) block.below = std::max(block.below, ratio);
        if (row.g >= 0) block.above = std::min(block.above, ratio);
      }
    });
    for (const Block& block : blocks) {
      below_ = std::max(below_, block.below);
      above_ = std::min(above_, block.above);
    }
    std::array<double, 2> ends{below_, -above_};
    all.max(ends);
    below_ = ends[0], above_ = -ends[1];
  }

  const bins::Binned& binned_;
  std::span<const Window> windows_;
  const NewtonTree& tree_;
  std::size_t n_sides_;
  Movers movers_;
  bool portable_;
  double below_ = -std::numeric_limits<double>::infinity();  // see survey_ratios
  double above_ = std::numeric_limits<double>::infinity();
};

}  // namespace hardwood::grow
