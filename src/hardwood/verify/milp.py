"""The distance as a mixed-integer program, solved by HiGHS: slow, and independent of the search."""

import time
from itertools import pairwise

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from hardwood._check import FloatArray
from hardwood.model.trees import LEAF
from hardwood.threat import Norm, Reach
from hardwood.verify.choices import Column, Layout, columns_of
from hardwood.verify.effort import Effort, unwatched
from hardwood.verify.found import Found
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
    n_rows = len(problem.X)
    tell = effort.tell(n_rows)
    lower, upper = np.zeros(n_rows), np.full(n_rows, np.inf)
    reason = np.full(n_rows, "", dtype="<U50")
    X_adv = np.full_like(problem.X, np.nan)
    wrong = problem.misclassified()
    upper[wrong], X_adv[wrong] = 0, problem.X[wrong]
    attacked = np.flatnonzero(~wrong)
    asked = 0
    try:
        layout = Layout.of(problem.trees)
        for i in attacked:
            if effort.over:
                break
            y = int(problem.y[i])
            row = _Row(problem, layout, int(i), norm, reach, effort)
            proven = np.inf
            for leads in _leads(problem, y):
                bound, point = row.nearest(leads)
                proven = min(proven, bound)
                if point is None:
                    continue
                length = row.length(point)
                if row.fools(point) and length < upper[i]:
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
    found = Found(lower, upper, reason, X_adv, np.full(n_rows, np.nan))
    return found.confirmed(problem)


Lead = tuple[int, int]  # outputs of which the first must beat the second; -1 is the constant cut


def _leads(problem: Problem, y: int) -> list[list[Lead]]:
    """Ways to fool the model: in each of them, all leads must hold."""
    n_outputs, target = problem.trees.n_outputs, problem.target
    if n_outputs == 1:
        return [[(0, -1) if (y == 0 if target is None else target == 1) else (-1, 0)]]
    if target is not None:
        return [[(target, c) for c in range(n_outputs) if c != target]]
    return [[(c, y)] for c in range(n_outputs) if c != y]


class _Row:
    """One row: its columns, and boxes that grow until one is enough."""

    def __init__(
        self,
        problem: Problem,
        layout: Layout,
        row: int,
        norm: Norm,
        reach: Reach,
        effort: Effort,
    ) -> None:
        self.problem, self.trees, self.layout = problem, problem.trees, layout
        self.x, self.row, self.norm, self.reach = problem.X[row], row, norm, reach
        self.effort = effort
        self.columns = columns_of(layout, self.x, norm, reach)
        at = 1
        for column in self.columns:
            column.first, at = at, at + len(column.step)
        leaf = self.trees.feature == LEAF
        self.leaf = np.where(leaf, at + np.cumsum(leaf) - 1, 0)
        self.n_choices, self.n_variables = at, at + int(leaf.sum())
        self.step = np.full(self.n_variables, np.inf)
        self.still = np.zeros(self.n_variables)
        for column in self.columns:
            self.step[column.variables], self.still[column.variables] = column.step, column.still

    def fools(self, point: FloatArray) -> bool:
        """Whether a point has a label that the adversary wants."""
        return bool(self.problem.fooled(self.trees.predict_class(point[None]), [self.row])[0])

    def nearest(self, leads: list[Lead]) -> tuple[float, FloatArray | None]:
        """A lower bound, and a point where all leads hold."""
        seconds = np.inf if self.effort.time_limit is None else self.effort.time_limit
        deadline = time.monotonic() + min(seconds, self.effort.left())
        steps = self.step[np.isfinite(self.step)]
        largest = float(steps.max(initial=0.0))
        # Below the first radius there is nothing to prove anew, beyond the last nothing to reach.
        radius = float(np.quantile(steps, 0.02)) if len(steps) and self.norm != 0 else largest
        proven, found = 0.0, None
        while deadline > time.monotonic():
            bound, point = _Program(self, radius).solve(leads, deadline)
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
        return float(self.reach.lengths(self.x[None], point[None], self.norm)[0])

    def pulled_back(self, point: FloatArray) -> FloatArray:
        """Take back changes that nothing needs: a tiny step is free to the solver's tolerance."""
        for f in np.flatnonzero((point != self.x) & ~(np.isnan(point) & np.isnan(self.x))):
            back = point.copy()
            back[f] = self.x[f]
            if self.fools(back):
                point = back
        return point

    def point(self, solution: FloatArray) -> FloatArray:
        """The nearest point of the cells that a solution says."""
        return np.array([column.value(solution) for column in self.columns])


Row = tuple[list[int], list[float], float]  # variables and factors, whose sum is at most the last


