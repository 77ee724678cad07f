#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <utility>
#include <vector>

#include "hardwood/types.hpp"

/// The border: typed views in, owned arrays out. Nobody else writes a capsule.
namespace hardwood::bind {

namespace nb = nanobind;

template <class T>
using Array1 = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// An array of the caller's that is written to.
template <class T>
using Out1 = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span(const Array1<T>& array) {
  return {array.data(), array.shape(0)};
}
template <class T>
std::vector<T> vector(const Array1<T>& array) {
  return {array.data(), array.data() + array.shape(0)};
}
template <class T>
Matrix<const T> matrix(const Array2<T>& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}

template <class T>
Matrix<T> matrix(const Out2<T>& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}

template <class T>
using Owned1 = nb::ndarray<T, nb::numpy, nb::ndim<1>>;
template <class T>
using Owned2 = nb::ndarray<T, nb::numpy, nb::ndim<2>>;

/// Of a vector or a buffer.
template <class T, template <class...> class Container>
Owned1<T> own(Container<T>&& data) {
  auto* kept = new Container<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Container<T>*>(p); });
  return Owned1<T>(kept->data(), {kept->size()}, owner);
}
template <class T, template <class...> class Container>
Owned2<T> own(Container<T>&& data, std::size_t n_cols) {
  auto* kept = new Container<T>(std::move(data));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Container<T>*>(p); });
  return Owned2<T>(kept->data(), {kept->size() / n_cols, n_cols}, owner);
}

}  // namespace hardwood::bind
