"""We read LightGBM's models: the same leaves, and margins equal to the last bit.

LightGBM adds in double, in tree order, and so do we; a random forest divides the sum.
"""

import lightgbm
import numpy as np
import pandas as pd
import pytest

import hardwood as hw
from hardwood.model.load import load_bytes
from samples import TABLES, rows_around, table

THEIRS = {
    "binary": {"objective": "binary"},
    "no missing": {"objective": "binary", "use_missing": False},
    "dart": {"objective": "binary", "boosting": "dart", "drop_rate": 0.5},
    "forest": {
        "objective": "binary",
        "boosting": "rf",
        "bagging_freq": 1,
        "bagging_fraction": 0.5,
    },
    "multi-class": {"objective": "multiclass", "num_class": 3},
    "one against all": {"objective": "multiclassova", "num_class": 3},
    "squared": {"objective": "regression"},
    "poisson": {"objective": "poisson"},
    "cross entropy": {"objective": "cross_entropy"},
}


def trained(X, y, n_rounds=10, **parameters):
    fixed = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    return lightgbm.train({**fixed, **parameters}, lightgbm.Dataset(X, y), n_rounds)


def rows_for(trees, X):
    around = rows_around(trees, 3000, np.random.default_rng(0))
    tiny = np.array([0.0, 1e-35, -1e-35, 1e-40, -1e-40, float(np.float32(1e-35)), 2e-35, -2e-35])
    near_zero = np.random.default_rng(0).choice(tiny, size=(200, X.shape[1]))
    return np.concatenate([X, around, near_zero])


@pytest.mark.parametrize("kind", THEIRS)
@pytest.mark.parametrize("name", [*TABLES, "zeros"])
def test_we_read_their_model(tmp_path, name, kind):
    X, y = table("imbalanced" if name == "zeros" else name)
    if name == "zeros":
        X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    if "num_class" in THEIRS[kind]:
        y = y + (X[:, 1] > np.nanmedian(X[:, 1]))
    booster = trained(X, y, **THEIRS[kind])
    booster.save_model(tmp_path / "m.txt")
    trees = hw.load_model(booster, X=X)
    rows = rows_for(trees, X)
    margin = booster.predict(rows, raw_score=True).reshape(len(rows), -1)
    np.testing.assert_array_equal(trees.margin(rows), margin)
    mean = booster.predict(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(trees.means(margin), mean, rtol=1e-13)
    np.testing.assert_array_equal(
        hw.load_model(tmp_path / "m.txt").margin(rows), trees.margin(rows)
    )


def test_we_read_their_wrappers_up_to_the_best_iteration():
    X, y = table("imbalanced")
    label = np.where(y == 1, "fraud", "fine")
    model = lightgbm.LGBMClassifier(n_estimators=80, verbose=-1, n_jobs=1)
    stop = lightgbm.early_stopping(2, verbose=False)
    model.fit(X[:400], label[:400], eval_set=[(X[400:], label[400:])], callbacks=[stop])
    trees = hw.load_model(model)
    assert trees.n_trees == model.best_iteration_ < 80
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))
    regression = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(hw.load_model(regression).margin(X)[:, 0], regression.predict(X))


def test_what_cannot_be_read_is_refused_by_name():
    X, y = table("imbalanced")
    with pytest.raises(hw.UnsupportedModelError, match=r"zero_as_missing=True\). Retrain with"):
        hw.load_model(trained(X, y, objective="binary", zero_as_missing=True))
    with pytest.raises(hw.UnsupportedModelError, match=r"Tree 0 .* linear leaves.*linear_tree=Fal"):
        hw.load_model(trained(X, y, objective="regression", linear_tree=True))
    with pytest.raises(hw.UnsupportedModelError, match="cannot read lightgbm's Dataset"):
        hw.load_model(lightgbm.Dataset(X))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("end of trees", "", "it may be cut"),
        ("num_leaves=", "num_leaves=9", "entries, not 9"),
        ("num_leaves=", "num_leaves=x", "must be a count, got 'x"),
        ("max_feature_idx=", "max_feature_idx=-", "must be a count, got '-"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=999999999", "must be 1 to 100000"),
        ("left_child=", "left_child=0 ", "entries, not"),
        ("left_child=1", "left_child=0", "reached twice"),
        ("left_child=1", "left_child=1.5", "whole numbers"),
        ("left_child=1", "left_child=99999", "has child 99999"),
        ("threshold=", "threshold=a", "must hold numbers"),
        ("leaf_value=", "leaf_value=nan ", "entries, not"),
    ],
)
def test_hostile_text_is_refused_by_name(old, new, words):
    X, y = table("imbalanced")
    text = trained(X, y, 1, objective="binary").model_to_string()
    assert old in text
    with pytest.raises(hw.ModelFileError, match=words):
        load_bytes(text.replace(old, new, 1).encode())
    with pytest.raises(hw.ModelFileError, match="is not text"):
        load_bytes(b"tree\n\xff")


NAMES = ["mean radius", "a_b", " two  spaces ", "ünï cödé", "x\u2028y", "tab\tname", "p%&'()*<>"]


@pytest.mark.parametrize("kind", ["wrapper", "booster", "file"])
def test_frames_with_spaces_in_their_names(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((300, len(NAMES))), columns=NAMES)
    y = (X["mean radius"] + X["ünï cödé"] + X["a_b"] > 1.5).astype(int)
    wrapper = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1).fit(X, y)
    model = wrapper if kind == "wrapper" else wrapper.booster_
    if kind == "file":
        wrapper.booster_.save_model(tmp_path / "m.txt")
        model = tmp_path / "m.txt"
    label = wrapper.predict(X)
    trees = hw.load_model(model, X) if kind != "file" else hw.load_model(model)
    backwards = X[NAMES[::-1]].assign(more=1.0)
    np.testing.assert_array_equal(trees.predict(backwards), label)
    named = hw.Threat({"mean radius": 0.1, "a_b": 0.2}, fixed=["ünï cödé"])
    by_position = hw.Threat({0: 0.1, 1: 0.2}, fixed=[3])
    expected = hw.certify(trees, X.to_numpy(), label, by_position).status
    assert set(expected) == {"certified", "broken"}
    np.testing.assert_array_equal(hw.certify(model, backwards, label, named).status, expected)
    found = hw.find_adversarial(model, X[:30], label[:30], threat=named)
    np.testing.assert_array_equal(found.success, expected[:30] == "broken")
    with pytest.raises(ValueError, match="missing: 'mean_radius'"):
        trees.predict(X.drop(columns="mean radius"))
    twice = X.rename(columns={"mean radius": "_two spaces "})
    with pytest.raises(ValueError, match="missing: 'mean_radius'"):
        trees.predict(twice)


def test_a_split_between_missing_and_present_only():
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = rng.integers(0, 2, 400)
    X[:, 0] = np.where(y == 1, X[:, 0] - 0.5, np.nan)  # all that is known of it
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=2, verbose=-1).fit(X, y)
    trees = hw.load_model(model)
    assert np.isinf(trees.threshold[trees.feature == 0]).any()
    np.testing.assert_array_equal(trees.predict(X), model.predict(X))
    assert (hw.certify(model, X, model.predict(X), 1e30).status == "certified").all()