class _Program:
    """The program of one row in the box of one radius, but for the margin."""

    def __init__(self, row: _Row, radius: float) -> None:
        self.row = row
        # Steps are counted in radii: the solver's tolerances are absolute.
        self.unit = radius if radius > 0 and row.norm != 0 else 1.0
        self.rows: list[Row] = []
        self.cost = np.zeros(row.n_variables)
        # What is not within the radius is fixed; so is a leaf, unless it is reached below.
        self.free = row.step <= radius
        for column in row.columns:
            if column.cells and self.free[column.variables].any():
                self.free[column.first] = True  # the row's own cell can be left
        self.low = np.where(self.free, 0.0, row.still)
        self.high = np.where(self.free, 1.0, row.still)
        if row.norm == "inf":
            self.cost[0] = 1
            self.high[0] = np.inf
        self.constant = 0.0
        for column in row.columns:
            self._add_column(column)
        if row.reach.max_changes:
            self._add_count(row.reach.max_changes)
        self.leaves = [self._add_node(int(k), int(k)) for k in row.trees.tree_start[:-1]]
        for nodes in self.leaves:
            self.high[row.leaf[nodes]] = 1

    def _add_column(self, column: Column) -> None:
        edges = column.variables[: column.n_edges]
        edges = edges[self.free[edges]]
        for k, following in pairwise(edges.tolist()):
            self.rows.append(([k, following], [1, -1], 0))
            # Between them there may be no whole number: then both are crossed, or none.
            at = k - column.first, following - column.first
            if column.up[at[0]] == column.up[at[1]] and column.z[at[0]] == column.z[at[1]]:
                self.rows.append(([k, following], [-1, 1], 0))
        up = column.up[edges - column.first]
        for side in (edges[up], edges[~up][::-1]):
            before = 0.0
            for k in side:
                before = self._add_cost(int(k), before, -1 if column.up[k - column.first] else 1)
        others = column.variables[column.n_edges :]
        for k in others[self.free[others] & np.isfinite(column.step[column.n_edges :])]:
            self._add_cost(int(k), 0.0, 1)
        if column.cells and self.free[column.first]:
            some = others[self.free[others]].tolist()  # the value is exactly one of these
            for sign in (1, -1):
                self.rows.append((some, [sign] * len(some), sign))

    def _add_cost(self, k: int, before: float, sign: int) -> float:
        """What it costs more than `before` to go as far as a variable says."""
        step = float(self.row.step[k]) / self.unit
        total = {"inf": step, 1: step, 2: step**2, 0: 1.0}[self.row.norm]
        if self.row.norm == "inf":  # total * crossed <= the maximum
            self.rows.append(([k, 0], [sign * total, -1], -total if sign < 0 else 0))
        else:
            self.cost[k] += sign * (total - before)
            self.constant += (total - before) if sign < 0 else 0
        return total

    def _add_count(self, most: int) -> None:
        """At most so many columns change: cross a nearest edge, take another cell, or a blank."""
        variables: list[int] = []
        factors: list[float] = []
        for column in self.row.columns:
            at = column.variables[self.free[column.variables]]
            edges = at[at < column.first + column.n_edges]
            up = column.up[edges - column.first]
            others = at[at >= column.first + column.n_edges + bool(column.cells)]
            for chosen, factor in ((edges[up][:1], -1.0), (edges[~up][-1:], 1.0), (others, 1.0)):
                variables += chosen.tolist()
                factors += [factor] * len(chosen)
        self.rows.append((variables, factors, most - float(factors.count(-1.0))))

    def _add_node(self, at: int, start: int) -> list[int]:
        """Leaves below a node that the box reaches; a share of one side asks for its value."""
        trees = self.row.trees
        if trees.feature[at] == LEAF:
            return [at]
        children = start + int(trees.left[at]), start + int(trees.right[at])
        column = self.row.columns[trees.feature[at]]
        if np.isnan(column.x):
            return self._add_node(children[0 if trees.missing_left[at] else 1], start)
        present, blank = self._sides(at, column), column.blank and self.free[column.variables[-1]]
        if not blank and not any(self.free[k] for k in present[0]):
            stays_left = present[2] + sum(self.row.still[k] for k in present[0])
            return self._add_node(children[0 if stays_left > 0.5 else 1], start)
        left, right = (self._add_node(child, start) for child in children)
        variables, factors, constant = present
        missing = [column.first + len(column.step) - 1] if blank else []
        goes_left = bool(trees.missing_left[at])
        # A side's shares are at most its value, which is 0 or 1; a blank opens one side, and closes
        # the other.
        for leaves, opened, sign in ((left, goes_left, 1), (right, not goes_left, -1)):
            shares = self.row.leaf[leaves].tolist()
            ones, value = [1.0] * len(shares), [-sign * factor for factor in factors]
            limit = constant if sign > 0 else 1 - constant
            if opened:
                opening = [-1.0] * len(missing)
                self.rows.append(([*shares, *variables, *missing], ones + value + opening, limit))
            else:
                self.rows.append(([*shares, *variables], ones + value, limit))
                if missing:
                    self.rows.append(([*shares, *missing], [*ones, 1.0], 1.0))
        return left + right

    def _sides(self, at: int, column: Column) -> Row:
        """A sum of variables that is 1 where a present value goes left, else 0."""
        layout = self.row.layout
        if at in layout.sets:
            left = [k for k, code in enumerate(column.cells) if code not in layout.sets[at]]
            return [column.first + k for k in left], [1.0] * len(left), 0.0
        if np.isinf(layout.edge[at]):  # it only tells missing values from the others
            return [], [], float(layout.edge[at] > 0)
        return [column.first + int(layout.rank[at])], [1.0], 0.0

    def solve(self, leads: list[Lead], deadline: float) -> tuple[float, FloatArray | None]:
        """A lower bound, and a point where all leads hold.

        First the rival need only tie: what fools the model is among the solutions, whatever rounds.
        A solution that does not fool is left out and the next one asked for; at last the rival must
        clearly win, which finds an example but proves nothing. With several leads this is the
        answer and no second opinion, so one that fools is left out, too, until all that remain are
        farther by more than the solver's tolerance.
        """
        margins = [self._lead(plus, minus) for plus, minus in leads]
        tied = [
            (margin, -self.row.trees.tie_between(*lead) - base)
            for lead, (margin, base) in zip(leads, margins, strict=True)
        ]
        left_out: list[Row] = []
        lower, length = 0.0, np.inf
        best: FloatArray | None = None
        for _ in range(_NEAR):
            bound, x = self._run(tied, left_out, deadline)
            lower = max(lower, min(bound, length))
            if x is None or bound > (1 + _CLOSE) * length + _TOLERANCE:
                return lower, best
            point = self.row.point(x)
            chosen = self._leaves_of(point)
            left_out.append((chosen, [1.0] * len(chosen), len(chosen) - 1.0))
            if self.row.fools(point):
                point = self.row.pulled_back(point)
                if len(leads) == 1:
                    return lower, point
                if self.row.length(point) < length:
                    best, length = point, self.row.length(point)
        if best is not None:
            return lower, best
        clear = [
            (margin, _WIN * float(np.abs(margin).max(initial=0.0)) - base)
            for margin, base in margins
        ]
        _, x = self._run(clear, [], deadline)
        return lower, None if x is None else self.row.point(x)

    def _lead(self, plus: int, minus: int) -> tuple[FloatArray, float]:
        """By how much each leaf helps output plus against output minus, and the constant."""
        trees = self.row.trees
        margin = np.zeros(self.row.n_variables)
        base = 0.0
        for output, sign in ((plus, 1), (minus, -1)):
            base += sign * (trees.cut if output < 0 else float(trees.base[output]))
            for k, nodes in enumerate(self.leaves if output >= 0 else ()):
                column = output - int(trees.tree_output[k])
                if 0 <= column < trees.value.shape[1]:
                    margin[self.row.leaf[nodes]] += sign * trees.value[nodes, column]
        return margin, base

    def _leaves_of(self, point: FloatArray) -> list[int]:
        """The variables of the leaves that a point reaches."""
        trees = self.row.trees
        leaf = trees.apply(point[None])[0] + trees.tree_start[:-1]
        return [int(v) for v in self.row.leaf[leaf]]

    def _run(
        self, margins: list[tuple[FloatArray, float]], left_out: list[Row], deadline: float
    ) -> tuple[float, FloatArray | None]:
        """The solver's lower bound and its best solution with margins of at least so much."""
        n_variables = self.row.n_variables
        one = [(self.row.leaf[nodes].tolist(), [1.0] * len(nodes), 1.0) for nodes in self.leaves]
        constraints = [LinearConstraint(_sparse(one, n_variables), 1, 1)]
        for margin, least in margins:
            scale = float(np.abs(margin).max(initial=0.0)) or 1.0
            constraints.append(
                LinearConstraint(csr_array(margin[None] / scale), least / scale, np.inf)
            )
        rows = self.rows + left_out
        if rows:
            limits = np.array([row[2] for row in rows])
            constraints.append(LinearConstraint(_sparse(rows, n_variables), -np.inf, limits))
        whole = np.zeros(n_variables)
        whole[1 : self.row.n_choices] = 1
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return 0.0, None
        options = {
            "mip_rel_gap": 0.0,
            "presolve": False,  # HiGHS 1.12 has been seen to lose the optimum there
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
