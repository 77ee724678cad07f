#include <limits>

#include "array.hpp"
#include "budget.hpp"
#include "hardwood/attack/descent.hpp"
#include "hardwood/attack/lengths.hpp"
#include "hardwood/attack/papernot.hpp"
#include "hardwood/attack/symbolic.hpp"
#include "trees.hpp"

namespace hardwood::bind {
namespace {

/// All attacks that read the trees cross the border in the same way.
void bind_one(nb::module_& module, const char* name, decltype(attack::papernot)* run,
              const char* doc) {
  module.def(
      name,
      [run](const CheckedTrees& trees, const Array2<double>& x, const Array1<std::int32_t>& y,
            const OwnedBudget& budget, int n_threads, Watch& watch) {
        std::vector<double> x_adv;
        {
          const nb::gil_scoped_release release;
          x_adv = run(trees.trees, matrix(x), span(y), budget.view(), n_threads, watch);
        }
        return own(std::move(x_adv), x.shape(1));
      },
      nb::arg("trees"), nb::arg("x").noconvert(), nb::arg("y").noconvert(), nb::arg("budget"),
      nb::arg("n_threads"), nb::arg("watch"), doc);
}

}  // namespace

void bind_attack(nb::module_& module) {
  bind_one(module, "papernot", &attack::papernot, "Papernot's attack on the first tree: x_adv.");
  bind_one(module, "symbolic", &attack::symbolic,
           "One best change after the other, by symbolic prediction: x_adv.");
  bind_one(module, "descent", &attack::descent, "A near example for every row, quickly: x_adv.");
  module.def(
      "lengths",
      [](const Array2<double>& x, const Array2<double>& z, cells::Norm norm,
         const Array1<double>& down_scale, const Array1<double>& up_scale) {
        const cells::Budget budget{
            norm, std::numeric_limits<double>::infinity(), {}, span(down_scale), span(up_scale)};
        return own(attack::lengths(matrix(x), matrix(z), budget));
      },
      nb::arg("x").noconvert(), nb::arg("z").noconvert(), nb::arg("norm"),
      nb::arg("down_scale").noconvert(), nb::arg("up_scale").noconvert(),
      "How far each row of z is from that of x.");
}

}  // namespace hardwood::bind
