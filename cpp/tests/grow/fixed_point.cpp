#include "hardwood/grow/fixed_point.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "check.hpp"

namespace hardwood::tests {
namespace {

using namespace grow;

/// The same gradients side by side and with others in between, which is read row by row.
struct Gradients {
  std::size_t n = 40'003;
  std::vector<float> g, h, g_apart, h_apart;

  Gradients() {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < n; ++i) {
      g.push_back(normal(random));
      h.push_back(i % 7 == 0 ? 0 : std::abs(normal(random)));
      for (auto* apart : {&g_apart, &h_apart}) {
        apart->push_back(apart == &g_apart ? g.back() : h.back());
        apart->push_back(std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  GradientColumn together() const { return {g.data(), h.data(), 1, n}; }
  GradientColumn apart() const { return {g_apart.data(), h_apart.data(), 2, n}; }
};

const Case same_rows{
    "grow: gradients are put on the grid alike, however they lie in memory", [] {
      const Gradients data;
      const Grid grid = choose_grid(data.together(), {}, false, 2);
      const Grid other = choose_grid(data.apart(), {}, false, 1);
      check(!grid.wide, "16 bits are enough");
      check(grid.g_bits == other.g_bits && grid.h_bits == other.h_bits, "one grid");
      std::vector<Packed::Row> rows(data.n), apart(data.n);
      const GridSum sum = put_on_grid<Packed>(data.together(), {}, grid, 11, rows.data(), 2);
      check(sum == put_on_grid<Packed>(data.apart(), {}, grid, 11, apart.data(), 1), "one sum");
      GridSum plain;
      bool same = true, near = true;
      for (std::size_t i = 0; i < data.n; ++i) {
        plain += {rows[i].g, rows[i].h, 1};
        same = same && rows[i].row == i && apart[i].row == i && rows[i].g == apart[i].g &&
               rows[i].h == apart[i].h;
        const Sums real = grid.real({rows[i].g, rows[i].h, 1});
        near = near && std::abs(real.g - double{data.g[i]}) < grid.g_step &&
               std::abs(real.h - double{data.h[i]}) < grid.h_step;
      }
      check(same, "the same rows");
      check(near, "less than a step from the gradients");
      check(that(sum) == plain, "the sum is that of the rows");
    }};

const Case bad_gradients{
    "grow: one bad gradient in any row is refused", [] {
      for (const std::size_t at : {0, 7, 8, 20'000, 40'002}) {
        for (const float bad : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
          for (const bool in_h : {false, true}) {
            if (bad == -1 && !in_h) continue;
            Gradients data;
            (in_h ? data.h : data.g)[at] = bad;
            std::string said;
            try {
              choose_grid(data.together(), {}, false, 2);
            } catch (const std::invalid_argument& error) {
              said = error.what();
            }
            check(that(said.find(in_h ? "hessian must be finite and >= 0"
                                      : "gradient must be finite")) == 0,
                  "refused, got: " + said);
          }
        }
      }
    }};

}  // namespace
}  // namespace hardwood::tests
