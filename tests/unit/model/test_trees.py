"""The door of Trees: what is refused, and in which words."""

import re

import numpy as np
import pytest

import hardwood as hw
from hardwood import _core

NAN, INF = float("nan"), float("inf")

# Tree 0 is a single leaf; tree 1 splits twice: 0 -> (1 -> (3, 4), 2).
GOOD = dict(
    feature=[-1, 0, 1, -1, -1, -1],
    threshold=[0, 0.5, 0.25, 0, 0, 0],
    left=[0, 1, 3, 0, 0, 0],
    right=[0, 2, 4, 0, 0, 0],
    missing_left=[0, 1, 0, 0, 0, 0],
    value=[0.5, 0, 0, 1, 2, 3],
    tree_start=[0, 1, 6],
    n_features=2,
)


def changed(name, position, entry):
    entries = list(GOOD[name])
    entries[position] = entry
    return {name: entries}


REFUSED = {
    "an array too short": (dict(left=[1, 2]), "left has 2 entries but feature has 6 nodes"),
    "thresholds too short": (dict(threshold=[0.5]), "threshold has 1 entries but feature has 6"),
    "values too short": (dict(value=[[1, 2]]), "value has 2 entries but .* expected 12"),
    "values without columns": (dict(value=np.zeros((6, 0))), "at least one column"),
    "two dimensions": (
        dict(feature=[[0]]),
        r"feature must have 1 dimension\(s\), got shape \(1, 1\)",
    ),
    "a scalar": (dict(right=3), r"right must have 1 dimension\(s\), got shape \(\)"),
    "words": (dict(threshold=["oak"] * 6), "threshold must be an array of float64"),
    "ragged": (dict(left=[[1], [1, 2]]), "left must be an array of int32"),
    "a cycle": (changed("left", 2, 1), "tree 1, node 1 is reached twice .again from node 1"),
    "back to the root": (
        changed("right", 2, 0),
        "tree 1, node 0 is reached twice .again from node 1",
    ),
    "two parents": (changed("left", 2, 2), "tree 1, node 2 is reached twice .again from node 1"),
    "twins": (changed("right", 1, 1), "tree 1, node 1 is reached twice .again from node 0"),
    "orphans": (changed("feature", 1, -1), "tree 1, node 1 is an orphan"),
    "orphans further on": (changed("feature", 2, -1), "tree 1, node 3 is an orphan"),
    "a child before the tree": (
        changed("left", 1, -1),
        "tree 1, node 0 has child -1, but its tree has 5",
    ),
    "a child after the tree": (
        changed("right", 2, 5),
        "tree 1, node 1 has child 5, but its tree has 5",
    ),
    "a child far away": (changed("right", 2, 2**31 - 1), "tree 1, node 1 has child 2147483647"),
    "int overflow": (changed("right", 2, 2**40), "right must hold int32, got 1099511627776"),
    "more than 64 bits": (changed("left", 2, 2**70), "left must be an array of int32"),
    "a child of NaN": (changed("left", 1, NAN), "left must hold int32, got nan"),
    "a fraction": (changed("feature", 1, 0.5), "feature must hold int32, got 0.5"),
    "a threshold of NaN": (changed("threshold", 2, NAN), "tree 1, node 1 has threshold NaN"),
    "a feature out of range": (
        changed("feature", 2, 2),
        "tree 1, node 1 splits on feature 2, but the model has 2",
    ),
    "a feature of -2": (changed("feature", 1, -2), "tree 1, node 0 splits on feature -2"),
    "a value of NaN": (changed("value", 4, NAN), "tree 1, node 3 has value nan"),
    "a value of -inf": (changed("value", 0, -INF), "tree 0, node 0 has value -inf"),
    "a base of NaN": (dict(base=NAN), "base must be finite, got nan"),
    "no base": (dict(base=[]), "base must have at least one entry"),
    "no features": (dict(n_features=0), "n_features must be 1 to 134217728, got 0"),
    "too many features": (
        dict(n_features=2**30),
        "n_features must be 1 to 134217728, got 1073741824",
    ),
    "far too many features": (
        dict(n_features=2**40),
        "n_features must fit int32, got n_features=1099511627776",
    ),
    "missing_left of 2": (changed("missing_left", 1, 2), "missing_left must hold bool, got 2"),
    "no trees": (dict(tree_start=[0]), "begin with 0 and end with the number of nodes, 6"),
    "no tree_start": (dict(tree_start=[]), "a model has at least one tree"),
    "tree_start from 1": (dict(tree_start=[1, 6]), "tree_start must begin with 0"),
    "an empty tree": (
        dict(tree_start=[0, 1, 1, 6]),
        "tree 1 has no nodes; tree_start must increase",
    ),
    "tree_start going back": (dict(tree_start=[0, 7, 6]), "tree 1 has no nodes"),
    "an output too far": (
        dict(tree_output=[0, 1]),
        r"tree 1 adds 1 value\(s\) from output 1 on, .* has 1 output",
    ),
    "an output below 0": (dict(tree_output=[-1, 0]), r"tree 0 adds 1 value\(s\) from output -1"),
    "too wide a leaf": (dict(value=np.zeros((6, 2))), r"tree 0 adds 2 value\(s\)"),
    "outputs too few": (dict(tree_output=[0]), "tree_output has 1 entries but there are 2 trees"),
    "gain too short": (dict(gain=[1.0]), "gain has 1 entries but there are 6 nodes"),
    "cover too long": (dict(cover=[1.0] * 7), "cover has 7 entries but there are 6 nodes"),
    "names too few": (dict(feature_names=["a"]), "feature_names has 1 entries but the model has 2"),
    "classes too many": (
        dict(classes=[0, 1, 2]),
        r"classes has shape \(3,\) but the model tells 2",
    ),
    "one class": (dict(classes="oak"), r"classes has shape \(\) but the model tells 2"),
}


