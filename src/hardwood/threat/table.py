"""The columns of a table, for which a threat is spelled out."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood._check import FLOAT32_MAX, BoolArray, FloatArray, IntArray, named
from hardwood.threat.reach import Changes, Group, Reach
from hardwood.threat.steps import ANY, Relative, is_number, is_step, pair

if TYPE_CHECKING:
    from hardwood.threat.threat import Threat


@dataclass(frozen=True)
class TableFacts:
    """What has to be known of a table; the parameters are those of `Threat.reach`."""

    n_features: int
    names: list[str] | None
    categories: Mapping[int, Sequence[Any] | Mapping[int, Any] | None]
    integer: Iterable[int]
    truths: Collection[int] = ()

    def spell_out(self, threat: "Threat") -> Reach:
        """Give every column what the threat says about it."""
        low, high = self._range(threat.low, threat.high)
        fixed, blank = self._positions("fixed", threat.fixed), self._none()
        blank[self._positions("blank", threat.blank)] = True
        whole, given = self._none(), threat.integer
        whole[list(self.integer) if given is None else self._positions("integer", given)] = True
        whole[list(self.truths)] = True  # whatever a threat calls whole
        named_codes = [feature for feature, known in self.categories.items() if known is not None]
        whole[named_codes] = False
        counted = threat.norm == 0 and is_number(threat.eps)
        every = [threat.eps] * self.n_features if is_step(threat.eps) else threat.eps
        listed = self._per_feature("eps", [0.0] * self.n_features if counted else every)
        for feature in fixed:
            listed[feature] = 0.0
        groups = self._groups(threat, listed, fixed)
        counts = any(step is ANY or isinstance(step, Mapping) for step in listed)
        for feature, step in enumerate(listed):
            listed[feature] = self._of_truths(feature, step)
        changes = self._changes(listed, is_step(threat.eps))
        steps = np.array([pair(step) for step in listed], dtype=np.float64).reshape(-1, 2)
        share = np.zeros((self.n_features, 2))
        for feature, step in enumerate(listed):
            if isinstance(step, Relative):
                share[feature] = step.down, step.up
        if counted:
            steps[:] = np.inf if threat.eps >= 1 else 0.0
            steps[fixed] = 0.0
        for feature in named_codes:  # numbers say nothing about categories
            steps[feature] = share[feature] = 0.0
        sizes = steps[(steps > 0) & np.isfinite(steps)]
        # Categories count, even if only those of columns that nobody reads change.
        others = share.any() or blank.any() or counts or any(g.moves for g in groups)
        if counted:
            radius = float(threat.eps)
        elif threat.norm == 0:
            n_movable = np.count_nonzero(steps.any(axis=1) | share.any(axis=1) | blank)
            n_movable += len(set(changes) - set(np.flatnonzero(blank)))
            n_movable += sum(group.moves for group in groups)
            radius = float(n_movable if threat.max_changes is None else threat.max_changes)
        else:
            radius = float(steps.max(initial=0.0)) or float(others)
        unit = radius if 0 < radius < np.inf and threat.norm != 0 else 1.0
        return Reach(
            limits=np.ascontiguousarray(np.column_stack([steps, low, high])),
            down_scale=_scale(steps[:, 0] + share[:, 0], unit),
            up_scale=_scale(steps[:, 1] + share[:, 1], unit),
            radius=radius,
            share=share,
            whole=whole,
            blank=blank,
            changes=changes,
            groups=groups,
            max_changes=threat.max_changes or 0,
            only=threat.only,
            unit=unit,
            multiples=threat.norm != 0 and bool(others or len(np.unique(sizes)) > 1),
        )

    def _none(self) -> BoolArray:
        return np.zeros(self.n_features, dtype=bool)

    def _groups(self, threat: "Threat", listed: list[Any], fixed: list[int]) -> tuple[Group, ...]:
        """One-hot groups by position; their columns are no numbers any more."""
        groups: list[Group] = []
        for group in threat.one_hot:
            columns = tuple(self._positions("one_hot", group))
            if any(set(columns) & set(other.columns) for other in groups):
                raise ValueError(f"one_hot names a column of {list(group)!r} twice.")
            still = isinstance(threat.eps, list) and not any(
                listed[column] is ANY or any(pair(listed[column])) for column in columns
            )
            groups.append(Group(columns, not still and not set(columns) & set(fixed)))
            for column in columns:
                listed[column] = 0.0
        return tuple(groups)

    def _of_truths(self, feature: int, step: Any) -> Any:
        """The step of a column of truth values in the words of this model, else as it is.

        To one model these are the numbers 0 and 1, to another two categories, and one threat is
        asked about both.
        """
        changes = step is ANY or isinstance(step, Mapping)
        if feature in self.truths and feature not in self.categories and changes:
            column = feature if self.names is None else self.names[feature]
            of_false, of_true, _ = _codes(step, {0: False, 1: True}, column)
            return float(0 in of_true), float(1 in of_false)
        known = self.categories.get(feature)
        names = list(known.values() if isinstance(known, Mapping) else known or ())
        if changes or isinstance(step, Relative) or not set(map(type, names)) == {bool}:
            return step
        down, up = pair(step)
        ways = {name: [not name] for name in names if (down if name else up) >= 1}
        return {name: to for name, to in ways.items() if to[0] in names} or 0.0

    def _changes(self, listed: list[Any], one_step: bool) -> Changes:
        """What each code of a feature of categories may become; `one_step` is meant for numbers."""
        changes: dict[int, tuple[IntArray, ...]] = {}
        for feature, step in enumerate(listed):
            column = feature if self.names is None else self.names[feature]
            known = self.categories.get(feature)
            if step is ANY or isinstance(step, Mapping):
                if feature not in self.categories:
                    raise ValueError(
                        f"The threat changes categories of column {column!r}, but to this model "
                        f"it holds numbers; give it a number, a pair (down, up) or hw.relative."
                    )
                if known is not None:
                    codes = known if isinstance(known, Mapping) else dict(enumerate(known))
                    changes[feature] = _codes(step, codes, column)
            elif known is not None and not one_step:
                if isinstance(step, Relative) or any(pair(step)):
                    raise ValueError(
                        f"The threat moves column {column!r} by {step!r}, but to this model it "
                        f"holds categories; give it hw.ANY, {{category: [categories it can "
                        f"become]}}, or 0."
                    )
        return changes

    def _range(self, low: Any, high: Any) -> tuple[FloatArray, FloatArray]:
        """Ends of the valid range; an entry of None, like an infinite one, is no limit."""
        ends = []
        for what, given, default in (("low", low, -FLOAT32_MAX), ("high", high, FLOAT32_MAX)):
            every = (
                given if isinstance(given, Mapping | list | tuple) else [given] * self.n_features
            )
            listed = self._per_feature(what, every, None)
            numbers = np.array(
                [default if end is None else end for end in listed], dtype=np.float64
            )
            ends.append(np.clip(numbers, -FLOAT32_MAX, FLOAT32_MAX))
        empty = ends[0] > ends[1]
        if np.any(empty):
            f = int(np.argmax(empty))
            raise ValueError(
                f"low must not exceed high, got low={ends[0][f]} and high={ends[1][f]} for "
                f"feature {f}."
            )
        return ends[0], ends[1]

    def _per_feature(self, what: str, given: Any, default: Any = 0.0) -> list[Any]:
        """One entry per feature from a sequence or from a mapping of the features that differ."""
        if isinstance(given, Mapping):
            listed = [default] * self.n_features
            for feature, entry in given.items():
                listed[self._position(what, feature)] = entry
            return listed
        if len(given) != self.n_features:
            raise ValueError(
                f"{what} has {len(given)} entries but X has {self.n_features} features; "
                f"pass one number, or one entry per feature."
            )
        return list(given)

    def _positions(self, what: str, columns: Iterable[Any]) -> list[int]:
        return [self._position(what, column) for column in columns]

    def _position(self, what: str, feature: Any) -> int:
        if isinstance(feature, str):
            if self.names is None:
                raise ValueError(
                    f"{what} names the feature {feature!r}, but the columns have no names; "
                    f"pass a data frame, or use positions."
                )
            position = named(feature, self.names)
            if position is None:
                shown = _shown(self.names)
                raise ValueError(
                    f"{what} names the feature {feature!r}, but the columns are {shown}."
                )
            return position
        if not isinstance(feature, int) or isinstance(feature, bool):
            raise ValueError(f"{what} must name features or give their positions, got {feature!r}.")
        if not 0 <= feature < self.n_features:
            raise ValueError(
                f"{what} names feature {feature}, but there are {self.n_features} features "
                f"(0 to {self.n_features - 1})."
            )
        return feature


def _shown(names: Iterable[Any]) -> str:
    """The first of some names, for a message."""
    listed = [repr(name) for name in names]
    return ", ".join(listed[:8]) + (", ..." if len(listed) > 8 else "")


def _scale(step: FloatArray, unit: float) -> FloatArray:
    # A direction that is closed needs no scale; 1 avoids 0 / 0. Unlimited steps are not scaled.
    return np.where((step > 0) & np.isfinite(step), step / unit, 1.0)


def _codes(step: Any, known: Mapping[int, Any], column: Any) -> tuple[IntArray, ...]:
    """Sorted codes that each code may become, itself included; at last, those of unknown ones."""
    every = np.sort(np.fromiter(known, dtype=np.int32))
    n_codes = int(every.max(initial=-1)) + 1
    code = {category: position for position, category in known.items()}

    def code_of(category: Any) -> int:
        if category not in code:
            raise ValueError(
                f"The threat names the category {category!r} of column {column!r}, which the model "
                f"does not know; it knows {_shown(code)}."
            )
        return code[category]

    if step is ANY:
        others = dict.fromkeys([*every.tolist(), n_codes], every)
    else:
        others = {
            code_of(category): every if to is ANY else np.array([code_of(one) for one in to])
            for category, to in step.items()
        }
    alone = np.arange(n_codes, dtype=np.int32)
    listed = [
        every
        if others.get(at) is every and at in known
        else np.union1d(alone[at : at + 1], others.get(at, alone[:0])).astype(np.int32)
        for at in range(n_codes + 1)
    ]
    return tuple(listed)
