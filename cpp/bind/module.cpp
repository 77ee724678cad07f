#include <nanobind/nanobind.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hardwood::bind {
void bind_threat(nanobind::module_& module);
void bind_model(nanobind::module_& module);
void bind_grow(nanobind::module_& module);
void bind_newton(nanobind::module_& module);
void bind_hist(nanobind::module_& module);
void bind_ensemble(nanobind::module_& module);
void bind_certified(nanobind::module_& module);
void bind_cells(nanobind::module_& module);
void bind_verify(nanobind::module_& module);
void bind_attack(nanobind::module_& module);
}  // namespace hardwood::bind

NB_MODULE(_core, module) {
  module.doc() = "The C++ core of hardwood: arrays in, arrays out. Use the package's public names.";
  // A model that somebody still holds when Python ends is no news for the user's terminal.
  nanobind::set_leak_warnings(false);
  module.def(
      "return_freed_memory",
      [] {
#ifdef __GLIBC__
        malloc_trim(0);
#endif
      },
      "Give memory that was freed back to the system, where the C library would keep it.");
  hardwood::bind::bind_threat(module);
  hardwood::bind::bind_model(module);
  hardwood::bind::bind_grow(module);
  hardwood::bind::bind_newton(module);
  hardwood::bind::bind_hist(module);
  hardwood::bind::bind_ensemble(module);
  hardwood::bind::bind_certified(module);
  hardwood::bind::bind_cells(module);
  hardwood::bind::bind_verify(module);
  hardwood::bind::bind_attack(module);
}
