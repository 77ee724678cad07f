"""A threat, spelled out for the columns of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hardwood import _core
from hardwood._check import BoolArray, FloatArray, IntArray

Changes = Mapping[int, tuple[IntArray, ...]]

_MOST_APART = 1e260  # eps of features: the largest steps, counted in the smallest, stay finite


@dataclass(frozen=True)
class Group:
    """Columns of which exactly one is 1, and whether the adversary can choose another one."""

    columns: tuple[int, ...]
    moves: bool


@dataclass(frozen=True)
class Reach:
    """A threat for a given table: arrays with one entry per feature.

    ``limits`` holds down, up, low, high, and ``share`` further steps down and up, as shares of |x|;
    the core's ``Reach`` defines the ball from them. In ``whole`` features only whole numbers can be
    chosen, in ``blank`` features the value can be removed. ``changes`` says for features of
    categories what each code may become, itself included, and at last what all codes may that the
    model does not know; a feature that is not there does not change. At most ``max_changes``
    features change, 0 is no limit. Rows of the class ``only`` attack, None: all. ``ranks`` is for
    training, which puts categories in an order: the least and the largest rank that each can
    become.

    A step counts its size divided by ``down_scale`` or ``up_scale`` (times |x|, where it is a
    share): 1 where eps is the same everywhere, less where a feature may move less. ``radius`` is
    the largest step in a column's unit. A change of category counts ``unit``, and so does a blank:
    the threat's own size, so that lengths divided by it are ``multiples`` of the threat, if that
    is how they are to be told. With norm 0 every changed feature counts 1.
    """

    limits: FloatArray
    down_scale: FloatArray
    up_scale: FloatArray
    radius: float
    share: FloatArray
    whole: BoolArray
    blank: BoolArray
    changes: Changes
    groups: tuple[Group, ...]
    max_changes: int
    only: Any
    unit: float
    multiples: bool
    ranks: Mapping[int, FloatArray] = field(default_factory=dict)

    @property
    def ends(self) -> FloatArray:
        """What the core knows a feature's ball by: limits, shares, whether it is whole, ranks."""
        most = max((ends.size for ends in self.ranks.values()), default=0)
        ranks = np.full((len(self.limits), most), np.nan)
        for feature, ends in self.ranks.items():
            ranks[feature, : ends.size] = ends.ravel()
        return np.ascontiguousarray(np.column_stack([self.limits, self.share, self.whole, ranks]))

    @property
    def moves(self) -> bool:
        """Whether anything can be changed at all."""
        steps = self.limits[:, :2].any() or self.share.any() or self.blank.any()
        return bool(steps or self.changes or any(group.moves for group in self.groups))

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

    def allows(self, X: FloatArray, Z: FloatArray) -> BoolArray:
        """Which values of rows X may become those of Z, each feature by itself; one-hot groups fit.

        How far they are apart together, and how many differ, is another question (`lengths`).
        """
        low, high = (np.asarray(end) for end in _core.ball_ends(X, self.ends))
        same = (X == Z) | (np.isnan(X) & np.isnan(Z))
        allowed = same | ((low <= Z) & (Z <= high) & (~self.whole | (Z == np.floor(Z))))
        allowed |= self.blank & ~np.isnan(X) & np.isnan(Z)
        for feature, to in self.changes.items():
            for code in np.unique(X[~np.isnan(X[:, feature]), feature]):
                mine = X[:, feature] == code
                known = 0 <= code < len(to) - 1
                allowed[mine, feature] |= np.isin(Z[mine, feature], to[int(code) if known else -1])
        for group in self.groups:
            columns = list(group.columns)
            dummies = Z[:, columns]
            one = ((dummies == 0) | (dummies == 1)).all(axis=1) & (dummies.sum(axis=1) == 1)
            allowed[:, columns] = same[:, columns] | (one & group.moves)[:, None]
        return np.asarray(allowed, dtype=bool)

    def lengths(self, X: FloatArray, Z: FloatArray, norm: object) -> FloatArray:
        """How far rows Z are from rows X; infinity for rows of NaN, unless all can be blank."""
        same = (X == Z) | (np.isnan(X) & np.isnan(Z))
        size: FloatArray = np.where(self.share > 0, np.abs(X)[:, :, None], 1.0)
        scale = np.where(Z < X, self.down_scale * size[:, :, 0], self.up_scale * size[:, :, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(same, 0.0, np.abs(Z - X) / scale)
        category = np.zeros(X.shape[1], dtype=bool)
        category[list(self.changes)] = True
        step = np.where(~same & (category | (np.isnan(Z) & ~np.isnan(X))), self.unit, step)
        for group in self.groups:
            first, *others = group.columns
            step[:, first] = np.where(same[:, list(group.columns)].all(axis=1), 0.0, self.unit)
            step[:, others] = 0.0
        length = _norm_of(step, norm)
        none = np.isnan(Z).all(axis=1) & ~(self.blank | np.isnan(X)).all(axis=1)
        return np.asarray(np.where(none, np.inf, length), dtype=np.float64)

    def n_changes(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """How many features differ, a one-hot group counting as one."""
        return self.lengths(X, Z, 0)

    def holds(self, X: FloatArray, Z: FloatArray, norm: object) -> BoolArray:
        """Whether the threat can make rows Z of rows X."""
        within: BoolArray = np.asarray(self.allows(X, Z).all(axis=1), dtype=bool)
        if self.max_changes:
            within = within & (self.n_changes(X, Z) <= self.max_changes)
        if norm != "inf":  # in the maximum norm, the ends of the ball have said all
            within = within & (self.lengths(X, Z, norm) <= self.radius)
        return within

    @property
    def beyond_numbers(self) -> list[str]:
        """What there is beside numbers that move freely, in words."""
        more = {
            "steps relative to the value": self.share.any(),
            "columns of whole numbers": (self.whole & self.limits[:, :2].any(axis=1)).any(),
            "changes of category": bool(self.changes),
            "values that can be left blank": self.blank.any(),
            "one-hot groups": bool(self.groups),
            "a number of changes (max_changes)": self.max_changes > 0,
            "attackers of one class (only)": self.only is not None,
        }
        return [kind for kind, there in more.items() if there]

    def still(self) -> "Reach":
        """The same range, and nobody moves."""
        limits = self.limits.copy()
        limits[:, :2] = 0
        return replace(
            self,
            limits=limits,
            share=np.zeros_like(self.share),
            blank=np.zeros_like(self.blank),
            changes={},
            groups=tuple(replace(group, moves=False) for group in self.groups),
            radius=0.0,
            ranks={},
        )

    def without_radius(self, norm: object = "inf") -> "Reach":
        """The same directions, range and scales, but steps of any size.

        With norm 0 the size of a step does not count, so its limit stays a limit.
        """
        if norm == 0:
            return replace(self, radius=np.inf)
        limits = self.limits.copy()
        limits[:, :2] = np.where(limits[:, :2] > 0, np.inf, 0.0)
        share: FloatArray = np.where(self.share > 0, np.inf, 0.0)
        return replace(self, limits=limits, share=share, radius=np.inf)

    def at(self, radius: float, norm: object = "inf") -> "Reach":
        """The same threat of another size: in its own unit, or with norm 0 a number of features.

        A change of category or a blank costs ``unit``: a smaller threat has none.
        """
        if radius == self.radius:
            return self
        limits, share = self.limits.copy(), self.share.copy()
        for side, scale in enumerate((self.down_scale, self.up_scale)):
            if norm == 0:  # a feature's own limit stays, if it has one
                limits[:, side] = limits[:, side] if radius >= 1 else 0.0
                share[:, side] = share[:, side] if radius >= 1 else 0.0
            else:
                limits[:, side] = np.where(limits[:, side] > 0, scale * radius, 0.0)
                share[:, side] = np.where(share[:, side] > 0, scale * radius, 0.0)
        scaled = replace(self, limits=limits, share=share, radius=radius)
        if radius >= (1 if norm == 0 else self.unit):
            return scaled
        return replace(
            scaled,
            blank=np.zeros_like(self.blank),
            changes={},
            groups=tuple(replace(group, moves=False) for group in self.groups),
        )


def _norm_of(step: FloatArray, norm: object) -> FloatArray:
    if norm == 0:
        return np.asarray(np.count_nonzero(step, axis=1), dtype=np.float64)
    if norm == "inf":
        return np.asarray(step.max(axis=1, initial=0.0), dtype=np.float64)
    if norm == 1:
        return np.asarray(step.sum(axis=1), dtype=np.float64)
    # Squares of tiny and of huge steps would be lost: count in the power of two of the largest.
    _, exponent = np.frexp(step.max(axis=1, initial=0.0))
    squares = np.ldexp(step, -exponent[:, None]) ** 2
    return np.asarray(np.ldexp(np.sqrt(squares.sum(axis=1)), exponent), dtype=np.float64)
