#pragma once

#include <cstdint>

#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/grow/window.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

using BinSplit = BinSplitOf<GridSum>;

/// The node as the search sees it.
struct SearchedNode {
  GridSum total;
  Grid grid;
  const NewtonRules& rules;
  NewtonCriterion criterion;
  double score;  ///< of the node as a leaf
  bool plain;    ///< neither reg_alpha nor bounds on values: scores are G^2 / (H + lambda)

  SearchedNode(const GridSum& total_, const Grid& grid_, const NewtonRules& rules_,
               double value_low, double value_high)
      : total(total_),
        grid(grid_),
        rules(rules_),
        criterion(grid_.real(total_), rules_, value_low, value_high),
        score(-2 * (criterion.gain({}, {}) + rules_.min_split_gain)),
        plain(rules_.reg_alpha == 0 && rules_.max_delta_step == 0 && std::isinf(value_low) &&
              std::isinf(value_high)) {}

  Sums sums(const GridSum& sum) const { return grid.real(sum); }

  /// Whether float arithmetic can tell which thresholds are worth a look (see Screen): scores must
  /// be quotients of what floats hold without overflow.
  template <class Stat>
  bool can_screen() const {
    const double most_g = Stat::kMaxSum * grid.g_step;
    const double weight = sums(total).h + 2 * rules.reg_lambda;
    return plain && most_g * most_g * weight < 1e37 && weight * weight < 1e37 &&
           grid.g_bits <= 40 && grid.h_bits <= 40;
  }
};

/// Which rows the adversary moves: all, or those of one class, which the sign of g tells.
enum class Movers : std::uint8_t { kAll, kAbove, kBelow };

/// One feature of a node's histogram, and how to read it.
template <class Stat>
struct FeatureBins {
  using Cell = typename Stat::Cell;

  const Cell* cells;            ///< bin after bin; with `below`, only the rows with g >= 0
  const Cell* below = nullptr;  ///< the rows with g < 0, where signs are told apart
  /// The residual g - m h has the sign of g but for few rows; these, or null.
  const Cell* exceptions = nullptr;
  std::size_t missing_code;
  bool has_missing;
  const Window& window;
  Feature feature;
  int monotonic;
  Movers movers = Movers::kAll;  ///< others than all only with `below`
};

/// Try every threshold of one feature, or every set of categories along their order
/// (category_sets.hpp); keep in `best` what beats it. The gain is that of
/// NewtonCriterion, in double, from exact sums: with the window's rounding, nothing else is lost.
/// `portable`: do not use what this processor has more than others; the answer is the same.
template <class Stat>
void search_bins(const FeatureBins<Stat>& bins, const SearchedNode& node, bool portable,
                 BinSplit& best);

}  // namespace hardwood::grow
