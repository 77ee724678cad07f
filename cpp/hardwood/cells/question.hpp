#pragma once

#include <cstdint>

namespace hardwood::cells {

/// What a row must keep: its label or, where that is kOutput, its only output within a range.
struct Property {
  static constexpr std::int32_t kOutput = -1;
  std::int32_t label;
  double low = 0;
  double high = 0;
};

/// How a row can be fooled: output `plus` beats output `minus` (kConstant stands for a number).
/// Where `strict`, a tie does not fool: of equal outputs the first wins.
struct Question {
  static constexpr std::int32_t kConstant = -1;
  std::int32_t plus;
  std::int32_t minus;
  bool strict;
  double constant = 0;
};

}  // namespace hardwood::cells
