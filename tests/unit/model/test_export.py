"""Our models in the tools of others."""

import numpy as np
import pytest

import hardwood as hw
from samples import random_trees, rows_around

KINDS = {
    "binary": {"link": "logistic", "base": np.float32([-0.7])},
    "regression": {"base": np.float32([0.1])},
    "multi-class": {
        "n_outputs": 3,
        "n_trees": 7,
        "link": "softmax",
        "base": np.float32([0.3, 0, -2]),
    },
    "shares": {"n_outputs": 3, "n_values": 3, "link": "share"},
    "double": {"dtype": "f8", "link": "logistic"},
    "one leaf": {"depth": 0, "n_trees": 2},
}


@pytest.fixture(params=KINDS)
def trees(request):
    return random_trees(np.random.default_rng(0), n_features=3, **KINDS[request.param])


def test_to_xgboost_gives_the_same_margins(trees):
    import xgboost

    X = rows_around(trees, 2000, np.random.default_rng(1))
    if trees.x_dtype == np.float64:
        X = X.astype(np.float32).astype(np.float64)
    margin = trees.to_xgboost().predict(xgboost.DMatrix(X), output_margin=True)
    tolerance = 1e-5 if trees.x_dtype == np.float64 else 0  # values are rounded to float32
    np.testing.assert_allclose(margin.reshape(len(X), -1), trees.margin(X), rtol=0, atol=tolerance)


def test_to_lightgbm_finds_the_same_leaves(trees):
    """Every row of doubles, also those that float32 rounds across a threshold."""
    import lightgbm

    booster = lightgbm.Booster(model_str=trees.to_lightgbm())
    X = rows_around(trees, 2000, np.random.default_rng(1))
    X[np.abs(X) < 1e-30] = 1.0  # LightGBM takes these for zero
    margin = booster.predict(X, raw_score=True).reshape(len(X), -1)
    # Ours adds in float32, LightGBM in double; a wrong leaf would be about 1 away.
    np.testing.assert_allclose(margin, trees.margin(X), rtol=0, atol=1e-5)
    np.testing.assert_allclose(hw.load_model(booster).margin(X), trees.margin(X), rtol=0, atol=1e-5)


def test_to_onnx_agrees_to_its_own_precision(trees):
    import onnxruntime as runtime

    session = runtime.InferenceSession(trees.to_onnx(), providers=["CPUExecutionProvider"])
    X = rows_around(trees, 2000, np.random.default_rng(1)).astype(np.float32)
    label, margin = session.run(["label", "margin"], {"X": X})
    ours = trees.margin(X)
    np.testing.assert_allclose(margin, ours, rtol=0, atol=1e-5)
    top = np.sort(ours, axis=1)
    decided = np.abs(ours[:, 0]) > 1e-5 if ours.shape[1] == 1 else top[:, -1] - top[:, -2] > 1e-5
    np.testing.assert_array_equal(label[decided], trees.predict_class(X)[decided])


def test_shap_values_sum_to_the_margin(trees):
    import shap

    explainer = shap.TreeExplainer(trees.to_shap())
    X = rows_around(trees, 300, np.random.default_rng(1))
    values = explainer.shap_values(X, check_additivity=False)
    total = np.asarray(values).reshape(len(X), trees.n_features, -1).sum(axis=1)
    total = total + np.ravel(explainer.expected_value)
    np.testing.assert_allclose(total, trees.margin(X), rtol=0, atol=1e-4)
