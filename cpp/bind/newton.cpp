#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/newton_tree.hpp"
#include "interruptible.hpp"
#include "reach.hpp"
#include "rules.hpp"

namespace hardwood::bind {

void bind_newton(nb::module_& module) {
  bind_rules<grow::NewtonRules>(module, "NewtonRules")
      .def_rw("reg_lambda", &grow::NewtonRules::reg_lambda)
      .def_rw("reg_alpha", &grow::NewtonRules::reg_alpha)
      .def_rw("min_child_weight", &grow::NewtonRules::min_child_weight)
      .def_rw("max_delta_step", &grow::NewtonRules::max_delta_step)
      .def_rw("least_gain", &grow::NewtonRules::least_gain);

  nb::class_<grow::ExactTable>(module, "ExactTable")
      .def(
          "__init__",
          [](grow::ExactTable* self, const Array2<double>& x, const Array2<double>& reach,
             int n_threads) {
            const InterruptibleRelease release;
            new (self) grow::ExactTable(matrix(x), reaches(reach), n_threads);
          },
          nb::arg("x").noconvert(), nb::arg("reach").noconvert(), nb::arg("n_threads"))
      .def(
          "grow",
          [](grow::ExactTable& self, const Array2<float>& gradient, const Array2<float>& hessian,
             const Array1<float>& weight, const Array1<std::uint8_t>& rows,
             const Array1<Feature>& features, const Array1<std::int8_t>& monotonic,
             const grow::NewtonRules& rules) {
            grow::NewtonTrees grown;
            {
              const InterruptibleRelease release;
              grown = self.grow(matrix(gradient), matrix(hessian), span(weight),
                                {span(rows), span(features), span(monotonic)}, rules, checkpoint);
            }
            std::vector<OwnedTree> trees;
            for (grow::GrownTree& tree : grown.trees) trees.push_back(own(std::move(tree)));
            return std::pair(std::move(trees), own(std::move(grown.leaf), gradient.shape(1)));
          },
          nb::arg("gradient").noconvert(), nb::arg("hessian").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("features").noconvert(), nb::arg("monotonic").noconvert(), nb::arg("rules"),
          "Grow one tree an output: the trees, and the leaf of every row in each.");
}

}  // namespace hardwood::bind
