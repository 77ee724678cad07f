"""The distance as a mixed-integer program, solved by HiGHS: slow, and independent of the search."""

import math
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.model.trees import LEAF, Trees
from hardwood.threat import Norm, Reach
from hardwood.verify.effort import Effort, Found, Tell, unwatched
from hardwood.verify.problem import Problem

# HiGHS keeps constraints up to about 1e-6. For a proof the rival need not quite win; for an example
# it must win by a little more than that, in units of the largest leaf.
_WIN = 2e-6
_NEAR = 8  # points that do not quite fool, each left out of the next program
_CLOSE = 1e-5  # relative: how far its two bounds may be apart and still be one number
_TOLERANCE = 1e-6  # the same in absolute terms


def nearest(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Bounds on the smallest change, one program for each row and rival label.

    After Kantchelian et al. (2016): a binary variable for every threshold of a feature and a share
    for every leaf. A program keeps only what a box around the row reaches; the box grows until it
    holds the answer. The lower bound holds up to the solver's tolerances; an example counts only
    if it fools the model itself.
    """
    return effort.ask(problem, lambda one, tell: _nearest(one, norm, reach, effort, tell))


def _nearest(problem: Problem, norm: Norm, reach: Reach, effort: Effort, tell: Tell) -> Found:
    n_rows = len(problem.X)
    lower, upper = np.zeros(n_rows), np.full(n_rows, np.inf)
    reason = np.full(n_rows, "", dtype="<U50")
    X_adv = np.full_like(problem.X, np.nan)
    wrong = problem.misclassified()
    upper[wrong], X_adv[wrong] = 0, problem.X[wrong]
    attacked = np.flatnonzero(~wrong)
    asked = 0
    try:
        layout = _Layout.of(problem.trees)
        for i in attacked:
            if effort.over:
                break
            y = int(problem.y[i])
            row = _Row(problem.trees, layout, problem.X[i], norm, reach, effort)
            proven = np.inf
            for plus, minus in _rivals(problem.trees.n_outputs, y):
                bound, point = row.nearest(plus, minus, y)
                proven = min(proven, bound)
                if point is None:
                    continue
                length = row.length(point)
                if row.fools(point, y) and length < upper[i]:
                    upper[i], X_adv[i] = length, point
            lower[i] = proven
            if np.isclose(lower[i], upper[i], rtol=_CLOSE, atol=_TOLERANCE):
                lower[i] = upper[i]
            else:
                reason[i] = effort.why if effort.over else "time limit or tolerance of the solver"
            asked += 1
            tell(asked, int(np.count_nonzero(reason != "")))
    except KeyboardInterrupt:
        effort.interrupted = True
    reason[attacked[asked:]] = effort.why
    return Found(lower, upper, reason, X_adv, np.full(n_rows, np.nan))


def _rivals(n_outputs: int, y: int) -> list[tuple[int, int]]:
    """Outputs of which the first must beat the second; -1 is the constant cut."""
    if n_outputs == 1:
        return [(0, -1)] if y == 0 else [(-1, 0)]
    return [(c, y) for c in range(n_outputs) if c != y]


@dataclass(frozen=True)
class _Layout:
    """Variables of every row's program: one for the maximum, thresholds, leaves."""

    edges: list[FloatArray]  # of each feature: where the doubles go from left to right
    edge_start: npt.NDArray[np.int64]
    edge: FloatArray  # of each node
    variable: npt.NDArray[np.int64]  # of each node: its finite threshold or its leaf
    n_variables: int

    @classmethod
    def of(cls, trees: Trees) -> "_Layout":
        edge = np.asarray(trees._core.edges())
        finite = np.isfinite(edge)
        edges = [np.unique(edge[finite & (trees.feature == f)]) for f in range(trees.n_features)]
        start = 1 + np.cumsum([0, *(len(e) for e in edges)])
        leaf = trees.feature == LEAF
        variable = np.where(leaf, start[-1] + np.cumsum(leaf) - 1, 0)
        for f, of_feature in enumerate(edges):
            nodes = np.flatnonzero(trees.feature == f)
            # The edge that belongs to a threshold: the first one that is not left of it.
            rank = np.searchsorted(of_feature.astype(trees.x_dtype), trees.threshold[nodes])
            variable[nodes] = start[f] + rank
        return cls(edges, start, edge, variable, int(start[-1] + leaf.sum()))


class _Row:
    """One row: steps over the thresholds around it, and boxes that grow until one is enough."""

    def __init__(
        self,
        trees: Trees,
        layout: _Layout,
        x: FloatArray,
        norm: Norm,
        reach: Reach,
        effort: Effort,
    ) -> None:
        self.trees, self.layout, self.x, self.norm = trees, layout, x, norm
        self.effort = effort
        self.scales = reach.down_scale, reach.up_scale
        ends = [np.asarray(end)[0] for end in _core.ball_ends(x[None], reach.limits)]
        self.up = np.zeros(layout.n_variables, dtype=bool)  # thresholds above the row
        self.step = np.full(layout.n_variables, np.inf)  # into the cell beyond a threshold
        for f in np.flatnonzero(~np.isnan(x)):
            edges = layout.edges[f]
            up = edges > x[f]
            z = np.where(up, edges, np.nextafter(edges, -np.inf))
            step = np.abs(z - x[f]) / np.where(up, self.scales[1][f], self.scales[0][f])
            at = slice(layout.edge_start[f], layout.edge_start[f + 1])
            self.up[at] = up
            self.step[at] = np.where((ends[0][f] <= z) & (z <= ends[1][f]), step, np.inf)

    def fools(self, point: FloatArray, y: int) -> bool:
        """Whether a point has another label than y."""
        return bool(self.trees.predict_class(point[None])[0] != y)

    def nearest(self, plus: int, minus: int, y: int) -> tuple[float, FloatArray | None]:
        """A lower bound, and a point where output plus beats output minus."""
        seconds = np.inf if self.effort.time_limit is None else self.effort.time_limit
        deadline = time.monotonic() + min(seconds, self.effort.left())
        steps = self.step[np.isfinite(self.step)]
        largest = float(steps.max(initial=0.0))
        # Below the first radius there is nothing to prove anew, beyond the last nothing to reach.
        radius = float(np.quantile(steps, 0.02)) if len(steps) and self.norm != 0 else largest
        proven, found = 0.0, None
        while deadline > time.monotonic():
            bound, point = _Program(self, radius).solve(plus, minus, y, deadline)
            found = found if point is None else point
            if radius >= largest or (point is not None and self.length(point) <= radius):
                return bound, point
            # Whatever lies outside the box is further away than its radius.
            proven = max(proven, min(bound, radius))
            if point is None and bound < radius:
                break  # the clock
            radius = 2 * radius if point is None else self.length(point)
            radius = min(max(radius, float(steps.min())), largest)
        return proven, found

    def length(self, point: FloatArray) -> float:
        """How far a point is from the row."""
        with np.errstate(invalid="ignore"):
            step = np.abs(point - self.x) / np.where(point < self.x, *self.scales)
        step = np.nan_to_num(step, nan=0.0)
        if self.norm == 2:
            return float(math.hypot(*step))  # squares of tiny steps would be 0
        order = {"inf": np.inf, 1: 1, 0: 0}[self.norm]
        return float(np.linalg.norm(step, order))

    def point(self, variables: FloatArray) -> FloatArray:
        """The nearest point of the cells that the threshold variables say."""
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


class _Program:
    """The program of one row in the box of one radius, but for the margin."""

    def __init__(self, row: _Row, radius: float) -> None:
        layout, trees = row.layout, row.trees
        self.row = row
        # Steps are counted in radii: the solver's tolerances are absolute.
        self.unit = radius if radius > 0 and row.norm != 0 else 1.0
        self.rows: list[tuple[list[int], list[float], float]] = []  # sum <= last
        self.cost = np.zeros(layout.n_variables)
        # A threshold that cannot be crossed is fixed; so is a leaf, unless it is reached below.
        self.free = row.step <= radius
        self.low = np.where(self.free, 0.0, row.up)
        self.high = np.where(self.free, 1.0, row.up)
        if row.norm == "inf":
            self.cost[0] = 1
            self.high[0] = np.inf
        self.constant = 0.0
        for f in range(trees.n_features):
            self._add_feature(np.arange(layout.edge_start[f], layout.edge_start[f + 1]))
        self.leaves = [self._add_node(int(k), int(k)) for k in trees.tree_start[:-1]]
        for nodes in self.leaves:
            self.high[layout.variable[nodes]] = 1

    def _add_feature(self, variables: npt.NDArray[np.int64]) -> None:
        """Thresholds in order; those that are crossed cost."""
        variables = variables[self.free[variables]]
        for k, following in pairwise(variables):
            self.rows.append(([k, following], [1, -1], 0))
        up = self.row.up[variables]
        for side in (variables[up], variables[~up][::-1]):
            before = 0.0
            for k in side:
                step = float(self.row.step[k]) / self.unit
                total = {"inf": step, 1: step, 2: step**2, 0: 1.0}[self.row.norm]
                sign = -1 if self.row.up[k] else 1
                if self.row.norm == "inf":  # total * crossed <= the maximum
                    limit = -total if self.row.up[k] else 0
                    self.rows.append(([k, 0], [sign * total, -1], limit))
                else:
                    self.cost[k] += sign * (total - before)
                    self.constant += (total - before) if self.row.up[k] else 0
                before = total

    def _add_node(self, at: int, start: int) -> list[int]:
        """Leaves below a node that the box reaches; a share of one side asks for its threshold."""
        trees = self.row.trees
        if trees.feature[at] == LEAF:
            return [at]
        variable = self.row.layout.variable
        k = int(variable[at])
        children = start + int(trees.left[at]), start + int(trees.right[at])
        edge = self.row.layout.edge[at]
        if np.isnan(self.row.x[trees.feature[at]]):
            return self._add_node(children[0 if trees.missing_left[at] else 1], start)
        if np.isinf(edge):  # it only tells missing values from the others
            return self._add_node(children[0 if edge > 0 else 1], start)
        if not self.free[k]:
            return self._add_node(children[0 if self.row.up[k] else 1], start)
        left, right = (self._add_node(child, start) for child in children)
        self.rows.append(([*variable[left], k], [1.0] * len(left) + [-1], 0))
        self.rows.append(([*variable[right], k], [1.0] * len(right) + [1], 1))
        return left + right

    def solve(
        self, plus: int, minus: int, y: int, deadline: float
    ) -> tuple[float, FloatArray | None]:
        """A lower bound, and a point where output plus beats output minus.

        First the rival need only tie: what fools the model is among the solutions, whatever rounds.
        A solution that does not fool is left out and the next one asked for; at last the rival must
        clearly win, which finds an example but proves nothing.
        """
        margin, base = self._lead(plus, minus)
        least = -self.row.trees.tie(plus, minus) - base
        left_out: list[tuple[list[int], list[float], float]] = []
        lower = 0.0
        for _ in range(_NEAR):
            bound, x = self._run(margin, least, left_out, deadline)
            lower = max(lower, bound)
            if x is None:
                return lower, None
            point = self.row.point(x)
            if self.row.fools(point, y):
                return lower, point
            chosen = self._leaves_of(point)
            left_out.append((chosen, [1.0] * len(chosen), len(chosen) - 1.0))
        scale = float(np.abs(margin).max(initial=0.0))
        _, x = self._run(margin, _WIN * scale - base, [], deadline)
        return lower, None if x is None else self.row.point(x)

    def _lead(self, plus: int, minus: int) -> tuple[FloatArray, float]:
        """By how much each leaf helps output plus against output minus, and the constant."""
        trees, layout = self.row.trees, self.row.layout
        margin = np.zeros(layout.n_variables)
        base = 0.0
        for output, sign in ((plus, 1), (minus, -1)):
            base += sign * (trees.cut if output < 0 else float(trees.base[output]))
            for k, nodes in enumerate(self.leaves if output >= 0 else ()):
                column = output - int(trees.tree_output[k])
                if 0 <= column < trees.value.shape[1]:
                    margin[layout.variable[nodes]] += sign * trees.value[nodes, column]
        return margin, base

    def _leaves_of(self, point: FloatArray) -> list[int]:
        """The variables of the leaves that a point reaches."""
        trees = self.row.trees
        leaf = trees.apply(point[None])[0] + trees.tree_start[:-1]
        return [int(v) for v in self.row.layout.variable[leaf]]

    def _run(
        self,
        margin: FloatArray,
        least: float,
        left_out: list[tuple[list[int], list[float], float]],
        deadline: float,
    ) -> tuple[float, FloatArray | None]:
        """The solver's lower bound and its best solution with a margin of at least `least`."""
        layout = self.row.layout
        scale = float(np.abs(margin).max(initial=0.0)) or 1.0
        one = [([*layout.variable[nodes]], [1.0] * len(nodes), 1.0) for nodes in self.leaves]
        constraints = [
            LinearConstraint(_sparse(one, layout.n_variables), 1, 1),
            LinearConstraint(csr_array(margin[None] / scale), least / scale, np.inf),
        ]
        rows = self.rows + left_out
        if rows:
            limits = np.array([row[2] for row in rows])
            table = _sparse(rows, layout.n_variables)
            constraints.append(LinearConstraint(table, -np.inf, limits))
        whole = np.zeros(layout.n_variables)
        whole[1 : layout.edge_start[-1]] = 1
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return 0.0, None
        options = {
            "mip_rel_gap": 0.0,
            # Where all costs are 1, presolve (HiGHS 1.12) has been seen to lose the optimum.
            "presolve": self.row.norm != 0,
            **({"time_limit": seconds} if seconds < np.inf else {}),
        }
        bounds = Bounds(self.low, self.high)
        answer = unwatched(  # HiGHS hears no Ctrl-C
            lambda: milp(
                self.cost,
                constraints=constraints,
                bounds=bounds,
                integrality=whole,
                options=options,
            ),
            self.row.effort,
        )
        if answer is None:
            return 0.0, None
        if answer.status == 2:  # infeasible
            return np.inf, None
        bound = 0.0 if answer.mip_dual_bound is None else answer.mip_dual_bound + self.constant
        lower = float(np.sqrt(max(bound, 0.0)) if self.row.norm == 2 else max(bound, 0.0))
        return lower * self.unit, answer.x


def _sparse(rows: list[tuple[list[int], list[float], float]], n_columns: int) -> csr_array:
    start = np.cumsum([0, *(len(row[0]) for row in rows)])
    columns = np.array([c for row in rows for c in row[0]], dtype=int)
    values = np.array([v for row in rows for v in row[1]], dtype=float)
    return csr_array((values, columns, start), shape=(len(rows), n_columns))
