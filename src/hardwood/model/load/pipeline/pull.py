"""Trees over what a pipeline makes of its columns, as trees over the columns themselves.

What a split asks of a column after all steps, it asks of the raw value: for a number, whether it
lies in certain ranges, nearly always on one side of one threshold; for a category, whether it is in
a set. Steps are never inverted, they are asked: the threshold is the first raw double whose image
goes to the other side.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.columns import Columns
from hardwood.model.load.pipeline.bisect import Ask, first_where
from hardwood.model.load.pipeline.steps import (
    CONSTANT,
    FALLING,
    REFUSED,
    RISING,
    Column,
    held_by,
    spans,
)
from hardwood.model.trees import LEAF, Trees, core_of, take_sets

_MOST_NODES = 4_000_000

# The sides of a split in raw values: from each start on, whether a row goes left.
Sides = tuple[tuple[float, bool], ...]


@dataclass(frozen=True)
class Raw:
    """The raw columns: how a row of them becomes the model's, and what categories they hold."""

    names: Sequence[Any]
    categories: Mapping[int, Sequence[Any]]
    columns: Sequence[Column]  # of the model, one for each of its features
    ask: Ask  # rows of raw columns, as rows of the model
    base: FloatArray
    about: Columns


def pull_back(trees: Trees, raw: Raw) -> tuple[dict[str, Any], bool]:
    """What changes in the trees over raw columns, and whether nodes keep their numbers."""
    known = _known_rows(raw, trees)
    left_at = np.array(
        [core_of(trees).sides(np.ascontiguousarray(row)) for row in raw.ask(known.rows)], dtype=bool
    )
    # Splits that ask the same are told once: by a node of each kind.
    split = np.flatnonzero(trees.feature != LEAF)
    asked = np.where(
        trees.categorical, np.arange(trees.n_nodes), np.asarray(core_of(trees).edges())
    )
    kind = np.array([trees.feature, trees.missing_left, trees.categorical, asked])[:, split]
    _, first, same = np.unique(kind, axis=1, return_index=True, return_inverse=True)
    node = split[first]
    sides = _sides_of_numbers(trees, raw, known, left_at, node)
    splits = _Splits(max(len(node), 1), raw)  # trees may be leaves alone
    for at, of in enumerate(node.tolist()):
        column = raw.columns[trees.feature[of]]
        blank = bool(left_at[known.blank, of])
        if column.raw in raw.categories:
            rows = known.categories[column.raw]
            splits.set_categories(at, column.raw, left_at[rows, of].tolist(), blank)
        else:
            splits.set_number(at, column.raw, sides[of], blank)
    place = np.zeros(trees.n_nodes, dtype=np.int64)
    place[split] = same.ravel()
    return _Nodes(trees, splits, place).changes(), not splits.ranges


@dataclass
class _Known:
    """Rows whose answers are needed as they are: categories, constants, blanks."""

    rows: FloatArray
    blank: int  # the row of blanks
    categories: dict[int, list[int]] = field(default_factory=dict)
    numbers: dict[tuple[int, float], int] = field(default_factory=dict)


def _known_rows(raw: Raw, trees: Trees) -> _Known:
    values: dict[int, list[float]] = {}
    for r, names in raw.categories.items():
        values[r] = list(map(float, range(len(names) + (r in raw.about.takes_unknown))))
    used = np.unique(trees.feature[trees.feature != LEAF])
    for j in used:
        column = raw.columns[j]
        if column.raw not in raw.categories:
            flat = [held_by(a, b) for a, b, sense in spans(column.segments) if sense == CONSTANT]
            mine = values.setdefault(column.raw, [])
            mine += [value for value in flat if value not in mine]
    n = max((len(some) for some in values.values()), default=0)
    rows = np.tile(raw.base, (n + 1, 1))
    known = _Known(rows, n)
    for r, some in values.items():
        rows[: len(some), r] = some
        if r in raw.categories:
            known.categories[r] = list(range(len(some)))
        else:
            known.numbers.update({(r, value): at for at, value in enumerate(some)})
    may_be_blank = [r for r in range(rows.shape[1]) if r not in raw.about.needs_value]
    rows[n, may_be_blank] = np.nan
    return known


