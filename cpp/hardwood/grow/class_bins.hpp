#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hardwood/bins/binned.hpp"
#include "hardwood/grow/class_judge.hpp"
#include "hardwood/grow/class_nodes.hpp"
#include "hardwood/grow/class_rows.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/histogram.hpp"
#include "hardwood/grow/window.hpp"

namespace hardwood::grow {

using ClassBinSplit = BinSplitOf<ClassSum>;

/// Finds the best split of a class tree's node in its histogram, which has a side for each class.
/// The gain is that of the criterion with ambiguity sets rounded up to whole bins (window.hpp); all
/// sums are whole numbers.
template <class S>
class ClassBins {
 public:
  using Stat = S;
  using Split = ClassBinSplit;
  using Criterion = ClassTree;
  using Cell = typename Stat::Cell;

  /// `only`: the class whose rows alone the adversary moves, or -1.
  ClassBins(const bins::Binned& binned, std::span<const Window> windows, const ClassTree& tree,
            std::int32_t only = -1)
      : binned_(binned), windows_(windows), tree_(tree), only_(only) {}

  bool can_split(const Pass& pass) const {
    const auto feature = static_cast<std::size_t>(pass.feature.front());
    return windows_[feature].first != windows_[feature].last || binned_.has_missing(feature);
  }

  struct Prepared : ClassSearched {
    static constexpr bool has_exceptions = false;
    std::array<typename Stat::Row, 0> exceptions;
  };

  Prepared prepare(const Node<ClassBinSplit>& node, std::span<const typename Stat::Row>,
                   int) const {
    return {ClassSearched(node), {}};
  }

  void search(const HistogramPlan& plan, const Pass& pass, const Cell* cells,
              std::span<const std::int8_t> monotonic, const ClassSearched& node,
              ClassBinSplit& best, const Cell* exceptions = nullptr) const;

 private:
  /// What the searches read of a feature's histogram.
  template <class Weights>
  auto number_cells(std::span<const Cell* const> of_class, std::size_t f) const;
  template <class Weights>
  auto set_cells(std::span<const Cell* const> of_class, std::size_t f) const;

  const bins::Binned& binned_;
  std::span<const Window> windows_;
  const ClassTree& tree_;
  std::int32_t only_;
};

}  // namespace hardwood::grow
