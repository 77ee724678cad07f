#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/grow/hist_table.hpp"
#include "interruptible.hpp"
#include "reach.hpp"

namespace hardwood::bind {
namespace {

/// What the adversary may do beside moving numbers; empty arrays: nothing.
grow::Kinds kinds(const Array1<std::int32_t>& n_categories, const Array2<std::int32_t>& changes,
                  const Array1<std::uint8_t>& blank, std::int32_t only) {
  return {span(n_categories), matrix(changes), span(blank), only};
}

template <class X>
void dense_table(grow::HistTable* place, const Array2<X>& x, const Array2<double>& reach,
                 const Array1<double>& weight, const Array1<std::int32_t>& n_categories,
                 const Array2<std::int32_t>& changes, const Array1<std::uint8_t>& blank,
                 std::int32_t only, std::size_t max_bins, int n_threads) {
  const InterruptibleRelease release;
  new (place) grow::HistTable(bins::DenseTable<X>{matrix(x)}, reaches(reach), max_bins, n_threads,
                              span(weight), kinds(n_categories, changes, blank, only));
}

template <class X, class Index>
void sparse_table(grow::HistTable* place, const Array1<Index>& indptr, const Array1<Index>& indices,
                  const Array1<X>& x, std::size_t n_minor, bool is_csr, const Array2<double>& reach,
                  const Array1<double>& weight, const Array1<std::int32_t>& n_categories,
                  const Array2<std::int32_t>& changes, const Array1<std::uint8_t>& blank,
                  std::int32_t only, std::size_t max_bins, int n_threads) {
  const InterruptibleRelease release;
  const auto make = [&](const auto& table) {
    new (place) grow::HistTable(table, reaches(reach), max_bins, n_threads, span(weight),
                                kinds(n_categories, changes, blank, only));
  };
  if (is_csr) {
    make(bins::SparseTable<X, Index, true>{span(indptr), span(indices), span(x), n_minor});
  } else {
    make(bins::SparseTable<X, Index, false>{span(indptr), span(indices), span(x), n_minor});
  }
}

using FloatLists = std::vector<Array1<float>>;

bins::Cuts cuts(const FloatLists& edges, const Array1<bins::Code>& frequent, std::size_t max_bins) {
  bins::Cuts made(edges.size(), max_bins);
  for (std::size_t f = 0; f < edges.size(); ++f) made.edges[f] = vector(edges[f]);
  made.frequent = vector(frequent);
  return made;
}

template <class X>
auto encode(const Array2<X>& x, const FloatLists& edges, const Array1<bins::Code>& frequent,
            std::size_t max_bins, int n_threads) {
  Buffer<bins::Code> codes;
  std::vector<double> smallest, largest;
  std::vector<std::uint8_t> missing;
  const std::size_t n_rows = x.shape(0);
  bins::Cuts chosen = cuts(edges, frequent, max_bins);
  {
    const InterruptibleRelease release;
    bins::Binned binned(bins::DenseTable<X>{matrix(x)}, std::move(chosen), n_threads);
    for (std::size_t f = 0; f < binned.n_features(); ++f) {
      missing.push_back(binned.has_missing(f));
      for (std::size_t code = 0; code < binned.n_codes(); ++code) {
        smallest.push_back(binned.range(f, code).smallest);
        largest.push_back(binned.range(f, code).largest);
      }
    }
    codes = std::move(binned).take_columns();
  }
  return std::make_tuple(n_rows, own(std::move(codes)), own(std::move(smallest)),
                         own(std::move(largest)), own(std::move(missing)));
}

using Piece = std::tuple<std::size_t, Array1<bins::Code>, Array1<double>, Array1<double>,
                         Array1<std::uint8_t>>;

/// `pieces`: a list of `Piece`; each becomes None as soon as it is in the table, so that there are
/// never two copies of all codes.
void table_in_parts(grow::HistTable* place, const nb::typed<nb::list, nb::any>& pieces,
                    const FloatLists& edges, const Array1<bins::Code>& frequent,
                    std::size_t max_bins, const Array2<double>& reach,
                    const Array1<std::uint32_t>& number,
                    const std::shared_ptr<Communicator>& others,
                    const Array1<std::int32_t>& n_categories, const Array2<std::int32_t>& changes,
                    const Array1<std::uint8_t>& blank, std::int32_t only, int n_threads) {
  bins::Cuts chosen = cuts(edges, frequent, max_bins);
  for (std::size_t f = 0; f < n_categories.shape(0); ++f) {
    chosen.categorical.at(f) = n_categories.data()[f] > 0;
  }
  std::vector<bins::CodedRows> rows;
  std::vector<Piece> held;
  for (const nb::handle piece : pieces) {
    const auto& [n_rows, codes, smallest, largest, missing] =
        held.emplace_back(nb::cast<Piece>(piece));
    if (codes.shape(0) != n_rows * edges.size() || missing.shape(0) != edges.size() ||
        smallest.shape(0) != edges.size() * chosen.n_codes ||
        largest.shape(0) != edges.size() * chosen.n_codes) {
      throw std::invalid_argument("rows were put into bins with other edges than the table's.");
    }
    rows.push_back({codes.data(), n_rows, smallest.data(), largest.data(), missing.data()});
  }
  const auto let_go = [&](std::size_t i) {
    const nb::gil_scoped_acquire acquire;
    pieces[i] = nb::none();
    held[i] = {};
  };
  const InterruptibleRelease release;
  new (place) grow::HistTable(std::move(chosen), rows, reaches(reach), vector(number), others,
                              n_threads, kinds(n_categories, changes, blank, only), let_go);
}

}  // namespace

void bind_hist(nb::module_& module) {
  nb::class_<Communicator>(module, "Communicator", "All who hold rows of one table.")
      .def(
          "sum",
          [](Communicator& self, const Out1<std::int64_t>& values) {
            const nb::gil_scoped_release release;
            self.sum({values.data(), values.shape(0)});
          },
          nb::arg("values").noconvert(), "Every entry becomes the sum of everybody's.")
      .def(
          "max",
          [](Communicator& self, const Out1<double>& values) {
            const nb::gil_scoped_release release;
            self.max({values.data(), values.shape(0)});
          },
          nb::arg("values").noconvert(), "Every entry becomes the largest of everybody's.");
  module.def(
      "collective",
      [](std::uintptr_t all_reduce, std::uintptr_t last_error) {
        return std::shared_ptr<Communicator>(
            std::make_shared<Collective>(reinterpret_cast<Collective::AllReduce>(all_reduce),
                                         reinterpret_cast<Collective::LastError>(last_error)));
      },
      nb::arg("all_reduce"), nb::arg("last_error"),
      "A communicator that calls functions at these addresses.");
  module.def(
      "choose_edges",
      [](const Array1<float>& x, const Array1<std::uint64_t>& counts, std::uint64_t n_missing,
         bool missing, const Array2<double>& reach, std::size_t max_bins) {
        std::vector<bins::Value> values;
        for (std::size_t i = 0; i < x.shape(0); ++i)
          values.push_back({x.data()[i], counts.data()[i]});
        bins::Cuts made(1, max_bins);
        made.choose(0, values, n_missing, reaches(reach)[0], max_bins,
                    !missing && values.size() == made.n_codes && max_bins == made.n_codes);
        return std::make_tuple(own(std::move(made.edges[0])), made.frequent[0]);
      },
      nb::arg("x").noconvert(), nb::arg("counts").noconvert(), nb::arg("n_missing"),
      nb::arg("missing"), nb::arg("reach").noconvert(), nb::kw_only(), nb::arg("max_bins"),
      "The edges of one feature from the values of a sample, with how many of its rows have each "
      "or none; its most frequent bin. `missing`: whether any row of the table has none.");
  module.def(
      "sample_places",
      [](std::uint64_t n) { return own(bins::sample_places(n, bins::kSampledRows)); }, nb::arg("n"),
      "At most SAMPLED_ROWS places of [0, n) that stand for all, increasing.");
  module.attr("SAMPLED_ROWS") = bins::kSampledRows;
  const auto encode_rows = [&]<class X>(X) {
    module.def("encode", &encode<X>, nb::arg("x").noconvert(), nb::arg("edges"),
               nb::arg("frequent").noconvert(), nb::kw_only(), nb::arg("max_bins"),
               nb::arg("n_threads"),
               "Rows in codes: their number, codes, smallest and largest values, what is missing.");
  };
  encode_rows(float{});
  encode_rows(double{});
  nb::class_<grow::HistTable> table(module, "HistTable", "A table binned for robust trees.");
  table.def("__init__", &table_in_parts, nb::arg("pieces"), nb::arg("edges"),
            nb::arg("frequent").noconvert(), nb::kw_only(), nb::arg("max_bins"),
            nb::arg("reach").noconvert(), nb::arg("number").noconvert(), nb::arg("others").none(),
            nb::arg("n_categories").noconvert(), nb::arg("changes").noconvert(),
            nb::arg("blank").noconvert(), nb::arg("only"), nb::arg("n_threads"));
  const auto dense = [&]<class X>(X) {
    table.def("__init__", &dense_table<X>, nb::arg("x").noconvert(), nb::arg("reach").noconvert(),
              nb::arg("weight").noconvert(), nb::kw_only(), nb::arg("n_categories").noconvert(),
              nb::arg("changes").noconvert(), nb::arg("blank").noconvert(), nb::arg("only"),
              nb::arg("max_bins"), nb::arg("n_threads"));
  };
  const auto sparse = [&]<class X, class Index>(X, Index) {
    table.def("__init__", &sparse_table<X, Index>, nb::arg("indptr").noconvert(),
              nb::arg("indices").noconvert(), nb::arg("x").noconvert(), nb::arg("n_minor"),
              nb::arg("is_csr"), nb::arg("reach").noconvert(), nb::arg("weight").noconvert(),
              nb::kw_only(), nb::arg("n_categories").noconvert(), nb::arg("changes").noconvert(),
              nb::arg("blank").noconvert(), nb::arg("only"), nb::arg("max_bins"),
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
