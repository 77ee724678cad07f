"""Growing classification trees: names and defaults on this side, kernels on the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import Float32Array, FloatArray, IntArray
from hardwood.grow.rules import TreeRules
from hardwood.threat import Reach

Impurity = Literal["entropy", "gini"]
Candidates = Literal["midpoints", "intervals"]


@dataclass(frozen=True)
class ClassTreeRules(TreeRules):
    """How a classification tree is grown; see `class_nodes.hpp`."""

    impurity: Impurity = "entropy"
    candidates: Candidates = "midpoints"
    min_weight_fraction_leaf: float = 0.0

    def core(self) -> _core.ClassTreeRules:
        """The same for the kernels."""
        core = _core.ClassTreeRules()
        self._fill(core)
        return core

    LENIENT: ClassVar[Mapping[str, Any]] = {  # what forbids no split
        "min_split_gain": 0.0,
        "min_samples_leaf": 1,
        "min_samples_split": 2,
        "min_weight_fraction_leaf": 0.0,
    }


@dataclass(frozen=True)
class GrownTree:
    """One tree in pre-order: the arrays of `Trees`, and what training knew of each node."""

    feature: IntArray
    threshold: Float32Array
    left: IntArray
    right: IntArray
    missing_left: npt.NDArray[np.uint8]
    value: Float32Array
    gain: FloatArray
    cover: FloatArray
    n_samples: npt.NDArray[np.int64]
    category_start: npt.NDArray[np.int64]
    category: IntArray


class ClassTable(Protocol):
    """Training data as an engine keeps it for all trees of a forest."""

    def grow_classes(
        self,
        label: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        monotonic: npt.NDArray[np.int8],
        rules: ClassTreeRules,
        stop: _core.Stop | None = None,
    ) -> GrownTree:
        """Grow one robust classification tree (Algorithm 1).

        ``weight=None`` counts every row once, rows of weight 0 are left out; ``monotonic`` is empty
        or has one sign per feature. Several threads may ask at once; ``stop`` lets another one
        end the call, which then raises RuntimeError.
        """


class SortedTable:
    """Rows for classification trees that try every threshold; sorted anew for every tree."""

    def __init__(self, X: FloatArray, reach: Reach) -> None:
        self._X = X.astype(np.float64, copy=False)
        self._reach = reach

    def grow_classes(
        self,
        label: IntArray,
        n_classes: int,
        weight: FloatArray | None,
        monotonic: npt.NDArray[np.int8],
        rules: ClassTreeRules,
        stop: _core.Stop | None = None,
    ) -> GrownTree:
        """Grow one robust classification tree; see `ClassTable`."""
        X = self._X
        if weight is not None:
            if not weight.all():
                drawn = np.flatnonzero(weight)
                X, label, weight = X[drawn], label[drawn], weight[drawn]
            if np.all(weight == 1):
                weight = None
        return GrownTree(
            *_core.grow_class_tree(
                X,
                label,
                n_classes,
                np.empty(0) if weight is None else weight,
                self._reach.ends,
                monotonic,
                rules.core(),
                stop,
            )
        )
