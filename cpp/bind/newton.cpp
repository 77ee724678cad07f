#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/newton_tree.hpp"
#include "reach.hpp"
#include "signal_check.hpp"

namespace hardwood::bind {

void bind_newton(nb::module_& module) {
  nb::class_<grow::NewtonRules>(module, "NewtonRules")
      .def(
          "__init__",
          [](grow::NewtonRules* self, grow::Inner inner, double reg_lambda, double reg_alpha,
             double min_split_gain, double min_child_weight, double max_step,
             std::size_t min_samples_leaf, std::int32_t max_depth, std::size_t max_leaf_nodes,
             int n_threads) {
            new (self) grow::NewtonRules{
                inner,    reg_lambda,       reg_alpha, min_split_gain, min_child_weight,
                max_step, min_samples_leaf, max_depth, max_leaf_nodes, n_threads};
          },
          nb::kw_only(), nb::arg("inner"), nb::arg("reg_lambda"), nb::arg("reg_alpha"),
          nb::arg("min_split_gain"), nb::arg("min_child_weight"), nb::arg("max_step"),
          nb::arg("min_samples_leaf"), nb::arg("max_depth"), nb::arg("max_leaf_nodes"),
          nb::arg("n_threads"));

  nb::class_<grow::ExactTable>(module, "ExactTable")
      .def(
          "__init__",
          [](grow::ExactTable* self, const Array2<double>& x, const Array2<double>& reach,
             int n_threads) {
            const nb::gil_scoped_release release;
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
              const nb::gil_scoped_release release;
              grown =
                  self.grow(matrix(gradient), matrix(hessian), span(weight),
                            {span(rows), span(features), span(monotonic)}, rules, SignalCheck());
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
