"""What we prove and find about a model holds in the library that made it."""

import numpy as np
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw


def xgboost(**settings):
    import xgboost as library

    return library.XGBClassifier(n_estimators=12, max_depth=4, n_jobs=1, **settings)


def xgboost_forest():
    import xgboost as library

    return library.XGBRFClassifier(n_estimators=12, max_depth=4, n_jobs=1)


def lightgbm(**settings):
    import lightgbm as library

    return library.LGBMClassifier(n_estimators=12, num_leaves=12, n_jobs=1, verbose=-1, **settings)


def catboost():
    import catboost as library

    return library.CatBoostClassifier(
        iterations=12, depth=4, verbose=False, allow_writing_files=False, thread_count=1
    )


MAKERS = {
    "xgboost": xgboost,
    "xgboost dart": lambda: xgboost(booster="dart", rate_drop=0.3),
    "xgboost forest": xgboost_forest,
    "lightgbm": lightgbm,
    "lightgbm forest": lambda: lightgbm(
        boosting_type="rf", subsample=0.5, subsample_freq=1, random_state=0
    ),
    "catboost": catboost,
    "scikit-learn tree": lambda: DecisionTreeClassifier(max_depth=6, random_state=0),
    "scikit-learn forest": lambda: RandomForestClassifier(12, max_depth=6, random_state=0),
    "scikit-learn extra trees": lambda: ExtraTreesClassifier(12, max_depth=6, random_state=0),
    "scikit-learn boosting": lambda: GradientBoostingClassifier(n_estimators=12, random_state=0),
    "scikit-learn histograms": lambda: HistGradientBoostingClassifier(
        max_iter=12, min_samples_leaf=5, random_state=0
    ),
    "scikit-learn adaboost": lambda: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=12, random_state=0
    ),
    "scikit-learn bagging": lambda: BaggingClassifier(
        DecisionTreeClassifier(max_depth=5), 12, random_state=0
    ),
    "pipeline of a scaler": lambda: make_pipeline(
        StandardScaler(), RandomForestClassifier(12, max_depth=6, random_state=0)
    ),
}


def make_rows(n_classes):
    """Imbalanced labels; half of the values are zero, the others above: a split parts them."""
    rng = np.random.default_rng(7)
    X = np.where(rng.random((500, 5)) < 0.5, 0.0, np.abs(rng.normal(size=(500, 5))).round(2))
    score = (X[:, 0] > 0) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=500)
    return X, np.searchsorted(np.quantile(score, [0.85, 0.95][: n_classes - 1]), score)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", MAKERS)
def test_certificates_and_examples_hold_in_the_source(kind, n_classes):
    X, y = make_rows(n_classes)
    source = MAKERS[kind]().fit(X, y)

    def fooled(rows, labels):
        if len(rows) == 0:
            return np.zeros(0, dtype=bool)
        return np.asarray(source.predict(rows)).ravel() != labels

    wrong = fooled(X, y)
    at_zero = hw.certify(source, X, y, 0.0)
    np.testing.assert_array_equal(at_zero.status == "certified", ~wrong)
    assert at_zero.certified_accuracy == np.mean(~wrong)

    distance = hw.minimal_distance(source, X[:120], y[:120])
    found = np.isfinite(distance.upper)
    assert found.any()
    assert fooled(distance.X_adv[found], y[:120][found]).all()

    nearly = hw.certify(source, X, y, 1e-7)
    broken = nearly.status != "certified"
    assert (nearly.status[broken] == "broken").all()
    assert fooled(nearly.X_adv[broken], y[broken]).all()
    assert np.abs(nearly.X_adv[broken] - X[broken]).max(initial=0) <= 1e-7
    if kind == "lightgbm" and n_classes == 2:  # its threshold just above zero is in reach
        assert (broken & ~wrong).any()
