"""The robust forest: its protocol, its draws, its laws."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import minmax_scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardwood as hw

CRITERIA = ("entropy", "gini", "newton")
WAYS = [
    {"criterion": criterion, "method": method}
    for criterion in ("entropy", "gini")
    for method in ("exact", "hist")
] + [{"criterion": "newton"}]


def forest(**parameters):
    given = {"n_estimators": 10, "max_depth": 5, "eps": 0.05, "random_state": 0}
    return hw.RobustRandomForestClassifier(**{**given, **parameters})


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X), y


# scikit-learn exempts its own bootstrapped forests from the equivalence of weights and repeated
# rows: a draw of 2 n rows is another draw than one of n rows. Without a draw it holds for ours.
@pytest.mark.filterwarnings("ignore::hardwood.HardwoodWarning")
@parametrize_with_checks([forest(bootstrap=False, max_features=None, **way) for way in WAYS])
def test_scikit_learn_checks_without_draws(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::hardwood.HardwoodWarning")
@parametrize_with_checks(
    [forest(**way) for way in WAYS],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "bootstrap, as scikit-learn's own forests",
    },
)
def test_scikit_learn_checks_with_bootstrap(estimator, check):
    check(estimator)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_bytes_for_any_number_of_threads(way, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    one, two, seven = (forest(**way, n_jobs=n).fit(X, y).trees_ for n in (1, 2, 7))
    for other in (two, seven):
        for name in ("feature", "threshold", "left", "right", "missing_left", "value", "gain"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("way", WAYS[:-1])
def test_a_forest_of_one_undrawn_tree_is_the_tree(breast_cancer, way):
    X, y = breast_cancer
    tree = hw.RobustDecisionTreeClassifier(eps=0.05, max_depth=5, **way).fit(X, y)
    one = forest(bootstrap=False, max_features=None, n_estimators=1, **way).fit(X, y)
    np.testing.assert_array_equal(one.trees_.threshold, tree.trees_.threshold)
    np.testing.assert_array_equal(one.trees_.value, tree.trees_.value)


def test_a_newton_forest_of_one_undrawn_tree_is_a_round_of_boosting(breast_cancer):
    X, y = breast_cancer
    alone = {"bootstrap": False, "max_features": None, "n_estimators": 1, "criterion": "newton"}
    boosted = hw.RobustGradientBoostingClassifier(
        eps=0.05, max_depth=5, n_estimators=1, learning_rate=1.0, inner="exact"
    ).fit(X, y)
    one = forest(**alone).fit(X, y)
    np.testing.assert_array_equal(one.trees_.threshold, boosted.trees_.threshold)
    np.testing.assert_array_equal(one.decision_function(X), boosted.decision_function(X))


def test_the_forest_is_the_mean_of_its_trees(breast_cancer):
    X, y = breast_cancer
    model = forest().fit(X, y)
    trees, leaf = model.trees_, model.apply(X)
    shares = [trees.value[trees.tree_start[k] + leaf[:, k]] for k in range(trees.n_trees)]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(shares, axis=0), rtol=1e-6)
    assert not np.array_equal(shares[0], shares[1])


@pytest.mark.parametrize("method", ["exact", "hist"])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_every_tree_sees_the_rows_drawn_for_it(breast_cancer, bootstrap, method):
    X, y = breast_cancer
    model = forest(max_samples=0.5, bootstrap=bootstrap, method=method).fit(X, y)
    roots = model.trees_.tree_start[:-1]
    np.testing.assert_array_equal(model.trees_.cover[roots], np.ceil(len(y) / 2))


@pytest.mark.parametrize("way", WAYS)
def test_out_of_bag_rows_are_judged_by_trees_that_did_not_see_them(breast_cancer, way):
    X, y = breast_cancer
    # Labels without meaning: trees that saw a row know it, the others can only guess.
    noise = np.random.default_rng(0).integers(2, size=len(y))
    parameters = {**way, "eps": 0, "max_depth": None, "min_child_weight": 0}
    model = forest(**parameters, n_estimators=30, oob_score=True).fit(X, noise)
    assert model.score(X, noise) > 0.9
    assert 0.4 < model.oob_score_ < 0.6
    assert model.oob_decision_function_.shape == (len(y), 2)
    known = ~np.isnan(model.oob_decision_function_[:, 0])
    np.testing.assert_allclose(model.oob_decision_function_[known].sum(axis=1), 1)


def test_out_of_bag_needs_unseen_rows(breast_cancer):
    with pytest.raises(ValueError, match="oob_score needs rows that a tree did not see"):
        forest(oob_score=True, bootstrap=False).fit(*breast_cancer)


def test_more_rows_than_there_are_cannot_be_drawn(breast_cancer):
    with pytest.raises(ValueError, match=r"at most the number of rows .* 569, got max_samples=600"):
        forest(max_samples=600).fit(*breast_cancer)


@pytest.mark.parametrize("way", WAYS)
def test_monotone_in_every_tree_and_in_the_forest(breast_cancer, way):
    X, y = breast_cancer
    large = (7, 20, 27)  # features that tell the classes apart, the second class being small there
    sign = np.zeros(X.shape[1], dtype=int)
    sign[list(large)] = -1
    model = forest(**way, monotonic_cst=sign, max_features=0.5).fit(X, y)
    steps = []
    for feature in large:
        rising = np.repeat(X[:50], 21, axis=0)
        rising[:, feature] = np.tile(np.linspace(0, 1, 21), 50)
        steps.append(np.diff(model.decision_function(rising).reshape(-1, 21), axis=1))
    assert np.max(steps) <= 1e-6  # sums of float32 shares round
    assert np.min(steps) < -0.01


def test_the_paper_inner_needs_two_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match='inner="paper" is defined for two classes, y has 3'):
        forest(inner="paper").fit(X, y)
    assert forest(inner="paper", criterion="newton").fit(X, y).score(X, y) > 0.9


def test_seeds_decide_the_draw(breast_cancer):
    X, y = breast_cancer
    model = forest()
    first, again = clone(model).fit(X, y), clone(model).fit(X, y)
    other = forest(random_state=1).fit(X, y)
    np.testing.assert_array_equal(first.trees_.threshold, again.trees_.threshold)
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_constant_forest_says_why(breast_cancer, criterion):
    X, y = breast_cancer
    with pytest.warns(hw.HardwoodWarning, match=r"No split survives the threat") as seen:
        forest(criterion=criterion, eps=2).fit(X, y)
    assert [warning.filename for warning in seen] == [__file__]
    for eps in (0, 2):
        with pytest.warns(hw.HardwoodWarning, match=r"No split is allowed by min_samples_leaf=300"):
            forest(criterion=criterion, eps=eps, min_samples_leaf=300).fit(X, y)


@pytest.mark.parametrize("method", ["exact", "hist"])
def test_the_papers_inner_rule_counts_drawn_rows(breast_cancer, method):
    X, y = breast_cancer
    model = forest(inner="paper", method=method, n_estimators=3).fit(X, y)  # some drawn twice
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("way", WAYS)
def test_features_are_drawn_for_every_node(way):
    # One column decides half of the labels, the next the others, and sixty decide nothing: a tree
    # that draws seven columns once rarely has either, and a forest of such trees learns nothing.
    rng = np.random.default_rng(0)
    X = (rng.random((3000, 62)) < 0.5).astype(float)
    y = np.where(X[:, 0] == 1, 1, X[:, 1]).astype(int)
    y = np.where(rng.random(3000) < 0.1, 1 - y, y)
    model = forest(**way, n_estimators=40, max_depth=8, eps=0.1).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > y[2000:].mean() + 0.1
    trees = model.trees_
    used = [
        set(trees.feature[begin:end]) - {-1}
        for begin, end in zip(trees.tree_start[:-1], trees.tree_start[1:], strict=True)
    ]
    assert np.mean([len(features) for features in used]) > 15  # more than one draw of seven


def test_large_tables_are_grown_on_histograms():
    rng = np.random.default_rng(0)
    tall, wide = rng.random((5000, 3)), rng.random((1000, 100))

    def trees(X, method):
        y = (X[:, 0] + X[:, 1] > 1).astype(int)
        return forest(method=method, n_estimators=2).fit(X, y).trees_.threshold

    for X in (tall, wide):
        np.testing.assert_array_equal(trees(X, "auto"), trees(X, "hist"))
        np.testing.assert_array_equal(trees(X[1:], "auto"), trees(X[1:], "exact"))
        assert not np.array_equal(trees(X, "hist"), trees(X, "exact"))


def test_a_single_tree_sorts_the_columns_of_a_wide_table():
    rng = np.random.default_rng(0)
    X = rng.random((1000, 100))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    auto, exact, hist = (
        hw.RobustDecisionTreeClassifier(eps=0.05, method=method).fit(X, y).trees_.threshold
        for method in ("auto", "exact", "hist")
    )
    np.testing.assert_array_equal(auto, exact)
    assert not np.array_equal(auto, hist)


def test_what_a_method_cannot_do_is_refused(breast_cancer):
    with pytest.raises(ValueError, match='candidates="intervals" are thresholds of method="exact"'):
        forest(method="hist", candidates="intervals").fit(*breast_cancer)
    with pytest.raises(ValueError, match='criterion="newton" grows on histograms; use method='):
        forest(method="exact", criterion="newton").fit(*breast_cancer)


@pytest.mark.parametrize("way", WAYS[:-1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_equals_one_fit_of_all_trees(way, n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    whole = forest(**way, n_estimators=9, oob_score=True).fit(X, y)
    grown = forest(**way, n_estimators=4, oob_score=True, warm_start=True).fit(X, y)
    first = grown.trees_
    grown.set_params(n_estimators=9).fit(X, y)
    for name in ("feature", "threshold", "left", "right", "missing_left", "value", "gain"):
        np.testing.assert_array_equal(getattr(grown.trees_, name), getattr(whole.trees_, name))
    np.testing.assert_array_equal(grown.trees_.first(4).value, first.value)
    np.testing.assert_array_equal(grown.predict_proba(X), whole.predict_proba(X))
    assert grown.oob_score_ == whole.oob_score_
    assert grown.fit(X, y).trees_.n_trees == 9  # nothing to add


def test_warm_start_remembers_draws_that_nobody_can_repeat(breast_cancer):
    X, y = breast_cancer
    noise = np.random.default_rng(0).integers(2, size=len(y))
    parameters = {"eps": 0, "max_depth": None, "random_state": None, "warm_start": True}
    model = forest(**parameters, n_estimators=15, oob_score=True).fit(X, noise)
    model.set_params(n_estimators=30).fit(X, noise)
    assert 0.4 < model.oob_score_ < 0.6  # a tree that saw the row would know it


def test_warm_start_keeps_the_categories_of_the_forest():
    draw = np.random.default_rng(0)
    X = pd.DataFrame({"a": draw.random(300), "job": draw.choice(["x", "y", "z"], 300)})
    y = ((X["a"] > 0.5) ^ (X["job"] == "y")).to_numpy()
    whole = forest(n_estimators=8).fit(X, y)
    grown = forest(n_estimators=3, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        grown.set_params(n_estimators=8).fit(X[["job", "a"]], y)
    grown.fit(X, y)
    np.testing.assert_array_equal(grown.predict_proba(X), whole.predict_proba(X))


def test_warm_start_says_what_does_not_go_on(breast_cancer):
    X, y = breast_cancer
    model = forest(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"n_estimators=7 must be larger .* the 10 trees"):
        model.set_params(n_estimators=7).fit(X, y)
    model.set_params(n_estimators=12)
    with pytest.raises(ValueError, match=r"classes \[0, 1\], but y has \[0, 2\]"):
        model.fit(X, 2 * y)
    with pytest.raises(ValueError, match=r"X has 29 features, but .* is expecting 30"):
        model.fit(X[:, 1:], y)
    with pytest.raises(ValueError, match=r'those of "newton" are shrunk by their number'):
        model.set_params(criterion="newton").fit(X, y)
    assert model.n_features_in_ == 30  # as it was
    with pytest.raises(ValueError, match=r"shrunk by their number"):
        forest(criterion="newton", warm_start=True).fit(X, y).fit(X, y)
