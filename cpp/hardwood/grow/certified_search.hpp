#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hardwood/bins/end_codes.hpp"
#include "hardwood/grow/bin_screen.hpp"
#include "hardwood/grow/bin_search.hpp"
#include "hardwood/grow/certified_histograms.hpp"
#include "hardwood/grow/fixed_point.hpp"
#include "hardwood/grow/grower.hpp"
#include "hardwood/grow/newton.hpp"
#include "hardwood/grow/split.hpp"
#include "hardwood/simd.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

struct CertifiedSplit : SplitOf<GridSum> {  ///< `left` has each ambiguous row where it is worse
  std::uint32_t candidate = 0;
  bool left_is_lower = true;  ///< the value of the left child is the lower one
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

  SearchedNode searched(const Node<CertifiedSplit>& node) const {
    return {node.total, grid_, rules_, node.value_low, node.value_high};
  }

  /// +1: the output must not fall with the feature, -1: it must not rise.
  int monotonic(Feature feature) const {
    return monotonic_.empty() ? 0 : monotonic_[static_cast<std::size_t>(feature)];
  }

  /// Let the best split of a block's features take the place of `best`, if it is better; `cells`
  /// are all histograms of the node.
  void block(const SearchedNode& node, std::size_t b, const Cell* cells,
             CertifiedSplit& best) const {
    for (const Feature feature : histograms_.blocks()[b].features) {
      const auto f = static_cast<std::size_t>(feature);
      const Cell* const of_feature = histograms_.of_feature(cells, b, f);
      look({node, feature, of_feature, false, best});
      if (codes_.has_missing(f) && of_feature[codes_.missing_code()] != Cell{}) {
        look({node, feature, of_feature, true, best});
      }
    }
  }

 private:
  /// One feature of a node, with missing values on one side.
  struct Look {
    const SearchedNode& node;
    Feature feature;
    const Cell* cells;
    bool missing_left;
    CertifiedSplit& best;
  };

  void look(const Look& at) const {
#if HARDWOOD_X86
    if constexpr (!Stat::kCounts) {
      if (has_avx2() && codes_.n_codes() % kLanes == 0 && at.node.template can_screen<Stat>()) {
        return look_screened(at);
      }
    }
#endif
    Cell below[2] = {Cell{}, Cell{}};
    if (at.missing_left) below[0] = below[1] = at.cells[codes_.missing_code()];
    for (std::size_t k = 0; k < candidates(at).size(); ++k) {
      for (const bool left_is_lower : {true, false}) {
        const Cell& cell = at.cells[(left_is_lower ? 0 : codes_.n_codes()) + k];
        if (cell == Cell{} && (k > 0 || !at.missing_left)) continue;  // as good as the one before
        Cell& left = below[left_is_lower ? 0 : 1];
        left += cell;
        judge(at, k, left_is_lower, Stat::sum(left));
      }
    }
  }

  std::span<const float> candidates(const Look& at) const {
    return codes_.candidates(static_cast<std::size_t>(at.feature));
  }

  void judge(const Look& at, std::size_t k, bool left_is_lower, const GridSum& left_sum) const {
    const NewtonCriterion& criterion = at.node.criterion;
    const int order = left_is_lower ? 1 : -1;
    if (monotonic(at.feature) == -order) return;
    // The difference is exact, as all sums are.
    const Sums left = at.node.sums(left_sum), right = at.node.sums(at.node.total) - left;
    if (!criterion.can_exceed(at.best.gain, left, right)) return;
    if (criterion.too_light(left) || criterion.too_light(right)) return;
    const std::int64_t least = static_cast<std::int64_t>(rules_.min_samples_leaf);
    if (Stat::kCounts && (left_sum.n < least || at.node.total.n - left_sum.n < least)) return;
    if (!criterion.keeps_order(order, left, right)) return;
    const double gain = criterion.gain(left, right);
    if (!(gain > at.best.gain)) return;
    at.best.gain = gain;
    at.best.feature = at.feature;
    at.best.candidate = static_cast<std::uint32_t>(k);
    at.best.threshold = candidates(at)[k];
    at.best.missing_left = at.missing_left;
    at.best.left_is_lower = left_is_lower;
    at.best.left = left_sum;
  }

#if HARDWOOD_X86
  static constexpr std::size_t kLanes = 8;

  /// The same, eight candidates at a time: only those are judged that might win.
  [[gnu::target("avx2")]] void look_screened(const Look& at) const {
    Screen screen(at.node);
    const auto set_need = [&]() __attribute__((target("avx2"))) {
      screen.need(2 * (at.best.gain + rules_.min_split_gain) + at.node.score);
    };
    set_need();
    __m256i below[2];  // sums over the groups before, in every lane
    below[0] = below[1] = _mm256_set1_epi64x(
        at.missing_left ? static_cast<long long>(at.cells[codes_.missing_code()]) : 0);
    alignas(32) std::int32_t g[2][kLanes], h[2][kLanes];
    for (std::size_t group = 0; group < candidates(at).size(); group += kLanes) {
      unsigned promising[2] = {0, 0};
      for (std::size_t side = 0; side < 2; ++side) {
        const auto* const cells =
            reinterpret_cast<const __m256i*>(at.cells + side * codes_.n_codes() + group);
        __m256i first = _mm256_loadu_si256(cells), second = _mm256_loadu_si256(cells + 1);
        const __m256i any = _mm256_or_si256(first, second);
        // As good as the ones before.
        if (_mm256_testz_si256(any, any) && (group > 0 || !at.missing_left)) continue;
        first = _mm256_add_epi64(running_sums(first), below[side]);
        second = _mm256_add_epi64(running_sums(second), _mm256_permute4x64_epi64(first, 0xff));
        below[side] = _mm256_permute4x64_epi64(second, 0xff);
        const __m256i left_g = gradients(first, second), left_h = hessians(first, second);
        // Left values are the lower ones where T is above 0.
        const __m256 reversed = side == 0 ? screen.surely_not_above(left_g, left_h)
                                          : screen.surely_not_below(left_g, left_h);
        const __m256 heavy = _mm256_and_ps(screen.heavy(left_h), screen.rest_heavy(left_h));
        const __m256 good = _mm256_and_ps(heavy, screen.good(left_g, left_h));
        promising[side] =
            static_cast<unsigned>(_mm256_movemask_ps(_mm256_andnot_ps(reversed, good)));
        _mm256_store_si256(reinterpret_cast<__m256i*>(g[side]), left_g);
        _mm256_store_si256(reinterpret_cast<__m256i*>(h[side]), left_h);
      }
      unsigned lanes = promising[0] | promising[1];
      if (lanes == 0) continue;
      for (; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
        if (group + lane >= candidates(at).size()) break;
        for (std::size_t side = 0; side < 2; ++side) {
          if (promising[side] >> lane & 1) {
            judge(at, group + lane, side == 0, {g[side][lane], h[side][lane], 0});
          }
        }
      }
      set_need();
    }
  }
#endif

  const Histograms& histograms_;
  const bins::EndCodes<Code>& codes_;
  const NewtonRules& rules_;
  const Grid& grid_;
  std::span<const std::int8_t> monotonic_;
};

}  // namespace hardwood::grow
