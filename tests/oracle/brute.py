"""A robust split by its definition, row by row: plain, slow, nothing shared with the package."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor

import numpy as np
from scipy.optimize import minimize

from strategies import Ball

LOWEST = np.finfo(np.float32).min


@dataclass(frozen=True)
class Candidate:
    feature: int
    threshold: np.float32
    missing_left: bool


@dataclass(frozen=True)
class Node:
    """Rows of one node; `weight` counts the row in the column of its class."""

    X: np.ndarray
    weight: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return self.weight.sum(axis=0)

    def part(self, chosen: np.ndarray) -> "Node":
        return Node(self.X[chosen], self.weight[chosen])


@dataclass(frozen=True)
class Sides:
    """Where each row goes: for sure, possibly, and when nobody attacks."""

    sure_left: np.ndarray
    sure_right: np.ndarray
    plain_left: np.ndarray

    @property
    def ambiguous(self) -> np.ndarray:
        return ~self.sure_left & ~self.sure_right


def goes_left(x: float, threshold: np.float32) -> bool:
    return bool(np.float32(x) < threshold)


def ends(x: float, ball: Ball, feature: int) -> tuple[float, float]:
    """The smallest and the largest value the adversary can write in place of x."""
    down, up = ball.down[feature], ball.up[feature]
    low, high = ball.low[feature], ball.high[feature]
    return min(x, max(x - down, low)), max(x, min(x + up, high))


def sides(node: Node, ball: Ball, candidate: Candidate) -> Sides:
    left, right, plain = [], [], []
    for x in node.X[:, candidate.feature]:
        if np.isnan(x):
            left.append(candidate.missing_left)
            right.append(not candidate.missing_left)
            plain.append(candidate.missing_left)
        else:
            lowest, highest = ends(x, ball, candidate.feature)
            left.append(goes_left(highest, candidate.threshold))
            right.append(not goes_left(lowest, candidate.threshold))
            plain.append(goes_left(x, candidate.threshold))
    return Sides(np.array(left), np.array(right), np.array(plain))


def midpoints(x: np.ndarray) -> list[np.float32]:
    values = np.unique(x.astype(np.float32))
    found = []
    for below, above in pairwise(values):
        middle = np.float32((float(below) + float(above)) / 2)
        found.append(middle if middle > below else above)
    return found


def all_regions(x: np.ndarray, ball: Ball, feature: int) -> list[np.float32]:
    """One threshold out of every set of thresholds that no row, moved or not, tells apart."""
    marks = {np.float32(v) for value in x for v in (value, *ends(value, ball, feature))}
    return [*sorted(marks), np.nextafter(max(marks), np.float32(np.inf))]


def candidates(node: Node, ball: Ball, where: str) -> Iterator[Candidate]:
    """Every split that sends rows both ways when nobody attacks."""
    for feature in range(node.X.shape[1]):
        column = node.X[:, feature]
        present = column[~np.isnan(column)]
        if len(present) == 0:
            continue
        if where == "midpoints":
            thresholds = midpoints(present)
        else:
            thresholds = all_regions(present, ball, feature)
        for threshold in thresholds:
            for missing_left in (False, True):
                candidate = Candidate(feature, threshold, missing_left)
                if 0 < sides(node, ball, candidate).plain_left.sum() < len(column):
                    yield candidate
        if len(present) < len(column):
            yield Candidate(feature, LOWEST, True)


def impurity(weight: np.ndarray, criterion: str) -> np.ndarray:
    """Of class weights along the last axis; 0 where there is no weight."""
    all_weight = weight.sum(axis=-1, keepdims=True)
    share = np.divide(weight, all_weight, out=np.zeros_like(weight), where=all_weight > 0)
    if criterion == "gini":
        return np.where(all_weight[..., 0] > 0, 1 - (share**2).sum(axis=-1), 0)
    return -(share * np.log2(share, out=np.zeros_like(share), where=share > 0)).sum(axis=-1)


def gain(left: np.ndarray, total: np.ndarray, criterion: str) -> np.ndarray:
    share = left.sum(axis=-1) / total.sum()
    return (
        impurity(total, criterion)
        - share * impurity(left, criterion)
        - (1 - share) * impurity(total - left, criterion)
    )


def least_gain_of_whole_rows(node: Node, where: Sides, criterion: str) -> float:
    """The least gain over all 2^k ways to send the k ambiguous rows left or right."""
    sure = node.weight[where.sure_left].sum(axis=0)
    moved = node.weight[where.ambiguous]
    sent_left = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1
    return float(gain(sure + sent_left @ moved, node.total, criterion).min())


def box(node: Node, where: Sides) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest weight of each class on the left."""
    return node.weight[where.sure_left].sum(axis=0), node.weight[~where.sure_right].sum(axis=0)


