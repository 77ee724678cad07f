"""Tiny ensembles and the truth about them by enumeration: nothing shared with the package."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

import hardwood as hw

GRID = np.array([0.1, 0.25, 0.3, 0.5, 0.7, 0.9])


@dataclass(frozen=True)
class Case:
    trees: hw.Trees
    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Moves:
    """A threat, as it is given and as one number per feature."""

    threat: hw.Threat
    down: np.ndarray  # how far a step of full size goes; 0 where the direction is closed
    up: np.ndarray
    low: float
    high: float
    unit: float  # the largest eps of a feature that can move: what a step is counted relative to

    @property
    def told_in(self) -> float:
        """What distances are told in: the threat itself, where its sizes differ."""
        sizes = {*self.down[self.down > 0], *self.up[self.up > 0]}
        return self.unit if self.threat.norm != 0 and len(sizes) > 1 else 1.0


@st.composite
def cases(draw: st.DrawFn, max_trees: int = 7, max_rows: int = 3) -> Case:
    """Sums and shares, one to five outputs, ties, repeated thresholds, rows on thresholds, NaN."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_features = draw(st.integers(1, 4))
    n_outputs = draw(st.sampled_from([1, 1, 2, 3, 5]))
    shares = n_outputs > 1 and draw(st.booleans())
    x_dtype = draw(st.sampled_from([np.float32, np.float64]))
    sum_dtype = draw(st.sampled_from([np.float32, np.float64]))
    kind = draw(st.sampled_from(["ties", "thirds", "normal"]))
    n_trees = draw(st.integers(1, max_trees))
    depth = draw(st.integers(0, 4))
    n_values = n_outputs if shares else 1

    def value() -> np.ndarray:
        if kind == "ties":
            return rng.integers(-2, 3, n_values) / 2
        if kind == "thirds":
            return rng.integers(-3, 4, n_values) / 3
        return rng.normal(size=n_values)

    nodes: dict[str, list] = {name: [] for name in ("feature", "threshold", "left", "right")}
    values: list[np.ndarray] = []

    def grow(start: int, depth: int) -> int:
        at = len(values)
        for name, leaf in (("feature", -1), ("threshold", 0.0), ("left", -1), ("right", -1)):
            nodes[name].append(leaf)
        values.append(value())
        if depth > 0 and rng.random() < 0.85:
            nodes["feature"][at] = int(rng.integers(n_features))
            nodes["threshold"][at] = x_dtype(rng.choice(GRID))
            nodes["left"][at] = grow(start, depth - 1)
            nodes["right"][at] = grow(start, depth - 1)
        return at - start

    tree_start = [0]
    for _ in range(n_trees):
        grow(tree_start[-1], depth)
        tree_start.append(len(values))
    trees = hw.Trees(
        nodes["feature"],
        np.array(nodes["threshold"], dtype=x_dtype),
        nodes["left"],
        nodes["right"],
        rng.random(len(values)) < 0.5,
        np.array(values, dtype=sum_dtype),
        tree_start,
        None if shares or n_outputs == 1 else np.arange(n_trees) % n_outputs,
        base=rng.integers(-1, 2, n_outputs) / (3 if kind == "thirds" else 4),
        n_features=n_features,
    )
    X = rng.random((max_rows, n_features))
    on = rng.choice(GRID, X.shape).astype(x_dtype).astype(np.float64)
    beside = np.nextafter(on, rng.choice([-np.inf, np.inf], X.shape))
    where = rng.random(X.shape)
    X = np.select([where < 0.15, where < 0.3, where < 0.4], [on, beside, np.nan], X)
    return Case(trees, X, labels(trees, X))


