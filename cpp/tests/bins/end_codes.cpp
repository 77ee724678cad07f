#include "hardwood/bins/end_codes.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "check.hpp"
#include "hardwood/ambiguity.hpp"
#include "hardwood/bins/candidates.hpp"
#include "small_trees.hpp"

namespace hardwood::bins {
namespace {

using tests::Case;
using tests::check;
using tests::that;

/// Tenths, some of them one float away, some missing.
std::vector<double> random_table(tests::Random& random, std::size_t n) {
  std::vector<double> x(n);
  for (double& value : x) {
    const auto tenth = static_cast<float>(random.below(11)) / 10;
    const std::size_t kind = random.below(8);
    value = double{kind == 0 ? std::nextafter(tenth, 2.0f) : tenth};
    if (kind == 1) value = std::numeric_limits<double>::quiet_NaN();
  }
  return x;
}

template <class Code>
void check_codes() {
  tests::Random random(3);
  const std::vector<Reach> reach{
      {0.1, 0.1, -9, 9}, {0, 0.2, -9, 9}, {0.3, 0, 0.2, 0.8}, {0, 0, -9, 9}};
  for (int trial = 0; trial < 20; ++trial) {
    const std::size_t n_rows = 1 + random.below(400);
    const std::vector<double> x = random_table(random, n_rows * reach.size());
    const DenseTable<double> table{{x.data(), n_rows, reach.size()}};
    const EndCodes<Code> codes(table, reach, 2 + random.below(20), trial % 2 == 0, 2);
    for (std::size_t i = 0; i < codes.n_rows(); ++i) {
      for (std::size_t f = 0; f < reach.size(); ++f) {
        const double value = x[i % n_rows * reach.size() + f];
        const Code* const code = codes.lower(f) + i * EndCodes<Code>::kRowCodes;
        const Code lower = code[0], upper = code[EndCodes<Code>::kWidth];
        if (std::isnan(value)) {
          check(lower == codes.missing_code() && upper == lower, "missing values have their code");
          continue;
        }
        Reach moved = reach[f];
        if (i >= n_rows) moved.down = moved.up = 0;
        for (std::size_t k = 0; k < codes.candidates(f).size(); ++k) {
          const float threshold = codes.candidates(f)[k];
          check(that(k >= upper) == sure_left(moved, value, threshold),
                "left as ambiguity.hpp says");
          check(that(k < lower) == sure_right(moved, value, threshold),
                "right as ambiguity.hpp says");
        }
      }
    }
  }
}

const Case codes_tell_the_sets{"bins: end codes tell the sets of ambiguity.hpp", [] {
                                 check_codes<std::uint8_t>();
                                 check_codes<std::uint16_t>();
                               }};

const Case rare_rows{"bins: rows that are not rare have the frequent codes", [] {
                       const std::size_t n_rows = 500, n_features = 8;
                       std::vector<float> x(n_rows * n_features, 0.0f);
                       for (std::size_t i = 0; i < n_rows; i += 7)
                         x[i * n_features + i % n_features] = 1;
                       const std::vector<Reach> reach(n_features, {0.1, 0.1, -9, 9});
                       const EndCodes<std::uint8_t> codes(
                           DenseTable<float>{{x.data(), n_rows, n_features}}, reach, 256, true, 1);
                       const std::uint64_t* const rare = codes.rare(0);
                       check(that(rare) != nullptr, "most rows are alike");
                       for (std::size_t i = 0; rare && i < codes.n_rows(); ++i) {
                         const bool is_rare = rare[i / 64] >> (i % 64) & 1;
                         check(that(is_rare) == (i % n_rows % 7 == 0),
                               "rare are the rows with a value");
                       }
                     }};

const Case candidates_are_few{
    "bins: candidates lie between an upper and a lower end", [] {
      const std::vector<Value> values{{0.0f, 5}, {0.1f, 1}, {0.9f, 1}, {1.0f, 5}};
      const std::vector<float> found = choose_candidates(values, {0.2, 0.2, -9, 9}, 100);
      check(found.size() == 1 && found[0] > 0.3f && found[0] < 0.7f, "one gap is left");
      check(choose_candidates(values, {0.5, 0.5, -9, 9}, 100).empty(), "touching balls leave none");
      check(that(choose_candidates(values, {0, 0, -9, 9}, 100).size()) == 3, "at rest, every gap");
      check(that(choose_candidates(values, {0, 0, -9, 9}, 2).size()) == 2,
            "no more than there is room");
    }};

}  // namespace
}  // namespace hardwood::bins
