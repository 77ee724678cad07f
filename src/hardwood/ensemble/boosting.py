"""Boosting: rounds of trees, each for the residuals of those before it."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hardwood import _core, _sums
from hardwood._check import Float32Array, FloatArray, IntArray
from hardwood.ensemble.loss import KnownLoss, Loss, RefittedLoss
from hardwood.ensemble.tree import NODE_ARRAYS, together
from hardwood.grow.grow import GrownTree
from hardwood.grow.newton import NewtonRules
from hardwood.grow.part import Part
from hardwood.model.trees import Trees

EvalsResult = dict[str, dict[str, list[float]]]

_logger = logging.getLogger("hardwood")


class TrainingTable(Protocol):
    """Training data as an engine keeps it for a whole run."""

    def grow(
        self,
        gradient: Float32Array,
        hessian: Float32Array,
        *,
        weight: Float32Array | None = None,
        rows: npt.NDArray[np.uint8] | None = None,
        features: IntArray | None = None,
        monotonic: npt.NDArray[np.int8] | None = None,
        rules: NewtonRules,
        in_place: bool = False,
    ) -> tuple[list[GrownTree], IntArray]:
        """Grow one tree per output; also give the leaf of every row in each.

        `in_place`: the leaves may lie where the gradients were, which are lost then.
        """


@dataclass(frozen=True)
class Sampling:
    """The rows and features each round learns from."""

    subsample: float = 1.0
    colsample_bytree: float = 1.0
    seed: int = 0

    def draw(
        self, n_rounds: int, part: Part, n_features: int, n_trees: int = 1
    ) -> tuple[npt.NDArray[np.uint8] | None, IntArray | None]:
        """Draw for the round that follows `n_rounds` others; it does not matter who drew those.

        Rows are drawn once, features for each of `n_trees`.
        """
        rng = np.random.default_rng([self.seed, n_rounds])
        rows = features = None
        if self.subsample < 1:
            rows = (part.draw(rng) < self.subsample).astype(np.uint8)
            spare = part.some_of(np.array([rng.integers(part.n_all)]))
            rows[spare] |= not part.any(bool(rows.any()))
        if self.colsample_bytree < 1:
            n_drawn = max(1, int(self.colsample_bytree * n_features))
            drawn = [
                rng.choice(n_features, n_drawn, replace=False, shuffle=False)
                for _ in range(n_trees)
            ]
            features = np.sort(drawn, axis=1).astype(np.int32)
        return rows, features


@dataclass
class Model:
    """Trees under construction: lists of arrays, put together once."""

    base: FloatArray
    n_features: int
    about: dict[str, Any]  # see _ABOUT
    parts: list[dict[str, npt.NDArray[Any]]] = field(default_factory=list)
    n_nodes: list[int] = field(default_factory=list)
    # Training may see columns in another form; this gives trees for the user's own columns.
    for_users: Callable[[Trees], Trees] = field(default=lambda trees: trees, repr=False)

    @classmethod
    def from_trees(cls, trees: Trees) -> "Model":
        """Begin with trees that are already there."""
        about = {name: getattr(trees, name) for name in _ABOUT}
        part = {name: getattr(trees, name) for name in _PART}
        n_nodes = [int(n) for n in np.diff(trees.tree_start)]
        return cls(trees.base, trees.n_features, about, [part], n_nodes)

    @property
    def n_rounds(self) -> int:
        """Rounds so far: each adds one tree per output."""
        return len(self.n_nodes) // len(self.base)

    def add(self, trees: Sequence[GrownTree], values: Sequence[Float32Array]) -> None:
        """Add a round, with the values that its leaves shall have."""
        for tree, value in zip(trees, values, strict=True):
            part = {name: getattr(tree, name) for name in _PART}
            self.parts.append({**part, "value": value[:, None]})
            self.n_nodes.append(len(tree.feature))

    def trees(self) -> Trees:
        """All trees so far as a model."""
        return self._together(self.parts, self.n_nodes, self.base)

    def last_round(self) -> Trees:
        """The trees of the last round alone, added to nothing."""
        return self.rounds_from(self.n_rounds - 1)

    def rounds_from(self, first: int) -> Trees:
        """The trees of the rounds from `first` on alone, added to nothing.

        Trees that the model began with count as one part and come as a whole.
        """
        n = len(self.base)
        n_more = (self.n_rounds - first) * n
        if n_more == len(self.n_nodes):
            return self._together(self.parts, self.n_nodes, np.zeros(n))
        return self._together(self.parts[-n_more:], self.n_nodes[-n_more:], np.zeros(n))

    def _together(
        self, parts: list[dict[str, npt.NDArray[Any]]], n_nodes: list[int], base: FloatArray
    ) -> Trees:
        return Trees(
            **together(parts),
            tree_start=np.concatenate([[0], np.cumsum(n_nodes)]),
            tree_output=np.arange(len(n_nodes)) % len(base),
            base=base,
            n_features=self.n_features,
            **self.about,
        )


_PART = (*NODE_ARRAYS, "category_start")
_ABOUT = ("link", "task", "classes", "feature_names", "category_names", "columns")


class Rounds(Protocol):
    """Boosting, as those see it who look at its rounds."""

    model: Model
    y: Float32Array
    weight: Float32Array | None

    @property
    def loss(self) -> Loss:
        """What is minimised."""

    @property
    def margin(self) -> Float32Array:
        """Plain margins of the training rows."""

    def step(self) -> None:
        """Add one round."""


@dataclass
class Booster:
    """Training rows with their margins, and the model that grows round by round.

    The margins are added up in float32, base first, then tree after tree, exactly as the finished
    `Trees` adds them.
    """

    table: TrainingTable
    loss: Loss
    y: Float32Array
    weight: Float32Array | None
    monotonic: npt.NDArray[np.int8]
    sampling: Sampling
    learning_rate: float
    rules: NewtonRules
    model: Model
    margin: Float32Array
    part: Part

    def step(self) -> None:
        """Add one round."""
        n_threads = self.rules.n_threads
        gradient, hessian = self.loss.derivatives(self.y, self.margin, n_threads)
        n_rounds = self.model.n_rounds
        rows, features = self.sampling.draw(n_rounds, self.part, self.model.n_features)
        trees, leaf = self.table.grow(
            gradient,
            hessian,
            weight=self.weight,
            rows=rows,
            features=None if features is None else features[0],
            monotonic=self.monotonic,
            rules=replace(self.rules, seed=n_rounds),  # of the rounding, which no user need draw
            in_place=isinstance(self.loss, KnownLoss),  # other gradients may be the user's own
        )
        values = [self._values(tree, leaf[:, k], rows) for k, tree in enumerate(trees)]
        self.model.add(trees, values)
        first = np.cumsum([0, *(len(value) for value in values[:-1])])
        _core.add_leaf_values(leaf, np.concatenate(values), first, self.margin, n_threads=n_threads)

    def _values(
        self, tree: GrownTree, leaf: IntArray, rows: npt.NDArray[np.uint8] | None
    ) -> Float32Array:
        """Values of the nodes, shrunk."""
        value = tree.value[:, 0]
        if isinstance(self.loss, RefittedLoss):
            value = self._refitted(self.loss, value, leaf, rows)
        shrunk: Float32Array = value * np.float32(self.learning_rate)
        return shrunk

    def _refitted(
        self,
        loss: RefittedLoss,
        value: Float32Array,
        leaf: IntArray,
        rows: npt.NDArray[np.uint8] | None,
    ) -> Float32Array:
        value = value.copy()
        residual = self.y - self.margin[:, 0]
        sampled = np.arange(len(leaf)) if rows is None else np.flatnonzero(rows)
        others = self.part.others
        if others is not None:
            weight = None if self.weight is None else self.weight[sampled]
            new = loss.leaf_values(residual[sampled], leaf[sampled], len(value), weight, others)
            return np.asarray(np.where(np.isnan(new), value, new), dtype=np.float32)
        by_leaf = sampled[np.argsort(leaf[sampled], kind="stable")]
        borders = np.flatnonzero(np.diff(leaf[by_leaf])) + 1
        for inside in np.split(by_leaf, borders):
            weight = None if self.weight is None else self.weight[inside]
            value[leaf[inside[0]]] = loss.leaf_value(residual[inside], weight)
        return value


def has_split(
    table: TrainingTable,
    loss: Loss,
    y: Float32Array,
    weight: Float32Array | None,
    base: FloatArray,
    monotonic: npt.NDArray[np.int8],
    rules: NewtonRules,
) -> bool:
    """Whether a first round would split anything."""
    gradient, hessian = loss.derivatives_at(base, y)
    trees, _ = table.grow(
        gradient, hessian, weight=weight, monotonic=monotonic, rules=replace(rules, max_depth=1)
    )
    return any(len(tree.feature) > 1 for tree in trees)


@dataclass
class Validation:
    """Rows that are not learned from, with their margins."""

    X: FloatArray
    y: Float32Array
    weight: Float32Array | None
    margin: Float32Array
    n_jobs: int | None

    def add(self, trees: Trees) -> None:
        """Add the trees of a round to the margins, in the trees' order."""
        leaf = trees.apply(self.X, n_jobs=self.n_jobs)
        for k in range(trees.n_trees):
            start = trees.tree_start[k]
            self.margin[:, trees.tree_output[k]] += trees.value[start + leaf[:, k], 0]


