#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/class_tree.hpp"
#include "interruptible.hpp"
#include "reach.hpp"
#include "rules.hpp"

namespace hardwood::bind {

void bind_grow(nb::module_& module) {
  nb::enum_<grow::Impurity>(module, "Impurity")
      .value("entropy", grow::Impurity::kEntropy)
      .value("gini", grow::Impurity::kGini);
  nb::enum_<grow::Inner>(module, "Inner")
      .value("exact", grow::Inner::kExact)
      .value("paper", grow::Inner::kPaper);
  nb::enum_<grow::Candidates>(module, "Candidates")
      .value("midpoints", grow::Candidates::kMidpoints)
      .value("intervals", grow::Candidates::kIntervals);
  bind_rules<grow::ClassTreeRules>(module, "ClassTreeRules")
      .def_rw("impurity", &grow::ClassTreeRules::impurity)
      .def_rw("candidates", &grow::ClassTreeRules::candidates)
      .def_rw("min_weight_fraction_leaf", &grow::ClassTreeRules::min_weight_fraction_leaf);

  nb::class_<Stop>(module, "Stop", "Tells calls on other threads to stop.")
      .def(nb::init<>())
      .def("set", [](Stop& self) { self.is_set = true; });
  module.def(
      "grow_class_tree",
      [](const Array2<double>& x, const Array1<std::int32_t>& label, std::int32_t n_classes,
         const Array1<double>& weight, const Array2<double>& reach,
         const Array1<std::int8_t>& monotonic, const grow::ClassTreeRules& rules,
         const Stop* stop) {
        grow::GrownTree tree;
        {
          const InterruptibleRelease release(stop);
          tree = grow::grow_class_tree(matrix(x),
                                       {span(label), n_classes, span(weight), span(monotonic)},
                                       reaches(reach), rules, checkpoint);
        }
        return own(std::move(tree));
      },
      nb::arg("x").noconvert(), nb::arg("label").noconvert(), nb::arg("n_classes"),
      nb::arg("weight").noconvert(), nb::arg("reach").noconvert(), nb::arg("monotonic").noconvert(),
      nb::arg("rules"), nb::arg("stop").none() = nb::none(),
      "Grow one robust classification tree: feature, threshold, left, right, missing_left, value, "
      "gain, cover, n_samples.");
}

}  // namespace hardwood::bind
