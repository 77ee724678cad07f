#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <stdexcept>

#include "hardwood/interrupt.hpp"

namespace hardwood::bind {

namespace nb = nanobind;

/// Python hears signals on its main thread only. This is how that one tells others to stop.
struct Stop {
  std::atomic<bool> is_set = false;
};

/// Releases the interpreter while the core works, and lets Ctrl-C, or who has the `stop`, end it at
/// its next checkpoint.
class InterruptibleRelease {
 public:
  explicit InterruptibleRelease(const Stop* stop = nullptr)
      : interrupt_([stop] {
          if (stop && stop->is_set) throw std::runtime_error("stopped from outside");
          const nb::gil_scoped_acquire acquire;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }) {}

 private:
  nb::gil_scoped_release release_;
  Interrupt interrupt_;
};

}  // namespace hardwood::bind
