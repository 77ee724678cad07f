"""Many robust trees, each grown on its own draw of rows and features."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from hardwood._check import FloatArray, IntArray
from hardwood.ensemble.boosting import Model, Table
from hardwood.ensemble.loss import Float32Array, Loss
from hardwood.grow.grow import ClassTreeRules, GrownTree, grow_class_tree
from hardwood.grow.newton import NewtonRules
from hardwood.model.trees import Trees
from hardwood.threat import Reach


@dataclass(frozen=True)
class Draw:
    """How the rows of one tree are drawn, and what drew them."""

    n_rows: int
    n_drawn: int
    bootstrap: bool

    def counts(self, seed: int) -> npt.NDArray[np.int64]:
        """How often each row is drawn: with replacement if `bootstrap`, else at most once."""
        rng = np.random.default_rng(seed)
        if self.bootstrap:
            drawn = rng.integers(self.n_rows, size=self.n_drawn)
            return np.bincount(drawn, minlength=self.n_rows)
        counts = np.zeros(self.n_rows, dtype=np.int64)
        counts[rng.permutation(self.n_rows)[: self.n_drawn]] = 1
        return counts


def train_share_forest(
    X: FloatArray,
    label: IntArray,
    classes: npt.NDArray[Any],
    weight: FloatArray | None,
    reach: Reach,
    monotonic: npt.NDArray[np.int8],
    rules: ClassTreeRules,
    draw: Draw,
    seeds: Sequence[int],
    feature_names: Sequence[str] | None,
) -> Trees:
    """Grow one tree per seed, in parallel over trees; leaves hold class shares."""

    def grow(seed: int) -> GrownTree:
        counts = draw.counts(seed)
        drawn = np.flatnonzero(counts)
        # A row drawn twice weighs twice; the core sees only the rows that were drawn.
        drawn_weight: FloatArray = counts[drawn].astype(np.float64)
        if weight is not None:
            drawn_weight *= weight[drawn]
        return grow_class_tree(
            X[drawn],
            label[drawn],
            len(classes),
            None if np.all(drawn_weight == 1) else drawn_weight,
            reach,
            monotonic,
            replace(rules, seed=seed, n_threads=1),
        )

    # Threads, not processes: the core releases the interpreter lock, and X is shared.
    grown = Parallel(n_jobs=rules.n_threads, prefer="threads")(
        delayed(grow)(seed) for seed in seeds
    )
    return Trees(
        feature=np.concatenate([tree.feature for tree in grown]),
        threshold=np.concatenate([tree.threshold for tree in grown]),
        left=np.concatenate([tree.left for tree in grown]),
        right=np.concatenate([tree.right for tree in grown]),
        missing_left=np.concatenate([tree.missing_left for tree in grown]).astype(bool),
        value=np.concatenate([tree.value for tree in grown]),
        tree_start=np.cumsum([0, *(len(tree.feature) for tree in grown)]),
        base=np.zeros(len(classes)),
        link="share",
        n_features=X.shape[1],
        classes=classes,
        feature_names=feature_names,
        gain=np.concatenate([tree.gain for tree in grown]),
        cover=np.concatenate([tree.cover for tree in grown]),
    )


def train_newton_forest(
    table: Table,
    y: Float32Array,
    weight: FloatArray | None,
    loss: Loss,
    model: Model,
    monotonic: npt.NDArray[np.int8],
    rules: NewtonRules,
    draw: Draw,
    n_features_drawn: int,
    seeds: Sequence[int],
) -> Trees:
    """Let every tree take one Newton step from the same base; the model is their mean.

    As XGBoost grows a forest: one round of parallel trees, each shrunk by their number.
    """
    margin = np.tile(model.base.astype(np.float32), (len(y), 1))
    gradient, hessian = loss.derivatives(y, margin)
    shrinkage = np.float32(1) / np.float32(len(seeds))
    for seed in seeds:
        counts = draw.counts(seed)
        features = None
        if n_features_drawn < model.n_features:
            rng = np.random.default_rng([seed, 1])
            drawn = rng.choice(model.n_features, n_features_drawn, replace=False, shuffle=False)
            features = np.sort(drawn).astype(np.int32)
        trees, _ = table.grow(
            gradient,
            hessian,
            weight=(counts * (1.0 if weight is None else weight)).astype(np.float32),
            rows=(counts > 0).astype(np.uint8),
            features=features,
            monotonic=monotonic,
            rules=rules,
        )
        model.add(trees, [tree.value[:, 0] * shrinkage for tree in trees])
    return model.trees()
