"""Models and rows made for tests of files and loaders."""

import os
from pathlib import Path

import numpy as np
import pytest

import hardwood as hw

FLOAT32_MAX = float(np.finfo(np.float32).max)


def random_trees(
    rng, *, n_trees=6, depth=4, n_features=4, n_outputs=1, n_values=1, dtype="f4", **more
):
    """Trees of random shape; thresholds repeat, so that rows hit several at once."""
    parts = {
        name: [] for name in ("feature", "threshold", "left", "right", "missing_left", "value")
    }
    tree_start = [0]
    for _ in range(n_trees):
        feature, left, right, level = [-1], [-1], [-1], [0]
        for _ in range(depth):
            following = []
            for node in level:
                if rng.random() < 0.85:
                    feature[node] = int(rng.integers(n_features))
                    children = [len(feature), len(feature) + 1]
                    left[node], right[node] = children if rng.random() < 0.8 else children[::-1]
                    following += [len(feature), len(feature) + 1]
                    feature += [-1, -1]
                    left += [-1, -1]
                    right += [-1, -1]
            level = following
        n = len(feature)
        leaf = np.array(feature) < 0
        parts["feature"].append(feature)
        parts["threshold"].append(np.where(leaf, 0, rng.normal(size=n).round(1)).astype(dtype))
        parts["left"].append(left)
        parts["right"].append(right)
        parts["missing_left"].append((rng.random(n) < 0.5) & ~leaf)
        value = rng.normal(size=(n, n_values)).astype(dtype)
        parts["value"].append(np.where(leaf[:, None], value, value.dtype.type(0)))
        tree_start.append(tree_start[-1] + n)
    arrays = {name: np.concatenate(arrays) if arrays else [] for name, arrays in parts.items()}
    if n_trees == 0:
        arrays["value"] = np.zeros((0, n_values), dtype)
    output = np.arange(n_trees) % n_outputs if n_values == 1 else np.zeros(n_trees, dtype=int)
    base = more.pop("base", np.zeros(n_outputs))
    return hw.Trees(
        **arrays,
        tree_start=tree_start,
        tree_output=output,
        base=base,
        n_features=n_features,
        **more,
    )


def rows_around(trees, n, rng):
    """Random rows, rows on thresholds and one float (of either precision) beside them, NaN."""
    X = rng.normal(size=(n, trees.n_features)) * 2
    split = trees.feature >= 0
    for f in range(trees.n_features):
        threshold = trees.threshold[split & (trees.feature == f)]
        if len(threshold) == 0:
            continue
        on = rng.choice(threshold, size=n)
        away = rng.choice([-np.inf, np.inf], size=n)
        beside = np.nextafter(on, away.astype(on.dtype))
        beside_double = np.nextafter(on.astype(np.float64), away)
        kind = rng.integers(4, size=n)
        X[:, f] = np.choose(kind, [X[:, f], on, beside, beside_double])
    X[rng.random(X.shape) < 0.05] = np.nan
    X = np.clip(X, -FLOAT32_MAX, FLOAT32_MAX)
    X[:3] = np.array([np.nan, 0.0, -0.0])[:, None]
    return X


def assert_same_trees(one, other):
    """Equal in every entry that a model means."""
    leaf = one.feature < 0
    for name in ("feature", "tree_start", "tree_output", "base", "category_start", "category"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("threshold", "left", "right", "missing_left"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a[~leaf], b[~leaf], err_msg=name)
    assert one.value.dtype == other.value.dtype
    np.testing.assert_array_equal(one.value[leaf], other.value[leaf])
    for name in ("gain", "cover", "classes"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=name)
    for name in ("link", "n_features", "feature_names", "metadata", "category_names"):
        assert getattr(one, name) == getattr(other, name), name


def paper_arrays(name):
    """The arrays of one of the paper's data sets; without it, the test is skipped."""
    folder = os.environ.get("HARDWOOD_DATA")
    path = Path(folder or ".") / f"{name}.npz"
    if not folder or not path.exists():
        pytest.skip(f"needs {name}.npz in the directory that HARDWOOD_DATA names")
    with np.load(path) as data:
        return dict(data)


def paper_data(name, n=None):
    """Training rows and labels of one of the paper's data sets."""
    data = paper_arrays(name)
    X, y = data["X_train"][:n], data["y_train"][:n]
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def table(name):
    """Rows and labels: of the paper, with missing values, with one row in ten of class 1."""
    rng = np.random.default_rng(0)
    if name == "mnist_2_vs_6":
        X, y = paper_data("mnist", 3000)
        kept = np.isin(y, (2, 6))
        return X[kept], (y[kept] == 6).astype(int)
    if name == "ijcnn1":
        return paper_data(name, 3000)
    if name in ("breast_cancer", "diabetes"):
        return paper_data(name)
    X = rng.normal(size=(600, 6)) * 10
    score = X[:, 0] + X[:, 1] * X[:, 2] / 5
    y = (score > np.quantile(score, 0.9)).astype(int)
    if name == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


TABLES = ["breast_cancer", "diabetes", "missing", "imbalanced"]
