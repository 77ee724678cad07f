"""One robust classification tree as a model."""

from collections.abc import Mapping, Sequence
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
    about: Mapping[str, Any],
) -> tuple[Trees, npt.NDArray[np.int64]]:
    """Grow a tree whose leaves hold class shares; also give the number of rows of each node.

    `about` says of the model what the table does not know: the names of its columns and categories.
    """
    grown = table.grow_classes(label, len(classes), weight, monotonic, rules)
    return share_trees([grown], classes, about), grown.n_samples


def share_trees(
    grown: Sequence[GrownTree],
    classes: npt.NDArray[Any],
    about: Mapping[str, Any],
    before: Trees | None = None,
) -> Trees:
    """Put trees together whose leaves hold class shares, behind those of `before`."""
    parts = [vars(tree) for tree in grown]
    n_nodes = [len(tree.feature) for tree in grown]
    if before is not None:
        names = (*NODE_ARRAYS, "category_start")
        parts.insert(0, {name: getattr(before, name) for name in names})
        n_nodes = [*np.diff(before.tree_start), *n_nodes]
    return Trees(
        **together(parts),
        tree_start=np.cumsum([0, *n_nodes]),
        base=np.zeros(len(classes)),
        link="share",
        classes=classes,
        **about,
    )


def together(parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> dict[str, Any]:
    """The nodes of trees, one tree after the other, as the arrays of `Trees`."""
    arrays: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) for name in NODE_ARRAYS
    }
    arrays["missing_left"] = arrays["missing_left"].astype(bool)
    size = np.concatenate([np.diff(part["category_start"]) for part in parts])
    arrays["category_start"] = np.concatenate([[0], np.cumsum(size)])
    return arrays


NODE_ARRAYS = (
    "feature",
    "threshold",
    "left",
    "right",
    "missing_left",
    "value",
    "gain",
    "cover",
    "category",
)
