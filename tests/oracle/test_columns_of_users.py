"""What the hunt in the columns of users has found, each as one small case."""

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "nurse", "pilot"], n)
    X = pd.DataFrame({"job": pd.Categorical(job), "age": rng.integers(20, 60, n)})
    return X, np.where((job == "nurse") | (X["age"] > 50), "yes", "no")


@pytest.mark.parametrize("method", ["exact", "descent", "symbolic", "kantchelian", "cheng"])
def test_our_own_models_with_categories_are_attacked(method):
    X, y = people()
    model = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=3, max_depth=2).fit(X, y)
    threat = hw.Threat({"job": hw.ANY, "age": 3})
    found = hw.find_adversarial(model, X, y, method=method, threat=threat, random_state=0)
    assert found.success.any()
    assert (model.predict(found.X_adv[found.success]) != y[found.success]).all()


def test_an_example_may_leave_all_values_blank():
    nan = np.nan
    X = pd.DataFrame({"a": [0.0, 1, nan, 1, nan, nan], "b": [1.0, 0, 1, nan, nan, nan]})
    y = np.array([0, 0, 0, 0, 1, 1])
    model = hw.RobustDecisionTreeClassifier(eps=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    threat = hw.Threat(blank=["a", "b"])
    rows = X.iloc[:2]
    certificate = hw.certify(model, rows, y[:2], threat)
    assert (certificate.status == "broken").all()
    assert certificate.X_adv.isna().all(axis=None)
    assert str(certificate.changes(0)) == "a 0 -> blank; b 1 -> blank"
    attacked = hw.find_adversarial(model, rows, y[:2], threat=threat)
    assert attacked.success.all()
    assert attacked.X_adv.isna().all(axis=None)


def test_a_column_told_as_missing_or_not_takes_all_numbers():
    """Where a scaler sits beside an indicator, the far ends of a column overflow; 0 does not."""
    X = pd.DataFrame({"debt": [0.0, np.nan, -0.5, -1, 0.5, 1.5, 1, np.nan]})
    y = np.array([0, 1, 0, 0, 1, 1, 1, 0])
    steps = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    model = make_pipeline(
        steps, hw.RobustGradientBoostingClassifier(eps=0, n_estimators=2, min_child_weight=0)
    ).fit(X, y)
    trees = hw.load_model(model, X=X)
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))


def test_distances_do_not_change_their_unit_with_what_the_model_reads():
    """A threat with categories is counted in multiples, also where no split is on a category."""
    X, y = people()
    threat = hw.Threat({"job": hw.ANY, "age": 5}, integer=["age"])
    model = DecisionTreeClassifier(max_depth=1).fit(X[["age"]], y)
    alone = hw.minimal_distance(model, X[["age"]], y, threat=hw.Threat({"age": 5}))
    both = hw.RobustDecisionTreeClassifier(eps=0, max_depth=1)
    both = both.fit(X.assign(job=pd.Categorical(["clerk"] * len(X))), y)
    assert set(both.trees_.feature) <= {1, -1}
    found = hw.minimal_distance(both, X.assign(job="clerk"), y, threat=threat)
    np.testing.assert_allclose(found.upper, np.ceil(alone.upper) / 5)
