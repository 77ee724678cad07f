#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hardwood/buffer.hpp"

namespace hardwood::bins {

using Code = std::uint8_t;

/// The codes of a table, feature after feature, and what is known of them.
struct Columns {
  const Code* codes;  ///< that of row i and feature f is codes[f * n_rows + i]
  std::size_t n_rows;
  std::size_t n_codes;                     ///< codes are below this
  std::vector<std::vector<Code>> present;  ///< the codes that each feature has
  std::span<const Code> frequent;          ///< the most frequent code of each feature

  std::size_t n_features() const { return present.size(); }
  const Code* of(std::size_t feature) const { return codes + feature * n_rows; }
};

/// The codes of a table in the order in which histograms are built.
///
/// They lie in blocks of up to sixteen columns, inside a block row after row: the histograms of a
/// block fit the first-level cache, and a row of a block is one or two loads. A feature has a
/// column of its own or shares it with others: as many features of few codes as there are codes
/// for all their combinations. Who counts the codes of such a column counts all its features.
///
/// Where most values of many features are the same, as the zeros of images, columns that leave
/// their frequent code in the same rows share a block. The other rows of such a block all have the
/// same codes, and who counts codes can pass over them.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Columns& columns, int n_threads);

  /// Of one part of a table of `n_all` rows. Others have other rows and add up the same histograms:
  /// all lay them out alike if `columns.present` is the same for all of them.
  Blocks(const Columns& columns, std::size_t n_all, int n_threads);

  /// Of a table that is kept in blocks alone: features are in order, do not share columns, and rows
  /// lie close to each other. Who makes it gives the codes: `put` all rows, then `close`.
  Blocks(std::size_t n_rows, std::span<const Code> frequent);
  /// Rows from `begin` on; `codes` are feature after feature.
  void put(std::size_t begin, const Code* codes, std::size_t n_rows, int n_threads);
  void close(int n_threads);

  std::size_t width() const { return width_; }  ///< bytes a row of a block takes
  std::size_t n_blocks() const { return rare_.size(); }
  /// A feature is in column place % width() of block place / width().
  std::size_t place(std::size_t feature) const { return place_[feature]; }
  /// The codes of row i, from this feature's column on, begin at codes(feature)[i * width()].
  const Code* codes(std::size_t feature) const { return at(place_[feature], 0); }
  /// The feature's code for each code of its column; empty if it has the column for itself.
  std::span<const Code> shared(std::size_t feature) const { return shared_[feature]; }
  /// The code of a feature's column in rows that are not rare.
  Code frequent(std::size_t feature) const { return frequent_[place_[feature]]; }
  /// One bit a row, 64 rows a word: has it a rare code in this block? Null if most rows have.
  const std::uint64_t* rare(std::size_t block) const {
    return rare_[block].size() ? rare_[block].data() : nullptr;
  }

 private:
  std::size_t set_width(std::size_t n_columns);
  void share(const Columns& columns, std::span<const std::size_t> features);
  void arrange(const Columns& columns, const std::vector<std::vector<std::size_t>>& sharers);
  void fill(const Columns& columns, int n_threads);
  void mark_rare(std::size_t block, std::size_t begin, std::size_t end);

  const Code* at(std::size_t place, std::size_t row) const {
    return codes_.data() + (place / width_ * n_rows_ + row) * width_ + place % width_;
  }
  Code* at(std::size_t place, std::size_t row) {
    return codes_.data() + (std::as_const(*this).at(place, row) - codes_.data());
  }
  bool is_rare(std::size_t block, std::size_t row) const;

  std::size_t n_rows_ = 0;
  std::size_t width_ = 1;
  std::vector<std::size_t> place_;           // of a feature
  std::vector<std::vector<Code>> shared_;    // of a feature
  std::vector<Code> frequent_;               // of a place
  std::vector<Buffer<std::uint64_t>> rare_;  // of a block
  Buffer<Code> codes_;
};

}  // namespace hardwood::bins
