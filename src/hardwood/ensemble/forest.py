"""Many robust trees, each grown on its own draw of rows and features."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import Float32Array, FloatArray, IntArray
from hardwood.ensemble.boosting import Model
from hardwood.ensemble.loss import Loss
from hardwood.ensemble.tree import share_trees
from hardwood.grow.grow import ClassTable, ClassTreeRules, GrownTree
from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.grow.part import Part
from hardwood.grow.rules import TreeRules
from hardwood.model.trees import Trees

Grown = TypeVar("Grown")

_PULSE = 0.05  # seconds between two looks at the trees that grow


@dataclass(frozen=True)
class Draw:
    """How the rows of one tree are drawn, and what drew them."""

    n_rows: int
    n_drawn: int
    bootstrap: bool
    part: Part | None = None  # whose rows are asked for; None: all

    def counts(self, seed: int) -> npt.NDArray[np.int64]:
        """How often each row is drawn: with replacement if `bootstrap`, else at most once."""
        rng = np.random.default_rng(seed)
        if self.part is not None:
            drawn = (
                rng.integers(self.n_rows, size=self.n_drawn)
                if self.bootstrap
                else rng.permutation(self.n_rows)[: self.n_drawn]
            )
            return np.bincount(self.part.some_of(drawn), minlength=self.part.n_rows)
        if self.bootstrap:
            drawn = rng.integers(self.n_rows, size=self.n_drawn)
            return np.bincount(drawn, minlength=self.n_rows)
        counts = np.zeros(self.n_rows, dtype=np.int64)
        counts[rng.permutation(self.n_rows)[: self.n_drawn]] = 1
        return counts

    def weights(self, seed: int, weight: npt.NDArray[Any] | None) -> FloatArray:
        """What each row weighs in the tree: one drawn twice weighs twice, others nothing."""
        counts = self.counts(seed).astype(np.float64)
        return counts if weight is None else counts * weight


def train_share_forest(
    table: ClassTable,
    label: IntArray,
    classes: npt.NDArray[Any],
    weight: FloatArray | None,
    monotonic: npt.NDArray[np.int8],
    rules: ClassTreeRules,
    draw: Draw,
    seeds: Sequence[int],
    about: Mapping[str, Any],
    before: Trees | None = None,
) -> Trees:
    """Grow one tree per seed, in parallel over trees, behind those of `before`.

    Leaves hold class shares.
    """

    def grow(seed: int, stop: _core.Stop) -> GrownTree:
        return table.grow_classes(
            label,
            len(classes),
            draw.weights(seed, weight),
            monotonic,
            replace(rules, seed=seed, n_threads=1),
            stop,
        )

    return share_trees(_each(grow, seeds, rules, draw.part), classes, about, before)


def train_newton_forest(
    table: HistTable,
    y: Float32Array,
    weight: Float32Array | None,
    loss: Loss,
    model: Model,
    monotonic: npt.NDArray[np.int8],
    rules: NewtonRules,
    draw: Draw,
    seeds: Sequence[int],
) -> Trees:
    """Let every tree take one Newton step from the same base; the model is their mean.

    As XGBoost grows a forest: one round of parallel trees, each shrunk by their number.
    """
    gradient, hessian = loss.derivatives_at(model.base, y)
    shrinkage = np.float32(1) / np.float32(len(seeds))

    def grow(seed: int, stop: _core.Stop) -> list[GrownTree]:
        drawn = draw.weights(seed, weight)
        trees, _ = table.grow(
            gradient,
            hessian,
            weight=drawn.astype(np.float32),
            rows=(drawn > 0).astype(np.uint8),
            monotonic=monotonic,
            rules=replace(rules, seed=seed, n_threads=1),
            stop=stop,
        )
        return trees

    for trees in _each(grow, seeds, rules, draw.part):
        model.add(trees, [tree.value[:, 0] * shrinkage for tree in trees])
    return model.trees()


def _each(
    grow: Callable[[int, _core.Stop], Grown],
    seeds: Sequence[int],
    rules: TreeRules,
    part: Part | None,
) -> list[Grown]:
    if part is not None and part.others is not None:
        # Sums are asked for in the same order everywhere, and on the thread that joined.
        return [grow(seed, _core.Stop()) for seed in seeds]
    # Threads, not processes: the core releases the interpreter lock, and the table is shared.
    stop = _core.Stop()
    with ThreadPoolExecutor(rules.n_threads) as threads:
        try:
            growing = [threads.submit(grow, seed, stop) for seed in seeds]
            for tree in growing:
                while not wait([tree], timeout=_PULSE).done:
                    pass  # but hear Ctrl-C
            return [tree.result() for tree in growing]
        except BaseException:
            stop.set()
            threads.shutdown(cancel_futures=True)
            raise
