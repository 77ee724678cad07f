#pragma once

#include "hardwood/verify/messages.hpp"

namespace hardwood::verify {

/// Replace pairs of factors by their product where that stays small, and carry the state over.
///
/// Two trees on the same features often want leaves that do not meet; as one factor they cannot, so
/// the bound can fall further. Only leaves that are left are multiplied, and a product that cannot
/// be part of a point of value `needed` or costs more than `budget` is dropped. Shares are kept, so
/// the bound starts about where it was. False if nothing is left of some product: the box is empty.
bool merge_factors(Cut& cut, State& state, double budget);

/// Lay the factors out anew with the leaves that are left, and with the thresholds inside the
/// state's cells: what is gone takes no more time. The cut is right inside these cells only. False
/// if the box is empty.
bool compact_factors(Cut& cut, State& state);

}  // namespace hardwood::verify
