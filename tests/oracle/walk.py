"""What a tree model says, in the plainest way; restated here, nothing taken from the package."""

import numpy as np


def leaves_of(trees, tree, X):
    """The leaf of every row: rows are rounded, then sent from each node to its children."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(X, dtype=np.float64).astype(trees.x_dtype)
    start = trees.tree_start[tree]
    leaf = np.full(len(rounded), -1)
    waiting = [(0, np.arange(len(rounded)))]
    while waiting:
        node, rows = waiting.pop()
        feature = trees.feature[start + node]
        if feature == -1:
            leaf[rows] = node
            continue
        x = rounded[rows, feature]
        at = start + node
        left = x < trees.threshold[at]
        listed = trees.category[trees.category_start[at] : trees.category_start[at + 1]]
        if len(listed):
            left = ~np.isin(x, listed)
        left = np.where(np.isnan(x), trees.missing_left[at], left)
        waiting.append((trees.left[at], rows[left]))
        waiting.append((trees.right[at], rows[~left]))
    return leaf


def margin_of(trees, X):
    """Base plus leaf values, added in tree order in the precision of the values."""
    total = np.tile(trees.base.astype(trees.value.dtype), (len(X), 1))
    n_values = trees.value.shape[1]
    for tree in range(trees.n_trees):
        first = trees.tree_output[tree]
        value = trees.value[trees.tree_start[tree] + leaves_of(trees, tree, X)]
        total[:, first : first + n_values] += value
    return total


def label_of(trees, X):
    """One output: positive is the second class. More: the largest, the first on ties."""
    margin = margin_of(trees, X)
    return (margin[:, 0] > 0).astype(int) if margin.shape[1] == 1 else np.argmax(margin, axis=1)
