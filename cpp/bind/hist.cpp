#include <nanobind/stl/vector.h>

#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/hist_table.hpp"
#include "interruptible.hpp"
#include "reach.hpp"

namespace hardwood::bind {
namespace {

template <class X>
void dense_table(grow::HistTable* place, const Array2<X>& x, const Array2<double>& reach,
                 const Array1<double>& weight, std::size_t max_bins, int n_threads) {
  const InterruptibleRelease release;
  new (place) grow::HistTable(bins::DenseTable<X>{matrix(x)}, reaches(reach), max_bins, n_threads,
                              span(weight));
}

template <class X, class Index>
void sparse_table(grow::HistTable* place, const Array1<Index>& line_start,
                  const Array1<Index>& across, const Array1<X>& x, std::size_t n_across,
                  bool lines_are_rows, const Array2<double>& reach, const Array1<double>& weight,
                  std::size_t max_bins, int n_threads) {
  const InterruptibleRelease release;
  const auto make = [&](const auto& table) {
    new (place) grow::HistTable(table, reaches(reach), max_bins, n_threads, span(weight));
  };
  if (lines_are_rows) {
    make(bins::SparseTable<X, Index, true>{span(line_start), span(across), span(x), n_across});
  } else {
    make(bins::SparseTable<X, Index, false>{span(line_start), span(across), span(x), n_across});
  }
}

}  // namespace

void bind_hist(nb::module_& module) {
  nb::class_<grow::HistTable> table(module, "HistTable", "A table binned for robust trees.");
  const auto dense = [&]<class X>(X) {
    table.def("__init__", &dense_table<X>, nb::arg("x").noconvert(), nb::arg("reach").noconvert(),
              nb::arg("weight").noconvert(), nb::kw_only(), nb::arg("max_bins"),
              nb::arg("n_threads"));
  };
  const auto sparse = [&]<class X, class Index>(X, Index) {
    table.def("__init__", &sparse_table<X, Index>, nb::arg("line_start").noconvert(),
              nb::arg("across").noconvert(), nb::arg("x").noconvert(), nb::arg("n_across"),
              nb::arg("lines_are_rows"), nb::arg("reach").noconvert(),
              nb::arg("weight").noconvert(), nb::kw_only(), nb::arg("max_bins"),
              nb::arg("n_threads"));
  };
  dense(float{});
  dense(double{});
  sparse(float{}, std::int32_t{});
  sparse(float{}, std::int64_t{});
  sparse(double{}, std::int32_t{});
  sparse(double{}, std::int64_t{});
  table.def(
      "grow",
      [](grow::HistTable& self, const Array2<float>& gradient, const Array2<float>& hessian,
         const Array1<float>& weight, const Array1<std::uint8_t>& sampled,
         const Array1<Feature>& features, const Array1<std::int8_t>& monotonic,
         const grow::NewtonRules& rules, const Out2<std::int32_t>& leaf, const Stop* stop) {
        grow::HistRequest request;
        request.gradient = matrix(gradient);
        request.hessian = matrix(hessian);
        request.weight = span(weight);
        request.sampled = span(sampled);
        request.features = span(features);
        request.monotonic = span(monotonic);
        request.rules = rules;
        request.checkpoint = checkpoint;
        std::vector<grow::GrownTree> trees;
        {
          const InterruptibleRelease release(stop);
          trees = self.grow(request, matrix(leaf));
        }
        std::vector<OwnedTree> arrays;
        for (grow::GrownTree& tree : trees) arrays.push_back(own(std::move(tree)));
        return arrays;
      },
      nb::arg("gradient").noconvert(), nb::arg("hessian").noconvert(),
      nb::arg("weight").noconvert(), nb::arg("sampled").noconvert(),
      nb::arg("features").noconvert(), nb::arg("monotonic").noconvert(), nb::arg("rules"),
      nb::arg("leaf").noconvert(), nb::arg("stop").none() = nb::none(),
      "Grow one tree for every column of the gradients; the leaf of every row goes to `leaf`.");
  table.def(
      "grow_classes",
      [](grow::HistTable& self, const Array1<std::int32_t>& label, std::int32_t n_classes,
         const Array1<double>& weight, const Array1<std::int8_t>& monotonic,
         const grow::ClassTreeRules& rules, const Stop* stop) {
        grow::GrownTree tree;
        {
          const InterruptibleRelease release(stop);
          tree = self.grow_classes({span(label), n_classes, span(weight), span(monotonic)}, rules,
                                   checkpoint);
        }
        return own(std::move(tree));
      },
      nb::arg("label").noconvert(), nb::arg("n_classes"), nb::arg("weight").noconvert(),
      nb::arg("monotonic").noconvert(), nb::arg("rules"), nb::arg("stop").none() = nb::none(),
      "Grow one robust classification tree; rows of weight 0 are left out.");
  table.def(
      "edges",
      [](const grow::HistTable& self, std::size_t feature) {
        const auto edges = self.binned().edges(feature);
        return own(std::vector<float>(edges.begin(), edges.end()));
      },
      nb::arg("feature"), "The thresholds that trees can choose for a feature, increasing.");
}

}  // namespace hardwood::bind
