"""Trees over what a pipeline makes of its columns, as trees over the columns themselves.

What a split asks of a column after all steps, it asks of the raw value: for a number, whether it
lies in certain ranges, nearly always on one side of one threshold; for a category, whether it is in
a set. Steps are never inverted, they are asked: the threshold is the first raw double whose image
goes to the other side.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.columns import Columns
from hardwood.model.load.pipeline.bisect import first_where
from hardwood.model.load.pipeline.steps import CONSTANT, FALLING, REFUSED, RISING, Column, spans
from hardwood.model.trees import LEAF, Trees

BoolArray = npt.NDArray[np.bool_]
Ask = Callable[[FloatArray], FloatArray]

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
    """The state of the trees over raw columns, and whether nodes keep their numbers."""
    split = np.flatnonzero(trees.feature != LEAF)
    known = _known_rows(raw, trees)
    left_at = [
        np.asarray(trees._core.sides(np.ascontiguousarray(row)), dtype=bool)
        for row in raw.ask(known.rows)
    ]
    sides = _sides_of_numbers(trees, raw, known, left_at)
    nodes = _Nodes(trees, raw)
    for node in map(int, split):
        column = raw.columns[trees.feature[node]]
        blank = bool(left_at[known.blank][node])
        if column.raw in raw.categories:
            left = [bool(left_at[at][node]) for at in known.categories[column.raw]]
            nodes.set_categories(node, column.raw, left, blank)
        else:
            nodes.set_number(node, column.raw, sides[node], blank)
    return nodes.state()


@dataclass
class _Known:
    """Rows whose answers are needed as they are: categories, constants, blanks."""

    rows: FloatArray
    blank: int  # the row of blanks
    categories: dict[int, list[int]] = field(default_factory=dict)
    starts: dict[tuple[int, float], int] = field(default_factory=dict)


def _known_rows(raw: Raw, trees: Trees) -> _Known:
    values: dict[int, list[float]] = {}
    for r, names in raw.categories.items():
        values[r] = list(map(float, range(len(names) + (r in raw.about.takes_unknown))))
    used = np.unique(trees.feature[trees.feature != LEAF])
    for j in used:
        column = raw.columns[j]
        if column.raw not in raw.categories:
            flat = [start for start, _, sense in spans(column.pieces) if sense == CONSTANT]
            mine = values.setdefault(column.raw, [])
            mine += [start for start in flat if start not in mine]
    n = max((len(some) for some in values.values()), default=0)
    rows = np.tile(raw.base, (n + 1, 1))
    known = _Known(rows, n)
    for r, some in values.items():
        rows[: len(some), r] = some
        if r in raw.categories:
            known.categories[r] = list(range(len(some)))
        else:
            known.starts.update({(r, start): at for at, start in enumerate(some)})
    may_be_blank = [r for r in range(rows.shape[1]) if r not in raw.about.needs_value]
    rows[n, may_be_blank] = np.nan
    return known


def _sides_of_numbers(
    trees: Trees, raw: Raw, known: _Known, left_at: Sequence[BoolArray]
) -> dict[int, Sides]:
    """For each split on a number, its sides in raw values."""
    edge = np.asarray(trees._core.edges())
    categorical = trees.categorical
    split = [
        int(node)
        for node in np.flatnonzero(trees.feature != LEAF)
        if raw.columns[trees.feature[node]].raw not in raw.categories
    ]
    pairs = {(int(trees.feature[node]), float(edge[node])) for node in split}
    queries = [
        raw.columns[j].query(value, start, end, sense)
        for j, value in sorted(pairs)
        for start, end, sense in spans(raw.columns[j].pieces)
        if sense in (RISING, FALLING)
    ]
    found = dict(zip(queries, first_where(queries, raw.base).tolist(), strict=True))
    sides: dict[int, Sides] = {}
    by_pair: dict[tuple[int, float], Sides] = {}
    for node in split:
        j = int(trees.feature[node])
        column, value = raw.columns[j], float(edge[node])
        flat = any(sense == CONSTANT for _, _, sense in spans(column.pieces))
        if not flat and (j, value) in by_pair and not categorical[node]:
            sides[node] = by_pair[j, value]
            continue
        told: list[tuple[float, bool]] = []
        for start, end, sense in spans(column.pieces):
            if sense == REFUSED:
                told.append((start, told[-1][1] if told else True))
            elif sense == CONSTANT:
                told.append((start, bool(left_at[known.starts[column.raw, start]][node])))
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
        sides[node] = by_pair[j, value] = _merged(told)
    return sides


def _merged(told: Sequence[tuple[float, bool]]) -> Sides:
    kept = [told[0]]
    for start, left in told[1:]:
        if left != kept[-1][1]:
            kept.append((start, left))
    return tuple(kept)


class _Nodes:
    """The nodes over raw columns, first one for each old one; then those with ranges are grown."""

    def __init__(self, trees: Trees, raw: Raw) -> None:
        self.trees, self.raw = trees, raw
        n = trees.n_nodes
        self.feature = np.full(n, LEAF, dtype=np.int64)
        self.threshold = np.zeros(n)
        self.left, self.right = trees.left.astype(np.int64), trees.right.astype(np.int64)
        self.missing_left = np.array(trees.missing_left)
        self.sets: list[list[int]] = [[] for _ in range(n)]
        self.ranges: dict[int, Sides] = {}

    def set_categories(self, node: int, raw: int, left: Sequence[bool], blank: bool) -> None:
        """A split on categories: those listed go right, all others and unknown ones left."""
        n_known = len(self.raw.categories[raw])
        # A name that nobody has seen decides which side is listed.
        others = left[n_known] if len(left) > n_known else blank
        listed = [code for code in range(n_known) if left[code] != others]
        self.feature[node] = raw
        if not listed:
            self.threshold[node] = math.inf if others else -math.inf
            self.missing_left[node] = blank
            return
        self.sets[node] = listed
        self.missing_left[node] = blank
        if not others:
            self._swap(node)

    def set_number(self, node: int, raw: int, sides: Sides, blank: bool) -> None:
        """A split on a number, on one side of a threshold; more sides are kept for later."""
        self.feature[node] = raw
        self.missing_left[node] = blank
        if len(sides) == 1:
            self.threshold[node] = math.inf if sides[0][1] else -math.inf
        else:
            self.threshold[node] = sides[1][0]
            if not sides[0][1] and len(sides) == 2:
                self._swap(node)
            if len(sides) > 2:
                self.ranges[node] = sides

    def _swap(self, node: int) -> None:
        self.left[node], self.right[node] = self.right[node], self.left[node]
        self.missing_left[node] = not self.missing_left[node]

    def state(self) -> tuple[dict[str, Any], bool]:
        """What `Trees` take, and whether nodes keep their numbers."""
        state = self.trees.__getstate__()
        state.update(
            feature=self.feature,
            threshold=self.threshold,
            left=self.left,
            right=self.right,
            missing_left=self.missing_left,
        )
        origin = np.arange(len(self.feature))
        if self.ranges:
            origin = self._grow(state)
        sets = [self.sets[at] for at in origin]
        state["category_start"] = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
        state["category"] = [code for one in sets for code in one]
        for name in ("value", "gain", "cover"):
            state[name] = None if state[name] is None else state[name][origin]
        return state, not self.ranges

    def _grow(self, state: dict[str, Any]) -> npt.NDArray[np.int64]:
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
            sides = self.ranges.get(node, ((-math.inf, True), (t, False)))
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
        state.update(
            feature=self.feature[old],
            threshold=np.array(threshold),
            left=np.array(left),
            right=np.array(right),
            missing_left=np.array(missing_left),
            tree_start=np.array(tree_start),
        )
        return old
