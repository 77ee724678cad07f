"""One robust classification tree as a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray, IntArray
from hardwood.grow.grow import ClassTable, ClassTreeRules, GrownTree
from hardwood.model.trees import Trees


def train_tree(
    table: ClassTable,
    label: IntArray,
    classes: npt.NDArray[Any],
    weight: FloatArray | None,
    monotonic: npt.NDArray[np.int8],
    rules: ClassTreeRules,
    n_features: int,
    feature_names: Sequence[str] | None,
) -> tuple[Trees, npt.NDArray[np.int64]]:
    """Grow a tree whose leaves hold class shares; also give the number of rows of each node."""
    grown = table.grow_classes(label, len(classes), weight, monotonic, rules)
    return share_trees([grown], classes, n_features, feature_names), grown.n_samples


def share_trees(
    grown: Sequence[GrownTree],
    classes: npt.NDArray[Any],
    n_features: int,
    feature_names: Sequence[str] | None,
) -> Trees:
    """Put trees together whose leaves hold class shares."""

    def together(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in grown])

    return Trees(
        feature=together("feature"),
        threshold=together("threshold"),
        left=together("left"),
        right=together("right"),
        missing_left=together("missing_left").astype(bool),
        value=together("value"),
        tree_start=np.cumsum([0, *(len(tree.feature) for tree in grown)]),
        base=np.zeros(len(classes)),
        link="share",
        n_features=n_features,
        classes=classes,
        feature_names=feature_names,
        gain=together("gain"),
        cover=together("cover"),
    )
