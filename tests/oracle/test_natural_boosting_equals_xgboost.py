"""Natural boosting against XGBoost: ``eps=0`` gives its own trees.

Data without ties, so that the best split is one. Splits must be equal, thresholds to the last bit.
Leaves agree to float32: XGBoost adds up gradients in another order and weighs them in float32.
"""

import json

import numpy as np
import pytest
import xgboost as xgb

import hardwood as hw

N_ROUNDS, DEPTH, RATE = 6, 4, 0.3


def make_data(seed=1, n=500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    signal = X[:, 0] * X[:, 1] + X[:, 2] + np.sin(2 * X[:, 3])
    return X, signal, rng


def train_xgboost(X, y, weight=None, **params):
    matrix = xgb.DMatrix(X, y, weight=weight)
    params = {"tree_method": "exact", "max_depth": DEPTH, "eta": RATE, "nthread": 1, **params}
    return xgb.train(params, matrix, N_ROUNDS)


def assert_same_trees(trees, booster):
    theirs = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    assert trees.n_trees == len(theirs)
    for k, their in enumerate(theirs):
        start = trees.tree_start[k]
        open_nodes = [(0, 0)]
        while open_nodes:
            node, mine = open_nodes.pop()
            at = start + mine
            if their["left_children"][node] == -1:
                assert trees.feature[at] == -1
                value = their["split_conditions"][node]
                assert trees.value[at, 0] == pytest.approx(value, rel=1e-4, abs=1e-6)
                continue
            assert trees.feature[at] == their["split_indices"][node]
            left, right = their["left_children"][node], their["right_children"][node]
            if trees.threshold[at] == np.finfo(np.float32).min:
                # Missing against present: XGBoost's threshold lies past the present values.
                if not their["default_left"][node]:
                    left, right = right, left
            else:
                assert trees.threshold[at] == np.float32(their["split_conditions"][node])
            assert 2 * trees.gain[at] == pytest.approx(their["loss_changes"][node], rel=1e-3)
            open_nodes += [(left, trees.left[at]), (right, trees.right[at])]


def fit(model, X, y, weight=None, **params):
    settings = {"n_estimators": N_ROUNDS, "max_depth": DEPTH, "learning_rate": RATE, **params}
    model = model(eps=0, method="exact", **settings)
    return model.fit(X, y, weight)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {}),
        ({"base_score": 0.3}, {"base_score": 0.3}),
        ({"reg_alpha": 0.5, "reg_lambda": 3.0}, {"reg_alpha": 0.5, "reg_lambda": 3.0}),
        ({"min_child_weight": 8}, {"min_child_weight": 8}),
        ({"monotonic_cst": [1, 0, 1, 0, -1]}, {"monotone_constraints": "(1,0,1,0,-1)"}),
        ({"inner": "exact"}, {}),
    ],
)
def test_two_classes(ours, theirs):
    X, signal, rng = make_data()
    y = signal + rng.normal(size=len(X)) > 0
    model = fit(hw.RobustGradientBoostingClassifier, X, y, **ours)
    booster = train_xgboost(X, y, objective="binary:logistic", **theirs)
    assert_same_trees(model.trees_, booster)
    theirs = booster.predict(xgb.DMatrix(X), output_margin=True)
    assert np.abs(model.decision_function(X) - theirs).max() < 1e-5


def test_two_classes_with_missing_values_and_weights():
    X, signal, rng = make_data(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.random(len(X)) + 0.5
    y = signal + rng.normal(size=len(X)) > 0
    model = fit(hw.RobustGradientBoostingClassifier, X, y, weight, base_score=0.5)
    booster = train_xgboost(X, y, weight, objective="binary:logistic", base_score=0.5)
    assert_same_trees(model.trees_, booster)


def test_many_classes():
    X, signal, _ = make_data(3)
    y = np.digitize(signal, [-1, 1])
    model = fit(hw.RobustGradientBoostingClassifier, X, y)
    booster = train_xgboost(X, y, objective="multi:softprob", num_class=3)
    assert_same_trees(model.trees_, booster)
    assert np.abs(model.predict_proba(X) - booster.predict(xgb.DMatrix(X))).max() < 1e-5


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {"objective": "reg:squarederror"}),
        (
            {"loss": "huber", "huber_slope": 0.7, "base_score": 0.1},
            {"objective": "reg:pseudohubererror", "huber_slope": 0.7, "base_score": 0.1},
        ),
        ({"loss": "poisson"}, {"objective": "count:poisson"}),
    ],
)
def test_regression(ours, theirs):
    X, signal, rng = make_data(4)
    y = rng.poisson(np.exp(signal / 3)) if ours.get("loss") == "poisson" else signal
    model = fit(hw.RobustGradientBoostingRegressor, X, y, **ours)
    booster = train_xgboost(X, y, **theirs)
    assert_same_trees(model.trees_, booster)
    assert np.abs(model.predict(X) - booster.predict(xgb.DMatrix(X))).max() < 1e-5
