"""The distance as a mixed-integer program, solved by HiGHS: slow, and independent of the search."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.model.trees import LEAF, Trees
from hardwood.threat import Norm, Reach
from hardwood.verify.ensemble import Effort, Found
from hardwood.verify.problem import Problem

# HiGHS keeps constraints up to about 1e-6, so the rival must win by a little more than that.
_WIN = 2e-6
_CLOSE = 1e-5  # relative: how far its two bounds may be apart and still be one number
_TOLERANCE = 1e-6  # the same in absolute terms


def nearest(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Bounds on the smallest change, one program for each row and rival label.

    After Kantchelian et al. (2016): a binary variable for every threshold of a feature and a share
    for every leaf. The lower bound holds up to the solver's tolerances; an example counts only if
    it fools the model itself.
    """

    def part(one: Problem) -> tuple[npt.NDArray[Any], ...]:
        found = _nearest(one, norm, reach, effort)
        return found.upper, found.X_adv, found.lower, found.reason, found.seconds

    upper, X_adv, lower, reason, seconds = problem.by_category(part)
    return Found(lower, upper, reason, X_adv, seconds)


def _nearest(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    n_rows = len(problem.X)
    lower, upper = np.zeros(n_rows), np.full(n_rows, np.inf)
    reason = np.full(n_rows, "", dtype="<U40")
    X_adv = np.full_like(problem.X, np.nan)
    wrong = problem.misclassified()
    upper[wrong], X_adv[wrong] = 0, problem.X[wrong]
    layout = _Layout.of(problem.trees)
    for i in np.flatnonzero(~wrong):
        program = _Program(problem.trees, layout, problem.X[i], norm, reach)
        lower[i] = np.inf
        for plus, minus in _rivals(problem.trees.n_outputs, int(problem.y[i])):
            bound, point = program.solve(plus, minus, effort.time_limit)
            lower[i] = min(lower[i], bound)
            if point is None:
                continue
            label = problem.trees.predict_class(point[None])[0]
            length = program.length(point)
            if label != problem.y[i] and length < upper[i]:
                upper[i], X_adv[i] = length, point
        if np.isclose(lower[i], upper[i], rtol=_CLOSE, atol=_TOLERANCE):
            lower[i] = upper[i]
        else:
            reason[i] = "time limit or tolerance of the solver"
    return Found(lower, upper, reason, X_adv, np.full(n_rows, np.nan))


def _rivals(n_outputs: int, y: int) -> list[tuple[int, int]]:
    """Outputs of which the first must beat the second; -1 is the constant 0."""
    if n_outputs == 1:
        return [(0, -1)] if y == 0 else [(-1, 0)]
    return [(c, y) for c in range(n_outputs) if c != y]


@dataclass(frozen=True)
class _Layout:
    """Variables of every row's program: one for the maximum, thresholds, leaves."""

    edges: list[FloatArray]  # of each feature: where the doubles go from left to right
    edge_start: npt.NDArray[np.int64]
    leaf_of: npt.NDArray[np.int64]  # variable of a node that is a leaf
    n_variables: int

    @classmethod
    def of(cls, trees: Trees) -> "_Layout":
        boxes = [trees.leaf_boxes(k) for k in range(trees.n_trees)]
        ends = [np.vstack([low, high]) for _, low, high in boxes]
        stacked = np.vstack(ends)
        edges = [np.unique(column[np.isfinite(column)]) for column in stacked.T]
        start = 1 + np.cumsum([0, *(len(e) for e in edges)])
        leaf = trees.feature == LEAF
        leaf_of = start[-1] + np.cumsum(leaf) - 1
        return cls(edges, start, leaf_of, int(start[-1] + leaf.sum()))


class _Program:
    """The program of one row but for the margin."""

    def __init__(
        self, trees: Trees, layout: _Layout, x: FloatArray, norm: Norm, reach: Reach
    ) -> None:
        self.trees, self.layout, self.x, self.norm = trees, layout, x, norm
        self.scales = reach.down_scale, reach.up_scale
        self.ends = [np.asarray(end)[0] for end in _core.ball_ends(x[None], reach.limits)]
        self.rows: list[tuple[list[int], list[float], float]] = []  # sum <= last
        self.cost = np.zeros(layout.n_variables)
        self.low, self.high = np.zeros(layout.n_variables), np.ones(layout.n_variables)
        if norm == "inf":
            self.cost[0] = 1
            self.high[0] = np.inf
        self.constant = 0.0
        for f in range(trees.n_features):
            self._add_feature(f)
        for k in range(trees.n_trees):
            self._add_node(int(trees.tree_start[k]), int(trees.tree_start[k]))

    def _add_feature(self, f: int) -> None:
        """Thresholds in order; those that are crossed cost, or cannot be crossed."""
        if np.isnan(self.x[f]):
            return
        edges, first = self.layout.edges[f], int(self.layout.edge_start[f])
        for k in range(len(edges) - 1):
            self.rows.append(([first + k, first + k + 1], [1, -1], 0))
        home = int(np.searchsorted(edges, self.x[f], side="right"))
        for side in (range(home, len(edges)), range(home - 1, -1, -1)):
            before = 0.0
            for k in side:
                up = k >= home
                z = edges[k] if up else np.nextafter(edges[k], -np.inf)
                if not self.ends[0][f] <= z <= self.ends[1][f]:
                    self.low[first + k] = self.high[first + k] = float(up)
                    continue
                step = abs(z - self.x[f]) / self.scales[int(up)][f]
                total = {"inf": step, 1: step, 2: step**2, 0: 1.0}[self.norm]
                sign = -1 if up else 1
                if self.norm == "inf":  # total * crossed <= the maximum
                    self.rows.append(([first + k, 0], [sign * total, -1], -total if up else 0))
                else:
                    self.cost[first + k] += sign * (total - before)
                    self.constant += (total - before) if up else 0
                before = total

    def _add_node(self, at: int, start: int) -> list[int]:
        """Leaves below a node; a share of one side asks for its threshold."""
        trees = self.trees
        if trees.feature[at] == LEAF:
            return [int(self.layout.leaf_of[at])]
        left = self._add_node(start + int(trees.left[at]), start)
        right = self._add_node(start + int(trees.right[at]), start)
        f = int(trees.feature[at])
        if np.isnan(self.x[f]):
            self.high[right if trees.missing_left[at] else left] = 0
            return left + right
        edge = self._edge(at)
        k = int(self.layout.edge_start[f] + np.searchsorted(self.layout.edges[f], edge))
        self.rows.append(([*left, k], [1.0] * len(left) + [-1], 0))
        self.rows.append(([*right, k], [1.0] * len(right) + [1], 1))
        return left + right

    def _edge(self, at: int) -> float:
        """The edge that belongs to a threshold: the first one that is not left of it."""
        edges = self.layout.edges[int(self.trees.feature[at])]
        left = edges.astype(self.trees.x_dtype) < self.trees.threshold[at]
        return float(edges[int(np.count_nonzero(left))])

    def solve(
        self, plus: int, minus: int, seconds: float | None
    ) -> tuple[float, FloatArray | None]:
        """The solver's lower bound, and a point where output plus beats output minus."""
        trees, layout = self.trees, self.layout
        margin = np.zeros(layout.n_variables)
        base = 0.0
        for output, sign in ((plus, 1), (minus, -1)):
            if output < 0:
                continue
            base += sign * float(trees.base[output])
            for k in range(trees.n_trees):
                nodes = np.arange(trees.tree_start[k], trees.tree_start[k + 1])
                nodes = nodes[trees.feature[nodes] == LEAF]
                column = output - int(trees.tree_output[k])
                if 0 <= column < trees.value.shape[1]:
                    margin[layout.leaf_of[nodes]] += sign * trees.value[nodes, column]
        at = np.repeat(np.arange(len(self.rows)), [len(row[0]) for row in self.rows])
        columns = np.array([c for row in self.rows for c in row[0]], dtype=int)
        values = np.array([v for row in self.rows for v in row[1]])
        limits = np.array([row[2] for row in self.rows])
        shape = (len(self.rows), layout.n_variables)
        one = np.zeros((trees.n_trees, layout.n_variables))
        for k in range(trees.n_trees):
            nodes = np.arange(trees.tree_start[k], trees.tree_start[k + 1])
            one[k, layout.leaf_of[nodes[trees.feature[nodes] == LEAF]]] = 1
        constraints = [
            LinearConstraint(csr_array(one), 1, 1),
            LinearConstraint(csr_array(margin[None]), _WIN - base, np.inf),
        ]
        if len(self.rows):
            table = csr_array((values, (at, columns)), shape=shape)
            constraints.append(LinearConstraint(table, -np.inf, limits))
        whole = np.zeros(layout.n_variables)
        whole[1 : layout.edge_start[-1]] = 1
        answer = milp(
            self.cost,
            constraints=constraints,
            bounds=Bounds(self.low, self.high),
            integrality=whole,
            options={"mip_rel_gap": 0.0} | ({} if seconds is None else {"time_limit": seconds}),
        )
        if answer.status == 2:  # infeasible
            return np.inf, None
        bound = 0.0 if answer.mip_dual_bound is None else answer.mip_dual_bound + self.constant
        lower = float(np.sqrt(max(bound, 0.0)) if self.norm == 2 else max(bound, 0.0))
        return lower, None if answer.x is None else self._point(answer.x)

    def _point(self, variables: FloatArray) -> FloatArray:
        point = self.x.copy()
        for f, edges in enumerate(self.layout.edges):
            if np.isnan(point[f]):
                continue
            first = int(self.layout.edge_start[f])
            cell = int(np.count_nonzero(variables[first : first + len(edges)] < 0.5))
            if cell > 0 and point[f] < edges[cell - 1]:
                point[f] = edges[cell - 1]
            elif cell < len(edges) and point[f] >= edges[cell]:
                point[f] = np.nextafter(edges[cell], -np.inf)
        return point

    def length(self, point: FloatArray) -> float:
        """How far a point is from the row."""
        with np.errstate(invalid="ignore"):
            step = np.abs(point - self.x) / np.where(point < self.x, *self.scales)
        step = np.nan_to_num(step, nan=0.0)
        order = {"inf": np.inf, 1: 1, 2: 2, 0: 0}[self.norm]
        return float(np.linalg.norm(step, order))
