#include "array.hpp"
#include "hardwood/ensemble/loss.hpp"
#include "interruptible.hpp"

namespace hardwood::bind {

void bind_ensemble(nb::module_& module) {
  const auto derivatives = [&](const char* name, auto* loss, const char* doc) {
    module.def(
        name,
        [loss](const Array1<float>& label, const Array2<float>& margin, const Out2<float>& gradient,
               const Out2<float>& hessian, int n_threads) {
          const InterruptibleRelease release;
          loss(span(label), matrix(margin), {matrix(gradient), matrix(hessian)}, n_threads);
        },
        nb::arg("label").noconvert(), nb::arg("margin").noconvert(),
        nb::arg("gradient").noconvert(), nb::arg("hessian").noconvert(), nb::kw_only(),
        nb::arg("n_threads"), doc);
  };
  derivatives("logistic_derivatives", &ensemble::logistic_derivatives,
              "Write down the derivatives of the log loss of two classes.");
  derivatives("softmax_derivatives", &ensemble::softmax_derivatives,
              "Write down the derivatives of the log loss of many classes.");
  module.def(
      "add_leaf_values",
      [](const Array2<std::int32_t>& leaf, const Array1<float>& value,
         const Array1<std::int64_t>& first, const Out2<float>& margin, int n_threads) {
        const InterruptibleRelease release;
        ensemble::add_leaf_values(matrix(leaf), span(value), span(first), matrix(margin),
                                  n_threads);
      },
      nb::arg("leaf").noconvert(), nb::arg("value").noconvert(), nb::arg("first").noconvert(),
      nb::arg("margin").noconvert(), nb::kw_only(), nb::arg("n_threads"),
      "Add the values of each row's leaves to its margins.");
}

}  // namespace hardwood::bind
