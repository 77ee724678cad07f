#include "hardwood/grow/bin_search.hpp"

#include <random>
#include <vector>

#include "check.hpp"

namespace hardwood::tests {
namespace {

using namespace grow;

constexpr std::size_t kCodes = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A table of one feature, its rows on a grid, and their histogram by sign of g.
struct Problem {
  bins::Binned binned;
  Window window;
  std::vector<Packed::Row> rows;
  Grid grid{10, 10, false};
  GridSum total;

  Problem(const std::vector<double>& x, const Reach& reach, std::mt19937& random)
      : binned(bins::DenseTable<double>{{x.data(), x.size(), 1}}, std::span(&reach, 1), kCodes, 1),
        window(binned, 0, reach) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      rows.push_back({static_cast<std::uint32_t>(i),
                      static_cast<std::int16_t>(static_cast<int>(random() % 2001) - 900),
                      static_cast<std::uint16_t>(random() % 300)});
      total += Packed::sum(rows.back().cell());
    }
  }

  template <class Keep>
  std::vector<Packed::Cell> cells(Keep&& keep) const {
    std::vector<Packed::Cell> cells(kCodes);
    for (const Packed::Row& row : rows) {
      if (keep(row)) cells[binned.column(0)[row.row]] += row.cell();
    }
    return cells;
  }

  /// The definition, threshold by threshold and row by row.
  BinSplit enumerate(const SearchedNode& node) const {
    BinSplit best;
    const bool any_missing = binned.has_missing(0);
    for (std::size_t k = 0; k < window.n_bins; ++k) {
      for (const bool missing_left : {false, true}) {
        if ((missing_left && !any_missing) || (k == 0 && !missing_left)) continue;
        SplitSums split;
        Sums negative;
        GridSum left;
        for (const Packed::Row& row : rows) {
          const std::size_t bin = binned.column(0)[row.row];
          const Sums sums = node.sums(Packed::sum(row.cell()));
          const bool missing = bin == binned.missing_code();
          const bool goes_left = missing ? missing_left : bin < k;
          const bool ambiguous = !missing && bin >= window.sure[k] && bin < window.possible[k];
          (goes_left ? (ambiguous ? split.ambiguous_left : split.sure_left)
                     : (ambiguous ? split.ambiguous_right : split.sure_right)) += sums;
          if (ambiguous && node.criterion.residual(sums) < 0) negative += sums;
          if (goes_left) left += Packed::sum(row.cell());
        }
        const double gain = node.rules.inner == Inner::kExact && window.moves
                                ? node.criterion.sign_gain(split, negative)
                                : node.criterion.paper_gain(split);
        if (gain > (best.feature == kLeaf ? node.rules.least_gain : best.gain)) {
          best.feature = 0;
          best.bin = k;
          best.missing_left = missing_left;
          best.saw_missing = any_missing;
          best.gain = gain;
          best.left = left;
        }
      }
    }
    return best;
  }

  BinSplit search(const SearchedNode& node, bool portable) const {
    const bool join = total.g >= 0;
    const auto negative = [&](const Packed::Row& row) {
      return node.criterion.residual(node.sums(Packed::sum(row.cell()))) < 0;
    };
    const bool exact = node.rules.inner == Inner::kExact;
    const auto above = cells([&](const Packed::Row& row) { return !exact || row.g >= 0; });
    const auto below = cells([](const Packed::Row& row) { return row.g < 0; });
    const auto exceptions = cells([&](const Packed::Row& row) {
      return join ? row.g >= 0 && negative(row) : row.g < 0 && !negative(row);
    });
    const FeatureBins<Packed> bins{above.data(),
                                   exact ? below.data() : nullptr,
                                   exact ? exceptions.data() : nullptr,
                                   binned.missing_code(),
                                   binned.has_missing(0),
                                   window,
                                   0,
                                   0};
    BinSplit best;
    search_bins<Packed>(bins, node, portable, best);
    return best;
  }
};

