#include "hardwood/grow/histogram.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "check.hpp"
#include "hardwood/grow/class_rows.hpp"

namespace hardwood::tests {
namespace {

using namespace grow;

/// 40 features that are mostly 0, of four kinds that are 0 in the same rows, then two that are not;
/// one is 0 everywhere, one mostly missing, one mostly 1.
struct Quiet {
  std::size_t n = 3000, d = 42;
  std::vector<float> x;

  Quiet() : x(n * d) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < n; ++i) {
      const unsigned kind = random() % 8;
      for (std::size_t f = 0; f < d; ++f) {
        float& value = x[i * d + f];
        if (f >= 40 || f % 4 == kind) value = normal(random);
        if (f == 7) value = 0;
        if (f == 8 && value == 0) value = std::nanf("");
        if (f == 9 && value == 0) value = 1;
      }
    }
  }
};

template <class Stat>
std::vector<typename Stat::Row> some_rows(std::size_t n, unsigned one_of) {
  std::mt19937 random(5);
  std::vector<typename Stat::Row> rows;
  for (std::uint32_t i = 0; i < n; ++i) {
    typename Stat::Row row{};
    row.row = i;
    if constexpr (Stat::kClasses) {
      row.label = static_cast<decltype(row.label)>(random() % 3);
      row.weight = static_cast<decltype(row.weight)>(random() % 1000);
    } else {
      row.g = static_cast<decltype(row.g)>(static_cast<int>(random() % 2001) - 1000);
      row.h = static_cast<decltype(row.h)>(random() % 1000);
    }
    if (random() % one_of == 0) rows.push_back(row);
  }
  return rows;
}

template <class Stat>
void check_histograms(const bins::Binned& binned, std::span<const Feature> features,
                      std::size_t n_sides, unsigned one_of, bool by_column = false) {
  using Cell = typename Stat::Cell;
  const HistogramPlan plan(binned, features, n_sides, by_column);
  const auto rows = some_rows<Stat>(binned.n_rows(), one_of);
  bool right = true, rest_is_empty = true;
  for (const Pass& pass : plan.passes) {
    std::vector<Cell> cells(plan.cells(pass));
    add_rows<Stat>(rows, plan, pass, cells.data());
    for (std::size_t i = 0; i < pass.feature.size(); ++i) {
      const auto feature = static_cast<std::size_t>(pass.feature[i]);
      const bins::Code* column = binned.column(feature);
      const auto shared = pass.shared[i];
      std::vector<Cell> plain(n_sides * plan.n_codes), built(plain.size());
      for (const auto& row : rows) {
        const std::size_t side = n_sides > 1 ? row.side() : 0;
        plain[side * plan.n_codes + column[row.row]] += row.cell();
      }
      for (std::size_t k = 0; k < built.size(); ++k) {
        const std::size_t side = k / plan.n_codes, code = k % plan.n_codes;
        const std::size_t at = side * pass.n_columns() + pass.column[i];
        const Cell& cell = cells[at * plan.n_codes + code];
        if (shared.empty()) {
          built[k] += cell;
        } else if (code < shared.size()) {
          built[side * plan.n_codes + shared[code]] += cell;
        } else {
          right = right && cell == Cell{};
        }
      }
      right = right && built == plain;
    }
    if (subtract_few_rows<Stat>(rows, plan, pass, cells.data())) {
      for (const Cell& cell : cells) rest_is_empty = rest_is_empty && cell == Cell{};
    }
  }
  for (std::size_t n = 1; by_column && n <= kColumnsTogether; ++n) {
    std::vector<const Pass*> passes;
    for (std::size_t i = 0; i < n; ++i) passes.push_back(&plan.passes[i]);
    std::vector<Cell> together(plan.n_cells), alone(plan.n_cells);
    add_columns<Stat>(rows, plan, passes, together.data());
    for (std::size_t i = 0; i < n; ++i) {
      add_rows<Stat>(rows, plan, *passes[i], alone.data() + i * plan.cells(*passes[i]));
    }
    right = right && together == alone;
  }
  check(right, "cells are sums of rows, with " + std::to_string(n_sides) + " sides");
  check(rest_is_empty, "what was added can be subtracted");
}

const Case quiet_rows{
    "grow: histograms are sums of rows, also where most rows are left out", [] {
      const Quiet data;
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const std::vector<Reach> reach(data.d, {0.1, 0.1, -kInfinity, kInfinity});
      std::vector<Feature> all(data.d), some;
      for (std::size_t f = 0; f < data.d; ++f) all[f] = static_cast<Feature>(f);
      for (const Feature f : all) {
        if (f % 3) some.push_back(f);
      }
      for (const std::size_t max_bins : {256, 20}) {
        const bins::Binned binned(bins::DenseTable<float>{{data.x.data(), data.n, data.d}}, reach,
                                  max_bins, 2);
        std::size_t n_quiet = 0;
        for (std::size_t b = 0; b < binned.blocks().n_blocks(); ++b)
          n_quiet += binned.blocks().rare(b) != nullptr;
        check(n_quiet > 0 && n_quiet < binned.blocks().n_blocks(), "blocks of both kinds");
        check(that(binned.frequent_code(8)) == binned.missing_code(),
              "missing values can be frequent");
        for (const std::size_t n_sides : {1, 2}) {
          for (const unsigned one_of : {1u, 3u, 100u}) {
            check_histograms<Packed>(binned, all, n_sides, one_of);
            check_histograms<Wide>(binned, some, n_sides, one_of);
            check_histograms<Packed>(binned, some, n_sides, one_of, true);
          }
        }
        for (const bool by_column : {false, true}) {
          check_histograms<ClassCounts>(binned, all, 3, 3, by_column);
          check_histograms<ClassWeights>(binned, some, 3, 3, by_column);
        }
      }
    }};

/// Many rows and features of few values: six of two and one of three with missing values, one that
/// is constant, two of thirty, one of many.
const Case shared_columns{
    "grow: features of few values share columns, and their histograms are sums of rows", [] {
      constexpr std::size_t n = 70'000, d = 11;
      std::mt19937 random(9);
      std::vector<float> x;
      for (std::size_t i = 0; i < n; ++i) {
        for (const unsigned n_values : {2u, 2u, 2u, 40'000u, 3u, 30u, 2u, 1u, 2u, 30u, 2u}) {
          x.push_back(static_cast<float>(random() % n_values));
        }
        if (x[i * d + 4] == 2) x[i * d + 4] = std::nanf("");
      }
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const std::vector<Reach> reach(d, {0.1, 0.1, -kInfinity, kInfinity});
      const bins::Binned binned(bins::DenseTable<float>{{x.data(), n, d}}, reach, 256, 2);
      std::vector<std::size_t> places;
      for (std::size_t f = 0; f < d; ++f) places.push_back(binned.blocks().place(f));
      check(places[7] == places[0] && places[4] == places[0], "eight features in one column");
      check(places[5] != places[0] && places[5] != places[9], "30 x 30 values are too many");
      check(binned.blocks().shared(3).empty(), "a column of its own");
      const std::vector<Feature> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, some{1, 3, 4, 9};
      for (const std::size_t n_sides : {1, 2}) {
        for (const unsigned one_of : {1u, 100u}) {
          check_histograms<Packed>(binned, all, n_sides, one_of);
          check_histograms<Wide>(binned, some, n_sides, one_of);
        }
      }
      check_histograms<ClassCounts>(binned, all, 3, 1);
      check_histograms<ClassCounts>(binned, some, 3, 1, true);
    }};

}  // namespace
}  // namespace hardwood::tests
