#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/grow/certified_histograms.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

struct CertifiedSplit {
  double gain = 0;  ///< at first what a split must exceed
  Feature feature = kLeaf;
  std::uint32_t candidate = 0;
  float threshold = 0;
  bool missing_left = false;
  bool left_is_lower = true;  ///< the value of the left child is the lower one
  GridSum left{};             ///< with each ambiguous row where it is worse

  bool beats(const CertifiedSplit& other) const {
    return gain > other.gain || (gain == other.gain && feature != kLeaf &&
                                 (other.feature == kLeaf || feature < other.feature));
  }
};

struct CertifiedNode {
  std::int32_t depth = 0;
  std::size_t n_rows = 0;  ///< of all parts
  GridSum total;
  double value_low = -std::numeric_limits<double>::infinity();
  double value_high = std::numeric_limits<double>::infinity();
  CertifiedSplit split;
  std::size_t left = 0, right = 0;  ///< 0: a leaf
};

/// Looks for the best split of a node in its histograms.
template <class Stat, class Code>
class CertifiedSearch {
  using Cell = typename Stat::Cell;
  using Histograms = CertifiedHistograms<Stat, Code>;

 public:
  CertifiedSearch(const Histograms& histograms, const NewtonRules& rules, const Grid& grid,
                  std::span<const std::int8_t> monotonic)
      : histograms_(histograms),
        codes_(histograms.codes()),
        rules_(rules),
        grid_(grid),
        monotonic_(monotonic) {}

  NewtonCriterion criterion(const CertifiedNode& node) const {
    return NewtonCriterion(grid_.real(node.total), rules_, node.value_low, node.value_high);
  }

  /// +1: the output must not fall with the feature, -1: it must not rise.
  int monotonic(Feature feature) const {
    return monotonic_.empty() ? 0 : monotonic_[static_cast<std::size_t>(feature)];
  }

  /// Let the best split of a block's features take the place of `best`, if it is better; `cells`
  /// are all histograms of the node.
  void block(const CertifiedNode& node, const NewtonCriterion& criterion, std::size_t b,
             const Cell* cells, CertifiedSplit& best) const {
    for (const Feature feature : histograms_.blocks()[b].features) {
      const auto f = static_cast<std::size_t>(feature);
      const Cell* const of_feature = histograms_.of_feature(cells, b, f);
      look(node, criterion, feature, of_feature, false, best);
      if (codes_.has_missing(f) && of_feature[codes_.missing_code()] != Cell{}) {
        look(node, criterion, feature, of_feature, true, best);
      }
    }
  }

 private:
  void look(const CertifiedNode& node, const NewtonCriterion& criterion, Feature feature,
            const Cell* cells, bool missing_left, CertifiedSplit& best) const {
    const std::span<const float> candidates = codes_.candidates(static_cast<std::size_t>(feature));
    const int sign = monotonic(feature);
    const std::int64_t least = static_cast<std::int64_t>(rules_.min_samples_leaf);
    const Sums total = grid_.real(node.total);
    Cell below[2] = {Cell{}, Cell{}};
    if (missing_left) below[0] = below[1] = cells[codes_.missing_code()];
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      for (const bool left_is_lower : {true, false}) {
        const Cell& cell = cells[(left_is_lower ? 0 : codes_.n_codes()) + k];
        if (cell == Cell{} && (k > 0 || !missing_left)) continue;  // as good as the one before
        Cell& left_cell = below[left_is_lower ? 0 : 1];
        left_cell += cell;
        const int order = left_is_lower ? 1 : -1;
        if (sign == -order) continue;
        const GridSum left_sum = Stat::sum(left_cell);
        const Sums left = grid_.real(left_sum), right = total - left;  // exact, as all sums are
        if (!criterion.can_exceed(best.gain, left, right)) continue;
        if (criterion.too_light(left) || criterion.too_light(right)) continue;
        if (Stat::kCounts && (left_sum.n < least || node.total.n - left_sum.n < least)) continue;
        if (!criterion.keeps_order(order, left, right)) continue;
        const double gain = criterion.gain(left, right);
        if (!(gain > best.gain)) continue;
        best = {gain,          feature, static_cast<std::uint32_t>(k), candidates[k], missing_left,
                left_is_lower, left_sum};
      }
    }
  }

  const Histograms& histograms_;
  const bins::EndCodes<Code>& codes_;
  const NewtonRules& rules_;
  const Grid& grid_;
  std::span<const std::int8_t> monotonic_;
};

}  // namespace hardwood::grow
