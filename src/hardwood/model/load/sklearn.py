"""scikit-learn's classification trees and forests."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.load.gate import Witness
from hardwood.model.trees import LEAF, Trees

_SINGLE = ("DecisionTreeClassifier", "ExtraTreeClassifier")
_FOREST = ("RandomForestClassifier", "ExtraTreesClassifier")


def speaks(source: Any) -> bool:
    """Whether this file can read the object; scikit-learn itself is not imported to find out."""
    kind = type(source)
    return kind.__module__.startswith("sklearn.") and kind.__name__ in _SINGLE + _FOREST


def load(source: Any) -> tuple[Trees, Witness]:
    """Read a fitted classifier; leaves keep their class shares, a forest adds them up."""
    if not hasattr(source, "tree_") and not hasattr(source, "estimators_"):
        raise ValueError(f"This {type(source).__name__} is not fitted yet; call fit first.")
    if source.n_outputs_ != 1:
        raise UnsupportedModelError(
            f"This {type(source).__name__} predicts {source.n_outputs_} targets at once; "
            f"train one model per target."
        )
    members = [source] if hasattr(source, "tree_") else source.estimators_
    parts = [member.tree_ for member in members]
    shares = np.concatenate([tree.value[:, 0, :] for tree in parts])
    names = getattr(source, "feature_names_in_", None)
    trees = Trees(
        feature=np.concatenate([_feature(tree) for tree in parts]),
        threshold=np.concatenate([strictly_below(tree.threshold) for tree in parts]),
        left=np.concatenate([tree.children_left for tree in parts]),
        right=np.concatenate([tree.children_right for tree in parts]),
        missing_left=np.concatenate([tree.missing_go_to_left.astype(bool) for tree in parts]),
        value=shares / shares.sum(axis=1, keepdims=True),
        tree_start=np.cumsum([0, *(tree.node_count for tree in parts)]),
        base=np.zeros(shares.shape[1]),
        link="share",
        n_features=source.n_features_in_,
        classes=source.classes_,
        feature_names=None if names is None else list(names),
        cover=np.concatenate([tree.weighted_n_node_samples for tree in parts]),
    )
    n = len(parts)

    def leaf(X: FloatArray) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = np.asarray(source.apply(X)).reshape(len(X), n)
        return found

    name = type(source).__name__
    return trees, Witness(name, source.predict_proba, leaf, ours=lambda margin: margin / n)


def strictly_below(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Thresholds t' with ``x < t'`` wherever scikit-learn's ``x <= t`` holds, x being float32.

    The largest float32 that still goes left is t rounded down; the next one up is t'.
    """
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        lower = np.nextafter(nearest, np.float32(-np.inf))
        last_left = np.where(nearest > threshold, lower, nearest)
        return np.nextafter(last_left, np.float32(np.inf))


def _feature(tree: Any) -> npt.NDArray[np.int64]:
    return np.where(tree.children_left == LEAF, LEAF, tree.feature)
