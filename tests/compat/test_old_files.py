"""Files of every format of ours, and of several versions of the others, stay loadable.

``files/expected.json`` holds rows and, for every file, the margins that the library which wrote it
gave for them. A new format adds files and takes none away.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import hardwood as hw

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_text())
ROWS = np.array(EXPECTED["rows"], dtype=np.float64)
CATEGORY_ROWS = np.array(EXPECTED["category_rows"], dtype=np.float64)  # null is missing


@pytest.mark.parametrize("name", EXPECTED["margins"])
def test_an_old_file_says_what_it_always_said(name):
    trees = hw.load_model(FILES / name)
    expected = np.array(EXPECTED["margins"][name])
    # CatBoost adds in an order of its own; all others as we do.
    tolerance = 1e-15 if name.startswith("catboost") else 0
    rows = CATEGORY_ROWS if "categories" in name else ROWS
    np.testing.assert_allclose(trees.margin(rows), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", [n for n in EXPECTED["margins"] if n.startswith("hardwood")])
def test_an_old_file_of_ours_keeps_its_note(name):
    trees = hw.load_model(FILES / name)
    assert trees.metadata == {"parameters": {"max_depth": 2}, "threat": hw.Threat(0.1)}
    assert trees.feature_names == ["a", "b", "c"]
    if "categories" in name:
        assert trees.category_names == {1: ["oak", "ash", "elm", "fir"], 2: []}
        assert trees.categorical.any()
    if "logistic" in name or "categories" in name:
        assert trees.classes.tolist() == ["no", "yes"]


def test_no_file_is_forgotten():
    assert {path.name for path in FILES.iterdir()} == {*EXPECTED["margins"], "expected.json"}


def test_dart_keeps_its_weights_where_xgboost_3_4_writes_them(tmp_path):
    import xgboost as xgb

    rng = np.random.default_rng(0)
    X = rng.random((80, 3))
    rows = xgb.DMatrix(X, (X[:, 0] > 0.5).astype(int))
    options = {"booster": "dart", "rate_drop": 0.5, "max_depth": 2, "seed": 0}
    booster = xgb.train({**options, "objective": "binary:logistic"}, rows, 6)
    document = json.loads(booster.save_raw("json"))
    part = document["learner"]["gradient_booster"]
    if part["name"] == "dart":  # as xgboost before 3.4 writes it
        model = {**part["gbtree"]["model"], "weight_drop": part["weight_drop"]}
        document["learner"]["gradient_booster"] = {"name": "gbtree", "model": model}
    (tmp_path / "dart.json").write_text(json.dumps(document))
    margin = hw.load_model(tmp_path / "dart.json").margin(X)[:, 0]
    np.testing.assert_array_equal(margin, booster.predict(xgb.DMatrix(X), output_margin=True))
