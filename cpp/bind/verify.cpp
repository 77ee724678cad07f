#include <nanobind/stl/tuple.h>

#include <tuple>

#include "array.hpp"
#include "budget.hpp"
#include "hardwood/verify/distance.hpp"
#include "hardwood/verify/tree.hpp"
#include "trees.hpp"

namespace hardwood::bind {
namespace {

Matrix<const double> view(const Array2<double>& array) { return matrix(array); }
std::span<const std::int32_t> view(const Array1<std::int32_t>& array) { return span(array); }
bool view(bool flag) { return flag; }

/// All questions about ensembles cross the border in the same way; `Given` is what they ask about.
template <class Given, class Ask>
void bind_ensemble(nb::module_& module, const char* name, Ask* ask, const char* given_name,
                   const char* doc) {
  module.def(
      name,
      [ask](const CheckedTrees& trees, const Array2<double>& x, const Given& given,
            const OwnedBudget& budget, double row_seconds, int n_threads, Watch& watch) {
        const verify::Limits limits{row_seconds, n_threads};
        const cells::Budget within = budget.view();
        decltype(ask(trees.trees, matrix(x), view(given), within, limits, watch)) found;
        {
          const nb::gil_scoped_release release;
          found = ask(trees.trees, matrix(x), view(given), within, limits, watch);
        }
        auto& [first, second, ending, x_adv, seconds] = found;
        return std::tuple(own(std::move(first)), own(std::move(second)), own(std::move(ending)),
                          own(std::move(x_adv), x.shape(1)), own(std::move(seconds)));
      },
      nb::arg("trees"), nb::arg("x").noconvert(), nb::arg(given_name).noconvert(),
      nb::arg("budget"), nb::arg("row_seconds"), nb::arg("n_threads"), nb::arg("watch"), doc);
}

}  // namespace

void bind_verify(nb::module_& module) {
  module.def(
      "nearest_in_tree",
      [](const CheckedTrees& trees, const Array2<double>& x, const Array1<std::int32_t>& y,
         const OwnedBudget& budget, int n_threads, Watch& watch) {
        verify::Nearest nearest;
        {
          const nb::gil_scoped_release release;
          nearest = verify::nearest_in_tree(trees.trees, matrix(x), span(y), budget.view(),
                                            n_threads, watch);
        }
        return std::tuple(own(std::move(nearest.distance)),
                          own(std::move(nearest.x_adv), x.shape(1)),
                          own(std::move(nearest.answered)));
      },
      nb::arg("trees"), nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("budget"),
      nb::arg("n_threads"), nb::arg("watch"),
      "Distance of every row to the nearest leaf of another label, the point there, and whether "
      "the row's turn came.");

  nb::enum_<verify::Ending>(module, "Ending", nb::is_arithmetic())
      .value("exact", verify::Ending::kExact)
      .value("time", verify::Ending::kTime)
      .value("rounding", verify::Ending::kRounding)
      .value("stopped", verify::Ending::kStopped);
  using Labels = Array1<std::int32_t>;
  bind_ensemble<Labels>(
      module, "nearest_in_ensemble", &verify::nearest_in_ensemble, "y",
      "Bounds on the smallest change that fools the model: lower, upper, ending, x_adv, seconds.");
  bind_ensemble<Labels>(
      module, "decide_in_ensemble", &verify::decide_in_ensemble, "y",
      "Whether any change within reach fools the model: lower, upper, ending, x_adv, seconds.");
  bind_ensemble<Array2<double>>(module, "leaving_in_ensemble", &verify::leaving_in_ensemble,
                                "range",
                                "Bounds on the smallest change that brings the output out of its "
                                "range: lower, upper, ending, x_adv, seconds.");
  bind_ensemble<bool>(module, "farthest_in_ensemble", &verify::farthest_in_ensemble, "up",
                      "The largest output within reach, or the least: proven, found, ending, "
                      "x_adv, seconds.");
}

}  // namespace hardwood::bind
