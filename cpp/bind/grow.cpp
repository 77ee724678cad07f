#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/class_tree.hpp"
#include "reach.hpp"

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

  module.def(
      "grow_class_tree",
      [](const Array2<double>& x, const Array1<std::int32_t>& label, std::int32_t n_classes,
         const Array1<double>& weight, const Array2<double>& reach,
         const Array1<std::int8_t>& monotonic, grow::Impurity impurity, grow::Inner inner,
         grow::Candidates candidates, double min_split_gain, std::size_t min_samples_leaf,
         std::int32_t max_depth, std::size_t max_leaf_nodes, std::size_t min_samples_split,
         double min_weight_fraction_leaf, std::size_t max_features, std::uint64_t seed,
         int n_threads) {
        const grow::ClassTreeOptions options{
            {impurity, inner, candidates, min_split_gain, min_samples_leaf},
            max_depth,
            max_leaf_nodes,
            min_samples_split,
            min_weight_fraction_leaf,
            max_features,
            seed,
            n_threads};
        grow::GrownTree tree;
        {
          const nb::gil_scoped_release release;
          tree = grow::grow_class_tree(matrix(x), span(label), n_classes, span(weight),
                                       reaches(reach), span(monotonic), options);
        }
        return own(std::move(tree));
      },
      nb::arg("x").noconvert(), nb::arg("label").noconvert(), nb::arg("n_classes"),
      nb::arg("weight").noconvert(), nb::arg("reach").noconvert(), nb::arg("monotonic").noconvert(),
      nb::kw_only(), nb::arg("impurity"), nb::arg("inner"), nb::arg("candidates"),
      nb::arg("min_split_gain"), nb::arg("min_samples_leaf"), nb::arg("max_depth"),
      nb::arg("max_leaf_nodes"), nb::arg("min_samples_split"), nb::arg("min_weight_fraction_leaf"),
      nb::arg("max_features"), nb::arg("seed"), nb::arg("n_threads"),
      "Grow one robust classification tree: feature, threshold, left, right, missing_left, value, "
      "gain, cover, n_samples.");
}

}  // namespace hardwood::bind
