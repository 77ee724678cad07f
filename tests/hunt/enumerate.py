"""The truth about a small model: every cell between its thresholds, asked of the model itself.

Only the places of the thresholds come from hardwood (`Trees.threshold`). Each cell is asked at both
ends and at a point between, and so are points anywhere, so thresholds that loading missed or moved
show as cells that contradict themselves. Labels, predictions, balls and lengths owe nothing to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BIGGEST = float(np.finfo(np.float32).max)  # rows and ranges end here
CLOSE = 1e-9  # sums of steps may be rounded; who is nearer to a border may be on either side


class Contradiction(Exception):
    """The source itself tells apart points that no known threshold tells apart."""


@dataclass(frozen=True)
class Moves:
    """A threat on its own terms, one number per feature."""

    threat: Any  # hardwood's
    norm: Any
    down: np.ndarray
    up: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def unit(self) -> float:
        """What steps are counted in: multiples of the threat where its sizes differ."""
        sizes = np.unique(np.concatenate([self.down, self.up]))
        sizes = sizes[sizes > 0]
        return float(sizes[0]) if self.norm != 0 and len(sizes) == 1 else 1.0

    @property
    def radius(self) -> float:
        return float(self.threat.eps) if self.norm == 0 else self.unit


def first_not_left(threshold: float, x_dtype: Any) -> float:
    """The smallest double that does not go left, by bisection between two neighbours."""
    if x_dtype == np.float64 or not np.isfinite(threshold):
        return float(threshold)
    right = np.float32(threshold)
    with np.errstate(over="ignore"):
        low, high = float(np.nextafter(right, np.float32(-np.inf))), float(right)
    while np.nextafter(low, np.inf) < high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if np.float32(middle) >= right else (middle, high)
    return high


def edges_of(trees: Any, more: Sequence[float] = ()) -> list[np.ndarray]:
    """Where cells begin, by feature; `more` are values that the source treats by themselves."""
    found = []
    for f in range(trees.n_features):
        here = {first_not_left(t, trees.x_dtype) for t in trees.threshold[trees.feature == f]}
        for value in more:
            single = np.float32(value)
            after = np.nextafter(single, np.float32(np.inf))
            here |= {first_not_left(single, np.float32), first_not_left(after, np.float32)}
        found.append(np.array(sorted(e for e in here if -BIGGEST < e <= BIGGEST)))
    return found


def limits_of(trees: Any) -> list[tuple[float, float]]:
    """Between which values the steps of a pipeline take a column; beyond, some overflow."""
    limits = [(-BIGGEST, BIGGEST)] * trees.n_features
    for f, start, end in trees.columns.refused if trees.columns is not None else ():
        low, high = limits[f]
        if start <= -BIGGEST:
            limits[f] = max(low, end), high
        elif end > BIGGEST:
            limits[f] = low, min(high, float(np.nextafter(start, -np.inf)))
    return limits


def _step(x: float, z: np.ndarray) -> np.ndarray:
    """The smallest size whose closed ball around x holds z, in floating point."""
    size = np.abs(z - x)
    while (short := ~((x - size <= z) & (z <= x + size))).any():
        size[short] = np.nextafter(size[short], np.inf)
    return size


class Cells:
    """The source's answer in every cell."""

    def __init__(
        self,
        edges: list[np.ndarray],
        missing: bool,
        ask: Callable[[np.ndarray], np.ndarray],
        rng: np.random.Generator,
        categories: dict[int, np.ndarray] | None = None,
        limits: list[tuple[float, float]] | None = None,
    ) -> None:
        edges = [*edges]
        limits = limits or [(-BIGGEST, BIGGEST)] * len(edges)
        for f, values in (categories or {}).items():
            edges[f] = (values[1:] + values[:-1]) / 2  # nobody moves to them
        self.edges, self.missing = edges, missing
        self.shape = tuple(len(e) + 1 + missing for e in edges)
        ends = [self._ends(*of) for of in zip(edges, limits, strict=True)]
        for f, values in (categories or {}).items():
            ends[f] = values, values
        tables = []
        for turn in range(3):
            axes = []
            for low, high in ends:
                between = np.clip(low + rng.random(len(low)) * (high - low), low, high)
                value = (low, high, between)[turn]
                axes.append(np.append(value, np.nan) if missing else value)
            tables.append(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(edges)))
        every = ask(np.concatenate(tables))
        self.points = tables[0]
        self.answer, *others = np.split(np.asarray(every), 3)
        for table, other in zip(tables[1:], others, strict=True):
            self.check(table, other)

    @staticmethod
    def _ends(edges: np.ndarray, limits: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        if len(edges) == 0:
            return np.clip([-1.0], *limits), np.clip([1.0], *limits)
        below, above = edges[0] - 1 - abs(edges[0]), edges[-1] + 1 + abs(edges[-1])
        low = np.append(max(below, limits[0]), edges)
        return low, np.append(np.nextafter(edges, -np.inf), min(above, limits[1]))

    def check(self, points: np.ndarray, answer: np.ndarray) -> None:
        """See that points get the answer of their cells."""
        known = self.answer[self.at(points)]
        wrong = np.flatnonzero(np.asarray(known != answer))
        if len(wrong):
            i = wrong[0]
            raise Contradiction(
                f"the source says {answer[i]} at {points[i].tolist()} but {known[i]} elsewhere in "
                f"the same cell, at {self.points[self.at(points[i : i + 1])[0]].tolist()}"
            )

    def at(self, X: np.ndarray) -> np.ndarray:
        """The number of each row's cell."""
        places = []
        for f, edges in enumerate(self.edges):
            place = np.searchsorted(edges, X[:, f], side="right")
            places.append(np.where(np.isnan(X[:, f]), len(edges) + 1, place))
        return np.ravel_multi_index(tuple(places), self.shape)

    def nearest(self, x: np.ndarray) -> list[np.ndarray]:
        """By feature, the point of each cell that is nearest to x; NaN where there is no way."""
        axes = []
        for f, edges in enumerate(self.edges):
            z = np.full(self.shape[f], np.nan)
            if not np.isnan(x[f]):
                here = int(np.searchsorted(edges, x[f], side="right"))
                z[: len(edges)] = np.nextafter(edges, -np.inf)
                z[here + 1 : len(edges) + 1] = edges[here:]
                z[here] = x[f]
            axes.append(z)
        return axes

    def point(self, x: np.ndarray, cell: int) -> np.ndarray:
        """The point of a cell that is nearest to x."""
        place = np.unravel_index(cell, self.shape)
        return np.array([z[i] for z, i in zip(self.nearest(x), place, strict=True)])

    def lengths(self, x: np.ndarray, moves: Moves) -> np.ndarray:
        """How long the way to each cell is, in the threat's unit; sizes of eps do not limit it."""
        axes = []
        for f, z in enumerate(self.nearest(x)):
            step = np.full(len(z), np.inf)
            if np.isnan(x[f]):
                step[-1] = 0.0  # a missing value stays
            else:
                open_cell = ~np.isnan(z)
                step[open_cell] = _step(x[f], z[open_cell])
                size = np.where(z > x[f], moves.up[f], moves.down[f])
                with np.errstate(divide="ignore", invalid="ignore"):
                    step = np.where(step == 0, 0.0, step / (size / moves.unit))
                if moves.norm == 0:
                    step = np.where((step > 0) & (size > 0), 1.0, step)
                inside = (z >= min(x[f], moves.low[f])) & (z <= max(x[f], moves.high[f]))
                step[~inside] = np.inf
            axes.append(step)
        total = np.zeros(())
        for step in axes:
            if moves.norm == "inf":
                total = np.maximum(total[..., None], step)
            elif moves.norm == 2:
                total = np.hypot(total[..., None], step)
            else:
                total = total[..., None] + step
        return total.ravel()

    def inside(self, x: np.ndarray, moves: Moves) -> tuple[np.ndarray, np.ndarray]:
        """Which cells the ball surely touches, and which it may touch, for rounding."""
        if moves.norm != "inf":
            length = self.lengths(x, moves)
            sure = length <= moves.radius * (1 - CLOSE)
            return sure | (length == 0), length <= moves.radius * (1 + CLOSE) + doubt(x, moves)
        touched = np.ones((), dtype=bool)
        for f, z in enumerate(self.nearest(x)):
            if np.isnan(x[f]):
                here = np.zeros(len(z), dtype=bool)
                here[-1] = True
            else:
                lowest = min(x[f], max(x[f] - moves.down[f], moves.low[f]))
                highest = max(x[f], min(x[f] + moves.up[f], moves.high[f]))
                here = (z >= lowest) & (z <= highest)
            touched = touched[..., None] & here
        return touched.ravel(), touched.ravel()


def doubt(x: np.ndarray, moves: Moves) -> float:
    """What a length may be off because x plus a step is rounded."""
    size = np.concatenate([moves.down, moves.up])
    if moves.norm == 0 or not (size > 0).any():
        return 0.0
    return float(np.nansum(np.spacing(np.abs(x)))) * moves.unit / float(size[size > 0].min())


def length_of(x: np.ndarray, z: np.ndarray, moves: Moves) -> float:
    """How far z is from x, in the threat's unit; infinity if the threat has no such move."""
    total = 0.0
    for f in range(len(x)):
        if np.isnan(x[f]) or x[f] == z[f]:
            if np.isnan(x[f]) and not np.isnan(z[f]):
                return np.inf
            continue
        size = moves.up[f] if z[f] > x[f] else moves.down[f]
        if size == 0 or not min(x[f], moves.low[f]) <= z[f] <= max(x[f], moves.high[f]):
            return np.inf
        step = float(_step(x[f], z[f : f + 1].copy())[0]) / (size / moves.unit)
        if moves.norm == "inf":
            total = max(total, step)
        elif moves.norm == 2:
            total = float(np.hypot(total, step))
        else:
            total += 1.0 if moves.norm == 0 else step
    return total
