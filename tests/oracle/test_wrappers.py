"""Thresholds, calibrations and searches around a model: the label is the wrapper's own."""

import numpy as np
import pytest
import sklearn
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits
from xgboost import XGBClassifier

import hardwood as hw
from pipelines import around, credit, pipeline
from samples import rows_around, table

MODELS = {
    "XGBoost": lambda: XGBClassifier(n_estimators=10, max_depth=4, n_jobs=1),
    "LightGBM": lambda: LGBMClassifier(n_estimators=10, num_leaves=8, n_jobs=1, verbose=-1),
    "forest": lambda: RandomForestClassifier(5, max_depth=4, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=10),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=10),
    "AdaBoost": lambda: AdaBoostClassifier(n_estimators=10),
    "pipeline": lambda: make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=9)),
}

# A threshold finds its way between two sums, a calibration does not.
OF_TWO_SUMS = {
    "our forest": lambda: hw.RobustRandomForestClassifier(
        n_estimators=7, eps=0, max_depth=4, random_state=0
    ),
    "CatBoost": lambda: CatBoostClassifier(
        iterations=8, depth=3, loss_function="MultiClass", verbose=0, allow_writing_files=False
    ),
}

WRAPPERS = {
    "threshold": lambda m: FixedThresholdClassifier(m, threshold=0.3),
    "threshold of the first class": lambda m: FixedThresholdClassifier(
        m, threshold=0.6, pos_label=0, response_method="predict_proba"
    ),
    "tuned threshold": lambda m: TunedThresholdClassifierCV(m, cv=2, thresholds=20),
    "sigmoid": lambda m: CalibratedClassifierCV(m, ensemble=False, cv=2),
    "isotonic": lambda m: CalibratedClassifierCV(m, ensemble=False, cv=2, method="isotonic"),
    "threshold of a calibration": lambda m: FixedThresholdClassifier(
        CalibratedClassifierCV(m, ensemble=False, cv=2), threshold=0.2
    ),
    "grid": lambda m: GridSearchCV(m, {}, cv=2),
    "random": lambda m: RandomizedSearchCV(m, {}, n_iter=1, cv=2),
    "halving": lambda m: HalvingGridSearchCV(m, {}, cv=2),
}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_labels_are_those_of_the_wrapper(wrapper):
    X, y = table("imbalanced")
    for name, model in MODELS.items():
        source = WRAPPERS[wrapper](model()).fit(X, y)
        trees = hw.load_model(source, X=X)
        rows = np.nan_to_num(rows_around(trees, 1000, np.random.default_rng(0)), nan=1.0)
        for some in (X, np.clip(rows, -1e20, 1e20)):
            np.testing.assert_array_equal(trees.predict(some), source.predict(some), err_msg=name)


@pytest.mark.parametrize("name", OF_TWO_SUMS)
def test_a_threshold_around_two_sums(name):
    X, y = table("imbalanced")
    for wrapper in ("threshold", "threshold of the first class", "tuned threshold"):
        source = WRAPPERS[wrapper](OF_TWO_SUMS[name]()).fit(X, y)
        trees = hw.load_model(source, X=X)
        assert trees.n_outputs == 2
        rows = np.clip(rows_around(trees, 1000, np.random.default_rng(0)), -1e20, 1e20)
        np.testing.assert_array_equal(
            trees.predict(np.nan_to_num(rows)), source.predict(np.nan_to_num(rows))
        )
    with pytest.raises(hw.UnsupportedModelError, match=r"each of two classes .* are calibrated"):
        hw.load_model(WRAPPERS["sigmoid"](OF_TWO_SUMS[name]()).fit(X, y))


