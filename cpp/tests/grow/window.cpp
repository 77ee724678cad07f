#include "hardwood/grow/window.hpp"

#include <random>
#include <vector>

#include "check.hpp"
#include "hardwood/ambiguity.hpp"

namespace hardwood::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<Reach> kReaches{
    {0, 0, -kInfinity, kInfinity},   {0.1, 0.1, -kInfinity, kInfinity},
    {0.3, 0, -kInfinity, kInfinity}, {0, 0.07, -kInfinity, kInfinity},
    {0.5, 0.2, 0.25, 0.75},          {10, 10, -kInfinity, kInfinity}};

/// For every threshold and row: what the window says, and what is true of the row.
template <class Judge>
void compare(const std::vector<double>& x, const Reach& reach, std::size_t max_bins,
             Judge&& judge) {
  const bins::DenseTable<double> table{{x.data(), x.size(), 1}};
  const bins::Binned binned(table, std::span(&reach, 1), max_bins, 1);
  const grow::Window window(binned, 0, reach);
  for (std::size_t k = 1; k < window.n_bins; ++k) {
    const float threshold = binned.edges(0)[k - 1];
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t bin = binned.column(0)[i];
      check(that(bin < k) == goes_left(static_cast<float>(x[i]), threshold),
            "bins below k go left");
      judge(bin < window.sure[k], sure_left(reach, x[i], threshold));
      judge(bin >= window.possible[k], sure_right(reach, x[i], threshold));
    }
  }
}

const Case never_sure_of_a_movable_row{
    "grow: a row that the adversary can move is never counted as sure", [] {
      std::mt19937 random(2);
      std::uniform_real_distribution<double> uniform;
      for (const Reach& reach : kReaches) {
        for (const std::size_t max_bins : {2, 3, 8, 40, 256}) {
          std::vector<double> x(300);
          for (double& value : x) value = uniform(random);
          compare(x, reach, max_bins, [](bool counted_sure, bool sure) {
            check(sure || !counted_sure, "counted as sure, but it can be moved");
          });
        }
      }
    }};

const Case values_that_are_bins_lose_nothing{
    "grow: where every value has a bin, the window is the ambiguity set itself", [] {
      std::mt19937 random(3);
      for (const Reach& reach : kReaches) {
        for (const int n_values : {2, 20, 255}) {
          std::vector<double> x(1000);
          for (double& value : x) {
            value = static_cast<double>(random() % static_cast<unsigned>(n_values)) / n_values;
          }
          compare(x, reach, 256, [](bool counted_sure, bool sure) {
            check(that(sure) == counted_sure, "the window differs from the ambiguity set");
          });
        }
      }
    }};

const Case a_third_of_the_edges_lose_nothing{
    "grow: of a feature with many values, a third of the thresholds lose no row to rounding", [] {
      std::mt19937 random(4);
      std::uniform_real_distribution<double> uniform;
      std::vector<double> x(5000);
      for (double& value : x) value = uniform(random);
      const Reach reach{0.05, 0.05, -kInfinity, kInfinity};
      const bins::DenseTable<double> table{{x.data(), x.size(), 1}};
      const bins::Binned binned(table, std::span(&reach, 1), 256, 1);
      const grow::Window window(binned, 0, reach);
      std::size_t n_exact = 0;
      for (std::size_t k = 1; k < window.n_bins; ++k) {
        const float threshold = binned.edges(0)[k - 1];
        bool exact = true;
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t bin = binned.column(0)[i];
          exact = exact && (bin < window.sure[k]) == sure_left(reach, x[i], threshold) &&
                  (bin >= window.possible[k]) == sure_right(reach, x[i], threshold);
        }
        n_exact += exact;
      }
      check(that(n_exact) >= 80, "exact thresholds: " + std::to_string(n_exact));
    }};

}  // namespace
}  // namespace hardwood::tests
