#include <nanobind/stl/pair.h>

#include "array.hpp"
#include "hardwood/verify/tree.hpp"
#include "reach.hpp"
#include "trees.hpp"

namespace hardwood::bind {

void bind_verify(nb::module_& module) {
  nb::enum_<verify::Norm>(module, "Norm")
      .value("inf", verify::Norm::kInf)
      .value("one", verify::Norm::kOne)
      .value("two", verify::Norm::kTwo)
      .value("zero", verify::Norm::kZero);

  module.def(
      "nearest_in_tree",
      [](const CheckedTrees& trees, const Array2<double>& x, const Array1<std::int32_t>& y,
         verify::Norm norm, double radius, const Array2<double>& reach,
         const Array1<double>& down_scale, const Array1<double>& up_scale, int n_threads) {
        const verify::Budget budget{norm, radius, reaches(reach), span(down_scale), span(up_scale)};
        verify::Nearest nearest;
        {
          const nb::gil_scoped_release release;
          nearest = verify::nearest_in_tree(trees.trees, matrix(x), span(y), budget, n_threads);
        }
        return std::pair(own(std::move(nearest.distance)),
                         own(std::move(nearest.x_adv), x.shape(1)));
      },
      nb::arg("trees"), nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("norm"),
      nb::arg("radius"), nb::arg("reach").noconvert(), nb::arg("down_scale").noconvert(),
      nb::arg("up_scale").noconvert(), nb::arg("n_threads"),
      "Distance of every row to the nearest leaf of another label, and the point there.");
}

}  // namespace hardwood::bind
