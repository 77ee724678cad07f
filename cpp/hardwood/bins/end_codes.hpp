#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hardwood/bins/binned.hpp"
#include "hardwood/buffer.hpp"
#include "hardwood/threat.hpp"

namespace hardwood::bins {

class ColumnReader;

/// The candidate thresholds of all features.
struct EndCandidates {
  std::vector<std::vector<float>> of;  ///< of each feature, increasing
  std::vector<std::uint8_t> missing;   ///< of each feature: is a value missing?

  /// Codes are below this; a power of two, so that tables of codes have a fixed stride.
  std::size_t n_codes() const;
};

/// The candidates of one feature from its values, increasing; see EndCodes. `most_codes`: that are
/// told apart.
std::vector<float> choose_end_candidates(std::span<const Value> values, const Reach& reach,
                                         std::size_t max_bins, std::size_t most_codes, bool at_rest,
                                         bool missing);

/// Some rows of a table in codes, as EndCodes lays them out.
template <class Code>
struct EndRows {
  const Code* codes;
  std::size_t n_rows;  ///< without those at rest
};

/// Where the ends of every row's ball lie among the candidate thresholds: two codes for each row
/// and feature, the numbers of candidates that are not above the lower end and not above the upper
/// one. At candidate k a row is surely right if k < lower, surely left if k >= upper, and ambiguous
/// between: the sets of ambiguity.hpp, without any rounding to bins.
///
/// Rows can come twice, the second time as if nobody could move them: row n + i is row i at rest.
/// Half of the candidates are then those that serve rows at rest.
///
/// Codes lie in blocks of up to eight features, all blocks about as wide, inside a block row after
/// row, so that a row of a block is a few neighbouring bytes and the histograms of a block fit the
/// first-level cache. Where most rows of a block have the same codes, as the dark corners of
/// images, a bit a row tells the others.
template <class Code>
class EndCodes {
 public:
  static constexpr std::size_t kWidth = 8;              ///< features a block has room for
  static constexpr std::size_t kRowCodes = 2 * kWidth;  ///< codes a row of a block: lower, upper

  template <class Table>
  EndCodes(const Table& table, std::span<const Reach> reach, std::size_t max_bins, bool at_rest,
           int n_threads);
  /// With candidates that are already chosen.
  template <class Table>
  EndCodes(const Table& table, std::span<const Reach> reach, EndCandidates candidates, bool at_rest,
           int n_threads);
  /// Put rows together that are in codes already.
  EndCodes(EndCandidates candidates, std::span<const EndRows<Code>> pieces, bool at_rest,
           int n_threads);

  std::size_t n_rows() const { return n_rows_; }  ///< rows at rest included
  std::size_t n_features() const { return candidates_.of.size(); }
  static std::size_t n_blocks(std::size_t n_features) { return (n_features + kWidth - 1) / kWidth; }
  std::size_t n_blocks() const { return n_blocks(n_features()); }
  std::size_t width() const { return width_; }  ///< features a block; the last one may have fewer
  /// The features of block b are those from first_feature(b) up to first_feature(b + 1).
  std::size_t first_feature(std::size_t b) const { return std::min(b * width_, n_features()); }
  std::size_t block_of(std::size_t feature) const { return feature / width_; }
  /// Its place in the block.
  std::size_t place_of(std::size_t feature) const { return feature % width_; }

  std::span<const float> candidates(std::size_t feature) const { return candidates_.of[feature]; }
  /// The place of a threshold among the candidates of a feature; throws if it is none of them.
  std::size_t candidate(std::size_t feature, double threshold) const;
  /// See EndCandidates.
  std::size_t n_codes() const { return n_codes_; }
  /// Both codes of a missing value: the last one, right of every candidate.
  Code missing_code() const { return static_cast<Code>(n_codes_ - 1); }
  bool has_missing(std::size_t feature) const { return candidates_.missing[feature] != 0; }

  /// The codes of row i begin at block(b)[i * kRowCodes]: lower ones of the block's features first.
  const Code* block(std::size_t b) const { return codes_.data() + b * n_rows_ * kRowCodes; }
  /// Those of all blocks, one after the other.
  std::span<const Code> all() const { return {codes_.data(), codes_.size()}; }
  const Code* lower(std::size_t feature) const {
    return block(block_of(feature)) + place_of(feature);
  }

  /// The first row at rest; n_rows() if there is none.
  std::size_t rest() const { return rest_; }
  /// One bit a row, 64 rows a word: has it a rare code in this block? Null if many have.
  const std::uint64_t* rare(std::size_t b) const {
    return rare_[b].size() ? rare_[b].data() : nullptr;
  }
  /// The codes of a block in rows that are not rare, as they lie there.
  const Code* frequent(std::size_t b, bool at_rest) const {
    return frequent_.data() + (2 * b + at_rest) * kRowCodes;
  }

 private:
  void choose_all(const ColumnReader& table, std::span<const Reach> reach, std::size_t max_bins,
                  bool at_rest, int n_threads);
  void encode(const ColumnReader& table, std::span<const Reach> reach, bool at_rest, int n_threads);
  void encode(const ColumnReader& table, std::span<const Reach> reach, std::size_t first_row,
              int n_threads);

  void find_rare(int n_threads);

  std::size_t n_rows_;
  std::size_t rest_;
  EndCandidates candidates_;
  std::size_t width_ = n_blocks() ? (n_features() + n_blocks() - 1) / n_blocks() : 1;
  std::size_t n_codes_ = 2;
  Buffer<Code> codes_;
  std::vector<Code> frequent_;
  std::vector<Buffer<std::uint64_t>> rare_;
};

}  // namespace hardwood::bins