def _sides_of_numbers(
    trees: Trees, raw: Raw, known: _Known, left_at: BoolArray, nodes: npt.NDArray[np.int64]
) -> dict[int, Sides]:
    """For each of some splits that is on a number, its sides in raw values."""
    edge = np.asarray(core_of(trees).edges())
    categorical = trees.categorical
    split = [
        node
        for node in nodes.tolist()
        if raw.columns[trees.feature[node]].raw not in raw.categories
    ]
    queries = [
        raw.columns[trees.feature[node]].query(float(edge[node]), start, end, sense)
        for node in split
        for start, end, sense in spans(raw.columns[trees.feature[node]].segments)
        if sense in (RISING, FALLING) and not categorical[node]
    ]
    found = dict(zip(queries, first_where(queries, raw.base).tolist(), strict=True))
    sides: dict[int, Sides] = {}
    for node in split:
        column, value = raw.columns[trees.feature[node]], float(edge[node])
        told: list[tuple[float, bool]] = []
        for start, end, sense in spans(column.segments):
            if sense == REFUSED:
                told.append((start, told[-1][1] if told else True))
            elif sense == CONSTANT:
                told.append(
                    (start, bool(left_at[known.numbers[column.raw, held_by(start, end)], node]))
                )
            elif categorical[node]:
                raise UnsupportedModelError(
                    f"Column {raw.names[column.raw]!r} reaches the model as a number and is split "
                    f"as a category there. Encode its categories in the pipeline."
                )
            else:
                cross = found[column.query(value, start, end, sense)]
                before = sense == RISING
                told += [(start, before)] if cross > start else []
                told += [(cross, not before)] if cross < end else []
        sides[node] = _merged(told)
    return sides


def _merged(told: Sequence[tuple[float, bool]]) -> Sides:
    kept = [told[0]]
    for start, left in told[1:]:
        if left != kept[-1][1]:
            kept.append((start, left))
    return tuple(kept)


class _Splits:
    """Splits on raw columns: whether a value is below a threshold, in a set, or in some ranges."""

    def __init__(self, n: int, raw: Raw) -> None:
        self.raw = raw
        self.feature = np.zeros(n, dtype=np.int64)
        self.threshold = np.zeros(n)
        self.missing_left = np.zeros(n, dtype=bool)
        self.swapped = np.zeros(n, dtype=bool)  # the children change places
        self.sets: list[list[int]] = [[] for _ in range(n)]
        self.ranges: dict[int, Sides] = {}

    def set_categories(self, at: int, raw: int, left: Sequence[bool], blank: bool) -> None:
        """A split on categories: those listed go right, all others and unknown ones left."""
        n_known = len(self.raw.categories[raw])
        # A name that nobody has seen decides which side is listed.
        others = left[n_known] if len(left) > n_known else blank
        listed = [code for code in range(n_known) if left[code] != others]
        self.feature[at] = raw
        if not listed:
            self.threshold[at] = math.inf if others else -math.inf
        self.sets[at] = listed
        self.swapped[at] = bool(listed) and not others
        self.missing_left[at] = blank != self.swapped[at]

    def set_number(self, at: int, raw: int, sides: Sides, blank: bool) -> None:
        """A split on a number, on one side of a threshold; more sides are kept for later."""
        self.feature[at] = raw
        if len(sides) == 1:
            self.threshold[at] = math.inf if sides[0][1] else -math.inf
        else:
            self.threshold[at] = sides[1][0]
        if len(sides) > 2:
            self.ranges[at] = sides
        self.swapped[at] = len(sides) == 2 and not sides[0][1]
        self.missing_left[at] = blank != self.swapped[at]