def can_be_void(node: Node, where: Sides) -> bool:
    """Whether some division of rows gives every class the same share on the left; in fractions."""
    low, high = Fraction(0), Fraction(1)
    for k in range(node.weight.shape[1]):
        exact = [Fraction(w) for w in node.weight[:, k]]
        total = sum(exact)
        if total > 0:
            sure = sum(w for w, left in zip(exact, where.sure_left, strict=True) if left)
            never = sum(w for w, right in zip(exact, where.sure_right, strict=True) if right)
            low, high = max(low, sure / total), min(high, 1 - never / total)
    return low <= high


def _slope(left: np.ndarray, total: np.ndarray, criterion: str) -> np.ndarray:
    """The gradient of the gain in the left weights."""

    def of_one_side(weight: np.ndarray) -> np.ndarray:
        share = weight / weight.sum()
        if criterion == "gini":
            return 1 - 2 * share + (share**2).sum()
        return -np.log2(np.maximum(share, 1e-300))

    return (of_one_side(total - left) - of_one_side(left)) / total.sum()


def least_gain_of_divided_rows(node: Node, where: Sides, criterion: str) -> tuple[float, float]:
    """Bounds on the minimum of the gain over the box of class weights.

    The upper bound is a point that a general-purpose optimiser finds. The lower one needs no trust
    in it: the gain is convex, so it lies above its tangent plane at that point.
    """
    if can_be_void(node, where):
        return 0.0, 0.0
    seen = node.total > 0
    total = node.total[seen]
    low, high = (side[seen] for side in box(node, where))
    free = high > low
    inset = 1e-12 * (high - low)  # the entropy's slope is infinite where a class has no weight

    def at(z: np.ndarray) -> np.ndarray:
        n = low.copy()
        n[free] = z
        return n

    if not free.any():
        only = float(gain(low, total, criterion))
        return only, only
    bounds = list(zip((low + inset)[free], (high - inset)[free], strict=True))
    found = minimize(
        lambda z: float(gain(at(z), total, criterion)),
        ((low + high) / 2)[free],
        jac=lambda z: _slope(at(z), total, criterion)[free],
        bounds=bounds,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-11, "maxiter": 500},
    )
    z = found.x
    slope = _slope(at(z), total, criterion)[free]
    lowest_z = np.where(slope > 0, low[free], high[free])
    return float(found.fun + slope @ (lowest_z - z)), float(found.fun)


def algorithm_3(n_all: list[int], n_sure: list[int], n_free: list[int]) -> tuple[int, int]:
    """Algorithm 3 as printed, in exact arithmetic: rows of label 0 and 1 to place on the left."""
    best = (0, 0)
    min_diff = abs(Fraction(n_sure[0], n_all[0]) - Fraction(n_sure[1], n_all[1]))
    for move0 in range(n_free[0] + 1):
        target = Fraction(n_all[1] * (n_sure[0] + move0), n_all[0])
        for wanted in (ceil(target) - n_sure[1], floor(target) - n_sure[1]):
            move1 = max(min(wanted, n_free[1]), 0)
            diff = abs(
                Fraction(move0 + n_sure[0], n_all[0]) - Fraction(move1 + n_sure[1], n_all[1])
            )
            if min_diff > diff:
                best, min_diff = (move0, move1), diff
    return best


def paper_gain(node: Node, where: Sides, criterion: str) -> float:
    n_all = [int(n) for n in node.total]
    n_sure, n_possible = ([int(n) for n in side] for side in box(node, where))
    n_free = [b - a for a, b in zip(n_sure, n_possible, strict=True)]
    moves = algorithm_3(n_all, n_sure, n_free)
    left = np.array(n_sure, dtype=float) + moves
    return float(gain(left, node.total, criterion))
