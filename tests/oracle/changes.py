"""What a threat may make of a row, in the plainest way: every point, one value after the other.

Nothing is taken from the package: a column is described once, and both the threat in the users'
words and the points that it allows follow from this description.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

import hardwood as hw
from oracle.nearest import first_not_left, next_down
from oracle.walk import label_of


@dataclass(frozen=True)
class Column:
    """What may happen to one column."""

    down: float = 0.0
    up: float = 0.0
    share: bool = False  # steps are shares of |x|
    whole: bool = False
    blank: bool = False
    low: float = -1e30
    high: float = 1e30
    to: dict | None = None  # category: list of categories; None: numbers
    n_codes: int = 0

    def step(self):
        """As users write it."""
        if self.to is not None:
            every = list(range(self.n_codes))
            if all(sorted({*self.to.get(c, ()), c}) == every for c in every):
                return hw.ANY
            return self.to
        return hw.relative(self.down, self.up) if self.share else (self.down, self.up)

    def size(self, x, z):
        """The step from x to z, as a part of the largest one that is allowed."""
        if z == x or (math.isnan(z) and math.isnan(x)):
            return 0.0
        if math.isnan(z) or self.to is not None:
            return 1.0
        most = (self.down if z < x else self.up) * (abs(x) if self.share else 1)
        return abs(z - x) / most if most > 0 else math.inf

    def values(self, x, thresholds, x_dtype, limit):
        """All values that matter and that x may become, with steps of at most `limit` sizes."""
        if math.isnan(x):
            return [x]
        found = [x]
        if self.blank and limit >= 1:
            found.append(math.nan)
        if self.to is not None:
            return found + [float(c) for c in self.to.get(int(x), ()) if c != x and limit >= 1]
        for threshold in thresholds:
            edge = first_not_left(threshold, x_dtype)
            near = [math.ceil(edge), math.floor(next_down(edge))] if self.whole else []
            for z in near or [edge, next_down(edge)]:
                if self._allowed(x, float(z), limit):
                    found.append(float(z))
        return found

    def _allowed(self, x, z, limit):
        if not math.isfinite(z) or not self.low <= z <= self.high:
            return False
        scale = abs(x) if self.share else 1
        if limit == math.inf:
            return (self.down if z < x else self.up) * scale > 0
        return x - limit * self.down * scale <= z <= x + limit * self.up * scale


@dataclass(frozen=True)
class Plan:
    """A threat as columns, and the groups of columns that are one-hot."""

    columns: list[Column]
    norm: object = "inf"
    max_changes: int | None = None
    groups: list[list[int]] = field(default_factory=list)

    def threat(self):
        eps = {
            f: column.step()
            for f, column in enumerate(self.columns)
            if not any(f in group for group in self.groups)
        }
        return hw.Threat(
            eps,
            norm=self.norm,
            low={f: column.low for f, column in enumerate(self.columns)},
            high={f: column.high for f, column in enumerate(self.columns)},
            integer=[f for f, column in enumerate(self.columns) if column.whole],
            blank=[f for f, column in enumerate(self.columns) if column.blank],
            one_hot=self.groups,
            max_changes=self.max_changes,
        )

    def points(self, trees, x, limit=1.0):
        """Every point that matters, and its size in multiples of the threat."""
        grouped = {f: group for group in self.groups for f in group}
        choices = []
        for f, column in enumerate(self.columns):
            if f in grouped:
                continue
            numbers = ~trees.categorical & (trees.feature == f)
            steps = math.inf if self.norm == 0 and limit == math.inf else limit
            # With norm 0 a limit is one: it does not grow with the number of changes.
            steps = 1.0 if self.norm == 0 else steps
            values = column.values(x[f], trees.threshold[numbers], trees.x_dtype, steps)
            choices.append([({f: z}, column.size(x[f], z)) for z in dict.fromkeys(values)])
        for group in self.groups:
            ones = [{f: float(f == one) for f in group} for one in group]
            stays = {f: x[f] for f in group}
            moved = [(one, 1.0) for one in ones if one != stays and limit >= 1]
            choices.append([(stays, 0.0), *moved])
        for chosen in itertools.product(*choices):
            sizes = [size for _, size in chosen]
            if self.max_changes is not None and np.count_nonzero(sizes) > self.max_changes:
                continue
            z = x.copy()
            for values, _ in chosen:
                for f, value in values.items():
                    z[f] = value
            yield z, self.length(sizes)

    def length(self, sizes):
        if self.norm == 0:
            return float(np.count_nonzero(sizes))
        return {"inf": max, 1: math.fsum, 2: lambda steps: math.hypot(*steps)}[self.norm](sizes)

    def nearest(self, trees, x, wanted, limit=math.inf):
        """The smallest multiple of the threat that gives a wanted label, and that label's point."""
        points = list(self.points(trees, x, limit))
        labels = label_of(trees, np.array([z for z, _ in points]))
        fooled = [
            (length, k)
            for k, (_, length) in enumerate(points)
            if wanted(labels[k]) and (self.norm in ("inf", 0) or length <= limit * (1 + 1e-12))
        ]
        return min(fooled, default=(math.inf, None))[0]
