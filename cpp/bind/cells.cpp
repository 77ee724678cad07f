#include "budget.hpp"
#include "hardwood/watch.hpp"

namespace hardwood::bind {

void bind_cells(nb::module_& module) {
  nb::enum_<cells::Norm>(module, "Norm")
      .value("inf", cells::Norm::kInf)
      .value("one", cells::Norm::kOne)
      .value("two", cells::Norm::kTwo)
      .value("zero", cells::Norm::kZero);

  nb::class_<OwnedBudget>(module, "Budget", "A threat, as the searches know it.")
      .def(
          "__init__",
          [](OwnedBudget* self, cells::Norm norm, double radius, const Array2<double>& reach,
             const Array1<double>& down_scale, const Array1<double>& up_scale,
             const Array1<std::int64_t>& code_start, const Array1<std::int64_t>& becomes_start,
             const Array1<std::int32_t>& becomes, const Array1<std::uint8_t>& blank, double unit,
             int max_changes) {
            new (self) OwnedBudget{reaches(reach),
                                   vector(down_scale),
                                   vector(up_scale),
                                   vector(code_start),
                                   vector(becomes_start),
                                   vector(becomes),
                                   vector(blank),
                                   norm,
                                   radius,
                                   unit,
                                   max_changes};
          },
          nb::arg("norm"), nb::arg("radius"), nb::arg("reach").noconvert(),
          nb::arg("down_scale").noconvert(), nb::arg("up_scale").noconvert(),
          nb::arg("code_start").noconvert(), nb::arg("becomes_start").noconvert(),
          nb::arg("becomes").noconvert(), nb::arg("blank").noconvert(), nb::arg("unit"),
          nb::arg("max_changes"));

  nb::class_<Watch>(module, "Watch", "How far a search has got; it can be stopped.")
      .def(
          "__init__",
          [](Watch* self, double seconds) {
            new (self) Watch;
            self->deadline = after(std::chrono::steady_clock::now(), seconds);
          },
          nb::arg("seconds"))
      .def("stop", [](Watch& self) { self.stop = true; })
      .def_prop_ro("n_done", [](const Watch& self) { return self.n_done.load(); })
      .def_prop_ro("n_open", [](const Watch& self) { return self.n_open.load(); });
}

}  // namespace hardwood::bind
