#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

namespace hardwood::bind {

namespace nb = nanobind;

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

}  // namespace hardwood::bind
