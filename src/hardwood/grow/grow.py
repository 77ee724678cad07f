"""Growing trees: names and defaults on this side, kernels on the other."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import FloatArray, IntArray
from hardwood.threat import Reach

Impurity = Literal["entropy", "gini"]
Inner = Literal["exact", "paper"]
Candidates = Literal["midpoints", "intervals"]


@dataclass(frozen=True)
class ClassTreeRules:
    """How a classification tree is grown; counts are absolute, 0 or -1 means no limit."""

    impurity: Impurity = "entropy"
    inner: Inner = "exact"
    candidates: Candidates = "midpoints"
    min_split_gain: float = 0.0
    min_samples_leaf: int = 1
    min_samples_split: int = 2
    min_weight_fraction_leaf: float = 0.0
    max_depth: int = -1
    max_leaf_nodes: int = 0
    max_features: int = 0
    seed: int = 0
    n_threads: int = 1


@dataclass(frozen=True)
class GrownTree:
    """One tree in pre-order: the arrays of `Trees`, and what training knew of each node."""

    feature: IntArray
    threshold: npt.NDArray[np.float32]
    left: IntArray
    right: IntArray
    missing_left: npt.NDArray[np.uint8]
    value: npt.NDArray[np.float32]
    gain: FloatArray
    cover: FloatArray
    n_samples: npt.NDArray[np.int64]


def grow_class_tree(
    X: FloatArray,
    label: IntArray,
    n_classes: int,
    weight: FloatArray | None,
    reach: Reach,
    monotonic: npt.NDArray[np.int8],
    rules: ClassTreeRules,
) -> GrownTree:
    """Grow one robust classification tree (Algorithm 1).

    ``weight=None`` counts every row once; ``monotonic`` is empty or has one sign per feature.
    """
    arrays = _core.grow_class_tree(
        X,
        label,
        n_classes,
        np.empty(0) if weight is None else weight,
        reach.limits,
        monotonic,
        impurity=getattr(_core.Impurity, rules.impurity),
        inner=getattr(_core.Inner, rules.inner),
        candidates=getattr(_core.Candidates, rules.candidates),
        min_split_gain=rules.min_split_gain,
        min_samples_leaf=rules.min_samples_leaf,
        max_depth=rules.max_depth,
        max_leaf_nodes=rules.max_leaf_nodes,
        min_samples_split=rules.min_samples_split,
        min_weight_fraction_leaf=rules.min_weight_fraction_leaf,
        max_features=rules.max_features,
        seed=rules.seed,
        n_threads=rules.n_threads,
    )
    return GrownTree(*arrays)
