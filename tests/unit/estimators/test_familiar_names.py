"""Names that users of XGBoost and scikit-learn reach for."""

import numpy as np
import pandas as pd
import pytest
import shap
import xgboost
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, minmax_scale

import hardwood as hw

X, Y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)


def boosting(**parameters):
    return hw.RobustGradientBoostingClassifier(
        **{"eps": 0.05, "n_estimators": 5, "max_depth": 3, "random_state": 0, **parameters}
    )


@pytest.mark.parametrize("inner", ["certified", "exact"])
def test_eval_set_reports_on_every_pair_and_stops_by_the_last(inner):
    model = boosting(inner=inner).fit(X[:300], Y[:300], eval_set=[(X[300:400], Y[300:400])] * 2)
    history = model.evals_result_
    assert list(history) == ["train", "validation_0", "validation_1"]
    assert history["validation_0"] == history["validation_1"]
    same = boosting(inner=inner).fit(X[:300], Y[:300], X_val=X[300:400], y_val=Y[300:400])
    assert same.evals_result_["validation"] == history["validation_0"]
    one = boosting(inner=inner).fit(X[:300], Y[:300], eval_set=(X[300:], Y[300:]))
    assert list(one.evals_result_) == ["train", "validation_0"]
    # The first set would go on: it is the training data.
    stopping = {
        "early_stopping": True,
        "n_iter_no_change": 2,
        "n_estimators": 60,
        "learning_rate": 0.3,
    }
    pairs = [(X[:300], Y[:300]), (X[300:], Y[300:])]
    stopped = boosting(inner=inner, **stopping).fit(X[:300], Y[:300], eval_set=pairs)
    alone = boosting(inner=inner, **stopping).fit(X[:300], Y[:300], eval_set=pairs[1:])
    assert stopped.n_estimators_ == alone.n_estimators_ < 60


def test_eval_set_is_checked():
    for wrong in ("data", [X], [(X, Y, Y)]):
        with pytest.raises(ValueError, match=r"eval_set must be a list of pairs \(X, y\)"):
            boosting().fit(X, Y, eval_set=wrong)
    with pytest.raises(ValueError, match="X_val and eval_set both give validation rows"):
        boosting().fit(X, Y, X_val=X, y_val=Y, eval_set=[(X, Y)])
    with pytest.raises(ValueError, match=r"eval_set\[1\] cannot be used: y contains 7"):
        boosting().fit(X, Y, eval_set=[(X, Y), (X, Y + 7)])
    with pytest.raises(ValueError, match=r"eval_set\[0\] cannot be used: X has 2 features"):
        hw.RobustGradientBoostingRegressor(eps=0).fit(X, Y, eval_set=[(X[:, :2], Y)])


def test_parameters_of_the_threat_are_set_one_by_one():
    model = boosting(threat=hw.Threat(0.1, low=0, high=1))
    model.set_params(threat__eps=0.2, n_estimators=7)
    assert model.threat == hw.Threat(0.2, low=0, high=1)
    assert model.n_estimators == 7
    assert boosting().set_params(threat__low=0).threat == hw.Threat(0.05, low=0)
    assert clone(model).threat == model.threat
    with pytest.raises(ValueError, match="A threat has no 'size'; it has eps, norm"):
        model.set_params(threat__size=1)
    search = GridSearchCV(
        make_pipeline(MinMaxScaler(), hw.RobustDecisionTreeClassifier(max_depth=3)),
        {"robustdecisiontreeclassifier__threat__eps": [0, 0.1]},
        cv=2,
    )
    assert "robustdecisiontreeclassifier__threat__eps" in search.fit(X, Y).best_params_


ALL = [
    boosting(class_weight="balanced"),
    boosting(inner="exact", callbacks=[print], early_stopping=True),
    hw.RobustGradientBoostingRegressor(eps=0.05, n_estimators=5, loss="huber"),
    hw.RobustDecisionTreeClassifier(threat=hw.Threat(0.05, low=0), max_depth=3),
    hw.RobustRandomForestClassifier(eps=0.05, n_estimators=5, max_depth=3, random_state=0),
]


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_a_saved_file_comes_back_as_an_estimator(model, tmp_path, capsys):
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).assign(
        d=np.where(X[:, 3] > 0.3, "much", "little")
    )
    model = clone(model).fit(frame, Y)
    model.save_model(tmp_path / "model.json")
    again = type(model).load_model(tmp_path / "model.json")
    assert (again.predict(frame) == model.predict(frame)).all()
    filled = type(model)(max_depth=1).fit(
        X, Y
    )  # as XGBoost's method: it fills what it is called on
    assert filled.load_model(tmp_path / "model.json") is filled
    assert (filled.predict(frame) == model.predict(frame)).all()
    assert (filled.feature_names_in_ == model.feature_names_in_).all()
    assert filled.max_depth == model.max_depth
    if hasattr(model, "predict_proba"):
        assert (again.predict_proba(frame) == model.predict_proba(frame)).all()
        assert (again.classes_ == model.classes_).all()
    assert (again.feature_names_in_ == model.feature_names_in_).all()
    assert (again.feature_importances_ == model.feature_importances_).all()
    assert again.max_depth == model.max_depth
    other = hw.RobustDecisionTreeClassifier if model is not ALL[3] else type(ALL[0])
    if type(model) is not other:
        with pytest.raises(hw.ModelFileError, match=f"holds a model of {type(model).__name__}"):
            other.load_model(tmp_path / "model.json")


def test_trees_of_boosted_models_are_written_and_drawn():
    frame = pd.DataFrame({"job": ["cook", "pilot", "nurse", "cook"] * 50, "age": range(200)})
    y = (frame["job"] == "cook") ^ (frame["age"] > 150)
    model = boosting(eps=0).fit(frame, y)
    text = model.export_text(tree_index=0)
    assert "job in {cook}" in text or "job not in {cook}" in text or "job in {nurse, pilot}" in text
    assert model.export_text(tree_index=3) != text
    with pytest.raises(ValueError, match="tree_index must be 0 to 4, got tree_index=5"):
        model.export_text(tree_index=5)
    drawn = [text.get_text() for text in model.plot_tree(tree_index=1).texts]
    assert any("age <" in words or "job" in words for words in drawn)
    bars = model.plot_importance()
    assert {label.get_text() for label in bars.get_yticklabels()} == {"age", "job"}


@pytest.mark.parametrize("kind", ["two", "three", "regression"])
def test_shap_explains_what_xgboost_gets(kind):
    rows, label = load_wine(return_X_y=True)
    if kind == "two":
        model, rows = boosting().fit(X, Y), X
    elif kind == "three":
        model = boosting(eps=0).fit(rows, label)
    else:
        model = hw.RobustGradientBoostingRegressor(eps=0, n_estimators=5).fit(rows, rows[:, 0])
    booster = model.to_xgboost()
    margin = model.trees_.margin(rows[:20])
    theirs = booster.predict(xgboost.DMatrix(rows[:20]), output_margin=True).reshape(margin.shape)
    assert (theirs == margin).all()
    explainer = shap.TreeExplainer(booster)
    values = np.asarray(explainer.shap_values(rows[:20]))
    total = values.sum(axis=1) + explainer.expected_value
    assert total.reshape(margin.shape) == pytest.approx(margin, abs=1e-4)
