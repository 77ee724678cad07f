#include "hardwood/grow/window.hpp"

#include <algorithm>

#include "hardwood/ambiguity.hpp"

namespace hardwood::grow {

CategoryChanges Kinds::changes_of(std::size_t feature) const {
  if (n_categories.empty() || n_categories[feature] == 0) return {};
  std::vector<std::pair<bins::Code, bins::Code>> pairs;
  for (std::size_t i = 0; i < changes.n_rows; ++i) {
    if (static_cast<std::size_t>(changes(i, 0)) != feature) continue;
    pairs.emplace_back(static_cast<bins::Code>(changes(i, 1)),
                       static_cast<bins::Code>(changes(i, 2)));
  }
  return {static_cast<std::size_t>(n_categories[feature]), pairs};
}

Window::Window(const bins::Binned& binned, std::size_t feature, const Reach& reach,
               const Kinds& kinds)
    : n_bins(binned.n_bins(feature)),
      sure(n_bins + kPadding),
      possible(n_bins + kPadding),
      categorical(binned.categorical(feature)),
      changes(kinds.changes_of(feature)),
      blank(kinds.blanks(feature)) {
  const auto edges = binned.edges(feature);
  std::size_t n_sure = 0, n_possible = 0;
  bool sure_row = false;        // whether a bin that is sure_left holds a row
  std::size_t last_filled = 0;  // the last bin that holds one
  for (std::size_t bin = 0; bin < n_bins; ++bin) {
    if (!binned.range(feature, bin).empty()) last_filled = bin;
  }
  for (std::size_t k = 1; k < n_bins; ++k) {
    const float threshold = edges[k - 1];
    // Both ends of a ball are non-decreasing in x, so each pointer only moves up.
    for (; n_sure < k; ++n_sure) {
      const bins::BinRange range = binned.range(feature, n_sure);
      if (range.empty()) continue;
      if (!sure_left(reach, range.largest, threshold)) break;
      sure_row = true;
    }
    for (n_possible = std::max(n_possible, k); n_possible < n_bins; ++n_possible) {
      const bins::BinRange range = binned.range(feature, n_possible);
      if (!range.empty() && sure_right(reach, range.smallest, threshold)) break;
    }
    sure[k] = static_cast<std::uint16_t>(n_sure);
    possible[k] = static_cast<std::uint16_t>(n_possible);
    const bool can_be_emptied = !kinds.some_stay() && (!sure_row || n_possible > last_filled);
    if (can_be_emptied && !binned.has_missing(feature)) continue;
    if (first == last) first = k;
    last = k + 1;
    moves = moves || n_sure < k || n_possible > k;
  }
  moves = moves || changes.any || blank;
}

}  // namespace hardwood::grow
