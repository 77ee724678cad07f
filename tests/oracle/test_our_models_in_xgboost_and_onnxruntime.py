"""Our trained models in stock xgboost and onnxruntime, on 100,000 rows and on thresholds.

Both add float32 in tree order, as we do: margins are equal to the last bit.
"""

import numpy as np
import pytest
import xgboost

import hardwood as hw
from samples import rows_around

N_ROWS = 100_000


def data(n):
    """Rows with missing values, and three targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)).astype(np.float32).astype(np.float64)
    signal = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + rng.normal(size=n) / 4
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, signal


MODELS = {
    "binary": hw.RobustGradientBoostingClassifier(n_estimators=20, eps=0.05, max_depth=9),
    "multi-class": hw.RobustGradientBoostingClassifier(n_estimators=8, eps=0.05),
    "regression": hw.RobustGradientBoostingRegressor(n_estimators=20, eps=0.05, max_depth=8),
    "newton forest": hw.RobustRandomForestClassifier(
        n_estimators=20, eps=0.05, criterion="newton", max_depth=10, random_state=0
    ),
    "forest of shares": hw.RobustRandomForestClassifier(
        n_estimators=10, eps=0.05, max_depth=10, random_state=0
    ),
    "tree": hw.RobustDecisionTreeClassifier(eps=0.05, max_depth=12),
}


@pytest.mark.parametrize("kind", MODELS)
def test_margins_are_the_same_bit_for_bit(tmp_path, kind):
    X, signal = data(3000)
    y = {"regression": signal, "multi-class": np.digitize(signal, [-0.5, 0.5])}.get(
        kind, signal > 0
    )
    model = MODELS[kind].fit(X, y)
    model.save_model(tmp_path / "m.json")
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    trees = model.trees_
    rng = np.random.default_rng(1)
    rows = np.concatenate([data(N_ROWS)[0], rows_around(trees, 20_000, rng)])
    margin = trees.margin(rows)
    theirs = booster.predict(xgboost.DMatrix(rows), output_margin=True)
    if trees.value.dtype == np.float32:
        np.testing.assert_array_equal(theirs.reshape(len(rows), -1), margin)
    else:  # shares are doubles here and rounded to float32 there
        np.testing.assert_allclose(theirs.reshape(len(rows), -1), margin, rtol=0, atol=2e-6)
    few = xgboost.DMatrix(rows[-200:])
    contribution = booster.predict(few, pred_contribs=True)
    total = contribution.reshape(200, trees.n_outputs, -1).sum(axis=2)
    np.testing.assert_allclose(total, margin[-200:], rtol=0, atol=2e-4)
    import onnxruntime as runtime

    # On several threads it adds in an order that depends on the number of rows.
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(trees.to_onnx(), options, ["CPUExecutionProvider"])
    few_rows = rows[-20_000:].astype(np.float32)
    there = session.run(["margin"], {"X": few_rows})[0]
    if trees.value.dtype == np.float32:
        np.testing.assert_array_equal(there, trees.margin(few_rows))
    else:
        np.testing.assert_allclose(there, trees.margin(few_rows), rtol=0, atol=2e-6)
