"""Pipelines of scalers and trees: the same labels for rows as they are before scaling."""

import importlib

import numpy as np
import pytest
import xgboost
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import hardwood as hw
from samples import rows_around, table

SCALERS = {
    "standard": [StandardScaler()],
    "mean only": [StandardScaler(with_std=False)],
    "min max": [MinMaxScaler((-3, 1))],
    "clipped": [MinMaxScaler(clip=True)],
    "max abs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "several": [RobustScaler(), "passthrough", MinMaxScaler(clip=True), StandardScaler()],
    "none": ["passthrough"],
}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


def models():
    yield HistGradientBoostingClassifier(max_iter=10)
    yield GradientBoostingClassifier(n_estimators=10)
    yield hw.RobustGradientBoostingClassifier(n_estimators=5, eps=0.02)
    for library, name in (("xgboost", "XGBClassifier"), ("lightgbm", "LGBMClassifier")):
        yield getattr(importlib.import_module(library), name)(n_estimators=10, n_jobs=1)


@pytest.mark.parametrize("kind", SCALERS)
def test_rows_are_taken_as_they_are_before_scaling(kind):
    X, y = table("imbalanced")
    X = X * [1, 1e-3, 1e6, 7, 0.1, 3] + [0, 5, 1e7, -3, 0, 1e-9]
    for model in models():
        pipeline = make_pipeline(*SCALERS[kind], model).fit(X, y)
        trees = hw.load_model(pipeline, X=X)
        rows = np.nan_to_num(rows_around(trees, 3000, np.random.default_rng(0)), nan=1.0)
        rows = np.clip(rows, -1e20, 1e20)
        np.testing.assert_array_equal(trees.predict(rows), pipeline.predict(rows))
        if hasattr(model, "decision_function"):
            np.testing.assert_array_equal(
                trees.margin(rows)[:, 0], pipeline.decision_function(rows)
            )


def test_missing_values_and_names_go_through():
    import pandas

    X, y = table("missing")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=10))
    trees = hw.load_model(pipeline.fit(frame, y), X=frame)
    assert trees.feature_names == list("abcdef")
    np.testing.assert_array_equal(trees.margin(frame)[:, 0], pipeline.decision_function(frame))


def test_distances_are_in_the_units_of_the_data():
    """The example of a distance fools the pipeline itself, and one double less does not."""
    X, y = table("imbalanced")
    X = X * [1, 1e-3, 1e3, 7, 0.1, 3]
    pipeline = make_pipeline(
        StandardScaler(), RandomForestClassifier(5, max_depth=4, random_state=0)
    ).fit(X, y)
    threat = hw.Threat([1, 1e-3, 1e3, 7, 0.1, 3])
    found = hw.minimal_distance(pipeline, X[:50], y[:50], threat=threat)
    broken = np.isfinite(found.upper)
    assert broken.any()
    assert (pipeline.predict(found.X_adv[broken]) != y[:50][broken]).all()
    back = np.nextafter(found.X_adv[broken], X[:50][broken])
    assert (pipeline.predict(back) == y[:50][broken])[found.status[broken] == "exact"].any()


def test_a_falling_scale_swaps_the_sides():
    X, y = table("imbalanced")
    pipeline = make_pipeline(MinMaxScaler(), RandomForestClassifier(3, max_depth=3)).fit(X, y)
    pipeline[0].scale_[2] *= -1
    trees = hw.load_model(pipeline)
    rows = np.nan_to_num(rows_around(trees, 1000, np.random.default_rng(0)), nan=1.0)
    np.testing.assert_array_equal(trees.predict(rows), pipeline.predict(rows))


def doubled(X):
    return X * 2


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PCA(2), 'step PCA, which mixes columns, .* black box, .* method="cheng"'),
        (PolynomialFeatures(), "step PolynomialFeatures, which mixes columns"),
        (Normalizer(), "step Normalizer, which mixes columns"),
        (SplineTransformer(), "step SplineTransformer, which load_model cannot look through; it"),
        (FunctionTransformer(doubled), "'doubled', of which load_model does not know .*monotone"),
        (FunctionTransformer(np.square), "FunctionTransformer with 'square', of which"),
    ],
)
def test_what_cannot_be_looked_through_is_refused_by_name(step, words):
    X, y = table("imbalanced")
    forest = RandomForestClassifier(3, max_depth=3)
    with pytest.raises(hw.UnsupportedModelError, match=words):
        hw.load_model(make_pipeline(step, forest).fit(X, y))


def test_a_pipeline_that_is_not_fitted_says_so():
    forest = RandomForestClassifier(3, max_depth=3)
    with pytest.raises(ValueError, match="Pipeline's StandardScaler is not fitted yet; call fit"):
        hw.load_model(make_pipeline(StandardScaler(), forest))


