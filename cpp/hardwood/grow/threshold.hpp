#pragma once

namespace hardwood::grow {

/// A threshold t with below < t <= above, halfway where floats allow: neighbours in the precision
/// of the model have nothing between them.
template <class X>
X between(X below, X above) {
  const auto middle = static_cast<X>((static_cast<double>(below) + static_cast<double>(above)) / 2);
  return middle > below ? middle : above;
}

}  // namespace hardwood::grow
