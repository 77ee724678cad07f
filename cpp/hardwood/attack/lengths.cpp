#include "hardwood/attack/lengths.hpp"

#include <cmath>
#include <limits>

namespace hardwood::attack {

std::vector<double> lengths(Matrix<const double> x, Matrix<const double> z,
                            const cells::Budget& budget) {
  std::vector<double> all(x.n_rows);
  for (std::size_t i = 0; i < x.n_rows; ++i) {
    cells::Length length{budget.norm};
    for (std::size_t f = 0; f < x.n_cols; ++f) {
      const double from = x(i, f);
      const double to = z(i, f);
      if (from == to || (std::isnan(from) && std::isnan(to))) continue;
      if (std::isnan(to)) length.total = std::numeric_limits<double>::infinity();
      length.add(cells::step_between(from, to) /
                 (to < from ? budget.down_scale : budget.up_scale)[f]);
    }
    all[i] = length.total;
  }
  return all;
}

}  // namespace hardwood::attack
