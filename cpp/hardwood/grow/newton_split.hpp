#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/ambiguity.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/grow/newton_nodes.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// One value of one row of a boosted tree, rounded as the model will compare it. The ends of its
/// ball are computed from the value before rounding.
struct NewtonEntry {
  float x = 0;
  BallEnds<float> ends;
  std::uint32_t row = 0;
};

using NewtonSplit = SplitOf<Sums>;

/// Tries every threshold of one column of a node, halfway between neighbouring values; one a
/// thread, because it keeps buffers.
class NewtonSearch {
 public:
  using Entry = NewtonEntry;
  using Split = NewtonSplit;
  using Criterion = NewtonTree;
  struct Prepared {
    Sums total;
    NewtonCriterion criterion;
  };

  /// `rank_of_row`: the place of each row in the order of g / h, only read by inner="exact".
  NewtonSearch(std::span<const Sums> gradient, std::span<const std::uint32_t> rank_of_row,
               const NewtonRules& rules)
      : gradient_(gradient), rank_of_row_(rank_of_row), rules_(rules) {}

  Prepared prepare(const Node<NewtonSplit>& node) const {
    return {node.total, {node.total, rules_, node.value_low, node.value_high}};
  }

  /// Keep in `best` what beats it.
  void search(std::span<const NewtonEntry> column, Feature feature, int monotonic,
              const Prepared& node, NewtonSplit& best);

 private:
  struct Candidate {
    float threshold;
    bool missing_left;
    std::size_t n_sure, n_plain, n_possible;  // present rows that are sure_left, go left, can go
  };

  struct Neighbours {                        // thresholds next to each other
    std::size_t n_sure = 0, n_possible = 0;  // sure for some, possible for all
  };

  void add_up(std::span<const NewtonEntry> column, const NewtonCriterion& criterion);
  bool all_fail(std::size_t begin, std::size_t end, std::span<const NewtonEntry> column,
                const Sums& total, const NewtonCriterion& criterion, double bar,
                Neighbours& seen) const;
  SplitSums sums_of(const Candidate& candidate, const Sums& total) const;
  double robust_gain(const Candidate& candidate, const SplitSums& sums,
                     std::span<const NewtonEntry> column, const NewtonCriterion& criterion,
                     double bar);

  std::span<const Sums> gradient_;
  std::span<const std::uint32_t> rank_of_row_;
  const NewtonRules& rules_;

  // Of the column at hand: sums over the first i present rows, of all and of those with a negative
  // residual, and over the missing rows.
  std::vector<Sums> first_;
  std::vector<Sums> first_negative_;
  Sums missing_;
  double slack_ = 0;  // of residuals: what rounding can change
  std::size_t n_present_ = 0;
  std::vector<RankedRow> ambiguous_;
};

}  // namespace hardwood::grow
