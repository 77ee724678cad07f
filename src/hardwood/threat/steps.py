"""What may stand for one column: a number, a pair, a share of the value, changes of category."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np


class Anything(Enum):
    """The type of `ANY`; an enum keeps it one and the same through copies and pickles."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


ANY = Anything.ANY
"""Any known category: what a category may become in a `Threat`."""


@dataclass(frozen=True)
class Relative:
    """Steps down and up as shares of |x|; made by `relative`."""

    down: float
    up: float

    def __post_init__(self) -> None:
        for side in ("down", "up"):
            share = getattr(self, side)
            if not is_number(share) or not 0 <= share < math.inf:
                raise ValueError(
                    f"A share of the value must be a finite number >= 0, got {side}={share!r}."
                )

    def __repr__(self) -> str:
        shares = [self.down] if self.down == self.up else [self.down, self.up]
        return f"relative({', '.join(map(repr, shares))})"


def relative(down: float, up: float | None = None) -> Relative:
    """Let a column move by a share of its value.

    Parameters
    ----------
    down : float
        How far down, as a share of ``|x|``, from 0 to 1.
    up : float or None, default=None
        How far up, as a share of ``|x|``, >= 0; None is the same as down.

    Returns
    -------
    Relative
        To be used as a value of ``Threat(eps={...})``.

    Examples
    --------
    >>> import hardwood as hw
    >>> threat = hw.Threat({"income": hw.relative(0, 0.2)})
    >>> low, high = threat.ball([[50_000.0]], feature_names=["income"])
    >>> print(low, high)
    [[50000.]] [[60000.]]
    """
    shares = Relative(plain(down), plain(down if up is None else up))
    # Not in `Relative`: distances in multiples of a threat go beyond.
    if shares.down > 1:
        raise ValueError(
            f"A value can be lowered by at most its whole size, a share of 1, got "
            f"down={shares.down!r}; shares are no percentages: .1 is a tenth."
        )
    return shares


def is_number(given: Any) -> bool:
    """Whether this is a number, and no truth value."""
    return isinstance(given, int | float) and not isinstance(given, bool)


def is_step(given: Any) -> bool:
    """One entry of eps: a number, a tuple (down, up), shares; a list is one entry per feature."""
    if isinstance(given, tuple):
        return len(given) == 2 and all(is_number(step) for step in given)
    return not isinstance(given, list | Mapping)


def plain(given: Any) -> Any:
    """Arrays and numpy's numbers as Python's own, so that threats compare and print by value."""
    if isinstance(given, Mapping):
        return {plain(feature): plain(entry) for feature, entry in given.items()}
    if isinstance(given, tuple):
        return tuple(plain(entry) for entry in given)
    if isinstance(given, list):
        return [plain(entry) for entry in given]
    if isinstance(given, set | frozenset):
        return sorted((plain(entry) for entry in given), key=repr)
    return given if isinstance(given, Relative | Anything) else np.asarray(given).tolist()


def check_step(step: Any, column: Any = None) -> None:
    """Refuse what cannot stand for one column; `column` is its name or position, if it has one."""
    if isinstance(step, Relative) or (step is ANY and column is not None):
        return
    of = "" if column is None else f" for column {column!r}"
    if isinstance(step, Mapping) and column is not None:
        _check_changes(step, of)
        return
    numbers = list(step) if isinstance(step, list | tuple) and len(step) == 2 else [step]
    if not all(is_number(number) for number in numbers):
        raise ValueError(
            f"eps must be a finite number >= 0, a pair (down, up), one of these per feature, "
            f"or a mapping from feature name, got eps={step!r}{of}."
        )
    for number in numbers:
        if not 0 <= number < np.inf:
            raise ValueError(f"eps must be a finite number >= 0, got eps={number}{of}.")


def _check_changes(changes: Mapping[Any, Any], of: str) -> None:
    for category, to in changes.items():
        if to is not ANY and not isinstance(to, list | tuple):
            raise ValueError(
                f"Changes of category are written {{category: [categories it can become]}}, or "
                f"{{category: hw.ANY}}, got {category!r}: {to!r}{of}."
            )


def scaled(step: Any, factor: float) -> Any:
    """A step that many times as large; a change of category stays what it is."""
    if isinstance(step, Relative):
        return Relative(step.down * factor, step.up * factor)
    if isinstance(step, list | tuple):
        return type(step)(number * factor for number in step)
    return step * factor if is_number(step) else step


def pair(step: Any) -> tuple[float, float]:
    """Steps down and up in the column's unit."""
    if not is_number(step) and not isinstance(step, list | tuple):
        return 0.0, 0.0
    down, up = (step, step) if is_number(step) else step
    return float(down), float(up)


def is_open(step: Any) -> bool:
    """Whether a column with this step can change at all."""
    if step is ANY or isinstance(step, Mapping):
        return bool(step)
    return any((step.down, step.up) if isinstance(step, Relative) else pair(step))


def entries(given: Any) -> Iterator[tuple[Any, Any]]:
    """All entries of a single one, a sequence or a mapping, with the column's name or position."""
    if isinstance(given, Mapping):
        yield from given.items()
    elif isinstance(given, list | tuple):
        yield from enumerate(given)
    else:
        yield None, given
