"""One robust classification tree as a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray, IntArray
from hardwood.grow.grow import ClassTreeRules, grow_class_tree
from hardwood.model.trees import Trees
from hardwood.threat import Reach


def train_tree(
    X: FloatArray,
    label: IntArray,
    classes: npt.NDArray[Any],
    weight: FloatArray | None,
    reach: Reach,
    monotonic: npt.NDArray[np.int8],
    rules: ClassTreeRules,
    feature_names: Sequence[str] | None,
) -> tuple[Trees, npt.NDArray[np.int64]]:
    """Grow a tree whose leaves hold class shares; also give the number of rows of each node."""
    grown = grow_class_tree(X, label, len(classes), weight, reach, monotonic, rules)
    trees = Trees(
        feature=grown.feature,
        threshold=grown.threshold,
        left=grown.left,
        right=grown.right,
        missing_left=grown.missing_left.astype(bool),
        value=grown.value,
        tree_start=[0, len(grown.feature)],
        base=np.zeros(len(classes)),
        link="share",
        n_features=X.shape[1],
        classes=classes,
        feature_names=feature_names,
        gain=grown.gain,
        cover=grown.cover,
    )
    return trees, grown.n_samples
