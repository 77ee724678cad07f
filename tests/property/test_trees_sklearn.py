"""A loaded scikit-learn model is the same model: same leaf in every tree, same shares."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import hardwood as hw
from model_strategies import values_near

MODELS = [
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(max_depth=1, class_weight="balanced", random_state=0),
    ExtraTreeClassifier(random_state=0),
    RandomForestClassifier(7, max_depth=5, random_state=0),
    ExtraTreesClassifier(7, max_depth=5, random_state=0),
]


def table(n_classes, missing, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=300),
            rng.integers(0, 4, 300) / 10,  # few values, none of them a float32
            rng.choice([1e-40, 1e30, 1e35, -1e35], 300),
        ]
    )
    y = (rng.random(300) * 0.7 + X[:, 1]) * n_classes // 1 % n_classes
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[y == 0, 1] = np.nan  # present against missing is the best split
    return X, np.array(["maple", "oak", "elm", "ash"])[y.astype(int)]


# scikit-learn adds up a column in float32 to see whether it is finite.
@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning")
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_same_leaf_in_every_tree_and_same_shares(model, n_classes, missing):
    X, y = table(n_classes, missing, seed=n_classes)
    model.fit(X, y)
    trees = hw.load_model(model)
    members = [model] if hasattr(model, "tree_") else model.estimators_
    rng = np.random.default_rng(1)
    # Rows on the source's own thresholds, and floats and doubles to each side of them.
    near = [
        values_near(np.concatenate([m.tree_.threshold[m.tree_.feature == f] for m in members]))
        for f in range(3)
    ]
    rows = np.column_stack([rng.choice(values, 2000) for values in near])
    rows = np.vstack([X, rows if missing else rows[~np.isnan(rows).any(axis=1)]])
    np.testing.assert_array_equal(
        trees.apply(rows), np.reshape(model.apply(rows), (len(rows), trees.n_trees))
    )
    shares = trees.margin(rows) / trees.n_trees
    np.testing.assert_array_equal(shares, model.predict_proba(rows))
    # A forest divides before it compares, which can make a tie of two sums one rounding apart.
    ordered = np.sort(shares, axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-12
    clear |= trees.n_trees == 1
    assert clear.sum() > 100
    np.testing.assert_array_equal(trees.predict(rows)[clear], model.predict(rows)[clear])


def test_present_against_missing_is_a_split_of_its_own():
    X = np.array([[0.0], [np.nan], [3e38], [np.nan], [-3e38]] * 4)
    model = DecisionTreeClassifier().fit(X, np.isnan(X[:, 0]))
    trees = hw.load_model(model)
    assert trees.n_leaves == 2
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))
    # No move of a value can make it missing, and a missing value is never moved.
    assert np.isinf(hw.minimal_distance(model, X, np.isnan(X[:, 0])).lower).all()


def test_column_names_come_along():
    import pandas

    X, y = table(2, False, seed=0)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    trees = hw.load_model(DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame, y))
    assert trees.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(trees.apply(frame[["c", "a", "b"]]), trees.apply(frame))