@st.composite
def moves(draw: st.DrawFn, n_features: int, norm: str | int = "inf") -> Moves:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low, high = draw(st.sampled_from([(-10.0, 10.0), (0.2, 0.8), (0.0, 1.0)]))
    fixed = tuple(int(f) for f in range(n_features) if rng.random() < 0.15)
    if norm == 0 or draw(st.booleans()):
        size = float(draw(st.sampled_from([0.05, 0.2, 0.5]))) if norm != 0 else 2.0
        down = up = np.full(n_features, size)
        eps = size
    else:
        down, up = rng.choice([0.0, 0.1, 0.2, 0.4], (2, n_features))
        eps = list(zip(down.tolist(), up.tolist(), strict=True))
    down, up = down.copy(), up.copy()
    down[list(fixed)] = up[list(fixed)] = 0
    unit = max(down.max(), up.max()) if norm != 0 else 1.0
    threat = hw.Threat(eps, norm=norm, low=low, high=high, fixed=fixed)
    return Moves(threat, down, up, low, high, unit)


def free(n_features: int) -> Moves:
    one = np.ones(n_features)
    return Moves(hw.Threat(1), one, one, -1e30, 1e30, 1.0)


def margins(trees: hw.Trees, X: np.ndarray) -> np.ndarray:
    """Walk down and add up, in the model's own precision and order."""
    X = X.astype(trees.x_dtype)
    rows = np.arange(len(X))
    sums = np.tile(trees.base.astype(trees.value.dtype), (len(X), 1))
    for k in range(trees.n_trees):
        start = trees.tree_start[k]
        at = np.full(len(X), start)
        while (inner := trees.feature[at] >= 0).any():
            v = X[rows, trees.feature[at]]
            left = np.where(np.isnan(v), trees.missing_left[at], v < trees.threshold[at])
            child = start + np.where(left, trees.left[at], trees.right[at])
            at = np.where(inner, child, at)
        first = trees.tree_output[k]
        sums[:, first : first + trees.value.shape[1]] += trees.value[at]
    return sums


def labels(trees: hw.Trees, X: np.ndarray) -> np.ndarray:
    sums = margins(trees, X)
    return (sums[:, 0] > 0).astype(int) if sums.shape[1] == 1 else sums.argmax(axis=1)


def crossing(threshold: float, dtype: type) -> float:
    """The smallest double that no longer goes left, by bisection."""
    if dtype == np.float64:
        return float(threshold)
    low = float(np.nextafter(np.float32(threshold), np.float32(-np.inf)))
    high = float(threshold)
    while np.nextafter(low, np.inf) < high:
        middle = (low + high) / 2
        low, high = (low, middle) if np.float32(middle) >= threshold else (middle, high)
    return high


def step(x: float, z: float) -> float:
    """The smallest size whose closed ball around x holds z, in floating point."""
    size = abs(z - x)
    while not x - size <= z <= x + size:
        size = np.nextafter(size, np.inf)
    return size


def points(trees: hw.Trees, x: np.ndarray, moves: Moves) -> tuple[np.ndarray, np.ndarray]:
    """One point for each box that the thresholds cut out, the nearest one, and its steps.

    Steps are counted relative to the largest eps; directions that are closed, and values outside
    the valid range, are left out.
    """
    options = []
    for f in range(trees.n_features):
        here = [(x[f], 0.0)]
        if not np.isnan(x[f]):
            for threshold in np.unique(trees.threshold[trees.feature == f]):
                edge = crossing(threshold, trees.x_dtype.type)
                z = edge if x[f] < edge else np.nextafter(edge, -np.inf)
                size = (moves.up if z > x[f] else moves.down)[f]
                # The range limits the adversary; it does not push a row that lies outside.
                if size > 0 and min(x[f], moves.low) <= z <= max(x[f], moves.high):
                    here.append((z, step(x[f], z) / (size / moves.unit)))
        options.append(here)
    every = np.array(list(product(*options)))
    return every[:, :, 0], every[:, :, 1]


def length(steps: np.ndarray, norm: str | int) -> np.ndarray:
    if norm == "inf":
        return steps.max(axis=1)
    if norm == 0:
        return np.count_nonzero(steps, axis=1).astype(float)
    return steps.sum(axis=1) if norm == 1 else np.sqrt((steps**2).sum(axis=1))


def distance(case: Case, i: int, moves: Moves, norm: str | int) -> float:
    """The truth: the nearest point of another label."""
    Z, steps = points(case.trees, case.X[i], moves)
    fooled = labels(case.trees, Z) != case.y[i]
    return float(length(steps[fooled], norm).min(initial=np.inf))
