"""XGBoost's JSON dump, the form in which models are published: we read it as xgboost wrote it."""

import json

import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

import hardwood as hw
from samples import rows_around


def dumped(path, booster, *, as_published=False):
    booster.dump_model(path, dump_format="json", with_stats=not as_published)
    if as_published:  # columns as plain numbers
        trees = json.loads(path.read_text())

        def walk(node):
            if "children" in node:
                node["split"] = int(node["split"][1:])
                for child in node["children"]:
                    walk(child)

        for tree in trees:
            walk(tree)
        path.write_text(json.dumps(trees, indent=2))
    return path


def rows_of(trees, seed=0):
    return rows_around(trees, 2000, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X).astype(np.float32), y


@pytest.mark.parametrize("as_published", [False, True])
def test_a_published_model_of_eight_trees(tmp_path, breast_cancer, as_published):
    X, y = breast_cancer
    parameters = {"max_depth": 6, "eta": 0.3, "base_score": 0.5, "objective": "binary:logistic"}
    booster = xgboost.train(parameters, xgboost.DMatrix(X, y), 8)
    trees = hw.load_model(
        dumped(tmp_path / "m.json", booster, as_published=as_published), n_features=30
    )
    assert trees.n_trees == 8
    assert trees.metadata["checked_against_source"] is False
    rows = rows_of(trees)
    there = booster.predict(xgboost.DMatrix(rows), output_margin=True, validate_features=False)
    np.testing.assert_array_equal(trees.margin(rows)[:, 0], there)
    from_dump = hw.minimal_distance(tmp_path / "m.json", X[:50], y[:50])
    from_booster = hw.minimal_distance(booster, X[:50], y[:50])
    np.testing.assert_array_equal(from_dump.upper, from_booster.upper)


def test_many_classes_and_numbers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((300, 4)).astype(np.float32)
    y = (X[:, 0] * 3).astype(int)
    many = xgboost.train({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(X, y), 5)
    trees = hw.load_model(dumped(tmp_path / "many.json", many), n_classes=3, n_features=4)
    rows = rows_of(trees)
    np.testing.assert_array_equal(
        trees.predict(rows), np.argmax(many.predict(xgboost.DMatrix(rows)), axis=1)
    )
    numbers = xgboost.train({"base_score": 0.25}, xgboost.DMatrix(X, X[:, 1]), 5)
    trees = hw.load_model(
        dumped(tmp_path / "n.json", numbers), rows, task="regression", base_score=0.25
    )
    np.testing.assert_array_equal(trees.predict(rows), numbers.predict(xgboost.DMatrix(rows)))


def test_missing_values_go_where_the_dump_says(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((300, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = np.nan
    booster = xgboost.train({"base_score": 0.5}, xgboost.DMatrix(X, np.nan_to_num(X[:, 0])), 5)
    trees = hw.load_model(dumped(tmp_path / "m.json", booster), X, task="regression")
    np.testing.assert_array_equal(trees.predict(X), booster.predict(xgboost.DMatrix(X)))


LEAF = {"nodeid": 1, "leaf": 0.5}
SPLIT = {"nodeid": 0, "split": "f0", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1}
GOOD = {**SPLIT, "children": [LEAF, {**LEAF, "nodeid": 2}]}


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (7, "a node that is no object"),
        ({**GOOD, "split": "income"}, r"splits on 'income'; .* which column a name is"),
        ({**GOOD, "split": -1}, "must name a column, got -1"),
        ({**GOOD, "split_condition": [1, 2]}, "splits on categories"),
        ({**GOOD, "split_condition": "x"}, "split_condition in tree 0 .* got 'x'"),
        ({**GOOD, "missing": 7}, "sends missing values to node 7"),
        ({**GOOD, "children": [LEAF]}, "without two children"),
        ({**GOOD, "yes": 2, "missing": 2}, "other children than those it names, 2 and 2"),
        ({"leaf": True}, "leaf in tree 0 of the dump must be a number, got True"),
    ],
)
def test_odd_dumps_are_refused_by_name(tmp_path, tree, words):
    (tmp_path / "m.json").write_text(json.dumps([tree]))
    with pytest.raises((hw.ModelFileError, hw.UnsupportedModelError), match=words):
        hw.load_model(tmp_path / "m.json")


def test_what_a_dump_leaves_unsaid_is_checked(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps([GOOD, GOOD]))
    with pytest.raises(ValueError, match="2 trees, which is no multiple of n_classes=3"):
        hw.load_model(path, n_classes=3)
    with pytest.raises(ValueError, match=r"n_classes must be 2 to 100000, got n_classes=1"):
        hw.load_model(path, n_classes=1)
    with pytest.raises(ValueError, match=r"task must be .* for a dump, got task='anomaly'"):
        hw.load_model(path, task="anomaly")
    with pytest.raises(ValueError, match="belongs to task='classification', got 'raw'"):
        hw.load_model(path, n_classes=3, task="raw")
    with pytest.raises(ValueError, match="a probability between 0 and 1, got 2"):
        hw.load_model(path, base_score=2)
    with pytest.raises(ValueError, match=r"n_classes=2, .* are for XGBoost's JSON dumps"):
        hw.load_model(hw.load_model(path), n_classes=2)
    path.write_text("[" * 100_000)
    with pytest.raises(hw.ModelFileError, match=r"nested too deeply|not JSON"):
        hw.load_model(path)


def test_the_old_binary_format_is_told_how_to_convert(tmp_path):
    (tmp_path / "m.model").write_bytes(b"binf" + bytes(100))
    with pytest.raises(hw.ModelFileError, match=r"old binary format .*save_model\('model.json'\)"):
        hw.load_model(tmp_path / "m.model")
