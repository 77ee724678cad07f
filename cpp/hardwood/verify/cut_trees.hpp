#pragma once

#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

#include "hardwood/cells/ways.hpp"
#include "hardwood/verify/cut.hpp"

namespace hardwood::verify {

/// The trees of a cut, for a `PointSearch`.
class CutTrees {
 public:
  using Value = std::int64_t;
  static constexpr Value kNoise = 0;

  /// `words` is memory to work in.
  CutTrees(const Cut& cut, std::vector<Word>& words) : cut_(cut), words_(words) {}

  Value enough() const { return cut_.zero; }
  auto features() const { return std::views::iota(std::size_t{0}, cut_.n_features()); }
  Cells cells(std::size_t f) const { return {0, cut_.n_cells(f) - 1}; }
  double step(std::size_t f, std::int32_t cell) const { return cut_.step[at(f, cell)]; }
  const Cut::Node& node(std::int32_t at) const { return cut_.nodes[static_cast<std::size_t>(at)]; }
  bool goes_left(std::int32_t at, std::int32_t cell) const {
    return cut_.goes_left(node(at), cell);
  }

  Value value(std::span<const std::int32_t> point) const {
    Value value = 0;
    for (const std::size_t f : features()) value += cut_.alone[at(f, point[f])];
    for (const std::int32_t root : cut_.roots) {
      value += node(cells::leaf_of(*this, root, point)).value;
    }
    return value;
  }

  template <class Add>
  void each_value(std::size_t f, std::span<const std::int32_t> point, Cells cells,
                  Add&& add) const {
    for (std::int32_t c = cells.lo; c <= cells.hi; ++c) add({c, c}, cut_.alone[at(f, c)]);
    const auto feature = static_cast<std::int32_t>(f);
    for (const std::int32_t number : cut_.roots_of(f)) {
      const std::int32_t root = cut_.roots[static_cast<std::size_t>(number)];
      if (cut_.n_words[f] == 0) {
        cells::each_leaf_beside(
            *this, root, point, feature, cells,
            [&](std::int32_t leaf, Cells some) { add(some, node(leaf).value); });
        continue;
      }
      const auto all = cut_.set(f, cut_.all[f]);
      words_.assign(all.begin(), all.end());
      each_leaf_of_set(root, point, feature, [&](std::size_t cell, Value value) {
        const auto c = static_cast<std::int32_t>(cell);
        if (cells.lo <= c && c <= cells.hi) add({c, c}, value);
      });
    }
  }

 private:
  std::size_t at(std::size_t f, std::int32_t cell) const {
    return static_cast<std::size_t>(cut_.cell_start[f] + cell);
  }

  /// As `each_leaf_beside`, for the set of cells on top of words_, which is taken away.
  template <class See>
  void each_leaf_of_set(std::int32_t at, std::span<const std::int32_t> point, std::int32_t feature,
                        See&& see) const {
    const std::size_t n_words = cut_.n_words[static_cast<std::size_t>(feature)];
    const std::size_t mine = words_.size() - n_words;
    while (node(at).feature != kLeaf) {
      const Cut::Node& here = node(at);
      if (here.feature != feature) {
        const std::int32_t cell = point[static_cast<std::size_t>(here.feature)];
        at = cut_.goes_left(here, cell) ? here.left : here.right;
        continue;
      }
      const Word* left = cut_.sets.at(~here.rank);
      bool any_left = false;
      bool any_right = false;
      for (std::size_t w = 0; w < n_words; ++w) {
        any_left |= (words_[mine + w] & left[w]) != 0;
        any_right |= (words_[mine + w] & ~left[w]) != 0;
      }
      if (any_left && any_right) {
        words_.resize(words_.size() + n_words);
        for (std::size_t w = 0; w < n_words; ++w) {
          words_[mine + n_words + w] = words_[mine + w] & left[w];
          words_[mine + w] &= ~left[w];
        }
        each_leaf_of_set(here.left, point, feature, see);
      }
      at = any_right ? here.right : here.left;
    }
    cells::for_each_bit(std::span<const Word>(words_).subspan(mine),
                        [&](std::size_t cell) { see(cell, node(at).value); });
    words_.resize(mine);
  }

  const Cut& cut_;
  std::vector<Word>& words_;
};

}  // namespace hardwood::verify