class _Nodes:
    """Nodes over raw columns: one for each old one, or several where a split has many sides."""

    def __init__(self, trees: Trees, splits: _Splits, place: npt.NDArray[np.int64]) -> None:
        self.trees, self.raw = trees, splits.raw
        leaf = trees.feature == LEAF
        self.place = place
        self.feature = np.where(leaf, LEAF, splits.feature[place])
        self.threshold = np.where(leaf, 0.0, splits.threshold[place])
        self.missing_left = splits.missing_left[place] & ~leaf
        swapped = splits.swapped[place] & ~leaf
        self.left = np.where(swapped, trees.right, trees.left).astype(np.int64)
        self.right = np.where(swapped, trees.left, trees.right).astype(np.int64)
        self.sets, self.ranges = splits.sets, splits.ranges

    def changes(self) -> dict[str, Any]:
        """What `Trees.replace` takes."""
        names = ("feature", "threshold", "left", "right", "missing_left")
        changes: dict[str, Any] = {name: getattr(self, name) for name in names}
        origin = np.arange(len(self.feature))
        if self.ranges:
            origin = self._grow(changes)
        for name in ("value", "gain", "cover"):
            known = getattr(self.trees, name)
            changes[name] = None if known is None else known[origin]
        start = np.cumsum([0, *map(len, self.sets), 0])  # the last set is empty: that of leaves
        codes = np.array([code for one in self.sets for code in one], dtype=np.int32)
        kind = np.where(self.feature[origin] == LEAF, len(self.sets), self.place[origin])
        changes["category_start"], changes["category"] = take_sets(start, codes, kind)
        return changes

    def _grow(self, changes: dict[str, Any]) -> npt.NDArray[np.int64]:
        """Write splits with more than two sides as several; what cannot be reached is left out."""
        origin: list[int] = []
        threshold: list[float] = []
        missing_left: list[bool] = []
        left: list[int] = []
        right: list[int] = []
        tree_start = [0]

        def emit(node: int) -> int:
            if len(origin) > _MOST_NODES:
                raise UnsupportedModelError(
                    f"Written in the columns of its user, this model has more than {_MOST_NODES} "
                    f"nodes: steps such as KBinsDiscretizer(encode='onehot') part a column into "
                    f"many ranges. Use encode='ordinal'."
                )
            origin.append(node)
            threshold.append(float(self.threshold[node]))
            missing_left.append(bool(self.missing_left[node]))
            left.append(LEAF)
            right.append(LEAF)
            return len(origin) - 1

        def grow(node: int, start: int, box: dict[int, tuple[float, float, bool]]) -> int:
            raw = int(self.feature[node])
            if raw == LEAF:
                return emit(node)
            old = self.trees.tree_start[start]
            children = {True: int(old + self.left[node]), False: int(old + self.right[node])}
            if raw in self.raw.categories:
                at = emit(node)
                for held, side in ((left, True), (right, False)):
                    held[at] = grow(children[side], start, box) - tree_start[-1]
                return at
            low, high, blank = box.get(raw, (-math.inf, math.inf, True))
            t = float(self.threshold[node])
            sides = self.ranges.get(int(self.place[node]), ((-math.inf, True), (t, False)))
            ends = [s for s, _ in sides[1:]] + [math.inf]
            here = [
                (max(a, low), side)
                for (a, side), b in zip(sides, ends, strict=True)
                if max(a, low) < min(b, high)
            ]
            goes_left = bool(self.missing_left[node])
            told = {side for _, side in here} | ({goes_left} if blank else set())
            if len(told) == 1:
                return grow(children[told.pop()], start, box)
            at = emit(node)
            if len(here) > 2:  # half of the ranges to each side
                middle = here[len(here) // 2][0]
                next_left, next_right, goes_left = node, node, True
            elif len(here) == 2:
                middle = here[1][0]
                next_left, next_right = children[here[0][1]], children[here[1][1]]
                goes_left = goes_left == here[0][1]
            else:  # all values go to one side, blanks to the other
                middle = math.inf
                next_left, next_right, goes_left = (
                    children[here[0][1]],
                    children[not here[0][1]],
                    False,
                )
            threshold[at], missing_left[at] = middle, goes_left
            boxes = (
                {**box, raw: (low, min(middle, high), blank and goes_left)},
                {**box, raw: (max(middle, low), high, blank and not goes_left)},
            )
            left[at] = grow(next_left, start, boxes[0]) - tree_start[-1]
            right[at] = grow(next_right, start, boxes[1]) - tree_start[-1]
            return at

        for k in range(self.trees.n_trees):
            grow(int(self.trees.tree_start[k]), k, {})
            tree_start.append(len(origin))
        old = np.array(origin, dtype=np.int64)
        changes.update(
            feature=self.feature[old],
            threshold=np.array(threshold),
            left=np.array(left),
            right=np.array(right),
            missing_left=np.array(missing_left),
            tree_start=np.array(tree_start),
        )
        return old
