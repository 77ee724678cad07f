"""What the hunt in the columns of users has found, each as one small case."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import hardwood as hw

JOBS = ("clerk", "nurse", "pilot")


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.choice(JOBS, n)
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


@pytest.mark.parametrize("norm", ["inf", 1, 0])
def test_the_output_moves_with_one_hot_groups_as_enumerated(norm):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=80)
    X = pd.DataFrame({"age": rng.integers(0, 6, 80)})
    X[["a", "b", "c"]] = np.eye(3, dtype=int)[kind]
    y = X["age"] * (kind - 1.0) + rng.normal(size=80)
    model = hw.RobustGradientBoostingRegressor(eps=0, n_estimators=6, max_depth=3).fit(X, y)
    threat = hw.Threat({"age": 2}, norm=norm, one_hot=[["a", "b", "c"]])
    rows = X.iloc[:12]
    pushed = hw.output_range(model, rows, threat)
    moved = hw.minimal_distance(model, rows, change=1.0, norm=norm, threat=threat)
    here = model.predict(rows)
    for i, (age, *dummies) in enumerate(rows.itertuples(index=False)):
        moves = [
            (abs(z - age) / 2, float(k != np.argmax(dummies)), z, *np.eye(3, dtype=int)[k])
            for z in range(-2, 9)
            for k in range(3)
        ]
        sizes = np.array([move[:2] for move in moves])
        output = model.predict(pd.DataFrame([move[2:] for move in moves], columns=X.columns))
        length = {"inf": sizes.max(axis=1), 1: sizes.sum(axis=1)}.get(norm, (sizes > 0).sum(axis=1))
        held = (sizes <= 1).all(axis=1) & ((norm != 1) | (length <= 1))
        assert (pushed.lowest[i], pushed.highest[i]) == (output[held].min(), output[held].max())
        far = np.abs(output - here[i]) > 1
        far &= held if norm == 0 else True
        assert moved.upper[i] == pytest.approx(length[far].astype(float).min(initial=np.inf))
    for frame in (pushed.X_lowest, pushed.X_highest, moved.X_adv):
        assert (frame[["a", "b", "c"]].sum(axis=1) == 1).all()
    assert (pushed.status == "exact").all()
    np.testing.assert_array_equal(model.predict(pushed.X_highest), pushed.highest)


def test_only_some_rows_push_their_outputs():
    X, y = people()
    model = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=3).fit(X, y)
    every = hw.output_range(model, X, hw.Threat({"age": 9, "job": hw.ANY}))
    threat = hw.Threat({"age": 9, "job": hw.ANY}, only="yes")
    label = np.random.default_rng(1).permutation(y)
    for given, attacks in ((None, model.predict(X) == "yes"), (label, label == "yes")):
        some = hw.output_range(model, X, threat, y=given)
        own = model.decision_function(X)
        assert (every.highest > own)[attacks].any()
        for name in ("lower", "lowest", "highest", "upper"):
            truth = np.where(attacks, getattr(every, name), own)
            np.testing.assert_array_equal(getattr(some, name), truth)
        pd.testing.assert_frame_equal(some.X_highest[~attacks], X[~attacks])
        assert (some.status == "exact").all()
    with pytest.raises(ValueError, match="only='perhaps' is no label of this model; its labels"):
        hw.output_range(model, X, hw.Threat({"age": 1}, only="perhaps"))


def test_questions_about_numbers_know_no_class():
    X, y = people()
    model = hw.RobustGradientBoostingRegressor(eps=0, n_estimators=2).fit(X, y == "yes")
    threat = hw.Threat({"age": 1}, only="yes")
    with pytest.raises(ValueError, match="only='yes', a class, but this model has none"):
        hw.output_range(model, X, threat)
    with pytest.raises(ValueError, match="only='yes', a class, but a question about the output"):
        hw.minimal_distance(model, X, change=0.1, threat=threat)


def catboost_model(X, y, **settings):
    return CatBoostClassifier(
        iterations=4,
        depth=3,
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
        **{"cat_features": ["job"], **settings},
    ).fit(X, y)


@pytest.mark.parametrize("one_hot", [2, 10], ids=["statistics", "one-hot"])
def test_catboost_splits_on_categories_are_asked(one_hot, tmp_path):
    X, y = people()
    model = catboost_model(X, y, one_hot_max_size=one_hot, max_ctr_complexity=1)
    trees = hw.load_model(model, X=X)
    assert trees.category_names == {0: ["clerk", "nurse", "pilot"]}
    assert trees.categorical.any()
    strangers = X.assign(job="stranger")
    for rows in (X, strangers):
        np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))
        np.testing.assert_allclose(trees.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)
    certificate = hw.certify(model, X, y, hw.Threat({"job": hw.ANY}))
    every = np.array([model.predict(X.assign(job=job)) == y for job in ("clerk", "nurse", "pilot")])
    np.testing.assert_array_equal(certificate.status == "certified", every.all(axis=0))
    with pytest.raises(hw.UnsupportedModelError, match="pass rows that hold them as a data frame"):
        hw.load_model(model)
    model.save_model(str(tmp_path / "m.json"), format="json")
    with pytest.raises(hw.UnsupportedModelError, match="pass the model itself"):
        hw.load_model(tmp_path / "m.json")


def test_catboost_splits_that_nobody_can_ask_for_are_refused():
    X, _ = people(300)
    X["city"] = np.where(X["age"] % 2 == 0, "Aix", "Bonn")
    y = np.where((X["job"] == "nurse") != (X["city"] == "Aix"), 1, 0)
    both = {"cat_features": ["job", "city"], "one_hot_max_size": 1, "max_ctr_complexity": 2}
    shape = {"one_hot_max_size": 10, "grow_policy": "Lossguide"}
    for settings in (both, shape):
        model = catboost_model(X if settings is both else X[["job", "age"]], y, **settings)
        with pytest.raises(hw.UnsupportedModelError, match="max_ctr_complexity=1"):
            hw.load_model(model, X=X)


def test_wrong_rows_that_do_not_attack_keep_their_dummies():
    X = pd.DataFrame({"age": [1, 0, 3, 4], "a": [1, 1, 0, 0], "b": [0, 0, 1, 1]})
    model = hw.RobustDecisionTreeClassifier(eps=0).fit(X, [0, 0, 1, 1])
    y = np.array([1, 0, 1, 0])  # the first and the last row are wrong
    threat = hw.Threat(one_hot=[["a", "b"]], only=0)
    certificate = hw.certify(model, X, y, threat)
    assert (certificate.reason[[0, 3]] == "misclassified").all()
    np.testing.assert_array_equal(certificate.X_adv.iloc[[0, 3]], X.iloc[[0, 3]])


@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.6, 0.8])
def test_a_threshold_between_two_sums_is_decided_on_ties_too(threshold):
    """Leaves of one class: votes of five trees, so that probabilities lie on the threshold."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 5, (40, 2)).astype(float), rng.integers(0, 2, 40)
    X, first = np.unique(X, axis=0, return_index=True)
    y = y[first]
    model = hw.RobustRandomForestClassifier(n_estimators=5, eps=0, random_state=0).fit(X, y)
    proba = model.predict_proba(X)[:, 1]
    assert (proba == threshold).any()
    label = (proba >= threshold).astype(int)
    grid = np.stack(np.meshgrid(np.arange(-1, 7), np.arange(-1, 7)), -1).reshape(-1, 2) * 1.0
    said = (model.predict_proba(grid)[:, 1] >= threshold).astype(int)
    threat = hw.Threat(1, integer=[0, 1], low=-1, high=6)
    certificate = hw.certify(model, X, label, threat, threshold=threshold)
    for x, one, status in zip(X, label, certificate.status, strict=True):
        near = np.abs(grid - x).max(axis=1) <= 1
        assert status == ("certified" if (said[near] == one).all() else "broken")


