#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/hist_table.hpp"
#include "reach.hpp"

namespace hardwood::bind {
namespace {

/// Lets Ctrl-C through while the core works without the interpreter: a few times a second.
class SignalCheck {
 public:
  void operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    const nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

template <class X>
void dense_table(grow::HistTable* place, const Array2<X>& x, const Array2<double>& reach,
                 std::size_t max_bins, int n_threads) {
  const nb::gil_scoped_release release;
  new (place) grow::HistTable(bins::DenseTable<X>{matrix(x)}, reaches(reach), max_bins, n_threads);
}

template <class Index>
void sparse_table(grow::HistTable* place, const Array1<Index>& column_start,
                  const Array1<Index>& row, const Array1<double>& x, std::size_t n_rows,
                  const Array2<double>& reach, std::size_t max_bins, int n_threads) {
  const nb::gil_scoped_release release;
  new (place) grow::HistTable(
      bins::SparseTable<double, Index>{span(column_start), span(row), span(x), n_rows},
      reaches(reach), max_bins, n_threads);
}

}  // namespace

void bind_hist(nb::module_& module) {
  nb::class_<grow::HistTable> table(module, "HistTable", "A table binned for robust boosting.");
  const auto dense = [&]<class X>(X) {
    table.def("__init__", &dense_table<X>, nb::arg("x").noconvert(), nb::arg("reach").noconvert(),
              nb::kw_only(), nb::arg("max_bins"), nb::arg("n_threads"));
  };
  const auto sparse = [&]<class Index>(Index) {
    table.def("__init__", &sparse_table<Index>, nb::arg("column_start").noconvert(),
              nb::arg("row").noconvert(), nb::arg("x").noconvert(), nb::arg("n_rows"),
              nb::arg("reach").noconvert(), nb::kw_only(), nb::arg("max_bins"),
              nb::arg("n_threads"));
  };
  dense(float{});
  dense(double{});
  sparse(std::int32_t{});
  sparse(std::int64_t{});
  table.def(
      "grow",
      [](grow::HistTable& self, const Array2<float>& gradient, const Array2<float>& hessian,
         const Array1<std::uint8_t>& sampled, const Array1<Feature>& features,
         const Array1<std::int8_t>& monotonic, grow::Inner inner, double reg_lambda,
         double reg_alpha, double min_split_gain, double min_child_weight,
         std::size_t min_samples_leaf, std::int32_t max_depth, std::size_t max_leaf_nodes,
         std::uint64_t seed, int n_threads) {
        grow::HistRequest request;
        request.gradient = matrix(gradient);
        request.hessian = matrix(hessian);
        request.sampled = span(sampled);
        request.features = span(features);
        request.monotonic = span(monotonic);
        request.rules = {inner,          reg_lambda,       reg_alpha,
                         min_split_gain, min_child_weight, min_samples_leaf,
                         max_depth,      max_leaf_nodes,   n_threads};
        request.seed = seed;
        request.checkpoint = SignalCheck();
        std::vector<std::int32_t> leaf(gradient.size());
        std::vector<grow::GrownTree> trees;
        {
          const nb::gil_scoped_release release;
          trees = self.grow(request, {leaf.data(), gradient.shape(0), gradient.shape(1)});
        }
        std::vector<decltype(own(grow::GrownTree()))> arrays;
        for (grow::GrownTree& tree : trees) arrays.push_back(own(std::move(tree)));
        return std::pair(std::move(arrays), own(std::move(leaf), gradient.shape(1)));
      },
      nb::arg("gradient").noconvert(), nb::arg("hessian").noconvert(),
      nb::arg("sampled").noconvert(), nb::arg("features").noconvert(),
      nb::arg("monotonic").noconvert(), nb::kw_only(), nb::arg("inner"), nb::arg("reg_lambda"),
      nb::arg("reg_alpha"), nb::arg("min_split_gain"), nb::arg("min_child_weight"),
      nb::arg("min_samples_leaf"), nb::arg("max_depth"), nb::arg("max_leaf_nodes"), nb::arg("seed"),
      nb::arg("n_threads"),
      "Grow one tree for every column of the gradients; also the leaf of every row.");
  table.def(
      "edges",
      [](const grow::HistTable& self, std::size_t feature) {
        const auto edges = self.binned().edges(feature);
        return own(std::vector<float>(edges.begin(), edges.end()));
      },
      nb::arg("feature"), "The thresholds that trees can choose for a feature, increasing.");
}

}  // namespace hardwood::bind
