"""The order of nodes that xgboost relies on, in which every right child follows its left one."""

import numpy as np
import numpy.typing as npt

from hardwood.model.trees import LEAF, Trees, take_nodes


def beside_siblings(trees: Trees) -> npt.NDArray[np.int64] | None:
    """New positions in which every right child follows its left one: xgboost relies on it.

    None if they are so already.
    """
    split = trees.feature != LEAF
    if np.array_equal(trees.right[split], trees.left[split] + 1):
        return None
    size = np.diff(trees.tree_start)
    start = np.repeat(trees.tree_start[:-1], size)
    level, levels = trees.tree_start[:-1], []
    while len(level):
        levels.append(level)
        parent = level[split[level]]
        children = np.column_stack([trees.left[parent], trees.right[parent]])
        level = (start[parent][:, None] + children).ravel()
    order = np.concatenate(levels)
    order = order[np.argsort(start[order], kind="stable")]  # tree by tree, level by level
    place = np.empty(trees.n_nodes, dtype=np.int64)
    place[order] = np.arange(trees.n_nodes)
    return place - start


def renumbered(trees: Trees, place: npt.NDArray[np.int64]) -> Trees:
    """The same trees; node i of a tree goes to the position ``place[i]`` in it."""
    start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
    order = np.argsort(start + place)
    split = trees.feature != LEAF
    nodes = take_nodes(trees, order)
    for name in ("left", "right"):
        moved = np.full(trees.n_nodes, LEAF, dtype=np.int64)
        moved[split] = place[start[split] + getattr(trees, name)[split]]
        nodes[name] = moved[order]
    return trees.replace(**nodes)
