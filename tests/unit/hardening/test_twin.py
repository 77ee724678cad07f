"""Robust twins of foreign models: their size is the source's, and more of them is proven."""

import subprocess
import sys

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, minmax_scale
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw

X, Y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)
EPS = 0.05

SOURCES = {
    "xgboost": xgboost.XGBClassifier(
        n_estimators=15, max_depth=4, learning_rate=0.2, reg_lambda=2, gamma=0.1, n_jobs=1
    ),
    "lightgbm": lightgbm.LGBMClassifier(
        n_estimators=12, num_leaves=9, learning_rate=0.15, min_child_samples=7, verbose=-1, n_jobs=1
    ),
    "catboost": catboost.CatBoostClassifier(
        iterations=14, depth=4, learning_rate=0.3, l2_leaf_reg=2, verbose=False, thread_count=1
    ),
    "hist": HistGradientBoostingClassifier(max_iter=13, max_leaf_nodes=11, learning_rate=0.25),
    "boosting": GradientBoostingClassifier(n_estimators=11, max_depth=3, random_state=0),
    "forest": RandomForestClassifier(
        n_estimators=10, max_depth=5, max_features=0.5, class_weight="balanced", random_state=0
    ),
    "tree": DecisionTreeClassifier(max_depth=4, criterion="gini", min_samples_leaf=3),
    "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(7, random_state=0)),
}
SIZE = {
    "xgboost": {
        "n_estimators": 15,
        "max_depth": 4,
        "max_leaf_nodes": None,
        "learning_rate": 0.2,
        "reg_lambda": 2,
        "min_split_gain": 0.05,
    },
    "lightgbm": {
        "n_estimators": 12,
        "max_leaf_nodes": 9,
        "max_depth": None,
        "learning_rate": 0.15,
        "min_samples_leaf": 7,
        "reg_lambda": 0,
    },
    "catboost": {"n_estimators": 14, "max_depth": 4, "learning_rate": 0.3, "reg_lambda": 2},
    "hist": {"n_estimators": 13, "max_leaf_nodes": 11, "learning_rate": 0.25, "max_depth": None},
    "boosting": {"n_estimators": 11, "max_depth": 3, "learning_rate": 0.1, "reg_lambda": 0},
    "forest": {
        "n_estimators": 10,
        "max_depth": 5,
        "max_features": 0.5,
        "class_weight": "balanced",
        "criterion": "gini",
    },
    "tree": {"max_depth": 4, "criterion": "gini", "min_samples_leaf": 3},
    "pipeline": {"n_estimators": 7, "max_features": "sqrt"},
}
KIND = {
    "forest": hw.RobustRandomForestClassifier,
    "pipeline": hw.RobustRandomForestClassifier,
    "tree": hw.RobustDecisionTreeClassifier,
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_twin_has_the_size_of_its_source_and_stands_more(name):
    source = SOURCES[name].fit(X, Y)
    twin = hw.harden(source, X, Y, EPS, n_jobs=1)
    assert type(twin) is KIND.get(name, hw.RobustGradientBoostingClassifier)
    for parameter, value in SIZE[name].items():
        assert (
            getattr(twin, parameter) == pytest.approx(value)
            if isinstance(value, float)
            else (getattr(twin, parameter) == value)
        ), parameter
    if hasattr(twin, "n_estimators_"):
        assert twin.n_estimators_ == SIZE[name]["n_estimators"]
    assert twin.threat == hw.Threat(EPS)
    proven = [
        hw.certify(model, X[::4], Y[::4], EPS, total_time_limit=20).certified_accuracy
        for model in (source, twin)
    ]
    assert proven[0] < proven[1]


def test_boosters_are_read_like_their_wrappers():
    wrapped = xgboost.XGBClassifier(n_estimators=6, max_depth=3, learning_rate=0.4).fit(X, Y)
    twin = hw.harden(wrapped.get_booster(), X, Y, EPS)
    assert (twin.n_estimators_, twin.max_depth) == (6, 3)
    assert twin.learning_rate == pytest.approx(0.4)
    light = lightgbm.train(
        {"objective": "binary", "num_leaves": 5, "verbose": -1, "lambda_l2": 3.0},
        lightgbm.Dataset(X, Y),
        6,
    )
    twin = hw.harden(light, X, Y, EPS)
    assert (twin.n_estimators_, twin.max_leaf_nodes, twin.reg_lambda) == (6, 5, 3.0)


def test_early_stopped_models_are_as_long_as_they_stopped():
    source = xgboost.XGBClassifier(n_estimators=300, early_stopping_rounds=3, max_depth=2)
    source.fit(X[:400], Y[:400], eval_set=[(X[400:], Y[400:])], verbose=False)
    twin = hw.harden(source, X, Y, EPS, max_depth=1)
    assert twin.n_estimators_ == source.best_iteration + 1 < 300


def test_weights_and_objectives_go_along():
    heavy = xgboost.XGBClassifier(n_estimators=3, scale_pos_weight=4).fit(X, Y)
    assert hw.harden(heavy, X, Y, EPS).scale_pos_weight == 4
    light = lightgbm.LGBMClassifier(n_estimators=3, is_unbalance=True, verbose=-1).fit(X, Y)
    assert hw.harden(light, X, Y, EPS).class_weight == "balanced"
    target = np.abs(X[:, 0]) * 10
    for source, loss in (
        (xgboost.XGBRegressor(n_estimators=3, objective="count:poisson"), "poisson"),
        (lightgbm.LGBMRegressor(n_estimators=3, objective="huber", verbose=-1), "huber"),
        (HistGradientBoostingRegressor(max_iter=3), "squared_error"),
        (HistGradientBoostingRegressor(max_iter=3, loss="quantile", quantile=0.3), "quantile"),
        (catboost.CatBoostRegressor(iterations=3, verbose=False), "squared_error"),
    ):
        twin = hw.harden(source.fit(X[:, 1:], target), X[:, 1:], target, EPS)
        assert isinstance(twin, hw.RobustGradientBoostingRegressor)
        assert twin.loss == loss
    assert twin.n_estimators_ == 3


def test_wrappers_are_looked_through():
    tree = DecisionTreeClassifier(max_depth=3)
    search = GridSearchCV(tree, {"max_depth": [2]}, cv=2).fit(X, Y)
    assert hw.harden(search, X, Y, EPS).max_depth == 2
    calibrated = CalibratedClassifierCV(tree, ensemble=False, cv=2).fit(X, Y)
    assert hw.harden(calibrated, X, Y, EPS).max_depth == 3


def people(n=500):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "job": rng.choice(["cook", "nurse", "pilot"], n),
            "income": rng.gamma(2, 20_000, n),
        }
    )
    return frame, (frame["job"] == "pilot") ^ (frame["income"] > 60_000)