def test_powers_that_overflow_far_out():
    rng = np.random.default_rng(0)
    X = np.stack([1 - rng.random(200) ** 8 / 2, rng.normal(size=200)], axis=1)
    y = (X[:, 0] > 0.95).astype(int)
    forest = RandomForestClassifier(n_estimators=5, max_depth=3, random_state=0)
    model = make_pipeline(PowerTransformer(), forest).fit(X, y)
    assert model[0].lambdas_[0] > 10
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="infinity"):
        model.predict([[1e30, 0.0]])
    trees = hw.load_model(model)
    ((column, first, end),) = trees.columns.refused
    assert column == 0
    assert 1e10 < first < 1e30
    assert end == np.inf
    rows = np.concatenate([X, rows_around(trees, 100, rng)])
    rows = rows[~np.isnan(rows).any(axis=1)]
    np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("sign", "before"),
    [(-1, []), (-1, [StandardScaler(with_std=False)]), (1, [FunctionTransformer(np.negative)])],
)
def test_powers_that_overflow_at_one(sign, before):
    """The row to ask the steps with is chosen inside of what they take."""
    rng = np.random.default_rng(0)
    X = np.stack([sign * 1e-4 * rng.exponential(size=90), rng.normal(size=90)], axis=1)
    y = (np.abs(X[:, 0]) > 1e-4).astype(int) ^ (X[:, 1] > 0)
    X[::7, 1] = np.nan
    last = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)
    model = make_pipeline(*before, PowerTransformer(), last).fit(X, y)
    assert model[-2].lambdas_[0] > 1024
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="infinity"):
        model.predict([[-sign, 0.0]])
    trees = hw.load_model(model)
    assert trees.takes_missing
    assert {column for column, _, _ in trees.columns.refused} == {0}
    rows = rows_around(trees, 300, rng)
    for column, start, end in trees.columns.refused:
        rows = rows[~((rows[:, column] >= start) & (rows[:, column] < end))]
    rows = np.concatenate([X, rows[~np.isnan(rows[:, 0])]])
    assert len(rows) > 200
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))


@pytest.mark.parametrize("method", ["papernot", "descent", "symbolic", "exact"])
def test_rows_that_steps_make_infinite_are_right_where_the_pipeline_is(method):
    def steep(X):
        return np.asarray(X) * 1e300

    steep.monotone = "rising"
    X = 1e-300 * np.random.default_rng(0).normal(size=(90, 2))
    one = xgboost.XGBClassifier(n_estimators=1, max_depth=2)
    model = make_pipeline(FunctionTransformer(steep), one).fit(X, (X[:, 0] > 0).astype(int))
    with np.errstate(over="ignore"):
        rows = np.array([[1e10, 0.0], [-1e10, 0.0], [1e-300, 0.0]])
        assert np.isinf(model[:-1].transform(rows)).any(axis=1).tolist() == [True, True, False]
        label = model.predict(rows)
        found = hw.find_adversarial(model, rows, label, method=method, norm=2)
        assert (found.status == "fooled").all()
        assert (model.predict(found.X_adv) != label).all()
        wrong = hw.find_adversarial(model, rows, 1 - label, method=method, norm=2)
        assert (hw.minimal_distance(model, rows, label).status == "exact").all()
        assert (hw.minimal_distance(model, rows, 1 - label).status == "misclassified").all()
        assert (hw.certify(model, rows, 1 - label, 0.1).reason == "misclassified").all()
    assert (wrong.status == "misclassified").all()


@pytest.mark.parametrize("method", ["papernot", "descent", "exact"])
def test_examples_that_the_last_step_refuses_do_not_count(method):
    """A tree of scikit-learn takes no number beyond float32."""

    def leap(X, top):
        return np.where(np.asarray(X) >= 1, top, X)

    leap.monotone = "rising"
    X = np.linspace(0, 2, 40)[:, None]
    leaping = FunctionTransformer(leap, kw_args={"top": 3.0})
    model = make_pipeline(leaping, DecisionTreeClassifier()).fit(X, X[:, 0] >= 1)
    rows, label = X[:10], model.predict(X[:10])
    assert (hw.find_adversarial(model, rows, label, method=method).status == "fooled").all()
    leaping.kw_args["top"] = 1e40
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large for dtype"):
        model.predict([[1.0]])
    assert not hw.find_adversarial(model, rows, label, method=method).success.any()


def test_steps_that_refuse_the_row_to_start_from_are_refused_by_it():
    def small(X):
        if (np.asarray(X) > 0.5).any():
            raise ValueError("Nothing above a half, please.")
        return X

    small.monotone = "rising"
    X, y = table("imbalanced")
    X = X / X.max() / 2
    model = make_pipeline(FunctionTransformer(small), RandomForestClassifier(3, max_depth=3))
    words = r"differ in one column from \{0: 1.0, .* refuses \(Nothing above a half, please.\)"
    with pytest.raises(hw.UnsupportedModelError, match=words):
        hw.load_model(model.fit(X, y))