@dataclass
class EarlyStopping:
    """Stops when the last rounds brought nothing, and remembers the best one."""

    n_iter_no_change: int
    best_score: float = -np.inf
    best_round: int = 0

    def wants_stop(self, n_rounds: int, score: float) -> bool:
        """Look at the score of a round, larger being better."""
        if score > self.best_score:
            self.best_score, self.best_round = score, n_rounds
        return n_rounds - self.best_round >= self.n_iter_no_change


@dataclass(frozen=True)
class BoostingRound:
    """What a callback is told after each round.

    Attributes
    ----------
    n_rounds : int
        Rounds so far.
    evals_result : dict
        The evaluation history so far, as in the estimator's ``evals_result_``.
    """

    n_rounds: int
    evals_result: EvalsResult
    _model: Model = field(repr=False)

    def trees(self) -> Trees:
        """Give the model as it is now."""
        return self._model.for_users(self._model.trees())


Callback = Callable[[BoostingRound], Any]
Scorer = Callable[[Validation], float]


def log_progress(now: BoostingRound) -> None:
    """Log the latest figures of the history."""
    if not _logger.hasHandlers():  # asked for, so it must be seen
        _logger.addHandler(logging.StreamHandler())
        _logger.setLevel(logging.INFO)
    figures = [
        f"{where} {name} {values[-1]:.6g}"
        for where, history in now.evals_result.items()
        for name, values in history.items()
    ]
    _logger.info("round %d: %s", now.n_rounds, ", ".join(figures))


