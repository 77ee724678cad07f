"""RobustDecisionTreeClassifier: what it refuses, what it keeps, what it tells."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError

import hardwood as hw

X = np.array([[0.0, 5.0], [0.2, 1.0], [0.4, 3.0], [0.6, 2.0], [0.8, 4.0], [1.0, 0.0]])
y = np.array(["ham", "ham", "ham", "spam", "spam", "spam"])
NAMED = pd.DataFrame(X, columns=["words", "links"])


def with_value(i, j, value):
    changed = X.copy()
    changed[i, j] = value
    return changed


BAD_PARAMETERS = [
    ({"eps": -0.5}, "eps must be a finite number >= 0, got eps=-0.5"),
    ({"eps": np.inf}, "eps must be a finite number >= 0, got eps=inf"),
    ({"eps": [0.1, np.nan]}, "eps must be a finite number >= 0, got eps=nan"),
    ({"eps": "much"}, "eps must be a finite number >= 0, .*got eps='much'"),
    ({"eps": [0.1, 0.2, 0.3]}, "eps has 3 entries but X has 2 features; pass one number"),
    ({"eps": {"links": 1}}, "eps names the feature 'links', but the columns have no names"),
    ({"eps": {7: 1}}, r"eps names feature 7, but there are 2 features \(0 to 1\)"),
    ({"threat": hw.Threat(1, fixed=["age"])}, "fixed names the feature 'age', but the columns"),
    ({"threat": hw.Threat(1, fixed=[2])}, "fixed names feature 2, but there are 2 features"),
    ({"threat": hw.Threat([1, 1, 1])}, "eps has 3 entries but X has 2 features"),
    ({"threat": 0.1}, "threat must be a hardwood.Threat, got float"),
    ({"monotonic_cst": [1]}, "monotonic_cst has 1 entries but X has 2 features"),
    ({"monotonic_cst": [1, 3]}, "monotonic_cst must hold -1, 0 or 1, got 3"),
    ({"monotonic_cst": {"links": 1}}, "monotonic_cst names the feature 'links', but the columns"),
    ({"n_jobs": 0}, "n_jobs must not be 0"),
    ({"criterion": "misclassification"}, "'criterion' parameter .* must be a str among"),
    ({"inner": "greedy"}, "'inner' parameter .* must be a str among"),
    ({"candidates": "bins"}, "'candidates' parameter .* must be a str among"),
    ({"max_depth": 0}, "'max_depth' parameter .* must be an int in the range"),
    ({"max_leaf_nodes": 1}, "'max_leaf_nodes' parameter .* must be an int in the range"),
    ({"min_samples_split": 1}, "'min_samples_split' parameter .* must be"),
    ({"min_samples_leaf": 1.0}, "'min_samples_leaf' parameter .* must be"),
    ({"min_weight_fraction_leaf": 0.6}, "'min_weight_fraction_leaf' parameter .* must be"),
    ({"min_split_gain": -1}, "'min_split_gain' parameter .* must be a float in the range"),
    ({"max_features": "half"}, "'max_features' parameter .* must be"),
    ({"class_weight": "even"}, "'class_weight' parameter .* must be"),
    ({"class_weight": {"ham": -1, "spam": 2}}, "Weights must be >= 0 .*got class_weight=.*-1"),
    ({"class_weight": {"ham": 0, "spam": 0}}, "All weights are zero"),
    ({"class_weight": {"ham": 0}}, "y has only one class, .*'spam'.*with positive weight"),
]

BAD_DATA = [
    ((X[:0], y[:0]), "0 sample"),
    ((X[:, :0], y), "0 feature"),
    ((X[:, 0], y), "Expected 2D array, got 1D array"),
    ((X, y[:4]), "inconsistent numbers of samples"),
    ((X, np.full(6, "ham")), "y has only one class, .*'ham'"),
    ((X, X[:, 0] + 0.1), "Unknown label type"),
    ((with_value(1, 1, np.inf), y), r"infinity or a value too large.*X\[1, 1\] = inf"),
    ((with_value(3, 0, -1e39), y), r"infinity or a value too large.*X\[3, 0\] = -1e\+39"),
    ((X, y, [1, 1, 1, 1, 1, -2]), "Negative values in data passed to `sample_weight`"),
    ((X, y, np.zeros(6)), "zero"),
    ((X, y, [1, 1]), "sample_weight.shape == .*expected"),
    ((X, y, [1, 1, 1, 1, 1, np.nan]), "sample_weight contains NaN"),
    ((X, y, np.full(6, 1e308)), "finite sum, .*rescale"),
    ((X, y, [1, 1, 1, 0, 0, 0]), "y has only one class, .*'ham'"),
]


def check_refused(model, error, words, *data):
    """The words are said, and what was there before is there after."""
    assert "n_features_in_" not in vars(model)
    with pytest.raises(error, match=words):
        model.fit(*data)
    assert set(vars(model)) == set(model.get_params())
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        model.predict(X)

    fitted = hw.RobustDecisionTreeClassifier(eps=0.05).fit(NAMED, y)
    state = vars(fitted).copy()
    fitted.set_params(**model.get_params())
    with pytest.raises(error, match=words):
        fitted.fit(*data)
    fitted.set_params(**hw.RobustDecisionTreeClassifier(eps=0.05).get_params())
    assert vars(fitted) == state
    assert fitted.predict(NAMED).tolist() == y.tolist()


@pytest.mark.parametrize(("params", "words"), BAD_PARAMETERS)
def test_bad_parameters(params, words):
    error = TypeError if words.startswith("threat must be") else ValueError
    check_refused(hw.RobustDecisionTreeClassifier(**params), error, words, X, y)


@pytest.mark.parametrize(("data", "words"), BAD_DATA)
def test_bad_data(data, words):
    check_refused(hw.RobustDecisionTreeClassifier(), ValueError, words, *data)


def test_the_papers_rule_knows_two_classes_and_no_weights():
    model = hw.RobustDecisionTreeClassifier(inner="paper")
    words = 'inner="paper" is defined for two classes, y has 3; use inner="exact"'
    check_refused(model, ValueError, words, X, [0, 0, 1, 1, 2, 2])
    words = 'inner="paper" counts rows and knows no weights'
    check_refused(model, ValueError, words, X, y, [1, 1, 1, 1, 1, 2])
    assert model.fit(X, y, np.ones(6)).get_n_leaves() == 2
    words = "monotonic_cst needs two classes, y has 3"
    check_refused(
        hw.RobustDecisionTreeClassifier(monotonic_cst=[1, 0]),
        ValueError,
        words,
        X,
        [0, 0, 1, 1, 2, 2],
    )


def test_unknown_parameter():
    with pytest.raises(TypeError, match="epsilon"):
        hw.RobustDecisionTreeClassifier(epsilon=0.1)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "apply"])
def test_other_columns_than_trained_on(method):
    predict = getattr(hw.RobustDecisionTreeClassifier().fit(X, y), method)
    with pytest.raises(ValueError, match=r"X has 1 features, but .* is expecting 2 features"):
        predict(X[:, :1])
    predict = getattr(hw.RobustDecisionTreeClassifier().fit(NAMED, y), method)
    with pytest.raises(ValueError, match=r"seen at fit time, yet now missing:\s+- links"):
        predict(NAMED[["words"]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\s+- size"):
        predict(NAMED.rename(columns={"links": "size"}))
    with pytest.raises(ValueError, match="must be in the same order"):
        predict(NAMED[["links", "words"]])
    with pytest.raises(ValueError, match=r"infinity.*X\[0, 0\] = inf"):
        predict(pd.DataFrame([[np.inf, 1]], columns=NAMED.columns))


def test_constant_model_warns_when_the_threat_is_why():
    model = hw.RobustDecisionTreeClassifier(eps=20)
    words = r"No split survives the threat \(largest step 20\): for every threshold of 2 features"
    with pytest.warns(hw.HardwoodWarning, match=words):
        model.fit(X, y, [1, 1, 1, 1, 1, 2])
    assert model.get_n_leaves() == 1
    assert model.get_depth() == 0
    assert model.feature_importances_.tolist() == [0, 0]
    assert set(model.predict(X)) == {"spam"}
    np.testing.assert_allclose(model.predict_proba(X), [[3 / 7, 4 / 7]] * 6)
    # Here it is not: no warning, which would be an error.
    hw.RobustDecisionTreeClassifier(eps=20).fit(np.ones((6, 2)), y)
    hw.RobustDecisionTreeClassifier(eps=0.05, min_samples_leaf=4).fit(X, y)
    hw.RobustDecisionTreeClassifier(eps=0, min_split_gain=1).fit(X, y)


def test_eps_and_threat_say_the_same():
    def tree(data=X, **params):
        return hw.RobustDecisionTreeClassifier(**params).fit(data, y).export_text(decimals=6)

    assert tree(eps=0.05) == tree(threat=hw.Threat(0.05)) == tree(eps=[0.05, 0.05])
    assert tree(eps=(0, 0.3)) == tree(threat=hw.Threat((0, 0.3))) == tree(eps=[(0, 0.3)] * 2)
    by_name = tree(NAMED, eps={"words": 2})
    assert by_name == tree(NAMED, threat=hw.Threat(2, fixed=["links"])) == tree(NAMED, eps=[2, 0])
    assert "words" not in by_name, "out of reach is better than in reach"
    # threat wins over the default eps
    assert tree(threat=hw.Threat(0)) == tree(eps=0)


def test_monotonic_by_name():
    rising = hw.RobustDecisionTreeClassifier(eps=0, monotonic_cst={"words": 1}).fit(NAMED, y)
    assert rising.trees_.feature[0] == 0
    falling = hw.RobustDecisionTreeClassifier(eps=0, monotonic_cst={"words": -1}).fit(NAMED, y)
    assert falling.trees_.feature[0] == 1


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame):
    data = frame({"words": X[:, 0], "links": X[:, 1]})
    model = hw.RobustDecisionTreeClassifier(eps={"words": 0.05}).fit(data, y)
    assert model.feature_names_in_.tolist() == ["words", "links"]
    assert model.trees_.feature_names == ["words", "links"]
    assert model.predict(data).tolist() == y.tolist()


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def moon_tree(moons):
    return hw.RobustDecisionTreeClassifier(eps=0.05, max_depth=4).fit(*moons)


def test_copies_predict_the_same(moons, moon_tree, tmp_path):
    joblib.dump(moon_tree, tmp_path / "tree.joblib")
    for copy in (
        pickle.loads(pickle.dumps(moon_tree)),
        joblib.load(tmp_path / "tree.joblib"),
        clone(moon_tree).fit(*moons),
    ):
        again, first = copy.predict_proba(moons[0]), moon_tree.predict_proba(moons[0])
        np.testing.assert_array_equal(again, first)
        assert copy.export_text() == moon_tree.export_text()
    assert "trees_" not in vars(clone(moon_tree))


def test_predictions_agree_with_each_other(moons, moon_tree):
    data, labels = moons
    proba = moon_tree.predict_proba(data)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(moon_tree.predict(data), proba.argmax(axis=1))
    np.testing.assert_allclose(moon_tree.decision_function(data), proba[:, 1] - proba[:, 0])
    leaf = moon_tree.apply(data)
    for node in np.unique(leaf):
        share = labels[leaf == node].mean()
        np.testing.assert_allclose(proba[leaf == node, 1], share, atol=1e-6)


def test_decision_path_and_shape_of_the_tree(moons, moon_tree):
    data, _ = moons
    trees = moon_tree.trees_
    path = moon_tree.decision_path(data).toarray()
    assert path.shape == (300, trees.n_nodes)
    leaf = moon_tree.apply(data)
    depth = []
    for i in range(len(data)):
        node, visited = 0, [0]
        while trees.feature[node] != -1:
            left = np.float32(data[i, trees.feature[node]]) < trees.threshold[node]
            node = int(trees.left[node] if left else trees.right[node])
            visited.append(node)
        assert np.flatnonzero(path[i]).tolist() == visited
        assert leaf[i] == node
        depth.append(len(visited) - 1)
    assert moon_tree.get_depth() == max(depth) == 4
    assert moon_tree.get_n_leaves() == len(np.unique(leaf)) == np.sum(trees.feature == -1)


def test_feature_importances_weigh_robust_gain_by_rows(moon_tree):
    trees = moon_tree.trees_
    brought = [np.sum((trees.gain * trees.cover)[trees.feature == f]) for f in (0, 1)]
    np.testing.assert_allclose(moon_tree.feature_importances_, brought / np.sum(brought))


def test_export_text():
    model = hw.RobustDecisionTreeClassifier(eps=0.05).fit(NAMED, y)
    assert model.export_text() == (
        "|--- words <  0.50  or missing\n"
        "|   |--- class: ham\n"
        "|--- words >= 0.50\n"
        "|   |--- class: spam\n"
    )
    shown = model.export_text(decimals=3, show_weights=True)
    assert "words <  0.500" in shown
    assert "class: ham  shares: [1.000, 0.000]" in shown


@pytest.mark.parametrize(
    ("max_features", "n_tried"), [(1, 1), (9, 4), (0.5, 2), ("sqrt", 2), ("log2", 2), (None, 4)]
)
def test_max_features_draws_that_many(max_features, n_tried):
    """The root takes the best drawn feature: the best of all wins as often as it is drawn."""
    data = np.column_stack([X[:, 0], X[:, 1], X[::-1, 1] ** 2, np.sin(X[:, 1])])
    wins = sum(
        hw.RobustDecisionTreeClassifier(eps=0, max_features=max_features, random_state=seed)
        .fit(data, y)
        .trees_.feature[0]
        == 0
        for seed in range(200)
    )
    # 200 draws at a chance of n_tried / 4: five standard deviations to each side.
    assert abs(wins - 50 * n_tried) <= 5 * np.sqrt(50 * n_tried * (1 - n_tried / 4))


def test_random_state_repeats_the_draw(moons):
    def text(seed):
        model = hw.RobustDecisionTreeClassifier(eps=0.02, max_features=1, random_state=seed)
        return model.fit(*moons).export_text(decimals=6)

    assert text(3) == text(3)
    assert len({text(seed) for seed in range(5)}) > 1


def test_balanced_class_weight():
    labels = np.array([0, 0, 0, 0, 0, 1])
    model = hw.RobustDecisionTreeClassifier(eps=0, max_depth=1, class_weight="balanced")
    model.fit(X, labels)
    np.testing.assert_allclose(model.trees_.value[0], [0.5, 0.5])
    assert model.trees_.gain[0] == pytest.approx(1)
