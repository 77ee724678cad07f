#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "hardwood/model/link.hpp"

namespace hardwood::model {

/// How outputs become the label, ties and rounding included: the one place that says so.
///
/// One output: the second class where the margin is above `cut`, which is found in floats through
/// the source's own last steps. More: the largest output, the first one on ties. Where
/// `of_means`, a source compares what its link makes of the margins; rounding can then make a tie
/// of two margins that differ, by at most `tie`.
struct Decision {
  double cut = 0;
  bool of_means = false;
  double tie = 0;
  Link link{};

  std::int32_t label(std::span<const double> margin) const {
    if (margin.size() == 1) return margin[0] > cut ? 1 : 0;
    const auto largest = std::ranges::max_element(margin);
    const auto best = static_cast<std::int32_t>(largest - margin.begin());
    return of_means ? first_equal(margin, best) : best;
  }

 private:
  /// The first output whose mean is that of the best.
  std::int32_t first_equal(std::span<const double> margin, std::int32_t best) const {
    const double most = margin[static_cast<std::size_t>(best)];
    double sum = -1;  // of exponentials, made when somebody is near
    for (std::int32_t k = 0; k < best; ++k) {
      const double mine = margin[static_cast<std::size_t>(k)];
      if (mine < most - tie) continue;
      if (link.kind == LinkKind::kSoftmax) {
        const double top = link.scaled(most);
        if (sum < 0) {
          sum = 0;
          for (const double one : margin) sum += link.exponential(link.scaled(one), top);
        }
        const double share = link.share(link.exponential(link.scaled(mine), top), sum);
        if (share == link.share(link.exponential(top, top), sum)) return k;
      } else if (link.of(mine) == link.of(most)) {
        return k;
      }
    }
    return best;
  }
};

}  // namespace hardwood::model
