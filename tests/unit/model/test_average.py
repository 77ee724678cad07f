import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier

import hardwood as hw


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    return X, (X[:, 0] + X[:, 1] > 1).astype(int), (3 * X[:, 0]).astype(int)


def boosted(X, y, seed, **params):
    params = {"eps": 0.05, "n_estimators": 8, "colsample_bytree": 0.5, **params}
    return hw.RobustGradientBoostingClassifier(random_state=seed, **params).fit(X, y)


@pytest.mark.parametrize("target", [1, 2], ids=["two classes", "three classes"])
def test_margins_are_the_mean(rows, target):
    X, y = rows[0], rows[target]
    models = [hw.load_model(boosted(X, y, seed)) for seed in range(3)]
    together = hw.average(models)
    # Thresholds, too: which side a row lies on must not change.
    X = np.concatenate([X, np.resize(together.threshold, (40, 4))])
    wanted = np.mean([model.margin(X) for model in models], axis=0)
    np.testing.assert_allclose(together.margin(X), wanted, atol=1e-6)
    assert together.n_trees == sum(model.n_trees for model in models)
    np.testing.assert_array_equal(together.classes, models[0].classes)


def test_one_model_is_itself(rows):
    trees = hw.load_model(boosted(rows[0], rows[1], 0))
    np.testing.assert_array_equal(hw.average([trees]).margin(rows[0]), trees.margin(rows[0]))


def test_models_of_several_libraries(rows):
    X, y = rows[0].astype(np.float32), rows[1]
    source = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, y)
    together = hw.average([source, boosted(X, y, 0)])
    wanted = (hw.load_model(source).margin(X) + hw.load_model(boosted(X, y, 0)).margin(X)) / 2
    np.testing.assert_allclose(together.margin(X), wanted, atol=1e-6)


def test_certificates_hold_for_the_whole(rows):
    X, y = rows[0][:60], rows[1][:60]
    together = hw.average([boosted(*rows[:2], seed, n_estimators=3) for seed in range(3)])
    proof = hw.certify(together, X, y, 0.05)
    found = hw.minimal_distance(together, X, y)
    np.testing.assert_array_equal(proof.status == "certified", found.lower > 0.05)
    broken = proof.status == "broken"
    assert np.all(together.predict(proof.X_adv[broken]) != y[broken])


def test_categories_come_along():
    frame = pd.DataFrame({"job": pd.Categorical(list("abcd") * 40), "x": np.arange(160) % 7.0})
    y = (frame["job"].cat.codes % 2 == 0).to_numpy().astype(int)
    models = [
        boosted(frame, y, seed, eps=0, colsample_bytree=1, n_estimators=n)
        for seed, n in enumerate((2, 5))
    ]
    together = hw.average(models)
    wanted = np.mean([hw.load_model(model).margin(frame) for model in models], axis=0)
    np.testing.assert_allclose(together.margin(frame), wanted, atol=1e-6)


def test_what_differs_is_named(rows):
    X, y, three = rows
    with pytest.raises(ValueError, match="needs at least one model, got none"):
        hw.average([])
    with pytest.raises(ValueError, match=r"same n_features .* has 4, models\[1\] has 3"):
        hw.average([boosted(X, y, 0), boosted(X[:, :3], y, 0)])
    with pytest.raises(ValueError, match=r"same n_outputs .* has 1, models\[2\] has 3"):
        hw.average([boosted(X, y, 0), boosted(X, y, 1), boosted(X, three, 0)])
    with pytest.raises(ValueError, match=r"same classes .*Train them on the same columns"):
        hw.average([boosted(X, y, 0), boosted(X, y + 1, 0)])
    forest = RandomForestClassifier(n_estimators=3, max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match=r"same n_outputs|same link"):
        hw.average([boosted(X, y, 0), forest])