def test_a_pipeline_on_raw_columns_gets_a_twin_that_takes_the_same_frame():
    frame, y = people()
    source = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["job"]), (StandardScaler(), ["income"]), remainder="drop"
        ),
        HistGradientBoostingClassifier(max_iter=10, max_depth=3),
    ).fit(frame, y)
    threat = hw.Threat({"income": 500, "job": {"cook": ["nurse"]}})
    twin = hw.harden(source, frame, y, threat)
    assert twin.score(frame, y) > 0.9
    inside = twin[-1]
    assert inside.feature_names_in_.tolist() == ["job", "income"]
    assert (inside.n_estimators_, inside.max_depth) == (10, 3)
    shuffled = frame.sample(frac=1, random_state=0)[["income", "id", "job"]]
    assert (twin.predict(shuffled[frame.columns]) == twin.predict(frame)[shuffled.index]).all()


def test_what_has_no_twin_is_refused_with_the_reason():
    with pytest.raises(hw.UnsupportedModelError, match="no robust twin of a AdaBoostClassifier"):
        hw.harden(AdaBoostClassifier(n_estimators=2).fit(X, Y), X, Y, EPS)
    with pytest.raises(hw.UnsupportedModelError, match="no robust RandomForestRegressor"):
        hw.harden(RandomForestRegressor(2).fit(X, X[:, 0]), X, X[:, 0], EPS)
    ranker = xgboost.XGBRanker(n_estimators=2).fit(X, Y, qid=np.zeros(len(Y)))
    with pytest.raises(hw.UnsupportedModelError, match='objective="rank:ndcg", of which'):
        hw.harden(ranker, X, Y, EPS)
    with pytest.raises(ValueError, match="change 'depth', which is no parameter of"):
        hw.harden(SOURCES["tree"].fit(X, Y), X, Y, EPS, depth=3)
    with pytest.raises(hw.UnsupportedModelError, match="harden reads models of xgboost, lightgbm"):
        hw.harden(object(), X, Y, EPS)
    extra = ExtraTreesClassifier(3, random_state=0).fit(X, Y)
    assert hw.harden(extra, X, Y, EPS).n_estimators == 3


