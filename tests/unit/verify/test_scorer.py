"""Scorers of what is proven, where scikit-learn asks for scorers."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, minmax_scale

import hardwood as hw

X, Y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)[:, :8]
TREE = hw.RobustDecisionTreeClassifier(max_depth=3, eps=0.05)


def test_figures_are_those_of_the_certificate():
    model = TREE.fit(X, Y)
    safe = hw.certify(model, X, Y, 0.05).status == "certified"
    recall, specificity = safe[Y == 1].mean(), safe[Y == 0].mean()
    precision = (safe & (Y == 1)).sum() / ((safe & (Y == 1)) | (~safe & (Y == 0))).sum()
    expected = {
        "accuracy": safe.mean(),
        "recall": recall,
        "specificity": specificity,
        "balanced_accuracy": (recall + specificity) / 2,
        "precision": precision,
        "f1": 2 * precision * recall / (precision + recall),
    }
    for metric, value in expected.items():
        scorer = hw.make_certified_scorer(0.05, metric)
        assert scorer(model, X, Y) == pytest.approx(value), metric
    heavy = np.where(Y == 1, 3.0, 1.0)
    weighted = hw.make_certified_scorer(0.05)(model, X, Y, sample_weight=heavy)
    assert weighted == pytest.approx(np.average(safe, weights=heavy))


def test_a_search_inside_a_pipeline_picks_by_what_is_proven():
    steps = make_pipeline(MinMaxScaler(), TREE)
    raw = X * 50  # the threat is about these columns
    search = GridSearchCV(
        steps,
        {"robustdecisiontreeclassifier__eps": [0, 0.1]},
        scoring=hw.make_certified_scorer(hw.Threat(5)),
        cv=3,
        n_jobs=2,
    ).fit(raw, Y)
    assert search.best_params_ == {"robustdecisiontreeclassifier__eps": 0.1}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = hw.certify(search.best_estimator_, raw, Y, hw.Threat(5)).certified_accuracy
    assert (
        best
        > hw.certify(
            steps.set_params(robustdecisiontreeclassifier__eps=0).fit(raw, Y), raw, Y, hw.Threat(5)
        ).certified_accuracy
    )
    plain = GridSearchCV(steps, {"robustdecisiontreeclassifier__eps": [0, 0.1]}, cv=3).fit(raw, Y)
    assert plain.best_params_ == {"robustdecisiontreeclassifier__eps": 0}


def test_cross_validation_of_many_classes():
    rows, label = load_wine(return_X_y=True)
    rows = minmax_scale(rows)
    for metric in ("accuracy", "balanced_accuracy"):
        scorer = hw.make_certified_scorer(0.05, metric)
        assert (cross_val_score(TREE, rows, label, scoring=scorer, cv=3) > 0.3).all()
    with pytest.raises(ValueError, match="the second of two classes, but y has 3"):
        hw.make_certified_scorer(0.05, "recall")(TREE.fit(rows, label), rows, label)


@pytest.mark.parametrize("inner", ["certified", "exact"])
def test_early_stopping_by_what_is_proven(inner):
    scorer = hw.make_certified_scorer(0.05, "balanced_accuracy")
    model = hw.RobustGradientBoostingClassifier(
        eps=0.05,
        inner=inner,
        n_estimators=30,
        max_depth=2,
        early_stopping=True,
        n_iter_no_change=3,
        scoring=scorer,
    ).fit(X[:400], Y[:400], X_val=X[400:], y_val=Y[400:])
    history = model.evals_result_["validation"]["score"]
    assert max(history) == pytest.approx(scorer(model, X[400:], Y[400:]))
    assert model.n_estimators_ == int(np.argmax(history)) + 1


def test_unknown_words_and_models_are_refused():
    with pytest.raises(ValueError, match=r"metric must be one of .* got metric='auc'"):
        hw.make_certified_scorer(0.05, "auc")
    odd = make_pipeline(FunctionTransformer(np.sin), TREE).fit(X, Y)
    with pytest.raises(hw.UnsupportedModelError, match="FunctionTransformer"):
        hw.make_certified_scorer(0.05)(odd, X, Y)


def test_a_threshold_of_the_scorer_is_that_of_the_certificate():
    model = hw.RobustGradientBoostingClassifier(eps=0.05, n_estimators=5, max_depth=3).fit(X, Y)
    recalls = []
    for threshold in (0.3, 0.7):
        scorer = hw.make_certified_scorer(0.05, "recall", threshold=threshold)
        safe = hw.certify(model, X, Y, 0.05, threshold=threshold).status == "certified"
        recalls.append(scorer(model, X, Y))
        assert recalls[-1] == safe[Y == 1].mean()
        assert np.isfinite(cross_val_score(model, X, Y, cv=2, scoring=scorer)).all()
    assert recalls[0] > recalls[1]
    with pytest.raises(ValueError, match="between 0 and 1, both excluded, got threshold=1"):
        hw.make_certified_scorer(0.05, threshold=1.0)(model, X, Y)
