"""Certified boosting restated plainly: one tree, and what the adversary can do to a model."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np


def ball(x, limits):
    """Both ends of every value's ball in float32, NaN where the value is missing."""
    down, up, low, high = np.asarray(limits, dtype=np.float64).T
    x = np.asarray(x, dtype=np.float64)
    lowest = np.minimum(x, np.maximum(x - down, low))
    highest = np.maximum(x, np.minimum(x + up, high))
    return lowest.astype(np.float32), highest.astype(np.float32)


def worst_margins(trees, x, limits):
    """Least and largest margins over all cells of the ball around one row."""
    lowest, highest = ball(x, limits)
    points = []
    for f, value in enumerate(x):
        if np.isnan(value):
            points.append([np.float32(np.nan)])
            continue
        thresholds = trees.threshold[trees.feature == f]
        inside = thresholds[(thresholds > lowest[f]) & (thresholds <= highest[f])]
        points.append(sorted({lowest[f], *inside}))
    margins = trees.margin(np.array(list(product(*points)), dtype=np.float64))
    return margins.min(axis=0), margins.max(axis=0)


def all_thresholds(x, limits):
    """One threshold in every gap between neighbouring ends of balls of one feature."""
    lowest, highest = ball(x[:, None], [limits])
    events = np.unique(np.concatenate([lowest, highest]))
    return (events[:-1] + events[1:]) / np.float32(2)


@dataclass
class Rules:
    reg_lambda: float = 1.0
    min_child_weight: float = 1.0
    min_split_gain: float = 0.0
    max_depth: int = 3


@dataclass
class Split:
    gain: float = 5e-7
    feature: int = -1
    threshold: float = 0.0
    left_is_lower: bool = True


@dataclass
class Slow:
    """One tree of logistic certified boosting, by loops."""

    X: np.ndarray
    down: np.ndarray  # rows that the adversary pushes down: the second class
    g: np.ndarray
    h: np.ndarray
    limits: np.ndarray
    candidates: list
    rules: Rules
    nodes: list = field(default_factory=list)

    def __post_init__(self):
        self.lowest, self.highest = ball(self.X, self.limits)

    def worst_gain(self, rows, weight, f, t, left_is_lower):
        """What a split gains when ambiguous rows are where it is worse for them; None: void."""
        rules = self.rules
        can_left = self.lowest[rows, f] < t
        can_right = ~(self.highest[rows, f] < t)
        left = np.where(can_left & can_right, self.down[rows] == left_is_lower, can_left)
        g, h = weight * self.g[rows], weight * self.h[rows]
        sums = [(g[side].sum(), h[side].sum()) for side in (left, ~left)]
        if any(h_side < rules.min_child_weight for _, h_side in sums):
            return None
        value = [-g_side / (h_side + rules.reg_lambda) for g_side, h_side in sums]
        if (value[0] < value[1]) != left_is_lower:
            return None
        score = [g_side**2 / (h_side + rules.reg_lambda) for g_side, h_side in sums]
        return (sum(score) - g.sum() ** 2 / (h.sum() + rules.reg_lambda)) / 2

    def best_split(self, rows, weight):
        best = Split()
        for f, candidates in enumerate(self.candidates):
            for t in candidates:
                for left_is_lower in (True, False):
                    gain = self.worst_gain(rows, weight, f, t, left_is_lower)
                    if gain is not None and gain > best.gain:
                        best = Split(gain, f, t, left_is_lower)
        return best

    def grow(self, rows=None, weight=None, depth=0):
        """Nodes in pre-order, before any refit: (feature, threshold, value)."""
        rules = self.rules
        if rows is None:
            rows, weight = np.arange(len(self.X)), np.ones(len(self.X))
        value = -(weight * self.g[rows]).sum() / ((weight * self.h[rows]).sum() + rules.reg_lambda)
        split = self.best_split(rows, weight) if depth < rules.max_depth else Split()
        place = len(self.nodes)
        self.nodes.append((-1, 0.0, value))
        if split.feature < 0:
            return
        can_left = self.lowest[rows, split.feature] < split.threshold
        can_right = ~(self.highest[rows, split.feature] < split.threshold)
        left_owns = self.down[rows] == split.left_is_lower
        shared = np.minimum(weight, 0.5)
        left_weight = np.where(can_right & ~left_owns, shared, weight)
        right_weight = np.where(can_left & left_owns, shared, weight)
        self.grow(rows[can_left], left_weight[can_left], depth + 1)
        left_is_leaf = len(self.nodes) == place + 2
        n_before = len(self.nodes)
        self.grow(rows[can_right], right_weight[can_right], depth + 1)
        right_is_leaf = len(self.nodes) == n_before + 1
        if left_is_leaf and right_is_leaf and split.gain < rules.min_split_gain:
            del self.nodes[place + 1 :]
        else:
            self.nodes[place] = (split.feature, float(split.threshold), value)

    def reached(self, row):
        """Leaves that a row can be pushed to."""
        ends = self._subtree_ends()
        open_nodes, leaves = [0], []
        while open_nodes:
            i = open_nodes.pop()
            f, t, _ = self.nodes[i]
            if f < 0:
                leaves.append(i)
                continue
            if self.lowest[row, f] < t:
                open_nodes.append(i + 1)
            if not self.highest[row, f] < t:
                open_nodes.append(ends[i + 1])
        return leaves

    def _subtree_ends(self):
        ends = [0] * len(self.nodes)

        def walk(i):
            ends[i] = i + 1 if self.nodes[i][0] < 0 else walk(walk(i + 1))
            return ends[i]

        walk(0)
        return ends

    def refit(self, margin, n_steps=3):
        """Damped Newton steps, each row in its worst leaf; gives the best values on the way."""
        lam = self.rules.reg_lambda
        value = np.array([node[2] for node in self.nodes])
        leaves = [i for i, node in enumerate(self.nodes) if node[0] < 0]
        reached = [self.reached(i) for i in range(len(self.X))]
        sign = np.where(self.down, 1, -1)
        best, least = value, np.inf
        for k in range(n_steps + 1):
            at = []
            for found, s in zip(reached, sign, strict=True):
                at.append(found[int(np.argmin(s * value[found]))])
            m = margin + value[at]
            loss = np.logaddexp(0, -sign * m).sum() + lam / 2 * (value[leaves] ** 2).sum()
            if loss < least:
                best, least = value.copy(), loss
            p = 1 / (1 + np.exp(-m))
            step = np.zeros(len(value))
            for leaf in leaves:
                own = np.array(at) == leaf
                g, h = (p - self.down)[own].sum(), (p * (1 - p))[own].sum()
                step[leaf] = (g + lam * value[leaf]) / (h + lam)
            value = value - step / (1 + 0.5 * k)
        return best