const Case pinned_to_the_criterion{
    "grow: both searches of a histogram give what NewtonCriterion says row by row", [] {
      std::mt19937 random(5);
      std::uniform_real_distribution<double> uniform;
      std::size_t n_splits = 0;
      for (int trial = 0; trial < 600; ++trial) {
        const bool coarse = trial % 2, missing = trial % 3 == 0;
        std::vector<double> x(100);
        for (double& value : x) {
          value = coarse ? static_cast<double>(random() % 12) / 12 : uniform(random);
          if (missing && random() % 5 == 0) value = std::nan("");
        }
        const double eps = std::vector{0.0, 0.01, 0.05, 0.2}[random() % 4];
        const Problem problem(x, {eps, eps, -kInfinity, kInfinity}, random);
        for (const Inner inner : {Inner::kPaper, Inner::kExact}) {
          NewtonRules rules;
          rules.inner = inner;
          rules.reg_alpha = trial % 7 == 0 ? 0.5 : 0;
          rules.min_child_weight = trial % 5 == 0 ? 0 : 1;
          rules.min_split_gain = trial % 4 == 0 ? 0.01 : 0;
          const double low = trial % 11 == 0 ? -0.5 : -kInfinity;
          const SearchedNode node(problem.total, problem.grid, rules, low, kInfinity);
          const BinSplit truth = problem.enumerate(node);
          for (const bool portable : {false, true}) {
            const BinSplit found = problem.search(node, portable);
            check(found.feature == truth.feature && found.bin == truth.bin &&
                      found.missing_left == truth.missing_left && found.gain == truth.gain &&
                      found.left == truth.left,
                  "trial " + std::to_string(trial) + (portable ? ", portable" : ", as here") +
                      ": gain " + std::to_string(found.gain) + " for " +
                      std::to_string(truth.gain));
          }
          n_splits += truth.feature != kLeaf;
        }
      }
      check(that(n_splits) > 300, "most nodes should have a split: " + std::to_string(n_splits));
    }};

const Case sets_and_the_best_so_far{
    "grow: sets of categories replace a split that they beat, and no other", [] {
      std::mt19937 random(11);
      constexpr Feature kOwn = 3;
      std::size_t n_splits = 0;
      for (int trial = 0; trial < 400; ++trial) {
        const std::int32_t n_categories = 2 + trial % 9;
        std::vector<double> x(60);
        for (double& value : x) {
          value = static_cast<double>(random() % static_cast<unsigned>(n_categories));
          if (trial % 3 == 0 && random() % 5 == 0) value = std::nan("");
        }
        const Reach reach{0, 0, -kInfinity, kInfinity};
        Kinds kinds;
        kinds.n_categories = {&n_categories, 1};
        const bins::Binned binned(bins::DenseTable<double>{{x.data(), x.size(), 1}}, {&reach, 1},
                                  kCodes, 1, {}, kinds.n_categories);
        const Window window(binned, 0, reach, kinds);
        std::vector<Packed::Cell> cells(kCodes);
        GridSum total;
        for (std::uint32_t i = 0; i < x.size(); ++i) {
          const Packed::Row row{i,
                                static_cast<std::int16_t>(static_cast<int>(random() % 2001) - 900),
                                static_cast<std::uint16_t>(random() % (trial % 5 == 0 ? 2 : 300))};
          cells[binned.column(0)[i]] += row.cell();
          total += Packed::sum(row.cell());
        }
        NewtonRules rules;
        rules.reg_lambda = trial % 2;
        rules.min_child_weight = 0;
        rules.min_split_gain = trial % 4 == 0 ? 0.01 : 0;
        const SearchedNode node(total, Grid{10, 10, false}, rules, -kInfinity, kInfinity);
        const FeatureBins<Packed> bins{
            cells.data(),          nullptr, nullptr, binned.missing_code(),
            binned.has_missing(0), window,  kOwn,    0};
        const auto after = [&](BinSplit best) {
          search_bins<Packed>(bins, node, true, best);
          return best;
        };
        const BinSplit alone = after({});
        if (alone.feature == kLeaf) continue;
        ++n_splits;
        for (const double gain : {std::nextafter(alone.gain, 0), alone.gain,
                                  std::nextafter(alone.gain, kInfinity), 2 * alone.gain}) {
          for (const Feature other : {kOwn - 1, kOwn + 1}) {
            BinSplit before;
            before.feature = other;
            before.gain = gain;
            const bool wins = alone.gain > gain || (alone.gain == gain && kOwn < other);
            check(that(after(before).feature) == (wins ? kOwn : other),
                  "trial " + std::to_string(trial) + ": gain " + std::to_string(alone.gain) +
                      " after " + std::to_string(gain));
          }
        }
      }
      check(that(n_splits) > 300, "most nodes should have a split: " + std::to_string(n_splits));
    }};

}  // namespace
}  // namespace hardwood::tests