def through(model):
    """A pipeline that scales ages, and hands jobs over as they are."""
    before = ColumnTransformer(
        [("numbers", StandardScaler(), ["age"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    return make_pipeline(before, model)


NATIVE = {
    "XGBoost": lambda: XGBClassifier(n_estimators=4, enable_categorical=True, n_jobs=1),
    "LightGBM": lambda: LGBMClassifier(n_estimators=4, min_data_per_group=1, verbose=-1, n_jobs=1),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(
        max_iter=4, categorical_features="from_dtype"
    ),
    "CatBoost": lambda: CatBoostClassifier(
        iterations=4, cat_features=["job"], max_ctr_complexity=1, verbose=0, thread_count=1
    ),
    "hardwood": lambda: hw.RobustGradientBoostingClassifier(eps=0, n_estimators=4),
}


@pytest.mark.parametrize("kind", NATIVE)
def test_categories_that_pass_through_a_pipeline_are_the_models_own(kind):
    X, y = people(300)
    y = (y == "yes").astype(int)
    model = through(NATIVE[kind]()).fit(X, y)
    trees = hw.load_model(model, X=X)
    assert trees.category_names[0] == ["clerk", "nurse", "pilot"]
    assert trees.categorical.any()
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))
    jobs = [X.assign(job=pd.Categorical([job] * len(X), X["job"].cat.categories)) for job in JOBS]
    said = np.array([model.predict(moved) for moved in jobs])
    certificate = hw.certify(model, X, y, hw.Threat({"job": hw.ANY}))
    certified = (said == y).all(axis=0)
    assert 0 < certified.sum() < len(X)
    np.testing.assert_array_equal(certificate.status == "certified", certified)
    broken = certificate.status == "broken"
    assert certificate.X_adv["job"].dtype == X["job"].dtype
    assert (model.predict(certificate.X_adv[broken]) != y[broken]).all()
    if kind not in ("CatBoost", "hardwood"):  # these take any name
        with pytest.raises(ValueError, match="Column 'job' holds the category 'king', which the"):
            hw.certify(model, X.assign(job="king"), y, 0.1)
