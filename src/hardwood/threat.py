"""What the adversary may do."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import FLOAT32_MAX, FloatArray, as_table, named

Norm = Literal["inf", 1, 2, 0]
NORMS: tuple[Norm, ...] = ("inf", 1, 2, 0)
NormLike = Norm | float

_MOST_APART = 1e260  # eps of features: the largest steps, counted in the smallest, stay finite


def check_norm(norm: Any) -> Norm:
    """Bring a norm to one of "inf", 1, 2, 0."""
    if norm in ("inf", np.inf):
        return "inf"
    if not isinstance(norm, str | bool):
        for known in (1, 2, 0):
            if norm == known:
                return known
    raise ValueError(f'norm must be "inf", 1, 2 or 0, got norm={norm!r}.')


@dataclass(frozen=True)
class Reach:
    """A threat for a given table: arrays with one entry per feature.

    ``limits`` holds down, up, low, high; the core's ``Reach`` defines the ball from them.
    A step counts its size divided by ``down_scale`` or ``up_scale``: 1 where eps is the same
    everywhere, less where a feature may move less. ``radius`` is the largest eps.
    """

    limits: FloatArray
    down_scale: FloatArray
    up_scale: FloatArray
    radius: float

    def measured(self) -> "Reach":
        """The same, for lengths: refused where steps of features cannot be counted together."""
        finite = self.limits[:, :2][np.isfinite(self.limits[:, :2])]
        least = float(finite.min(where=finite > 0, initial=np.inf))
        largest = float(finite.max(initial=0.0))
        if largest > _MOST_APART * least:
            raise ValueError(
                f"eps must not differ by more than a factor of {_MOST_APART:g} between features, "
                f"got {least:g} and {largest:g}; steps could not be measured in both."
            )
        return self

    def without_radius(self) -> "Reach":
        """The same directions, range and scales, but steps of any size."""
        limits = self.limits.copy()
        limits[:, :2] = np.where(limits[:, :2] > 0, np.inf, 0.0)
        return Reach(limits, self.down_scale, self.up_scale, np.inf)


@dataclass(frozen=True, init=False, repr=False)
class Threat:
    """What the adversary may do to a row.

    The adversary replaces a row x by any point of a closed ball around it that also lies in the
    valid range and leaves the fixed features alone. A missing value is never moved.

    Parameters
    ----------
    eps : float, sequence, mapping
        How far a value can be moved, finite and >= 0: one number; a list or array with one per
        feature; a mapping from feature name or position (features that are not named do not move).
        Wherever a number may stand, a pair ``(down, up)`` gives different steps down and up; a
        tuple of two numbers alone is such a pair for all features. With ``norm=0``, the number of
        features that can be changed.
    norm : {"inf", 1, 2, 0}, default="inf"
        How a move is measured. With eps per feature, a step counts relative to the eps of its
        feature: ``norm((x' - x) / eps) <= 1``.
    low, high : float, sequence, mapping or None, default=None
        The valid range of the adversary's values, one number or one per feature.
        It does not push rows that lie outside of it.
    fixed : sequence of int or str, default=()
        Features that the adversary cannot touch, by position or by name.

    Examples
    --------
    >>> import hardwood as hw
    >>> threat = hw.Threat(eps=0.1, low=0, high=1)
    >>> low, high = threat.ball([[0.25, 0.95]])
    >>> print(low, high)
    [[0.15 0.85]] [[0.35 1.  ]]

    A spammer can add words, but not take them away; the sender's age is out of reach:

    >>> threat = hw.Threat(eps=(0, 3), fixed=["age"])
    >>> low, high = threat.ball([[5.0, 30.0]], feature_names=["n_words", "age"])
    >>> print(low, high)
    [[ 5. 30.]] [[ 8. 30.]]
    """

    eps: Any
    norm: Norm
    low: Any
    high: Any
    fixed: tuple[int | str, ...]

    def __init__(
        self,
        eps: Any,
        norm: Any = "inf",
        low: Any = None,
        high: Any = None,
        fixed: Iterable[int | str] = (),
    ) -> None:
        if isinstance(fixed, str) or not isinstance(fixed, Iterable):
            raise ValueError(
                f"fixed must be a sequence of features, got {fixed!r}; "
                f"for one feature pass a list of one."
            )
        object.__setattr__(self, "eps", _plain(eps))
        object.__setattr__(self, "norm", check_norm(norm))
        object.__setattr__(self, "low", _plain(low))
        object.__setattr__(self, "high", _plain(high))
        object.__setattr__(self, "fixed", _plain(tuple(fixed)))
        self._check_what_needs_no_table()

    def _check_what_needs_no_table(self) -> None:
        for step in [self.eps] if _is_step(self.eps) else _entries(self.eps):
            _check_step(step)
        if self.norm == 0 and not _is_number(self.eps):
            raise ValueError(
                f"With norm=0, eps is the number of features that can be changed; "
                f"pass one number, got eps={self.eps!r}."
            )
        for name in ("low", "high"):
            for limit in _entries(getattr(self, name)):
                if limit is not None and (not _is_number(limit) or np.isnan(limit)):
                    raise ValueError(
                        f"{name} must be a number, one per feature, or a mapping from feature "
                        f"name, got {name}={limit!r}."
                    )

    def __repr__(self) -> str:
        parts = [f"eps={self.eps!r}"]
        if self.norm != "inf":
            parts.append(f"norm={self.norm!r}")
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        if self.fixed:
            parts.append(f"fixed={self.fixed!r}")
        return f"Threat({', '.join(parts)})"

    def __hash__(self) -> int:
        # Equal threats must agree here; eps may hold lists and mappings, which do not hash.
        return hash((self.norm, self.fixed))

    def reach(self, n_features: int, feature_names: Sequence[str] | None = None) -> Reach:
        """Spell the threat out for a table.

        Parameters
        ----------
        n_features : int
            Number of columns.
        feature_names : sequence of str or None, default=None
            Column names, needed where the threat names features.

        Returns
        -------
        Reach
            Arrays with one entry per feature.
        """
        names = None if feature_names is None else list(feature_names)
        low = _limits("low", self.low, -FLOAT32_MAX, n_features, names)
        high = _limits("high", self.high, FLOAT32_MAX, n_features, names)
        if np.any(low > high):
            f = int(np.argmax(low > high))
            raise ValueError(
                f"low must not exceed high, got low={low[f]} and high={high[f]} for feature {f}."
            )
        if self.norm == 0:
            steps = np.full((n_features, 2), np.inf if self.eps >= 1 else 0.0)
        else:
            every = [self.eps] * n_features if _is_step(self.eps) else self.eps
            listed = _per_feature("eps", every, 0.0, n_features, names)
            steps = np.array([np.broadcast_to(step, 2) for step in listed], dtype=np.float64)
        for feature in self.fixed:
            steps[_position(feature, n_features, names, "fixed")] = 0.0
        radius = float(self.eps if self.norm == 0 else steps.max())
        unit = radius if 0 < radius < np.inf and self.norm != 0 else 1.0
        return Reach(
            limits=np.ascontiguousarray(np.column_stack([steps, low, high])),
            down_scale=_scale(steps[:, 0], unit),
            up_scale=_scale(steps[:, 1], unit),
            radius=radius,
        )

    def ball(
        self, X: npt.ArrayLike, feature_names: Sequence[str] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Give the ends of the ball around every row.

        In the maximum norm the ball is exactly the box between the ends; in other norms the box is
        the smallest one around it, and along one feature alone the ends are reached.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN stays NaN.
        feature_names : sequence of str or None, default=None
            Column names, needed where the threat names features.

        Returns
        -------
        low, high : ndarray of shape (n_samples, n_features)
            Both ends belong to the ball.
        """
        table = as_table(X)
        low, high = _core.ball_ends(table, self.reach(table.shape[1], feature_names).limits)
        return np.asarray(low), np.asarray(high)


def as_threat(eps: Any, threat: Threat | None, norm: Norm = "inf") -> Threat:
    """Choose between the two ways in which callers can say what the adversary may do."""
    if threat is None:
        return Threat(eps, norm=norm)
    if not isinstance(threat, Threat):
        raise TypeError(f"threat must be a hardwood.Threat, got {type(threat).__name__}.")
    return threat


def _scale(step: FloatArray, unit: float) -> FloatArray:
    # A direction that is closed needs no scale; 1 avoids 0 / 0. Unlimited steps are not scaled.
    return np.where((step > 0) & np.isfinite(step), step / unit, 1.0)


def _plain(given: Any) -> Any:
    """Arrays and numpy's numbers as Python's own, so that threats compare and print by value."""
    if isinstance(given, Mapping):
        return {_plain(feature): _plain(entry) for feature, entry in given.items()}
    if isinstance(given, tuple):
        return tuple(_plain(entry) for entry in given)
    if isinstance(given, list):
        return [_plain(entry) for entry in given]
    return np.asarray(given).tolist()


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _is_step(given: Any) -> bool:
    """One entry of eps: a number, or a tuple (down, up); a list is one entry per feature."""
    if isinstance(given, tuple):
        return len(given) == 2 and all(_is_number(step) for step in given)
    return not isinstance(given, list | Mapping)


def _entries(given: Any) -> list[Any]:
    """All entries of a single one, a sequence or a mapping."""
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, list | tuple) else [given]


def _check_step(step: Any) -> None:
    numbers = list(step) if isinstance(step, list | tuple) and len(step) == 2 else [step]
    if not all(_is_number(number) for number in numbers):
        raise ValueError(
            f"eps must be a finite number >= 0, a pair (down, up), one of these per feature, "
            f"or a mapping from feature name, got eps={step!r}."
        )
    for number in numbers:
        if not 0 <= number < np.inf:
            raise ValueError(f"eps must be a finite number >= 0, got eps={number}.")


def _position(feature: Any, n_features: int, names: list[str] | None, what: str) -> int:
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"{what} names the feature {feature!r}, but the columns have no names; "
                f"pass a data frame, or use positions."
            )
        position = named(feature, names)
        if position is None:
            shown = ", ".join(repr(name) for name in names[:8]) + (
                ", ..." if len(names) > 8 else ""
            )
            raise ValueError(f"{what} names the feature {feature!r}, but the columns are {shown}.")
        return position
    if not isinstance(feature, int) or isinstance(feature, bool):
        raise ValueError(f"{what} must name features or give their positions, got {feature!r}.")
    if not 0 <= feature < n_features:
        raise ValueError(
            f"{what} names feature {feature}, but there are {n_features} features "
            f"(0 to {n_features - 1})."
        )
    return feature


def _per_feature(
    what: str, given: Any, default: Any, n_features: int, names: list[str] | None
) -> list[Any]:
    """One entry per feature from a sequence or from a mapping of the features that differ."""
    if isinstance(given, Mapping):
        entries = [default] * n_features
        for feature, entry in given.items():
            entries[_position(feature, n_features, names, what)] = entry
        return entries
    if len(given) != n_features:
        raise ValueError(
            f"{what} has {len(given)} entries but X has {n_features} features; "
            f"pass one number, or one entry per feature."
        )
    return list(given)


def _limits(
    what: str, given: Any, default: float, n_features: int, names: list[str] | None
) -> FloatArray:
    """Ends of the valid range; an entry of None, like an infinite one, is no limit."""
    every = given if isinstance(given, Mapping | list | tuple) else [given] * n_features
    entries = _per_feature(what, every, None, n_features, names)
    ends = [default if entry is None else entry for entry in entries]
    limited: FloatArray = np.clip(np.array(ends, dtype=np.float64), -FLOAT32_MAX, FLOAT32_MAX)
    return limited