def test_names_stay_functions_whichever_is_asked_first():
    code = "import hardwood as hw; hw.compare; print(callable(hw.harden), callable(hw.compare))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_models_are_compared_side_by_side():
    source = SOURCES["tree"].fit(X, Y)
    twin = hw.harden(source, X, Y, EPS)
    found = hw.compare([source, twin], X, Y, EPS, multiples=[0.5, 2])
    assert found.names == ("DecisionTreeClassifier", "RobustDecisionTreeClassifier")
    assert found.multiples.tolist() == [0, 0.5, 1, 2]
    frame = found.to_frame()
    assert list(frame.columns) == ["model", "multiple", "certified_accuracy", "attacked_accuracy"]
    clean = frame[frame["multiple"] == 0].set_index("model")["certified_accuracy"]
    assert clean["DecisionTreeClassifier"] == source.score(X, Y)
    at_threat = found.at(1)
    assert at_threat["DecisionTreeClassifier"] < at_threat["RobustDecisionTreeClassifier"]
    direct = hw.certify(twin, X, Y, EPS).certified_accuracy
    assert at_threat["RobustDecisionTreeClassifier"] == direct
    drawn = found.plot()
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == list(found.names)
    assert "RobustDecisionTreeClassifier: " in repr(found)
    with pytest.raises(ValueError, match="names must hold one name for each of the 2 models"):
        hw.compare([source, twin], X, Y, EPS, names=["one"])
    with pytest.raises(ValueError, match="multiple must be one of"):
        found.at(3)


@pytest.mark.parametrize("step", [hw.ANY, 1, {False: [True]}])
def test_truth_values_turn_alike_in_a_pipeline_and_in_its_twin(step):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300), "owner": rng.random(300) < 0.5})
    y = X["x"] + 2 * X["owner"] + rng.normal(0, 0.3, 300) > 1
    threat = hw.Threat({"owner": step})
    source = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=4)).fit(X, y)
    twin = hw.harden(source, X, y, threat)
    turned = X.assign(owner=True if isinstance(step, dict) else ~X["owner"])
    for model in (source, twin):
        stays = (model.predict(X) == y) & (model.predict(turned) == y)
        certificate = hw.certify(model, X, y, threat)
        assert ((certificate.status == "certified") == stays).all()
        assert certificate.X_adv["owner"].dtype == bool
    report = hw.audit(source, X, y, threat, twin=twin)
    assert all(claim["passed"] for claim in report.check(source, X, y, twin=twin))


@pytest.mark.parametrize(
    "source",
    [
        GradientBoostingRegressor(loss="huber", n_estimators=20, random_state=0),
        lightgbm.LGBMRegressor(objective="huber", n_estimators=20, verbose=-1, n_jobs=1),
        catboost.CatBoostRegressor(loss_function="Huber:delta=1", iterations=20, verbose=False),
    ],
    ids=lambda source: type(source).__name__,
)
@pytest.mark.parametrize("unit", [1, 30])
def test_twins_with_the_huber_loss_stay_among_the_targets(source, unit):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3))
    target = unit * (rows[:, 0] + 0.5 * rows[:, 1] ** 2)
    twin = hw.harden(source.fit(rows, target), rows, target, 0.01, n_jobs=1)
    error = np.abs(twin.predict(rows) - target).mean()
    assert error < np.abs(np.median(target) - target).mean()
    assert np.abs(twin.predict(rows)).max() < 2 * np.abs(target).max()


def test_a_twin_needs_the_columns_of_its_model():
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    model = DecisionTreeClassifier(max_depth=3).fit(frame, Y)
    with pytest.raises(ValueError, match="X has 2 features but the model was trained on 3, such a"):
        hw.harden(model, frame[["a", "b"]], Y, EPS)
    with pytest.raises(ValueError, match="model was trained on 3, such as 'label'"):
        hw.harden(model, frame.assign(label=Y), Y, EPS)
    with pytest.raises(ValueError, match="X has 2 features but the model was trained on 3; harden"):
        hw.harden(model, X[:, :2], Y, EPS)
    assert hw.harden(model, frame, Y, EPS).feature_names_in_.tolist() == list("abc")


@pytest.mark.parametrize("models", [[], "model.json", DecisionTreeClassifier()])
def test_compare_needs_a_list_of_models(models):
    with pytest.raises(ValueError, match="models must be a list of one or more models, got"):
        hw.compare(models, X, Y, EPS)
