"""Stock xgboost reads our files, and we read its models: margins are equal to the last bit.

No tolerance anywhere: XGBoost adds leaf values in float32, in tree order, from the base margin on,
and so do we.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xgboost

import hardwood as hw
from hardwood.model import file
from hardwood.model.load import gate
from hardwood.model.load import xgboost as loader
from samples import TABLES, assert_same_trees, paper_data, random_trees, rows_around, table

OURS = {
    "binary": {"link": "logistic"},
    "binary with a base": {"link": "logistic", "base": np.float32([-2.1972246])},
    "regression": {"base": np.float32([0.1])},
    "multi-class": {"n_outputs": 3, "link": "softmax", "base": np.float32([0.3, 0.1, -2])},
    "shares": {"n_outputs": 3, "n_values": 3, "link": "share"},
    "binary shares": {"n_outputs": 2, "n_values": 2, "link": "share"},
}


def margin_of(booster, X, **more):
    margin = booster.predict(xgboost.DMatrix(X), output_margin=True, **more)
    return margin.astype(np.float64).reshape(len(X), -1)


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("kind", OURS)
def test_xgboost_reads_our_file(tmp_path, kind, suffix):
    rng = np.random.default_rng(0)
    trees = random_trees(rng, n_trees=30, depth=6, n_features=5, **OURS[kind])
    trees.save_model(tmp_path / f"m{suffix}")
    booster = xgboost.Booster(model_file=tmp_path / f"m{suffix}")
    X = rows_around(trees, 100_000, rng)
    margin = trees.margin(X)
    np.testing.assert_array_equal(margin_of(booster, X), margin)
    if trees.link == "share":
        label = booster.predict(xgboost.DMatrix(X))
        np.testing.assert_array_equal(label.reshape(len(X), -1)[:, 0], trees.predict(X))
    # Base trees belong to the first round: cut there, cut here.
    k = 2 * trees.n_outputs if trees.value.shape[1] == 1 else 2
    cut = trees.first(k)
    np.testing.assert_array_equal(
        margin_of(booster, X[:1000], iteration_range=(0, 2)), cut.margin(X[:1000])
    )
    # SHAP values sum to the margin (in float32, added in another order).
    contribution = booster.predict(xgboost.DMatrix(X[:50]), pred_contribs=True)
    total = contribution.reshape(50, trees.n_outputs, -1).sum(axis=2)
    np.testing.assert_allclose(total, margin[:50], atol=2e-4)


def test_deep_trees_whose_siblings_lie_apart(tmp_path):
    """Below some levels, xgboost takes the node after the left child for the right one."""
    rng = np.random.default_rng(0)
    trees = random_trees(rng, n_trees=5, depth=12, link="logistic")
    trees.save_model(tmp_path / "m.json")
    X = rows_around(trees, 5000, rng)
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    np.testing.assert_array_equal(margin_of(booster, X), trees.margin(X))
    assert_same_trees(hw.load_model(tmp_path / "m.json"), trees)
    assert_same_trees(hw.load_model(booster), trees)


def test_a_forest_is_one_round_of_parallel_trees(tmp_path):
    rng = np.random.default_rng(0)
    trees = random_trees(rng, n_trees=12, link="logistic", base=np.float32([0.4]))
    file.save(trees, tmp_path / "m.json", n_parallel_trees=12)
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.num_boosted_rounds() == 1
    X = rows_around(trees, 5000, rng)
    np.testing.assert_array_equal(margin_of(booster, X), trees.margin(X))


def test_a_wrapper_reads_our_file_and_gives_it_back(tmp_path):
    X, y = paper_data("breast_cancer")
    tree = hw.RobustDecisionTreeClassifier(eps=0.1, max_depth=5).fit(X, y)
    tree.save_model(tmp_path / "m.json")
    wrapper = xgboost.XGBClassifier()
    wrapper.load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(wrapper.predict(X), tree.predict(X))
    wrapper.get_booster().save_model(tmp_path / "again.ubj")
    again = hw.load_model(tmp_path / "again.ubj")
    assert again.metadata["threat"] == hw.Threat(0.1)
    np.testing.assert_array_equal(again.margin(X), tree.trees_.margin(X))


def test_training_goes_on_in_xgboost(tmp_path):
    rng = np.random.default_rng(0)
    trees = random_trees(rng, n_features=3, link="logistic", base=np.float32([0.4]))
    trees.save_model(tmp_path / "m.json")
    X = rng.normal(size=(200, 3))
    more = xgboost.train(
        {"objective": "binary:logistic"},
        xgboost.DMatrix(X, X[:, 0] > 0),
        2,
        xgb_model=tmp_path / "m.json",
    )
    more.save_model(tmp_path / "more.json")
    np.testing.assert_array_equal(
        hw.load_model(tmp_path / "more.json").margin(X), margin_of(more, X)
    )


THEIRS = {
    "binary": {"objective": "binary:logistic"},
    "exact": {"objective": "binary:logistic", "tree_method": "exact", "gamma": 0.5},
    "pruned": {
        "objective": "binary:logistic",
        "tree_method": "exact",
        "gamma": 3.0,
        "max_depth": 8,
    },
    "base score": {"objective": "binary:logistic", "base_score": 0.027},
    "raw": {"objective": "binary:logitraw"},
    "hinge": {"objective": "binary:hinge"},
    "dart": {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.4},
    "forest": {"num_parallel_tree": 5, "subsample": 0.5, "objective": "binary:logistic"},
    "softprob": {"objective": "multi:softprob", "num_class": 3},
    "softmax": {"objective": "multi:softmax", "num_class": 3, "booster": "dart", "rate_drop": 0.4},
    "squared": {"objective": "reg:squarederror"},
    "poisson": {"objective": "count:poisson"},
    "gamma": {"objective": "reg:gamma"},
    "tweedie": {"objective": "reg:tweedie"},
    "huber": {"objective": "reg:pseudohubererror"},
    "absolute": {"objective": "reg:absoluteerror"},
    "logistic regression": {"objective": "reg:logistic"},
    "lossguide": {"objective": "binary:logistic", "grow_policy": "lossguide", "max_leaves": 9},
}


def trained(kind, X, y, n_rounds=12):
    if kind in ("softprob", "softmax"):
        y = y + (X[:, 1] > np.nanmedian(X[:, 1]))
    if kind in ("gamma", "tweedie", "poisson"):
        y = y + 0.5
    parameters = {"max_depth": 5, "seed": 1, "nthread": 1, **THEIRS[kind]}
    return xgboost.train(parameters, xgboost.DMatrix(X, y), n_rounds)


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in ("missing", "imbalanced") for kind in THEIRS]
    + [(name, kind) for name in ("breast_cancer", "diabetes") for kind in ("binary", "softprob")],
)
def test_we_read_their_model(tmp_path, name, kind):
    X, y = table(name)
    booster = trained(kind, X, y)
    trees = hw.load_model(booster, X=X)
    rows = np.concatenate([X, rows_around(trees, 3000, np.random.default_rng(0))])
    np.testing.assert_array_equal(trees.margin(rows), margin_of(booster, rows))
    for suffix in (".json", ".ubj"):
        booster.save_model(tmp_path / f"m{suffix}")
        read = hw.load_model(tmp_path / f"m{suffix}")
        np.testing.assert_array_equal(read.margin(rows), margin_of(booster, rows))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "wrapper", ["XGBClassifier", "XGBRFClassifier", "XGBRegressor", "XGBRFRegressor"]
)
def test_we_read_their_wrappers(tmp_path, wrapper, name):
    X, y = table(name)
    model = getattr(xgboost, wrapper)(n_estimators=8, max_depth=4, n_jobs=1).fit(X, y)
    trees = hw.load_model(model)
    rows = rows_around(trees, 2000, np.random.default_rng(0))
    np.testing.assert_array_equal(trees.margin(rows), margin_of(model.get_booster(), rows))
    if "Classifier" in wrapper:
        np.testing.assert_array_equal(trees.predict(rows), model.predict(rows))


def test_early_stopping_cuts_wrappers_and_their_files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=3, n_jobs=1)
    model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    cut = model.best_iteration + 1
    assert cut < model.get_booster().num_boosted_rounds()
    model.save_model(tmp_path / "wrapper.json")
    model.get_booster().save_model(tmp_path / "booster.json")
    for source in (model, tmp_path / "wrapper.json"):
        trees = hw.load_model(source)
        assert trees.n_trees == cut
        np.testing.assert_array_equal(trees.margin(X)[:, 0], model.predict(X, output_margin=True))
    for source in (model.get_booster(), tmp_path / "booster.json"):
        assert hw.load_model(source).n_trees == model.get_booster().num_boosted_rounds()


def test_what_cannot_be_read_is_refused_by_name():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    with pytest.raises(hw.UnsupportedModelError, match=r"takes missing=-999.* set missing=nan"):
        hw.load_model(xgboost.XGBClassifier(missing=-999.0, n_estimators=2).fit(X, y))
    with pytest.raises(hw.UnsupportedModelError, match="predicts 2 targets at once"):
        hw.load_model(xgboost.XGBRegressor(n_estimators=2).fit(X, X))
    with pytest.raises(hw.UnsupportedModelError, match='booster="gblinear"'):
        hw.load_model(xgboost.XGBClassifier(booster="gblinear", n_estimators=2).fit(X, y))
    with pytest.raises(hw.UnsupportedModelError, match="cannot read xgboost's DMatrix"):
        hw.load_model(xgboost.DMatrix(X))


def test_the_gate_names_tree_node_and_row():
    X, y = table("imbalanced")
    booster = trained("binary", X, y)
    trees, reference = loader.load(booster)
    threshold = trees.threshold.copy()
    at = int(trees.tree_start[4])
    threshold[at] = np.nextafter(threshold[at], np.float32(np.inf))
    with pytest.raises(
        hw.UnsupportedModelError, match=r"Booster .* tree 4 sends a row to node \d+"
    ):
        gate.check(trees.replace(threshold=threshold), reference)
    with pytest.raises(hw.UnsupportedModelError, match=r"margin is .* rows, first on \["):
        gate.check(trees.replace(base=[0.0]), reference)
    value = trees.value.copy()
    value[trees.feature < 0] = np.nextafter(value[trees.feature < 0], np.float32(9))
    with pytest.raises(hw.UnsupportedModelError, match="margin is"):
        gate.check(trees.replace(value=value), reference)


def test_the_gate_compares_labels_and_means_as_users_see_them():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    y = np.where(X["a"] > 0, 1, 0)
    trees, reference = loader.load(xgboost.XGBClassifier(n_estimators=3).fit(X, y))
    gate.check(trees, reference)
    other = replace(reference, label=lambda rows: 1 - reference.label(rows))
    with pytest.raises(
        hw.UnsupportedModelError,
        match=r"its label is \S+ at its source and \S+ here, at the margin",
    ):
        gate.check(trees, other)
    off = replace(reference, predict=lambda rows: trees.means(trees.margin(rows)) + 1e-3)
    with pytest.raises(
        hw.UnsupportedModelError, match=r"it predicts \[\S+\] at its source and \[\S+\] here; this"
    ):
        gate.check(trees, off)
    given = replace(reference, own_label=lambda table: 1 - trees.predict_class(table))
    gate.check_given(trees, given, X.to_numpy())  # an array has no kinds of columns
    with pytest.raises(
        hw.UnsupportedModelError,
        match=r"gives row 0 of X the label \S+ as it stands, and \S+ where",
    ):
        gate.check_given(trees, given, X)
