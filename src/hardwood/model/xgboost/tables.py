"""Trees as XGBoost's tables hold them."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, Float32Array, FloatArray, IntArray
from hardwood.model.trees import LEAF, Trees, take_sets


@dataclass(frozen=True)
class Tables:
    """Trees as XGBoost holds them: float32, one value a leaf, one output a tree.

    ``condition`` is the threshold of a split and the value of a leaf, 0 where a split has a set of
    categories.
    """

    feature: IntArray
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    condition: Float32Array
    gain: Float32Array
    cover: Float32Array
    tree_start: npt.NDArray[np.int64]
    tree_output: IntArray
    base: Float32Array
    category_start: npt.NDArray[np.int64]
    category: IntArray

    @property
    def leaf(self) -> BoolArray:
        """Which nodes are leaves."""
        leaf: BoolArray = self.feature == LEAF
        return leaf

    def digest(self) -> str:
        """A fingerprint of the trees, to tell whether a note is about them."""
        digest = hashlib.blake2b(digest_size=16)
        split = ~self.leaf
        digest.update(np.asarray(self.tree_start, "<i8").tobytes())
        digest.update(np.asarray(self.tree_output, "<i4").tobytes())
        digest.update(np.asarray(self.feature, "<i4").tobytes())
        for children in (self.left, self.right):
            digest.update(np.where(split, children, LEAF).astype("<i4").tobytes())
        digest.update((self.missing_left & split).astype("u1").tobytes())
        digest.update((self.condition + np.float32(0)).astype("<f4").tobytes())  # no -0.0
        if len(self.category):
            digest.update(np.asarray(self.category_start, "<i8").tobytes())
            digest.update(np.asarray(self.category, "<i4").tobytes())
        return digest.hexdigest()


def tables_of(trees: Trees) -> Tables:
    """Cut leaves with k values into k trees, bring everything to float32."""
    k = trees.value.shape[1]
    size = np.diff(trees.tree_start)
    start = np.repeat(trees.tree_start[:-1], k)
    tree_start = np.concatenate([[0], np.cumsum(np.repeat(size, k))]).astype(np.int64)
    tree_of = np.repeat(np.arange(len(start)), np.repeat(size, k))
    node = np.arange(tree_start[-1]) - tree_start[tree_of] + start[tree_of]
    leaf = trees.feature == LEAF
    cover = cover_of(trees)
    gain = np.zeros(trees.n_nodes) if trees.gain is None else trees.gain
    value = scaled(trees.value, factor_of(trees))[node, tree_of % k]
    threshold = np.where(trees.categorical, np.float32(0), float32_above(trees.threshold))
    category_start, category = take_sets(trees.category_start, trees.category, node)
    return Tables(
        feature=trees.feature[node],
        left=np.where(leaf, LEAF, trees.left)[node].astype(np.int32),
        right=np.where(leaf, LEAF, trees.right)[node].astype(np.int32),
        missing_left=(trees.missing_left & ~leaf)[node],
        condition=np.where(leaf[node], value, threshold[node]),
        gain=float32(gain)[node],
        cover=float32(cover)[node],
        tree_start=tree_start,
        tree_output=(np.repeat(trees.tree_output, k) + np.arange(len(start)) % k).astype(np.int32),
        base=scaled(trees.base, factor_of(trees)),
        category_start=category_start,
        category=category,
    )


def factor_of(trees: Trees) -> float:
    """What stock xgboost must find in the leaves already: it knows no divisor and no slope."""
    return 1.0 if trees.link == "share" else trees.slope / trees.divisor


def float32(given: npt.NDArray[Any]) -> Float32Array:
    """The nearest float32, infinite where there is none."""
    with np.errstate(over="ignore"):
        return given.astype(np.float32)


def scaled(given: npt.NDArray[Any], factor: float) -> Float32Array:
    """Values of leaves, or the base, as the tables hold them."""
    return float32(given if factor == 1 else given * factor)


def float32_above(threshold: npt.NDArray[Any]) -> Float32Array:
    """The smallest float32 that is no smaller: it cuts the float32 numbers at the same place."""
    nearest = float32(threshold)
    return np.where(nearest < threshold, np.nextafter(nearest, np.float32(np.inf)), nearest)


def cover_of(trees: Trees) -> FloatArray:
    """The cover; for a model that knows none, the leaves below each node, as weights for SHAP."""
    if trees.cover is not None:
        return trees.cover
    count: FloatArray = (trees.feature == LEAF).astype(np.float64)
    split = np.flatnonzero(trees.feature != LEAF)
    start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))[split]
    below = (start + trees.left[split], start + trees.right[split])
    open_nodes = np.ones(len(split), dtype=bool)
    while open_nodes.any():  # as often as the deepest tree is deep
        ready = open_nodes & (count[below[0]] > 0) & (count[below[1]] > 0)
        count[split[ready]] = count[below[0][ready]] + count[below[1][ready]]
        open_nodes &= ~ready
    return count
