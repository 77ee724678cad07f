#include <nanobind/stl/tuple.h>

#include <tuple>

#include "array.hpp"
#include "hardwood/model/leaf_boxes.hpp"
#include "hardwood/model/link.hpp"
#include "interruptible.hpp"
#include "trees.hpp"

namespace hardwood::bind {
namespace {

/// Dense leaf boxes of one tree: leaf ids, low and high (n_leaves x n_features).
std::tuple<Owned1<NodeId>, Owned2<double>, Owned2<double>> dense_boxes(const CheckedTrees& self,
                                                                       std::size_t tree) {
  const auto n_features = static_cast<std::size_t>(self.trees.n_features);
  model::LeafBoxes boxes = model::leaf_boxes(self.trees, tree);
  const Interval everything;
  std::vector<double> low(boxes.n_leaves() * n_features, everything.low);
  std::vector<double> high(boxes.n_leaves() * n_features, everything.high);
  for (std::size_t leaf = 0; leaf < boxes.n_leaves(); ++leaf) {
    for (const model::Condition& condition : boxes.of(leaf)) {
      const std::size_t at = leaf * n_features + static_cast<std::size_t>(condition.feature);
      low[at] = condition.interval.low;
      high[at] = condition.interval.high;
    }
  }
  return {own(std::move(boxes.node)), own(std::move(low), n_features),
          own(std::move(high), n_features)};
}

/// What the leaves of one tree ask of categories: leaf ids, and one entry per leaf and feature with
/// categories on its path: leaf number, feature, whether all but the listed pass, where the listed
/// ones begin (and, as a last entry, end), and all listed ones.
std::tuple<Owned1<NodeId>, Owned1<std::int32_t>, Owned1<std::int32_t>, Owned1<std::uint8_t>,
           Owned1<std::int64_t>, Owned1<std::int32_t>>
leaf_categories(const CheckedTrees& self, std::size_t tree) {
  model::LeafBoxes boxes = model::leaf_boxes(self.trees, tree);
  std::vector<std::int32_t> leaf, feature, listed;
  std::vector<std::uint8_t> all_but;
  std::vector<std::int64_t> start{0};
  for (std::size_t i = 0; i < boxes.n_leaves(); ++i) {
    for (const model::Condition& condition : boxes.of(i)) {
      const model::Categories& categories = condition.categories;
      if (categories.all_but && categories.listed.empty()) continue;
      leaf.push_back(static_cast<std::int32_t>(i));
      feature.push_back(condition.feature);
      all_but.push_back(categories.all_but);
      listed.insert(listed.end(), categories.listed.begin(), categories.listed.end());
      start.push_back(static_cast<std::int64_t>(listed.size()));
    }
  }
  return {own(std::move(boxes.node)), own(std::move(leaf)),  own(std::move(feature)),
          own(std::move(all_but)),    own(std::move(start)), own(std::move(listed))};
}

/// What the link makes of margins, row by row.
Owned2<double> means(const Array2<double>& margin, model::LinkKind kind, double divisor,
                     double slope, bool float32) {
  const model::Link link{kind, divisor, slope, float32};
  std::vector<double> mean(margin.data(), margin.data() + margin.size());
  const std::size_t n_outputs = margin.shape(1);
  for (std::size_t at = 0; at < mean.size(); at += n_outputs) {
    link.apply({mean.data() + at, n_outputs});
  }
  return own(std::move(mean), n_outputs);
}

/// The label that each row's margins decide.
Owned1<std::int32_t> labels(const CheckedTrees& self, const Array2<double>& margin) {
  const Matrix<const double> rows = matrix(margin);
  std::vector<std::int32_t> label(rows.n_rows);
  for (std::size_t i = 0; i < rows.n_rows; ++i) label[i] = self.trees.decision.label(rows.row(i));
  return own(std::move(label));
}

/// Where each node's threshold cuts the doubles; leaves have one, too, that means nothing.
Owned1<double> edges(const CheckedTrees& self) {
  std::vector<double> edge(self.trees.n_nodes());
  for (std::size_t node = 0; node < edge.size(); ++node) edge[node] = self.trees.edge(node);
  return own(std::move(edge));
}

/// Whether the row's value goes left at each split, wherever the split lies.
Owned1<std::uint8_t> sides(const CheckedTrees& self, const Array1<double>& x) {
  std::vector<std::uint8_t> left(self.trees.n_nodes());
  for (std::size_t node = 0; node < left.size(); ++node) {
    const Feature feature = self.trees.feature[node];
    if (feature == kLeaf) continue;
    left[node] = self.trees.sends_left(node, x.data()[feature]);
  }
  return own(std::move(left));
}

}  // namespace

void bind_model(nb::module_& module) {
  module.def("log_float32", &model::log_float32, nb::arg("x"));
  nb::enum_<model::LinkKind>(module, "Link")
      .value("identity", model::LinkKind::kIdentity)
      .value("logistic", model::LinkKind::kLogistic)
      .value("softmax", model::LinkKind::kSoftmax)
      .value("share", model::LinkKind::kShare)
      .value("exp", model::LinkKind::kExp)
      .value("square", model::LinkKind::kSquare)
      .value("softplus", model::LinkKind::kSoftplus)
      .value("one_vs_rest", model::LinkKind::kOneVsRest)
      .value("hinge", model::LinkKind::kHinge);
  module.def("means", &means, nb::arg("margin").noconvert(), nb::arg("link"), nb::arg("divisor"),
             nb::arg("slope"), nb::arg("float32"));
  nb::class_<CheckedTrees>(module, "Trees", "Checked trees, ready to predict.")
      .def(
          "__init__",
          [](CheckedTrees* self, const Array1<std::int32_t>& feature,
             const Array1<double>& threshold, const Array1<std::int32_t>& left,
             const Array1<std::int32_t>& right, const Array1<std::uint8_t>& missing_left,
             const Array2<double>& value, const Array1<std::int64_t>& tree_start,
             const Array1<std::int32_t>& tree_output, const Array1<double>& base,
             std::int32_t n_features, bool x_float32, bool sum_float32,
             const Array1<std::int64_t>& category_start, const Array1<std::int32_t>& category,
             model::LinkKind link, double divisor, double slope, double cut, bool of_means,
             double tie) {
            model::Trees trees{vector(feature),
                               vector(threshold),
                               vector(left),
                               vector(right),
                               vector(missing_left),
                               {value.data(), value.data() + value.size()},
                               vector(tree_start),
                               vector(tree_output),
                               vector(base),
                               n_features,
                               static_cast<std::int32_t>(value.shape(1)),
                               x_float32,
                               sum_float32,
                               vector(category_start),
                               vector(category),
                               {cut, of_means, tie, {link, divisor, slope, sum_float32}}};
            new (self) CheckedTrees(std::move(trees));
          },
          nb::arg("feature").noconvert(), nb::arg("threshold").noconvert(),
          nb::arg("left").noconvert(), nb::arg("right").noconvert(),
          nb::arg("missing_left").noconvert(), nb::arg("value").noconvert(),
          nb::arg("tree_start").noconvert(), nb::arg("tree_output").noconvert(),
          nb::arg("base").noconvert(), nb::arg("n_features"), nb::arg("x_float32"),
          nb::arg("sum_float32"), nb::arg("category_start").noconvert(),
          nb::arg("category").noconvert(), nb::arg("link"), nb::arg("divisor"), nb::arg("slope"),
          nb::arg("cut"), nb::arg("of_means"), nb::arg("tie"))
      .def(
          "margin",
          [](const CheckedTrees& self, const Array2<double>& x, int n_threads) {
            std::vector<double> margin;
            {
              const InterruptibleRelease release;
              margin = self.predictor->margin(matrix(x), n_threads);
            }
            return own(std::move(margin), self.trees.n_outputs());
          },
          nb::arg("x").noconvert(), nb::arg("n_threads"))
      .def(
          "apply",
          [](const CheckedTrees& self, const Array2<double>& x, int n_threads) {
            std::vector<NodeId> leaf;
            {
              const InterruptibleRelease release;
              leaf = self.predictor->apply(matrix(x), n_threads);
            }
            return own(std::move(leaf), self.trees.n_trees());
          },
          nb::arg("x").noconvert(), nb::arg("n_threads"))
      .def("labels", &labels, nb::arg("margin").noconvert())
      .def("edges", &edges)
      .def("sides", &sides, nb::arg("x").noconvert())
      .def("leaf_boxes", &dense_boxes, nb::arg("tree"))
      .def("leaf_categories", &leaf_categories, nb::arg("tree"));
}

}  // namespace hardwood::bind