@dataclass
class Monitor:
    """Who looks at the rounds: the history, early stopping, the callbacks."""

    validation: Validation | None = None
    scorer: Scorer | None = None
    stopping: EarlyStopping | None = None
    callbacks: Sequence[Callback] = ()
    evals_result: EvalsResult = field(default_factory=dict)
    others: _sums.Others | None = None  # whose rows count, too; each has callbacks, or none has
    name: str = "validation"  # of the validation rows in the history
    further: dict[str, Validation] = field(default_factory=dict)  # rows that are only reported on

    def all_held(self) -> dict[str, Validation]:
        """All validation rows by their name; those that early stopping looks at come last."""
        last = {} if self.validation is None else {self.name: self.validation}
        return {**self.further, **last}

    def wants_stop(self, booster: Rounds) -> bool:
        """Evaluate a finished round and ask everybody whether it was the last one."""
        for held in self.all_held().values():
            held.add(booster.model.last_round())
        if self.validation is None and not self.callbacks:
            return False
        n_rounds = booster.model.n_rounds
        score = self._evaluate(booster)
        stop = self.stopping is not None and self.stopping.wants_stop(n_rounds, score)
        now = BoostingRound(n_rounds, self.evals_result, booster.model)
        # All of them, even when the first one wants to stop.
        stop = any([stop, *[callback(now) is True for callback in self.callbacks]])
        return _sums.any_of(stop, self.others)

    def _evaluate(self, booster: Rounds) -> float:
        """Add to the history; gives the figure that early stopping looks at."""
        score, loss, held = np.nan, booster.loss, self.validation
        if isinstance(loss, KnownLoss):
            of_train = loss.mean(booster.y, booster.margin, booster.weight, self.others)
            self._note("train", "loss", of_train)
            for name, rows in self.all_held().items():
                score = -loss.mean(rows.y, rows.margin, rows.weight, self.others)
                self._note(name, "loss", -score)
        if held is not None and self.scorer is not None:
            score = self.scorer(held)
            self._note(self.name, "score", score)
        return score

    def _note(self, where: str, name: str, value: float) -> None:
        self.evals_result.setdefault(where, {}).setdefault(name, []).append(value)


def boost(
    booster: Rounds,
    n_rounds: int,
    monitor: Monitor,
    after: Callable[[Rounds], Any] | None = None,
) -> Trees:
    """Add up to `n_rounds` rounds; early stopping cuts the model after its best one.

    `after` is told of each round when everybody has looked at it.
    """
    for _ in range(n_rounds):
        booster.step()
        stop = monitor.wants_stop(booster)
        if after is not None:
            after(booster)
        if stop:
            break
    trees = booster.model.trees()
    if monitor.stopping is not None and 0 < monitor.stopping.best_round < booster.model.n_rounds:
        trees = trees.first(monitor.stopping.best_round * len(booster.model.base))
    return trees
