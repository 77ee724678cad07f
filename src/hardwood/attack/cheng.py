"""Cheng's attack: only the labels of chosen points are asked for, of many rows at once.

After Cheng et al., "Query-efficient hard-label black-box attack: an optimization-based approach"
(2019). The distance to the boundary along a direction, found by asking, is minimised over
directions by randomised gradient-free steps.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import BoolArray, FloatArray
from hardwood.attack.victim import Attempt, Victim
from hardwood.verify.effort import Effort

Rows = npt.NDArray[np.int64]

_FIRST_GROWTH = 0.01  # of the distance along a new direction, doubled until the label changes
_MOST_GROWTH = 1.28  # beyond this many times its distance a direction counts as closed
_FINE = 1e-4  # relative precision of a distance along a direction
_FINEST = 1e-10  # and of the one that is returned
_LINE = 8  # steps of a line search
_LEAST_STEP, _LEAST_SMOOTHING = 1e-4, 1e-5
_CELLS = 4_000_000  # values in one batch of directions
_ASKED_CELLS = 1_000_000  # and in one of questions, between which the clock is looked at
_MORE_TRIES = 5  # times as many directions, for rows that no first one fools
_GIVE_UP = 8  # rounds without gain, smoothing at its least


@dataclass(frozen=True)
class ChengSettings:
    """Settings of ``method="cheng"``, with what each costs.

    Parameters
    ----------
    n_directions : int, default=20
        Directions to start from: towards rows of other labels, the nearest first, then random
        ones. About 10 questions each, once a row.
    n_samples : int, default=20
        Directions beside the current one that a step tries (q in the article): about 10 questions
        each, in every iteration. The main cost.
    n_jumps : int, default=20
        Further directions that a step tries, in which a few features at once take no part or take
        part in full: 1 question each, in every iteration, and 10 for one that is better. Trees are
        flat between thresholds, where small steps feel nothing; 0 is the article's own method.
    step : float, default=0.2
        First step of the line search, which doubles or quarters it: about 10 questions a try.
    smoothing : float, default=0.01
        How far beside, relative to the direction. Falls by a factor of 10 when steps get too small.
    n_iterations : int, default=1000
        Most steps a row; rows stop earlier when nothing helps any more.
    max_queries : int or None, default=None
        Most questions a row.
    """

    n_directions: int = 20
    n_samples: int = 20
    n_jumps: int = 20
    step: float = 0.2
    smoothing: float = 0.01
    n_iterations: int = 1000
    max_queries: int | None = None

    def __post_init__(self) -> None:
        least = {"n_directions": 1, "n_samples": 1, "max_queries": 3}
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name == "max_queries" and value is None:
                continue
            if setting.type is float or setting.name in ("step", "smoothing"):
                if not 0 < value < np.inf:
                    raise ValueError(
                        f"{setting.name} must be a number > 0, got {setting.name}={value}."
                    )
            elif value != int(value) or value < least.get(setting.name, 0):
                raise ValueError(
                    f"{setting.name} must be a whole number >= {least.get(setting.name, 0)}, got "
                    f"{setting.name}={value}."
                )


def attack(
    victim: Victim,
    settings: ChengSettings,
    effort: Effort,
    pool: tuple[FloatArray, npt.NDArray[Any]],
    rng: np.random.Generator,
) -> Attempt:
    """All rows advance together: every step asks about a batch of points."""
    if victim.norm not in ("inf", 2):
        raise ValueError(
            f'method="cheng" measures in the norms "inf" and 2, got norm={victim.norm!r}.'
        )
    search = _Search(victim, settings, effort, rng)
    tell = effort.tell(len(victim.X))
    try:
        search.start(*pool)
        for _ in range(settings.n_iterations):
            tell(len(victim.X) - int(np.count_nonzero(search.open)), 0)
            if effort.over or not search.open.any():
                break
            search.advance(np.flatnonzero(search.open))
        search.finish()
        tell(len(victim.X), 0)
    except KeyboardInterrupt:
        effort.interrupted = True
    return Attempt(search.X_adv, "cheng")


class _Search:
    """Directions of all rows, and the nearest examples seen."""

    def __init__(
        self, victim: Victim, settings: ChengSettings, effort: Effort, rng: np.random.Generator
    ) -> None:
        n_rows = len(victim.X)
        self.victim, self.settings, self.effort, self.rng = victim, settings, effort, rng
        self.reach = victim.reach
        self.low, self.high = (
            np.asarray(end) for end in _core.ball_ends(victim.X, self.reach.ends)
        )
        moves = self.low < self.high  # a missing value compares false
        self.switches = self._switches()
        self.movable = (moves | self.switches).astype(np.float64)
        share = self.reach.share > 0
        size = np.where(np.isnan(victim.X), 0.0, np.abs(victim.X))
        self.down_scale = self.reach.down_scale * np.where(share[:, 0], size, 1.0)
        self.up_scale = self.reach.up_scale * np.where(share[:, 1], size, 1.0)
        self.other = victim.X.copy()  # what a category or a blank becomes along the direction
        self.order = np.inf if victim.norm == "inf" else 2
        self.direction = np.zeros_like(victim.X)
        self.reached = np.full(n_rows, np.inf)  # distance along it
        self.step = np.full(n_rows, settings.step)
        self.smoothing = np.full(n_rows, settings.smoothing)
        self.idle = np.zeros(n_rows, dtype=int)
        self.open = np.zeros(n_rows, dtype=bool)
        self.X_adv = np.full_like(victim.X, np.nan)
        self.distance = np.full(n_rows, np.inf)

    def _switches(self) -> BoolArray:
        """Values that do not move but change: categories, and what can be left blank."""
        X = self.victim.X
        switches = np.zeros(X.shape, dtype=bool)
        for feature in self.reach.changes:
            for i in range(len(X)):
                switches[i, feature] = len(self._others(i, feature)) > 0
        return switches | (self.reach.blank & ~np.isnan(X))

    def _others(self, row: int, feature: int) -> FloatArray:
        """What a value can change to: other categories, a blank."""
        x = self.victim.X[row, feature]
        if np.isnan(x):
            return np.empty(0)
        to = self.reach.changes.get(feature, ())
        codes = to[int(x) if 0 <= x < len(to) - 1 else -1] if len(to) else np.empty(0)
        blank = [np.nan] if self.reach.blank[feature] else []
        return np.concatenate([codes[codes != x].astype(np.float64), blank])

    def drawn(self, row: Rows, share: float = 1.0) -> FloatArray:
        """Changes drawn for some of the values that can change; the others stay as they are."""
        other = self.victim.X[row].copy()
        for k, feature in zip(*np.nonzero(self.switches[row]), strict=True):
            number = feature not in self.reach.changes
            if self.rng.random() < share * (0.2 if number else 1.0):  # numbers mostly move
                other[k, feature] = self.rng.choice(self._others(int(row[k]), int(feature)))
        return other

    def unit(self, row: Rows, direction: FloatArray) -> FloatArray:
        """Directions of length 1 that leave alone what cannot move."""
        free = direction * self.movable[row]
        most = self.reach.max_changes
        if 0 < most < free.shape[1]:  # only the largest parts take part
            size = np.abs(free)
            free = np.where(size >= np.sort(size, axis=1)[:, -most, None], free, 0.0)
        length = np.linalg.norm(free, self.order, axis=1, keepdims=True)
        scaled: FloatArray = np.divide(free, length, out=np.zeros_like(free), where=length > 0)
        return scaled

    def ask(
        self, row: Rows, direction: FloatArray, length: FloatArray, other: FloatArray
    ) -> BoolArray:
        """Whether the labels change that far along the directions; keeps what is nearest.

        A row whose questions are used up gets a no; so do all when the time is over.
        """
        changed = np.zeros(len(row), dtype=bool)
        allowed = self._allowed(row)
        block = max(1, _ASKED_CELLS // self.victim.X.shape[1])
        for begin in range(0, len(allowed), block):
            if self.effort.over:
                break
            at = allowed[begin : begin + block]
            Z = self._points(row[at], direction[at], length[at], other[at])
            changed[at] = self.victim.fooled(Z, row[at])
            self._keep(row[at][changed[at]], Z[changed[at]])
        return changed

    def _allowed(self, row: Rows) -> Rows:
        most = self.settings.max_queries
        if most is None:
            return np.arange(len(row))
        order = np.argsort(row, kind="stable")
        first = np.searchsorted(row[order], row[order])
        asked = np.empty(len(row), dtype=np.int64)
        asked[order] = np.arange(len(row)) - first
        # Two are kept for the label before the attack and for the replay.
        return np.flatnonzero(self.victim.n_queries[row] + asked < most - 2)

    def _points(
        self, row: Rows, direction: FloatArray, length: FloatArray, other: FloatArray
    ) -> FloatArray:
        """Points that far along directions; a value changes where its part is a whole step."""
        X, unit = self.victim.X[row], self.reach.unit
        step = length[:, None] * direction
        scale = np.where(direction < 0, self.down_scale[row], self.up_scale[row])
        Z = np.clip(X + step * scale, self.low[row], self.high[row])
        towards_x = np.where(Z < X, np.minimum(np.ceil(Z), X), np.maximum(np.floor(Z), X))
        Z = np.where(self.reach.whole, towards_x, Z)
        changes = ~((other == X) | (np.isnan(other) & np.isnan(X)))
        return np.where(changes, np.where(np.abs(step) >= unit, other, X), Z)

    def _keep(self, row: Rows, Z: FloatArray) -> None:
        if len(row) == 0:
            return
        distance = self.victim.rows(row).lengths(Z)
        order = np.argsort(-distance, kind="stable")  # the nearest of a row is written last
        nearer = order[distance[order] < self.distance[row[order]]]
        self.distance[row[nearer]] = distance[nearer]
        self.X_adv[row[nearer]] = Z[nearer]

    def boundary(
        self, row: Rows, direction: FloatArray, start: FloatArray, other: FloatArray
    ) -> FloatArray:
        """Distance to another label along directions, near `start`; infinity if not near it."""
        far = self.ask(row, direction, start, other)
        low = np.where(far, 0.0, start)
        high = np.where(far, start, np.inf)
        growth = np.full(len(row), _FIRST_GROWTH)
        moving = np.arange(len(row))
        while len(moving):
            out = ~far[moving]
            length = start[moving] * np.where(out, 1 + growth[moving], 1 - growth[moving])
            changed = self.ask(row[moving], direction[moving], length, other[moving])
            high[moving[changed]] = length[changed]
            low[moving[~changed]] = length[~changed]
            growth[moving] *= 2
            # Out until the label changes, in until it does not.
            going_on = np.where(out, ~changed, changed)
            going_on &= np.where(out, growth[moving] < _MOST_GROWTH, growth[moving] < 1)
            moving = moving[going_on]
        return self._bisect(row, direction, low, high, other, _FINE)

    def _bisect(
        self,
        row: Rows,
        direction: FloatArray,
        low: FloatArray,
        high: FloatArray,
        other: FloatArray,
        fine: float,
    ) -> FloatArray:
        for _ in range(60):
            wide = np.flatnonzero((high - low > fine * high) & np.isfinite(high))
            if len(wide) == 0:
                break
            middle = (low[wide] + high[wide]) / 2
            changed = self.ask(row[wide], direction[wide], middle, other[wide])
            high[wide[changed]] = middle[changed]
            low[wide[~changed]] = middle[~changed]
        return high

    def start(self, X_pool: FloatArray, y_pool: npt.NDArray[Any]) -> None:
        """Look along the first directions and keep the best one of each row."""
        n_rows, n_features = self.victim.X.shape
        count = self.settings.n_directions
        every = np.arange(n_rows)
        found = np.zeros((n_rows, count), dtype=np.int64)
        n_found = np.zeros(n_rows, dtype=int)
        for label in set(self.victim.y.tolist()):
            mine = np.flatnonzero(self.victim.y == label)
            target = self.victim.target
            others = np.flatnonzero(y_pool != label if target is None else y_pool == target)
            n_others = min(count, len(others))
            if n_others == 0:
                continue
            for i in mine:
                if self.effort.over:
                    return
                apart = np.linalg.norm(
                    np.nan_to_num(X_pool[others] - self.victim.X[i]), self.order, axis=1
                )
                found[i, :n_others] = others[np.argpartition(apart, n_others - 1)[:n_others]]
            n_found[mine] = n_others
        for k in range(count):
            if self.effort.over:
                break
            random = self.rng.normal(size=(n_rows, n_features))
            towards = np.nan_to_num(X_pool[found[:, k]] - self.victim.X) if len(X_pool) else random
            direction = np.where((k < n_found)[:, None], towards, random)
            other = self.drawn(every)
            if len(X_pool):
                some = k < n_found
                direction[some], other[some] = self._towards(every[some], X_pool[found[some, k]])
            # Scales count when steps are measured; the pool's row is this far away.
            length = np.linalg.norm(direction * self.movable, self.order, axis=1)
            self._try(every, self.unit(every, direction), np.maximum(length, 1e-12), other)
        # Labels of others are not what the model says of them: some rows need more tries.
        for _ in range(_MORE_TRIES * count):
            lost = np.flatnonzero(~np.isfinite(self.reached))
            if len(lost) == 0 or len(X_pool) == 0 or self.effort.over:
                break
            drawn = X_pool[self.rng.integers(len(X_pool), size=len(lost))]
            towards, other = self._towards(lost, drawn)
            length = np.linalg.norm(towards * self.movable[lost], self.order, axis=1)
            self._try(lost, self.unit(lost, towards), np.maximum(length, 1e-12), other)
        self.open = np.isfinite(self.reached)

    def _towards(self, row: Rows, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Directions to points; categories become theirs where they can, else what is drawn."""
        X = self.victim.X[row]
        direction = np.nan_to_num(Z - X)
        other = self.drawn(row)
        for feature in self.reach.changes:
            for k, i in enumerate(row):
                if Z[k, feature] in self._others(int(i), feature):
                    other[k, feature] = Z[k, feature]
        changes = ~((other == X) | (np.isnan(other) & np.isnan(X)))
        # A whole step of the threat, at the far end of the way.
        far = np.maximum(np.abs(direction).max(axis=1, initial=0.0), self.reach.unit)
        return np.where(changes, far[:, None], direction), other

    def _try(self, row: Rows, direction: FloatArray, length: FloatArray, other: FloatArray) -> None:
        """Take a direction if the label changes nearer along it than along the row's own."""
        known = np.isfinite(self.reached[row])
        length = np.where(known, self.reached[row], length)
        changed = self.ask(row, direction, length, other)
        at = np.flatnonzero(changed)
        low = np.zeros(len(at))
        reached = self._bisect(row[at], direction[at], low, length[at], other[at], _FINE)
        self._take(row[at], direction[at], reached, other[at])

    def _take(
        self, row: Rows, direction: FloatArray, reached: FloatArray, other: FloatArray
    ) -> None:
        better = reached < self.reached[row]
        self.reached[row[better]] = reached[better]
        self.direction[row[better]] = direction[better]
        self.other[row[better]] = other[better]

    def advance(self, row: Rows) -> None:
        """One step of every row: a gradient from samples, a line search along it, jumps."""
        before = self.reached[row].copy()
        gradient = self._sample(row)
        self._line_search(row, gradient)
        for _ in range(self.settings.n_jumps):
            self._jump(row)
        gained = self.reached[row] < before * (1 - 1e-4)
        small = self.step[row] < _LEAST_STEP
        self.step[row[small]] = self.settings.step
        self.smoothing[row[small]] = np.maximum(self.smoothing[row[small]] / 10, _LEAST_SMOOTHING)
        self.idle[row] = np.where(gained, 0, self.idle[row] + 1)
        self.open[row] = self.idle[row] < _GIVE_UP
        if self.settings.max_queries is not None:
            self.open &= self.victim.n_queries < self.settings.max_queries - 2

    def _sample(self, row: Rows) -> FloatArray:
        count, d = self.settings.n_samples, self.victim.X.shape[1]
        gradient = np.zeros((len(row), d))
        own, reached = self.direction[row], self.reached[row]
        many = max(1, _CELLS // (len(row) * d))
        for begin in range(0, count, many):
            n = min(many, count - begin)
            every = np.repeat(row, n)
            beside = self.unit(every, self.rng.normal(size=(len(every), d)))
            shift = np.repeat(self.smoothing[row], n)
            direction = self.unit(every, np.repeat(own, n, axis=0) + shift[:, None] * beside)
            start = np.repeat(reached, n)
            other = np.repeat(self.other[row], n, axis=0)
            length = self.boundary(every, direction, start, other)
            slope = (np.minimum(length / start, _MOST_GROWTH) - 1) / shift
            gradient += (slope[:, None] * beside).reshape(len(row), n, d).sum(axis=1)
            best = length.reshape(len(row), n).argmin(axis=1) + n * np.arange(len(row))
            self._take(row, direction[best], length[best], other[best])
        return gradient / count

    def _line_search(self, row: Rows, gradient: FloatArray) -> None:
        """Along the gradient: as far as it helps, or back until it does."""
        own, first = self.direction[row].copy(), self.reached[row].copy()
        best = first.copy()
        grows = np.ones(len(row), dtype=bool)
        going = np.arange(len(row))
        for k in range(_LINE):
            at = row[going]
            direction = self.unit(at, own[going] - self.step[at][:, None] * gradient[going])
            length = self.boundary(at, direction, self.reached[at], self.other[at])
            better = length < best[going]
            best[going[better]] = length[better]
            self._take(at, direction, length, self.other[at])
            if k == 0:
                grows[going] = better
            growing = grows[going]
            self.step[at[growing & better]] *= 2
            self.step[at[~growing & ~better]] /= 4
            # Those that grow stop at the first loss, the others at the first gain.
            going = going[np.where(growing, better, ~better) & (self.step[at] >= _LEAST_STEP)]
            if len(going) == 0:
                break

    def _jump(self, row: Rows) -> None:
        """Let a few features take no part, or take part in full."""
        d = self.victim.X.shape[1]
        share = self.rng.choice([1 / d, 2 / d, 0.1, 0.3], size=(len(row), 1))
        chosen = self.rng.random((len(row), d)) < share
        chosen[np.arange(len(row)), self.rng.integers(d, size=len(row))] = True
        own = self.direction[row]
        top = np.abs(own).max(axis=1, keepdims=True)
        value = self.rng.choice([-1.0, 0.0, 0.0, 1.0], size=own.shape) * top
        direction = self.unit(row, np.where(chosen, value, own))
        other = self.other[row]
        if self.switches.any():
            other = np.where(chosen & self.switches[row], self.drawn(row), other)
        length = self.reached[row] * (1 - 1e-3)
        changed = self.ask(row, direction, length, other)
        at = np.flatnonzero(changed)
        zero = np.zeros(len(at))
        reached = self._bisect(row[at], direction[at], zero, length[at], other[at], _FINE)
        self._take(row[at], direction[at], reached, other[at])

    def finish(self) -> None:
        """Go to the very boundary along the directions found."""
        row = np.flatnonzero(np.isfinite(self.reached))
        length = self.reached[row]
        near = length * (1 - 2 * _FINE)
        self._bisect(row, self.direction[row], near, length.copy(), self.other[row], _FINEST)
