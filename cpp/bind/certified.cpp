#include "hardwood/ensemble/certified.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <variant>

#include "array.hpp"
#include "grown_tree.hpp"
#include "hardwood/ensemble/certified_ends.hpp"
#include "hardwood/ensemble/joint_refit.hpp"
#include "interruptible.hpp"
#include "reach.hpp"
#include "trees.hpp"

namespace hardwood::bind {
namespace {

/// Few candidates have small codes.
struct CertifiedBoosting {
  std::variant<std::unique_ptr<ensemble::CertifiedBoosting<std::uint8_t>>,
               std::unique_ptr<ensemble::CertifiedBoosting<std::uint16_t>>>
      kind;

  explicit CertifiedBoosting(std::unique_ptr<ensemble::CertifiedBoosting<std::uint8_t>> made)
      : kind(std::move(made)) {}

  template <class Table>
  CertifiedBoosting(const Table& table, std::span<const Reach> reach, std::size_t max_bins,
                    bool at_rest, int n_threads) {
    if (max_bins <= 256) {
      kind = std::make_unique<ensemble::CertifiedBoosting<std::uint8_t>>(table, reach, max_bins,
                                                                         at_rest, n_threads);
    } else {
      kind = std::make_unique<ensemble::CertifiedBoosting<std::uint16_t>>(table, reach, max_bins,
                                                                          at_rest, n_threads);
    }
  }
};

template <class X>
void dense_boosting(CertifiedBoosting* place, const Array2<X>& x, const Array2<double>& reach,
                    std::size_t max_bins, bool at_rest, int n_threads) {
  const InterruptibleRelease release;
  new (place) CertifiedBoosting(bins::DenseTable<X>{matrix(x)}, reaches_with_ranks(reach), max_bins,
                                at_rest, n_threads);
}

template <class X, class Index>
void sparse_boosting(CertifiedBoosting* place, const Array1<Index>& column_start,
                     const Array1<Index>& row, const Array1<X>& x, std::size_t n_rows,
                     const Array2<double>& reach, std::size_t max_bins, bool at_rest,
                     int n_threads) {
  const InterruptibleRelease release;
  const bins::SparseTable<X, Index, false> table{span(column_start), span(row), span(x), n_rows};
  new (place) CertifiedBoosting(table, reaches_with_ranks(reach), max_bins, at_rest, n_threads);
}

using FloatLists = std::vector<Array1<float>>;

bins::EndCandidates end_candidates(const FloatLists& of, const Array1<std::uint8_t>& missing) {
  if (of.size() != missing.shape(0)) {
    throw std::invalid_argument("candidates and missing need one entry a feature.");
  }
  bins::EndCandidates made;
  for (const Array1<float>& one : of) made.of.push_back(vector(one));
  made.missing = vector(missing);
  return made;
}

std::vector<float> choose_candidates(const Array1<float>& x, const Array1<std::uint64_t>& counts,
                                     bool missing, const Array2<double>& reach,
                                     std::size_t max_bins, bool at_rest) {
  std::vector<bins::Value> values;
  for (std::size_t i = 0; i < x.shape(0); ++i) values.push_back({x.data()[i], counts.data()[i]});
  return bins::choose_end_candidates(values, reaches_with_ranks(reach)[0], max_bins, 256, at_rest,
                                     missing);
}

template <class X>
Owned1<std::uint8_t> encode_ends(const Array2<X>& x, const Array2<double>& reach,
                                 const FloatLists& candidates, const Array1<std::uint8_t>& missing,
                                 bool at_rest, int n_threads) {
  std::vector<std::uint8_t> all;
  bins::EndCandidates chosen = end_candidates(candidates, missing);
  {
    const InterruptibleRelease release;
    const bins::EndCodes<std::uint8_t> codes(bins::DenseTable<X>{matrix(x)},
                                             reaches_with_ranks(reach), std::move(chosen), at_rest,
                                             n_threads);
    all.assign(codes.all().begin(), codes.all().end());
  }
  return own(std::move(all));
}

using EndPiece = std::tuple<std::size_t, Array1<std::uint8_t>>;

void boosting_in_parts(CertifiedBoosting* place, const std::vector<EndPiece>& pieces,
                       const FloatLists& candidates, const Array1<std::uint8_t>& missing,
                       bool at_rest, const Array1<std::uint32_t>& number, std::size_t n_all,
                       const std::shared_ptr<Communicator>& others, int n_threads) {
  using Codes = bins::EndCodes<std::uint8_t>;
  bins::EndCandidates chosen = end_candidates(candidates, missing);
  const std::size_t n_blocks = Codes::n_blocks(candidates.size());
  std::vector<bins::EndRows<std::uint8_t>> rows;
  for (const auto& [n_rows, codes] : pieces) {
    if (codes.shape(0) != n_rows * n_blocks * Codes::kRowCodes * (at_rest ? 2 : 1)) {
      throw std::invalid_argument("rows were put into codes with other candidates.");
    }
    rows.push_back({codes.data(), n_rows});
  }
  const InterruptibleRelease release;
  new (place) CertifiedBoosting(std::make_unique<ensemble::CertifiedBoosting<std::uint8_t>>(
      std::move(chosen), rows, at_rest, vector(number), n_all, others, n_threads));
}

std::vector<OwnedTree> step(CertifiedBoosting& self, const Array1<float>& y,
                            const Array1<float>& weight, const Out2<float>& low,
                            const Out2<float>& high, const Array1<std::uint8_t>& sampled,
                            const Array2<Feature>& features, const Array1<std::int8_t>& monotonic,
                            const grow::NewtonRules& rules, ensemble::MarginLoss loss,
                            float loss_parameter, float learning_rate, int n_refits,
                            std::uint64_t seed) {
  ensemble::CertifiedRound round;
  round.y = span(y);
  round.weight = span(weight);
  round.low = matrix(low);
  round.high = matrix(high);
  round.sampled = span(sampled);
  round.features = matrix(features);
  round.monotonic = span(monotonic);
  round.rules = rules;
  round.loss = loss;
  round.loss_parameter = loss_parameter;
  round.learning_rate = learning_rate;
  round.n_refits = n_refits;
  round.seed = seed;
  std::vector<grow::GrownTree> trees;
  {
    const InterruptibleRelease release;
    trees = std::visit([&](auto& kind) { return kind->step(round); }, self.kind);
  }
  std::vector<OwnedTree> arrays;
  for (grow::GrownTree& tree : trees) arrays.push_back(own(std::move(tree)));
  return arrays;
}

template <class X>
void add_certified_ends(const CheckedTrees& trees, const Array2<X>& x, const Array2<double>& reach,
                        const Out2<float>& low, const Out2<float>& high, int n_threads) {
  const InterruptibleRelease release;
  ensemble::add_certified_ends(trees.trees, matrix(x), reaches_with_ranks(reach), matrix(low),
                               matrix(high), n_threads);
}

template <class X>
Owned1<float> joint_refit(const CheckedTrees& trees, const Array2<X>& x, const Array1<float>& y,
                          const Array1<float>& weight, const Array2<double>& reach,
                          double robustness, double penalty, int n_steps, int n_threads) {
  std::vector<float> value;
  {
    const InterruptibleRelease release;
    const std::vector<Reach> moved = reaches_with_ranks(reach);
    std::vector<Reach> at_rest;
    for (const Reach& one : moved) at_rest.push_back(one.still());
    std::vector<ensemble::JointRows> rows{{moved, robustness}};
    if (robustness < 1) rows.push_back({at_rest, 1 - robustness});
    ensemble::JointRefit how;
    how.penalty = penalty;
    how.n_steps = n_steps;
    how.n_threads = n_threads;
    value = ensemble::joint_refit(trees.trees, matrix(x), span(y), span(weight), rows, how);
  }
  return own(std::move(value));
}

}  // namespace

void bind_certified(nb::module_& module) {
  nb::enum_<ensemble::MarginLoss>(module, "MarginLoss")
      .value("logistic", ensemble::MarginLoss::kLogistic)
      .value("squared", ensemble::MarginLoss::kSquared)
      .value("huber", ensemble::MarginLoss::kHuber)
      .value("poisson", ensemble::MarginLoss::kPoisson)
      .value("quantile", ensemble::MarginLoss::kQuantile);

  nb::class_<CertifiedBoosting> boosting(module, "CertifiedBoosting",
                                         "A table made ready for certified boosting.");
  boosting.def("__init__", &boosting_in_parts, nb::arg("pieces"), nb::arg("candidates"),
               nb::arg("missing").noconvert(), nb::kw_only(), nb::arg("at_rest"),
               nb::arg("number").noconvert(), nb::arg("n_all"), nb::arg("others").none(),
               nb::arg("n_threads"));
  module.def(
      "choose_candidates",
      [](const Array1<float>& x, const Array1<std::uint64_t>& counts, bool missing,
         const Array2<double>& reach, std::size_t max_bins, bool at_rest) {
        return own(choose_candidates(x, counts, missing, reach, max_bins, at_rest));
      },
      nb::arg("x").noconvert(), nb::arg("counts").noconvert(), nb::arg("missing"),
      nb::arg("reach").noconvert(), nb::kw_only(), nb::arg("max_bins"), nb::arg("at_rest"),
      "The candidates of one feature from its values and how many rows have each.");
  const auto dense = [&]<class X>(X) {
    module.def("encode_ends", &encode_ends<X>, nb::arg("x").noconvert(),
               nb::arg("reach").noconvert(), nb::arg("candidates"), nb::arg("missing").noconvert(),
               nb::kw_only(), nb::arg("at_rest"), nb::arg("n_threads"),
               "Where the ends of rows' balls lie among the candidates, in codes.");
    boosting.def("__init__", &dense_boosting<X>, nb::arg("x").noconvert(),
                 nb::arg("reach").noconvert(), nb::kw_only(), nb::arg("max_bins"),
                 nb::arg("at_rest"), nb::arg("n_threads"));
    module.def("add_certified_ends", &add_certified_ends<X>, nb::arg("trees"),
               nb::arg("x").noconvert(), nb::arg("reach").noconvert(), nb::arg("low").noconvert(),
               nb::arg("high").noconvert(), nb::kw_only(), nb::arg("n_threads"),
               "Add the trees to the least and the largest margins the adversary can cause.");
    module.def("joint_refit", &joint_refit<X>, nb::arg("trees"), nb::arg("x").noconvert(),
               nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
               nb::arg("reach").noconvert(), nb::kw_only(), nb::arg("robustness"),
               nb::arg("penalty"), nb::arg("n_steps"), nb::arg("n_threads"),
               "Values of all nodes that are best together for certified margins.");
  };
  const auto sparse = [&]<class X, class Index>(X, Index) {
    boosting.def("__init__", &sparse_boosting<X, Index>, nb::arg("column_start").noconvert(),
                 nb::arg("row").noconvert(), nb::arg("x").noconvert(), nb::arg("n_rows"),
                 nb::arg("reach").noconvert(), nb::kw_only(), nb::arg("max_bins"),
                 nb::arg("at_rest"), nb::arg("n_threads"));
  };
  dense(float{});
  dense(double{});
  sparse(float{}, std::int32_t{});
  sparse(float{}, std::int64_t{});
  sparse(double{}, std::int32_t{});
  sparse(double{}, std::int64_t{});
  boosting.def("step", &step, nb::arg("y").noconvert(), nb::arg("weight").noconvert(),
               nb::arg("low").noconvert(), nb::arg("high").noconvert(),
               nb::arg("sampled").noconvert(), nb::arg("features").noconvert(),
               nb::arg("monotonic").noconvert(), nb::arg("rules"), nb::kw_only(), nb::arg("loss"),
               nb::arg("loss_parameter"), nb::arg("learning_rate"), nb::arg("n_refits"),
               nb::arg("seed"),
               "Grow one tree an output and add it to the ends of the margins, `low` and `high`.");
  boosting.def(
      "add",
      [](const CertifiedBoosting& self, const CheckedTrees& trees, const Out2<float>& low,
         const Out2<float>& high, int n_threads) {
        const InterruptibleRelease release;
        std::visit(
            [&](const auto& kind) { kind->add(trees.trees, matrix(low), matrix(high), n_threads); },
            self.kind);
      },
      nb::arg("trees"), nb::arg("low").noconvert(), nb::arg("high").noconvert(), nb::kw_only(),
      nb::arg("n_threads"),
      "Add trees that were grown on these candidates to the ends of the margins.");
  boosting.def(
      "joint_refit",
      [](const CertifiedBoosting& self, const CheckedTrees& trees, const Array1<float>& y,
         const Array1<float>& weight, double robustness, double penalty, int n_steps,
         int n_threads) {
        ensemble::JointRefit how;
        how.penalty = penalty;
        how.n_steps = n_steps;
        how.n_threads = n_threads;
        const auto& table =
            *std::get<std::unique_ptr<ensemble::CertifiedBoosting<std::uint8_t>>>(self.kind);
        std::vector<float> value;
        {
          const InterruptibleRelease release;
          value = ensemble::joint_refit(trees.trees, table.codes(), span(y), span(weight),
                                        robustness, how, table.part());
        }
        return own(std::move(value));
      },
      nb::arg("trees"), nb::arg("y").noconvert(), nb::arg("weight").noconvert(), nb::kw_only(),
      nb::arg("robustness"), nb::arg("penalty"), nb::arg("n_steps"), nb::arg("n_threads"),
      "Values of all nodes that are best together for certified margins of the table's rows.");
  boosting.def(
      "candidates",
      [](const CertifiedBoosting& self, std::size_t feature) {
        return std::visit(
            [&](const auto& kind) {
              const auto candidates = kind->codes().candidates(feature);
              return own(std::vector<float>(candidates.begin(), candidates.end()));
            },
            self.kind);
      },
      nb::arg("feature"), "The thresholds that trees can choose for a feature, increasing.");
}

}  // namespace hardwood::bind
