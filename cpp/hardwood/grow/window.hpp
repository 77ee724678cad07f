#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/grow/category_sets.hpp"
#include "hardwood/threat.hpp"
#include "hardwood/types.hpp"

namespace hardwood::grow {

/// What the adversary may do to a table beside moving numbers: one entry a feature, or empty: none.
struct Kinds {
  std::span<const std::int32_t> n_categories;  ///< 0: numbers
  Matrix<const std::int32_t> changes{};        ///< of categories: feature, from, to
  std::span<const std::uint8_t> blank;         ///< whether a value can be removed
  std::int32_t only = -1;                      ///< the class whose rows alone are moved; -1: all

  bool some_stay() const { return only >= 0; }
  bool blanks(std::size_t feature) const { return !blank.empty() && blank[feature] != 0; }
  CategoryChanges changes_of(std::size_t feature) const;
};

/// What the adversary can do to the bins of one feature, threshold by threshold.
///
///     bins of sure_left rows      ambiguous       bins of sure_right rows
///   0 ────────────────── sure[k]     k     possible[k] ────────────── n_bins
///
/// The threshold k is edge k-1: bins below k go left. A bin counts as sure only if all its rows
/// are, judged by its smallest or largest value and the one definition of the ambiguity set; a bin
/// that the set covers in part is ambiguous. So no row that the adversary can move is ever counted
/// as sure, and where a bin holds one value, or the set ends at edges, nothing is lost.
struct Window {
  std::size_t n_bins;
  std::vector<std::uint16_t> sure;            ///< of threshold k: bins [0, sure[k]) are sure_left
  std::vector<std::uint16_t> possible;        ///< bins [possible[k], n_bins) are sure_right
  static constexpr std::size_t kPadding = 8;  ///< zeros after the last, for those who read ahead
  /// Thresholds [first, last) are worth a try: elsewhere one side has no sure row and no missing
  /// one, and the adversary can empty it.
  std::size_t first = 1;
  std::size_t last = 1;
  bool moves = false;        ///< whether the adversary can move any row across any of them
  bool categorical = false;  ///< bins have no order; sets of them are tried, not thresholds
  CategoryChanges changes;   ///< of the categories
  /// Whether values can be removed: rows that are not where missing values go are ambiguous then.
  bool blank = false;

  Window(const bins::Binned& binned, std::size_t feature, const Reach& reach,
         const Kinds& kinds = {});
};

}  // namespace hardwood::grow
