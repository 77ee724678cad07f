#include "hardwood/grow/columns.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "check.hpp"
#include "hardwood/grow/class_split.hpp"

namespace hardwood::tests {
namespace {

using Columns = grow::Columns<grow::ClassEntry>;

constexpr std::size_t kRows = 7, kFeatures = 3;

std::vector<double> table() {
  return {
      3, NAN, 1,    //
      1, 2,   NAN,  //
      2, 2,   1,    //
      1, NAN, 0,    //
      5, 1,   NAN,  //
      4, 0,   1,    //
      2, 3,   -1,   //
  };
}
const std::vector<std::int32_t> kLabel{0, 1, 0, 1, 1, 0, 0};

std::set<std::uint32_t> rows_of(std::span<const grow::ClassEntry> entries) {
  std::set<std::uint32_t> rows;
  for (const grow::ClassEntry& entry : entries) rows.insert(entry.row);
  return rows;
}

/// Increasing values, equal ones in the order of rows, missing last.
bool in_order(std::span<const grow::ClassEntry> entries) {
  return std::ranges::is_sorted(entries, [](const grow::ClassEntry& a, const grow::ClassEntry& b) {
    const double x = std::isnan(a.x) ? INFINITY : a.x, y = std::isnan(b.x) ? INFINITY : b.x;
    return x != y ? x < y : a.row < b.row;
  });
}

void check_range(const Columns& columns, std::size_t begin, std::size_t end,
                 const std::set<std::uint32_t>& rows) {
  const std::vector<double> x = table();
  for (std::size_t feature = 0; feature < kFeatures; ++feature) {
    const auto entries = columns.entries(feature, begin, end);
    check(that(rows_of(entries)) == rows, "every column has the node's rows in the node's range");
    check(in_order(entries), "in order");
    for (const grow::ClassEntry& entry : entries) {
      const double own = x[entry.row * kFeatures + feature];
      check(entry.x == own || (std::isnan(entry.x) && std::isnan(own)), "with their own values");
      check(entry.label == static_cast<std::uint32_t>(kLabel[entry.row]), "and labels");
    }
  }
}

const Case partition{
    "columns: a split keeps every node one sorted range in every column", [] {
      const std::vector<double> x = table();
      for (const int n_threads : {1, 3}) {
        Columns columns({x.data(), kRows, kFeatures}, n_threads,
                        [](std::size_t, double value, std::uint32_t row) {
                          return grow::ClassEntry{value, row,
                                                  static_cast<std::uint32_t>(kLabel[row])};
                        });
        std::vector<grow::ClassEntry> put_aside;
        const auto partition_all = [&](std::size_t begin, const std::vector<std::uint8_t>& left) {
          for (std::size_t f = 0; f < kFeatures; ++f) {
            columns.partition(f, begin, kRows, left, put_aside);
          }
        };
        check_range(columns, 0, kRows, {0, 1, 2, 3, 4, 5, 6});
        std::vector<std::uint8_t> left{1, 0, 1, 1, 0, 0, 1};
        partition_all(0, left);
        check_range(columns, 0, 4, {0, 2, 3, 6});
        check_range(columns, 4, kRows, {1, 4, 5});
        left = {0, 1, 0, 0, 1, 0, 0};  // the right child again; marks of other rows do not count
        partition_all(4, left);
        check_range(columns, 0, 4, {0, 2, 3, 6});
        check_range(columns, 4, 6, {1, 4});
        check_range(columns, 6, kRows, {5});
      }
    }};

}  // namespace
}  // namespace hardwood::tests
