"""The truth about one tree, in the plainest way; restated here, nothing taken from the package.

Two oracles: every leaf as a dense box of doubles, and every combination of the values that matter.
"""

import functools
import itertools
import math
import struct

import numpy as np

from oracle.walk import label_of

BIGGEST = float(np.finfo(np.float32).max)  # rows and ranges end here


def next_down(x):
    return np.nextafter(x, -np.inf)


@functools.cache
def first_not_left(threshold, x_dtype):
    """The smallest double that does not go left, found by bisection over all doubles."""

    def nth(i):  # doubles in order, as integers in order
        return struct.unpack("<d", struct.pack("<q", i if i >= 0 else -(2**63) - i - 1))[0]

    def goes_left(x):
        with np.errstate(over="ignore"):
            return bool(x_dtype.type(x) < threshold)

    infinity = struct.unpack("<q", struct.pack("<d", np.inf))[0]
    left, right = -infinity - 1, infinity  # -inf and +inf
    if not goes_left(-np.inf):
        return -np.inf
    while right - left > 1:
        middle = (left + right) // 2
        left, right = (middle, right) if goes_left(nth(middle)) else (left, middle)
    return nth(right)


def leaf_boxes(trees, tree=0):
    """Node, low, high (rows with low <= x < high) and whether a missing value passes, per leaf."""
    start = trees.tree_start[tree]
    d = trees.n_features
    boxes = []
    waiting = [(0, np.full(d, -np.inf), np.full(d, np.inf), np.ones(d, bool))]
    while waiting:
        node, low, high, missing = waiting.pop()
        f = trees.feature[start + node]
        if f == -1:
            boxes.append((node, low, high, missing))
            continue
        edge = first_not_left(trees.threshold[start + node], trees.x_dtype)
        for child, is_left in (
            (trees.left[start + node], True),
            (trees.right[start + node], False),
        ):
            inner_low, inner_high, passes = low.copy(), high.copy(), missing.copy()
            if is_left:
                inner_high[f] = min(high[f], edge)
            else:
                inner_low[f] = max(low[f], edge)
            passes[f] &= bool(trees.missing_left[start + node]) == is_left
            waiting.append((child, inner_low, inner_high, passes))
    return boxes


class Ball:
    """A threat on its own terms: steps down and up, range, norm; `limited=False` forgets sizes."""

    def __init__(self, down, up, low, high, norm, eps, limited=True):
        self.norm, self.limited = norm, limited
        self.down, self.up = np.asarray(down, float), np.asarray(up, float)
        self.low, self.high = np.asarray(low, float), np.asarray(high, float)
        self.eps = eps  # the radius in norm 0, else the largest step

    def allows(self, x, z):
        """Whether each value of x may become that of z, looking at one feature at a time."""
        if self.norm == 0 or not self.limited:
            down, up = np.where(self.down > 0, np.inf, 0), np.where(self.up > 0, np.inf, 0)
        else:
            down, up = self.down, self.up
        lowest = np.minimum(x, np.maximum(x - down, self.low))
        highest = np.maximum(x, np.minimum(x + up, self.high))
        return ((lowest <= z) & (z <= highest)) | (z == x) | (np.isnan(z) & np.isnan(x))

    def length(self, x, z):
        """The norm of the step from x to z, in units of the largest eps."""
        step = np.where(np.isnan(x), 0.0, np.abs(z - x))
        if self.norm == 0:
            return float(np.count_nonzero(step))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(z < x, self.down, self.up) / self.eps
            step = np.where(step > 0, step / share, 0.0)
        return {"inf": max, 1: math.fsum, 2: lambda steps: math.hypot(*steps)}[self.norm](step)

    def told_in(self):
        """What distances are told in: the threat itself, where its sizes differ."""
        sizes = {*self.down[self.down > 0], *self.up[self.up > 0]}
        return self.eps if self.norm != 0 and len(sizes) > 1 else 1.0

    def radius(self):
        if not self.limited:
            return np.inf
        return self.eps if self.norm != "inf" else np.inf  # the ends alone decide in norm inf


def nearest_by_boxes(trees, x, y, ball):
    """The smallest distance from x to a leaf of another label, over all boxes, and the points."""
    best = np.inf
    for node, low, high, missing in leaf_boxes(trees):
        if label_of_leaf(trees, node) == y:
            continue
        empty = np.isnan(x) & ~missing | ~np.isnan(x) & ~(low < high)
        if empty.any():
            continue
        z = np.where(
            np.isnan(x) | ((low <= x) & (x < high)), x, np.where(x < low, low, next_down(high))
        )
        if ball.allows(x, z).all():
            best = min(best, ball.length(x, z))
    return best


def nearest_by_points(trees, x, y, ball):
    """The same by trying every point whose values are x's own, an edge, or the double below it."""
    values = []
    for f in range(trees.n_features):
        edges = {
            first_not_left(threshold, trees.x_dtype)
            for threshold in trees.threshold[trees.feature == f]
        }
        moves = {float(x[f])} | (
            {*edges, *map(float, map(next_down, edges))} if x[f] == x[f] else set()
        )
        values.append([v for v in moves if not np.isinf(v)])
    points = np.array(list(itertools.product(*values)))
    fools = points[label_of(trees, points) != y]
    return min((ball.length(x, z) for z in fools if ball.allows(x, z).all()), default=np.inf)


def label_of_leaf(trees, node):
    total = trees.base.astype(trees.value.dtype)
    first = trees.tree_output[0]
    total[first : first + trees.value.shape[1]] += trees.value[node]
    return int(total[0] > 0) if len(total) == 1 else int(np.argmax(total))
