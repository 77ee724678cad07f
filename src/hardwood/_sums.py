"""Sums over rows that do not depend on the order of the rows, nor on who holds them."""

from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_DIGITS = 53  # of a double
_LOW = 27  # of them below, the others above: sums of either are exact
_LEAST = -1100  # below every exponent of a double
_N_EXPONENTS = 2200
_NOT_FINITE = _N_EXPONENTS - 1  # no double has this exponent
# Rows taken together: so few that they need no memory; up to 2^25 a double adds up exactly.
_BLOCK = 1 << 16


class Others(Protocol):
    """All who hold rows of one table: each asks the same, in the same order, for the same answer.

    Both change the array they are given.
    """

    def sum(self, values: npt.NDArray[np.int64], /) -> None:
        """Make every entry the sum of everybody's."""

    def max(self, values: FloatArray, /) -> None:
        """Make every entry the largest of everybody's."""


def count(n: int, others: Others | None = None) -> int:
    """Add up whole numbers, one of each part."""
    values = np.array([n], dtype=np.int64)
    if others is not None:
        others.sum(values)
    return int(values[0])


def any_of(holds: bool, others: Others | None = None) -> bool:
    """Whether it holds in any part."""
    return count(int(holds), others) > 0


def total(values: npt.NDArray[Any], others: Others | None = None) -> float:
    """Add up numbers of all parts: the exact sum, rounded once; NaN if one of them is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from hardwood._sums import total
    >>> total(np.array([1e16, 1.0, -1e16]))
    1.0
    """
    parts = exact_parts(values)
    if others is not None:
        flat = parts.ravel()
        others.sum(flat)
        parts = flat.reshape(parts.shape)
    return value_of(parts)


def mean(
    values: npt.NDArray[Any], weight: npt.NDArray[Any] | None, others: Others | None = None
) -> float:
    """Give the weighted mean of numbers of all parts."""
    if weight is None:
        return total(values, others) / count(len(values), others)
    weight = weight.astype(np.float64)
    return total(values * weight, others) / total(weight, others)


def exact_parts(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Sums of digits by exponent: they add up without rounding, over any parts of the rows."""
    parts = np.zeros((2, _N_EXPONENTS), dtype=np.int64)
    for begin in range(0, len(values), _BLOCK):
        fraction, exponent = np.frexp(values[begin : begin + _BLOCK].astype(np.float64))
        if not np.isfinite(fraction).all():
            parts[0, _NOT_FINITE] += 1
            continue
        digits = np.ldexp(fraction, _DIGITS).astype(np.int64)
        place = exponent.astype(np.int64) - _LEAST
        for half, part in ((0, digits >> _LOW), (1, digits & ((1 << _LOW) - 1))):
            parts[half] += np.bincount(place, weights=part, minlength=_N_EXPONENTS).astype(np.int64)
    return parts


def by_group(values: npt.NDArray[Any], group: npt.NDArray[Any], n_groups: int) -> list[int]:
    """Add up finite numbers by group, exactly: whole numbers of `UNIT`, which parts can add."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    digits = np.ldexp(fraction, _DIGITS).astype(np.int64)
    place = group.astype(np.int64) * _N_EXPONENTS + (exponent.astype(np.int64) - _LEAST)
    found, at = np.unique(place, return_inverse=True)
    sums = [0] * n_groups
    for half, shift in ((digits >> _LOW, _LOW), (digits & ((1 << _LOW) - 1), 0)):
        # In halves and blocks, so that doubles add them up without rounding.
        total = np.zeros(len(found), dtype=np.int64)
        for begin in range(0, len(values), _BLOCK):
            some = slice(begin, begin + _BLOCK)
            total += np.bincount(at[some], half[some], minlength=len(found)).astype(np.int64)
        for key, sum_of_key in zip(found.tolist(), total.tolist(), strict=True):
            sums[key // _N_EXPONENTS] += sum_of_key << (shift + key % _N_EXPONENTS)
    return sums


UNIT = Fraction(2) ** (_LEAST - _DIGITS)  # of the sums by group


def value_of(parts: npt.NDArray[np.int64]) -> float:
    """The sum whose digits these are."""
    if parts[0, _NOT_FINITE]:
        return float("nan")
    whole = Fraction(0)
    for place in np.flatnonzero(parts.any(axis=0)):
        digits = (int(parts[0, place]) << _LOW) + int(parts[1, place])
        whole += digits * Fraction(2) ** (int(place) + _LEAST - _DIGITS)
    return float(whole)
