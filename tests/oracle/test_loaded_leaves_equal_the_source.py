"""The same leaf in every tree, on the paper's data and where conversions go wrong.

Rows are the data's own and rows on thresholds, one float to each side. The last test holds the
cases that a well-known toolbox converts wrongly: a base score, an initial estimator, forests,
LightGBM, features outside of [0, 1].
"""

import importlib

import numpy as np
import pytest
from sklearn import ensemble
from threadpoolctl import threadpool_limits

import hardwood as hw
from samples import rows_around, table

N_TREES = 20


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


def xgboost_leaves(model, rows, trees):
    import xgboost

    return model.get_booster().predict(xgboost.DMatrix(rows), pred_leaf=True)


def lightgbm_leaves(model, rows, trees):
    # It counts leaves alone; ours lie behind the splits of their tree.
    return model.predict(rows, pred_leaf=True) + np.diff(trees.tree_start) // 2


def sklearn_leaves(model, rows, trees):
    return model.apply(rows).reshape(len(rows), -1)


def sources():
    few = {"n_estimators": N_TREES, "random_state": 0}
    yield "XGBClassifier", "xgboost", {**few, "n_jobs": 1}, xgboost_leaves
    yield "XGBRFClassifier", "xgboost", {**few, "n_jobs": 1}, xgboost_leaves
    yield "LGBMClassifier", "lightgbm", {**few, "n_jobs": 1, "verbose": -1}, lightgbm_leaves
    yield "RandomForestClassifier", "sklearn.ensemble", {**few, "max_depth": 8}, sklearn_leaves
    yield "ExtraTreesClassifier", "sklearn.ensemble", {**few, "max_depth": 8}, sklearn_leaves
    yield "GradientBoostingClassifier", "sklearn.ensemble", {**few, "max_depth": 4}, sklearn_leaves


@pytest.mark.parametrize(
    ("name", "library", "parameters", "leaves"),
    list(sources()),
    ids=[one[0] for one in sources()],
)
@pytest.mark.parametrize("data", ["breast_cancer", "diabetes", "mnist_2_vs_6", "ijcnn1"])
def test_leaf_by_leaf(data, name, library, parameters, leaves):
    module = importlib.import_module(library)
    X, y = table(data)
    model = getattr(module, name)(**parameters).fit(X, y)
    trees = hw.load_model(model)
    around = rows_around(trees, 1000, np.random.default_rng(0))
    rows = np.concatenate([X[:1000], around if "xgb" in library else np.nan_to_num(around)])
    np.testing.assert_array_equal(trees.apply(rows), leaves(model, rows, trees))
    probability = model.predict_proba(rows)
    decided = np.abs(probability[:, 1] - 0.5) > 1e-7  # beside ties, which are rounding
    np.testing.assert_array_equal(trees.predict(rows)[decided], model.predict(rows)[decided])


def whole_models():
    """Kinds whose leaves the source does not number as we do: the gate compares their margins."""
    few = {"n_estimators": 10, "random_state": 0}
    dart = {**few, "n_jobs": 1, "booster": "dart", "rate_drop": 0.3}
    drawn = {**few, "n_jobs": 1, "verbose": -1, "boosting_type": "rf"}
    drawn |= {"subsample": 0.5, "subsample_freq": 1}
    quiet = {"iterations": 10, "verbose": False, "allow_writing_files": False, "thread_count": 1}
    yield "XGBClassifier", "xgboost", dart
    yield "LGBMClassifier", "lightgbm", drawn
    yield "CatBoostClassifier", "catboost", quiet
    yield "DecisionTreeClassifier", "sklearn.tree", {"max_depth": 8, "random_state": 0}
    yield "HistGradientBoostingClassifier", "sklearn.ensemble", {"max_iter": 10}
    yield "AdaBoostClassifier", "sklearn.ensemble", few
    yield "BaggingClassifier", "sklearn.ensemble", {**few, "max_samples": 0.3}


@pytest.mark.parametrize(
    ("name", "library", "parameters"),
    list(whole_models()),
    ids=[f"{one[0]}-{one[1]}" for one in whole_models()],
)
@pytest.mark.parametrize("data", ["breast_cancer", "diabetes", "mnist_2_vs_6", "ijcnn1"])
def test_the_gate_opens_on_the_papers_data(data, name, library, parameters):
    module = importlib.import_module(library)
    X, y = table(data)
    model = getattr(module, name)(**parameters).fit(X, y)
    around = np.nan_to_num(rows_around(hw.load_model(model), 300, np.random.default_rng(0)))
    rows = np.concatenate([X[:500], around])
    trees = hw.load_model(model, rows)  # refuses where a margin differs
    apart = np.abs(model.predict_proba(rows)[:, 1] - 0.5) > 1e-7  # beside ties, which are rounding
    same = trees.predict(rows) == np.asarray(model.predict(rows)).ravel()
    assert apart.any()
    assert same[apart].all()


def test_the_cases_that_others_get_wrong():
    X, y = table("imbalanced")  # one row in ten is of class 1; values from -40 to 40
    assert 0.09 < y.mean() < 0.11
    assert np.abs(X).max() > 10
    import lightgbm
    import xgboost

    boosted = xgboost.XGBClassifier(n_estimators=N_TREES, n_jobs=1).fit(X, y)
    light = lightgbm.LGBMClassifier(n_estimators=N_TREES, n_jobs=1, verbose=-1).fit(X, y)
    initial = ensemble.GradientBoostingClassifier(n_estimators=N_TREES).fit(X, y)
    margins = {
        boosted: lambda rows: boosted.predict(rows, output_margin=True).astype(np.float64),
        light: lambda rows: light.predict(rows, raw_score=True),
        initial: initial.decision_function,
    }
    for model, margin in margins.items():
        trees = hw.load_model(model)
        rows = np.nan_to_num(rows_around(trees, 3000, np.random.default_rng(0)))
        for given in (X, rows):
            np.testing.assert_array_equal(trees.margin(given)[:, 0], margin(given))
            np.testing.assert_array_equal(trees.predict(given), model.predict(given))
        assert np.mean(trees.predict(X) != y) == np.mean(model.predict(X) != y) < 0.06
    for kind in (ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier):
        # An odd number of pure votes has no ties, so that the order of adding does not matter.
        forest = kind(21, random_state=0).fit(X, y)
        trees = hw.load_model(forest)
        np.testing.assert_array_equal(trees.predict(X), forest.predict(X))
        np.testing.assert_array_equal(trees.apply(X), forest.apply(X))
