"""We read scikit-learn's models: the same leaves, and margins as close as its own order allows.

Single trees and boosting add in tree order, in double, as we do: equal to the last bit. Means over
trees (forests, bagging, AdaBoost) are taken in an order of scikit-learn's own.
"""

import numpy as np
import pytest
from sklearn import ensemble, tree
from threadpoolctl import threadpool_limits

import hardwood as hw
from samples import TABLES, rows_around, table

CLASSIFIERS = {
    "tree": tree.DecisionTreeClassifier(max_depth=6, random_state=0),
    "extra tree": tree.ExtraTreeClassifier(max_depth=6, random_state=0),
    "forest": ensemble.RandomForestClassifier(12, max_depth=6, random_state=0),
    "extra trees": ensemble.ExtraTreesClassifier(12, max_depth=6, random_state=0),
    "boosting": ensemble.GradientBoostingClassifier(n_estimators=12, random_state=0),
    "boosting from zero": ensemble.GradientBoostingClassifier(n_estimators=12, init="zero"),
    "histograms": ensemble.HistGradientBoostingClassifier(max_iter=12, random_state=0),
    "bagging": ensemble.BaggingClassifier(
        tree.DecisionTreeClassifier(max_depth=6), max_features=0.6, random_state=0
    ),
    "AdaBoost": ensemble.AdaBoostClassifier(
        tree.DecisionTreeClassifier(max_depth=3), n_estimators=8
    ),
}
REGRESSORS = {
    "tree": tree.DecisionTreeRegressor(max_depth=6, random_state=0),
    "forest": ensemble.RandomForestRegressor(12, max_depth=6, random_state=0),
    "extra trees": ensemble.ExtraTreesRegressor(12, max_depth=6, random_state=0),
    "boosting": ensemble.GradientBoostingRegressor(n_estimators=12, random_state=0),
    "histograms": ensemble.HistGradientBoostingRegressor(max_iter=12, random_state=0),
    "bagging": ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=6), random_state=0),
}
EXACT = ("tree", "extra tree", "boosting", "boosting from zero", "histograms")
NO_MISSING = ("boosting", "boosting from zero", "bagging", "AdaBoost")


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("name", [*TABLES, "three classes"])
def test_we_read_their_classifiers(name, kind):
    X, y = table("imbalanced" if name == "three classes" else name)
    if name == "missing" and kind in NO_MISSING:
        X = np.nan_to_num(X)
    if name == "three classes":
        y = y + (X[:, 1] > 0)
    label = np.array(["a", "b", "c"])[y]
    model = CLASSIFIERS[kind].fit(X, label)
    trees = hw.load_model(model, X=X)
    rows = rows_around(trees, 3000, np.random.default_rng(0))
    if kind in NO_MISSING:
        rows = np.nan_to_num(rows)
    if kind in ("boosting", "boosting from zero", "histograms", "AdaBoost"):
        theirs = model.decision_function(rows).reshape(len(rows), -1)
        ours = trees.slope * (trees.margin(rows) / trees.divisor)
    elif trees.n_trees == 1:
        theirs, ours = model.predict_proba(rows), trees.margin(rows)
    else:
        theirs, ours = model.predict_proba(rows), trees.predict_proba(rows)
    if kind in EXACT:
        np.testing.assert_array_equal(ours, theirs)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)
    if not (kind == "AdaBoost" and name == "three classes"):  # its link is one of its own
        np.testing.assert_allclose(
            trees.predict_proba(rows), model.predict_proba(rows), rtol=1e-12, atol=1e-14
        )
    np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("name", ["missing", "imbalanced"])
def test_we_read_their_regressors(name, kind):
    X, _ = table(name)
    if kind in NO_MISSING:
        X = np.nan_to_num(X)
    model = REGRESSORS[kind].fit(X, np.nan_to_num(X[:, 0]) * 1e4 + 1e6)
    trees = hw.load_model(model, X=X)
    rows = rows_around(trees, 3000, np.random.default_rng(0))
    if kind in NO_MISSING:
        rows = np.nan_to_num(rows)
    np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))


@pytest.mark.parametrize("parameters", [{}, {"contamination": 0.1, "max_features": 0.5}], ids=str)
def test_we_read_their_isolation_forests(parameters):
    X, _ = table("missing")
    model = ensemble.IsolationForest(n_estimators=20, random_state=0, **parameters).fit(X)
    trees = hw.load_model(model, X=X)
    rows = rows_around(trees, 3000, np.random.default_rng(0))
    decided = np.abs(model.decision_function(rows)) > 1e-12
    assert decided.mean() > 0.99
    assert set(model.predict(rows)) == {-1, 1}
    np.testing.assert_array_equal(trees.predict(rows)[decided], model.predict(rows)[decided])


def test_column_names_come_along_without_a_warning(recwarn):
    import pandas

    X, y = table("imbalanced")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    trees = hw.load_model(CLASSIFIERS["forest"].fit(frame, y), X=frame)
    assert trees.feature_names == list("abcdef")
    assert [str(w.message) for w in recwarn] == []
    np.testing.assert_array_equal(trees.margin(frame[list("fedcba")]), trees.margin(X))


def test_what_cannot_be_read_is_refused_by_name():
    X, y = table("imbalanced")
    stump = tree.DecisionTreeClassifier(max_depth=1)
    inner = ensemble.HistGradientBoostingClassifier(max_iter=2)
    histograms = ensemble.HistGradientBoostingClassifier(categorical_features=[2], max_iter=2)
    with pytest.raises(hw.UnsupportedModelError, match=r"starts from .*, which is no constant"):
        hw.load_model(ensemble.GradientBoostingClassifier(init=stump, n_estimators=2).fit(X, y))
    with pytest.raises(hw.UnsupportedModelError, match="predicts 6 targets at once"):
        hw.load_model(tree.DecisionTreeRegressor(max_depth=2).fit(X, X))
    with pytest.raises(
        hw.UnsupportedModelError, match=r"cannot read sklearn.ensemble.*AdaBoostRegressor"
    ):
        hw.load_model(ensemble.AdaBoostRegressor(n_estimators=3).fit(X, y))
    with pytest.raises(hw.UnsupportedModelError, match="is made of HistGradientBoostingClassifier"):
        hw.load_model(ensemble.BaggingClassifier(inner, n_estimators=2).fit(X, y))
    with pytest.raises(
        ValueError, match="RandomForestClassifier is not fitted yet; call fit first"
    ):
        hw.load_model(ensemble.RandomForestClassifier())
    X[:, 2] = np.random.default_rng(0).integers(-1, 4, len(X))
    with pytest.raises(
        hw.UnsupportedModelError, match=r"Column 2 of this Hist.* has the category -1\.0; categ"
    ):
        hw.load_model(histograms.fit(X, X[:, 2] == 1))


def test_a_split_between_missing_and_present_only():
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = rng.integers(0, 2, 400)
    X[:, 0] = np.where(y == 1, 3.0, np.nan)  # all that is known of it
    model = ensemble.HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=2).fit(X, y)
    trees = hw.load_model(model)
    assert np.isinf(trees.threshold[trees.feature == 0]).any()
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))
    assert (hw.certify(model, X, model.predict(X), 1e30).status == "certified").all()
