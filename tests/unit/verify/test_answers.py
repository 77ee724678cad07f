"""Results that people can use: frames, words, classes, thresholds, progress."""

import logging
from functools import partial
from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest
import xgboost
from catboost import CatBoostClassifier
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier

import hardwood as hw
from hardwood.verify import effort
from hardwood.verify.result import Certificate
from pipelines import credit, pipeline
from samples import table


@pytest.fixture(scope="module")
def lender():
    frame, y = credit()
    frame.index = [f"row {i}" for i in range(len(frame))]
    return pipeline("imputed, told", "one-hot", "XGBoost").fit(frame, y), frame[:80], y[:80]


THREAT = hw.Threat({"income": 2000, "debt": 500})


def test_examples_are_frames_that_fool_the_pipeline(lender):
    source, X, y = lender
    certificate = hw.certify(source, X, y, THREAT)
    broken = certificate.status == "broken"
    found = np.flatnonzero(broken & (certificate.reason == ""))
    assert len(found) > 3
    assert certificate.X_adv.columns.equals(X.columns)
    assert certificate.X_adv.dtypes.equals(X.dtypes)
    assert certificate.X_adv.index.equals(X.index)
    assert (source.predict(certificate.X_adv)[broken] != y[broken]).all()
    assert certificate.X_adv[~broken].equals(X[~broken])
    for row in found:
        changes = certificate.changes(int(row))
        assert changes
        assert {change.column for change in changes} <= {"income", "debt"}
        assert all(change.new == certificate.X_adv[change.column].iloc[row] for change in changes)
    assert certificate.changes(int(np.argmin(broken))) == ()


def test_every_result_becomes_a_frame_with_the_callers_index(lender):
    source, X, y = lender
    certificate = hw.certify(source, X[:10], y[:10], THREAT)
    distances = hw.minimal_distance(source, X[:10], y[:10], threat=THREAT)
    for result in (certificate, distances):
        frame = result.to_frame()
        assert frame.index.equals(X.index[:10])
        assert frame["status"].tolist() == result.status.tolist()
        assert set(X.columns) <= set(frame.columns)
        assert "row 3" in result._repr_html_()
    with pytest.raises(IndexError, match="row must be a position below 10, got row=10"):
        certificate.changes(10)


def test_arrays_have_frames_too():
    X, y = table("imbalanced")
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    attack = hw.find_adversarial(model, X[:20], y[:20])
    assert attack.to_frame().columns[-6:].tolist() == [f"x{f}" for f in range(6)]
    assert isinstance(attack.X_adv, np.ndarray)
    row = int(np.argmax(attack.success))
    assert str(attack.changes(row)).count("->") == len(attack.changes(row)) > 0
    curve = hw.certified_accuracy(model, X[:20], y[:20], [0, 0.1])
    assert curve.to_frame()["eps"].tolist() == [0, 0.1]
    assert "certified_accuracy" in curve._repr_html_()
    tree = DecisionTreeRegressor(max_depth=3).fit(X, y)
    pushed = hw.output_range(tree, X[:5], 0.5)
    assert pushed.to_frame()["highest"].tolist() == pushed.highest.tolist()
    both = [len(pushed.changes(0, side)) for side in ("lowest", "highest")]
    assert max(both) <= 6
    with pytest.raises(ValueError, match='side must be "lowest" or "highest", got side=1'):
        pushed.changes(0, 1)


def test_classes_are_told_apart():
    """Counted by hand: class a has 4 rows, b has 2."""
    certificate = Certificate(
        status=np.array(["certified", "certified", "unknown", "broken", "certified", "broken"]),
        reason=np.array([""] * 6),
        X_adv=np.zeros((6, 1)),
        threat=hw.Threat(1),
        y=np.array([0, 0, 0, 0, 1, 1]),
        y_adv=np.array([-1, -1, -1, 1, -1, 0]),
        classes=np.array(["a", "b"]),
    )
    frame = certificate.by_class()
    assert frame.index.tolist() == ["a", "b", "all"]
    assert frame.loc["a", ["n", "certified", "broken", "unknown"]].tolist() == [4, 2, 1, 1]
    assert frame.loc["a", ["certified_recall", "attacked_recall"]].tolist() == [2 / 4, 3 / 4]
    assert frame.loc["a", ["certified_precision", "attacked_precision"]].tolist() == [2 / 3, 3 / 4]
    assert frame.loc["b", ["certified_precision", "attacked_precision"]].tolist() == [1 / 3, 1 / 2]
    assert frame.loc["b", ["certified_specificity", "attacked_specificity"]].tolist() == [0.5, 0.75]
    assert frame.loc["all", "n"] == 6
    assert frame.loc["all", "certified_recall"] == certificate.certified_balanced_accuracy == 0.5
    assert certificate.attacked_balanced_accuracy == (3 / 4 + 1 / 2) / 2
    assert certificate.majority_share == 4 / 6
    assert "majority_share=0.6667" in repr(certificate)