def test_a_threshold_on_a_difference_of_two_sums_is_refused():
    X, y = table("imbalanced")
    source = FixedThresholdClassifier(
        OF_TWO_SUMS["our forest"](), threshold=0.1, response_method="decision_function"
    ).fit(X, y)
    with pytest.raises(hw.UnsupportedModelError, match='set response_method="predict_proba"'):
        hw.load_model(source)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_wrapper_that_gives_every_row_one_label_loads_without_warnings():
    X, y = table("imbalanced")
    frozen = FrozenEstimator(GradientBoostingClassifier(n_estimators=5).fit(X, y))
    for source in (
        FixedThresholdClassifier(frozen, threshold=1.5),
        CalibratedClassifierCV(frozen, ensemble=False, method="isotonic"),
    ):
        source.fit(X, 1 - y)
        assert len(set(source.predict(X))) == 1
        found = hw.certify(source, X[:9], source.predict(X[:9]), 1.0)
        assert found.certified_accuracy == 1


def test_a_calibration_that_turns_a_model_around_is_followed():
    X, y = table("imbalanced")
    frozen = FrozenEstimator(GradientBoostingClassifier(n_estimators=5).fit(X, y))
    source = CalibratedClassifierCV(frozen, ensemble=False).fit(X, 1 - y)
    assert source.calibrated_classifiers_[0].calibrators[0].a_ > 0
    trees = hw.load_model(source)
    np.testing.assert_array_equal(trees.predict(X), source.predict(X))


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="scikit-learn has had no temperature before 1.8",
)
def test_a_temperature_is_looked_through():
    """It overflows at the largest floats, and trains the model inside on numbers of the classes."""
    X, y = table("imbalanced")
    names = np.array(["bad", "good"])
    for name, model in MODELS.items():
        source = CalibratedClassifierCV(model(), ensemble=False, cv=2, method="temperature")
        source.fit(X, names[y])
        trees = hw.load_model(source, X=X)
        np.testing.assert_array_equal(trees.predict(X), source.predict(X), err_msg=name)
        found = hw.certify(source, X[:20], names[y[:20]], 0.0, threshold=0.3)
        second = source.predict_proba(X[:20])[:, 1] >= 0.3
        right = names[second.astype(int)] == names[y[:20]]
        np.testing.assert_array_equal(found.status == "certified", right, err_msg=name)


def test_a_wrapper_of_a_pipeline_takes_its_frames():
    frame, y = credit()
    inner = pipeline("imputed, told", "one-hot", "XGBoost")
    source = FixedThresholdClassifier(inner, threshold=0.35).fit(frame, y)
    trees = hw.load_model(source, X=frame)
    rows = around(trees, frame)
    np.testing.assert_array_equal(trees.predict(rows), source.predict(rows))


def test_what_is_no_sum_of_trees_is_refused_by_name():
    X, y = table("imbalanced")
    tree = MODELS["gradient boosting"]()
    with pytest.raises(hw.UnsupportedModelError, match=r"averages 2 models, .* Set ensemble=False"):
        hw.load_model(CalibratedClassifierCV(tree, cv=2, ensemble=True).fit(X, y))
    with pytest.raises(hw.UnsupportedModelError, match="through TransformedTargetRegressor, which"):
        hw.load_model(TransformedTargetRegressor(DecisionTreeRegressor(max_depth=2)).fit(X, y))
    with pytest.raises(hw.UnsupportedModelError, match=r'VotingClassifier, .* method="cheng"'):
        hw.load_model(VotingClassifier([("a", tree), ("b", tree)]).fit(X, y))
    with pytest.raises(ValueError, match="GridSearchCV is not fitted yet; call fit first"):
        hw.load_model(GridSearchCV(tree, {}))
    with pytest.raises(ValueError, match="GridSearchCV has refit=False and so no model"):
        hw.load_model(GridSearchCV(tree, {}, refit=False, cv=2).fit(X, y))
    with pytest.raises(ValueError, match="FixedThresholdClassifier is not fitted yet; call fit"):
        hw.load_model(FixedThresholdClassifier(tree))
    three = CalibratedClassifierCV(tree, cv=2, ensemble=False).fit(X, np.arange(len(X)) % 3)
    with pytest.raises(hw.UnsupportedModelError, match="has 3 classes, which it scales one by one"):
        hw.load_model(three)
