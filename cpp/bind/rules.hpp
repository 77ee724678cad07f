#pragma once

#include <nanobind/nanobind.h>

#include "hardwood/grow/rules.hpp"

namespace hardwood::bind {

namespace nb = nanobind;

/// The rules of a kind of tree, field by field under the names of the Python side; the caller adds
/// those that only this kind has.
template <class Rules>
nb::class_<Rules> bind_rules(nb::module_& module, const char* name) {
  nb::class_<Rules> rules(module, name);
  rules.def(nb::init<>())
      .def_rw("inner", &Rules::inner)
      .def_rw("min_split_gain", &Rules::min_split_gain)
      .def_rw("min_samples_leaf", &Rules::min_samples_leaf)
      .def_rw("min_samples_split", &Rules::min_samples_split)
      .def_rw("max_depth", &Rules::max_depth)
      .def_rw("max_leaf_nodes", &Rules::max_leaf_nodes)
      .def_rw("max_features", &Rules::max_features)
      .def_rw("seed", &Rules::seed)
      .def_rw("n_threads", &Rules::n_threads);
  return rules;
}

}  // namespace hardwood::bind