MODELS = {
    "XGBoost": lambda: XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=10),
    "forest": lambda: RandomForestClassifier(5, max_depth=3, random_state=0),
    "tree": lambda: DecisionTreeClassifier(max_depth=3),
    "hardwood": lambda: hw.RobustGradientBoostingClassifier(n_estimators=60, eps=0.01),
    "hardwood's forest": lambda: hw.RobustRandomForestClassifier(
        n_estimators=7, max_depth=4, random_state=0
    ),
    "hardwood's tree": lambda: hw.RobustDecisionTreeClassifier(max_depth=4),
    "CatBoost, an output a class": lambda: catboost("MultiClass"),
    "CatBoost, each class alone": lambda: catboost("MultiClassOneVsAll"),
    "XGBoost, an output a class": lambda: SimpleNamespace(fit=fit_xgboost),
    "LightGBM, an output a class": lambda: SimpleNamespace(fit=fit_lightgbm),
    "LightGBM, each class alone": lambda: SimpleNamespace(
        fit=partial(fit_lightgbm, objective="multiclassova")
    ),
}


def catboost(loss):
    return CatBoostClassifier(
        iterations=8, depth=3, loss_function=loss, verbose=0, allow_writing_files=False
    )


def fit_xgboost(X, y):
    settings = {"objective": "multi:softprob", "num_class": 2, "max_depth": 3, "nthread": 1}
    booster = xgboost.train(settings, xgboost.DMatrix(X, y), 6)
    booster.predict_proba = lambda Z: booster.predict(xgboost.DMatrix(Z)).reshape(-1, 2)
    return booster


def fit_lightgbm(X, y, objective="multiclass"):
    settings = {"objective": objective, "num_class": 2, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y), 6)
    booster.predict_proba = lambda Z: booster.predict(Z) if len(Z) else np.empty((0, 2))
    return booster


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8])
def test_a_threshold_decides_as_the_probability_does(kind, threshold):
    X, y = table("imbalanced")
    X, y = X[:120], y[:120]
    model = MODELS[kind]().fit(X, y)
    label = (model.predict_proba(X)[:, 1] >= threshold).astype(int)
    certificate = hw.certify(model, X, y, 0.0, threshold=threshold)
    np.testing.assert_array_equal(certificate.status == "certified", label == y)
    found = hw.minimal_distance(model, X, label, threshold=threshold)
    there = np.isfinite(found.upper)
    decided = model.predict_proba(found.X_adv[there])[:, 1] >= threshold
    assert (decided != label[there]).all()
    attack = hw.find_adversarial(model, X[:20], label[:20], threshold=threshold, method="descent")
    decided = model.predict_proba(attack.X_adv[attack.success])[:, 1] >= threshold
    assert (decided != label[:20][attack.success]).all()
    curve = hw.certified_accuracy(model, X, y, [0], threshold=threshold)
    assert curve.certified_accuracy[0] == certificate.certified_accuracy


def test_a_threshold_takes_the_place_of_a_fixed_one():
    X, y = table("imbalanced")
    source = FixedThresholdClassifier(MODELS["forest"](), threshold=0.6).fit(X, y)
    label = (source.predict_proba(X)[:, 1] >= 0.2).astype(int)
    certificate = hw.certify(source, X, y, 0.0, threshold=0.2)
    np.testing.assert_array_equal(certificate.status == "certified", label == y)


def test_a_threshold_that_makes_no_sense_is_refused():
    X, y = table("imbalanced")
    model = GradientBoostingClassifier(n_estimators=3).fit(X, y)
    for threshold in (0, 1, -0.1, "a half", np.nan):
        with pytest.raises(ValueError, match="threshold must be a probability between 0 and 1"):
            hw.certify(model, X, y, 0.1, threshold=threshold)
    three = GradientBoostingClassifier(n_estimators=3).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="for two classes, but the model has 3: one probability"):
        hw.certify(three, X, np.arange(len(X)) % 3, 0.1, threshold=0.3)


def test_progress_shows_a_bar_or_logs(capsys, caplog, monkeypatch):
    X, y = table("imbalanced")
    model = GradientBoostingClassifier(n_estimators=5).fit(X, y)
    hw.certify(model, X[:30], y[:30], 0.1, progress=True)
    assert "30/30" in capsys.readouterr().err
    hw.certify(model, X[:30], y[:30], 0.1, progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(effort, "bar", effort.logged)
    with caplog.at_level(logging.INFO, logger="hardwood"):
        hw.certify(model, X[:30], y[:30], 0.1, progress=True)
    assert "30 of 30 rows done, 0 of them undecided" in caplog.text