@pytest.mark.parametrize(("change", "words"), REFUSED.values(), ids=REFUSED)
def test_refuses_what_is_not_a_model(change, words):
    hw.Trees(**GOOD)
    with pytest.raises(hw.ModelFileError, match=words):
        hw.Trees(**{**GOOD, **change})


# A float32 array holds only such thresholds, so this door is the core's own.
@pytest.mark.parametrize("text", ["0.1", "1e+300", "1e-60"])
def test_the_core_refuses_thresholds_that_float32_cannot_hold(text):
    ints, floats = np.zeros(3, np.int32), np.zeros(3)
    threshold = float(text)
    words = f"tree 0, node 0 has threshold {re.escape(text)}, which float32 cannot hold"
    with pytest.raises(ValueError, match=words):
        _core.Trees(
            np.array([0, -1, -1], np.int32),
            np.array([threshold, 0, 0]),
            ints + 1,
            ints + 2,
            ints.astype(np.uint8),
            floats[:, None],
            np.array([0, 3]),
            ints[:1],
            floats[:1],
            n_features=1,
            x_float32=True,
            sum_float32=False,
            category_start=np.empty(0, np.int64),
            category=np.empty(0, np.int32),
            link=_core.Link.identity,
            divisor=1.0,
            slope=1.0,
            cut=0.0,
            of_means=False,
            tie=0.0,
        )


def test_refuses_an_unknown_link():
    with pytest.raises(ValueError, match=r"link must be one of .*, got link='probit'"):
        hw.Trees(**GOOD, link="probit")


def test_leaves_may_hold_anything_where_they_do_not_split():
    trees = hw.Trees(
        **{**GOOD, "threshold": [NAN, 0.5, 0.25, NAN, INF, 0], "left": [99, 1, 3, -7, 0, 0]}
    )
    assert trees.predict([[0.0, 0.0]]) == [1]


def test_arrays_are_read_only_copies():
    feature = np.array(GOOD["feature"], dtype=np.int32)
    trees = hw.Trees(**{**GOOD, "feature": feature})
    feature[1] = -1
    assert trees.feature[1] == 0
    for name in ("feature", "threshold", "left", "right", "missing_left", "value", "base"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(trees, name)[0] = 0


def test_says_what_it_is():
    trees = hw.Trees(**GOOD, classes=["elm", "oak"], link="logistic")
    assert repr(trees) == (
        "Trees(n_trees=2, n_leaves=4, n_features=2, n_outputs=1, x_dtype='float64', "
        "link='logistic', task='classification')"
    )
    assert (trees.n_nodes, trees.n_classes) == (6, 2)
    np.testing.assert_array_equal(trees.predict([[0, 0], [0, 1]]), ["oak", "oak"])
    assert hw.Trees(**{**GOOD, "n_features": None}).n_features == 2


@pytest.mark.parametrize("tree", [-1, 2])
def test_leaf_boxes_of_no_tree(tree):
    with pytest.raises(ValueError, match=f"tree must be 0 to 1, got tree={tree}"):
        hw.Trees(**GOOD).leaf_boxes(tree)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0]], "X has 1 features but the model was trained on 2"),
        ([1.0, 2.0], r"X must be a table .* got shape \(2,\); for one row use"),
        (np.zeros((0, 2)), "X has no rows"),
        ([[0, INF]], r"infinity or a value too large .* X\[0, 1\] = inf"),
        ([[0, 1], [-1e39, NAN]], r"X\[1, 0\] = -1e\+39. Use NaN for missing values"),
    ],
)
def test_refuses_rows_it_cannot_read(X, words):
    with pytest.raises(ValueError, match=words):
        hw.Trees(**GOOD).predict(X)


def test_accepts_the_largest_float32():
    biggest = float(np.finfo(np.float32).max)
    X = [[biggest, -biggest], [-biggest, biggest]]
    np.testing.assert_array_equal(hw.Trees(**GOOD).apply(X), hw.Trees(**GOOD).apply(np.sign(X)))


def test_refuses_no_threads():
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        hw.Trees(**GOOD).predict([[0, 0]], n_jobs=0)
    for n_jobs in (-1, -2, -1000, None):
        assert hw.Trees(**GOOD).margin([[0, 0]], n_jobs=n_jobs) == 2.5


def test_columns_are_found_by_name():
    import pandas
    import polars

    trees = hw.Trees(**GOOD, feature_names=["height", "girth"])
    for library in (pandas, polars):
        frame = library.DataFrame({"girth": [0.0], "colour": [1.0], "height": [0.7]})
        np.testing.assert_array_equal(trees.apply(frame), trees.apply([[0.7, 0.0]]))
        with pytest.raises(ValueError, match=r"X has 1 features but .* on 2; missing: 'girth'"):
            trees.apply(frame[["height"]])
