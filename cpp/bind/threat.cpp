#include "hardwood/threat.hpp"

#include <nanobind/stl/pair.h>

#include "array.hpp"
#include "reach.hpp"

namespace hardwood::bind {

void bind_threat(nb::module_& module) {
  module.def(
      "ball_ends",
      [](const Array2<double>& x, const Array2<double>& reach) {
        const auto table = matrix(x);
        const auto reach_of = reaches(reach);
        std::vector<double> lowest(x.size()), highest(x.size());
        {
          const nb::gil_scoped_release release;
          for (std::size_t i = 0; i < table.n_rows; ++i) {
            for (std::size_t f = 0; f < table.n_cols; ++f) {
              lowest[i * table.n_cols + f] = reach_of[f].lowest(table(i, f));
              highest[i * table.n_cols + f] = reach_of[f].highest(table(i, f));
            }
          }
        }
        return std::pair(own(std::move(lowest), table.n_cols),
                         own(std::move(highest), table.n_cols));
      },
      nb::arg("x").noconvert(), nb::arg("reach").noconvert(),
      "The ends of the ball around every row: two arrays of the shape of x.");
}

}  // namespace hardwood::bind
