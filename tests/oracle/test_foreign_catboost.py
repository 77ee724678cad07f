"""We read CatBoost's models with numeric splits.

CatBoost adds the leaves of several trees at once, in an order of its own, so the last bits of a
double may differ; a wrong leaf would differ by far more.
"""

import json

import catboost
import numpy as np
import pytest

import hardwood as hw
from hardwood.model.load import load_bytes
from samples import rows_around, table

QUIET = {"iterations": 10, "verbose": 0, "thread_count": 1, "allow_writing_files": False}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"grow_policy": "Depthwise"},
        {"grow_policy": "Lossguide", "max_leaves": 20},
        {"loss_function": "MultiClass"},
        {"nan_mode": "Max"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["missing", "imbalanced", "diabetes"])
def test_we_read_their_classifiers(tmp_path, name, parameters):
    X, y = table(name)
    if "loss_function" in parameters:
        y = y + (X[:, 1] > np.nanmedian(X[:, 1]))
    label = np.array(["a", "b", "c"])[y]
    model = catboost.CatBoostClassifier(**QUIET, **parameters).fit(X, label)
    trees = hw.load_model(model, X=X)
    rows = rows_around(trees, 3000, np.random.default_rng(0))
    if name != "missing":
        rows = np.nan_to_num(rows)
    raw = model.predict(rows, prediction_type="RawFormulaVal").reshape(len(rows), -1)
    np.testing.assert_allclose(trees.margin(rows), raw, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(trees.predict(rows), model.predict(rows).ravel())
    model.save_model(tmp_path / "m.json", format="json")
    np.testing.assert_array_equal(
        hw.load_model(tmp_path / "m.json").margin(rows), trees.margin(rows)
    )


def test_we_read_their_regressors():
    X, _ = table("imbalanced")
    model = catboost.CatBoostRegressor(**QUIET).fit(X, X[:, 0] * 100)
    trees = hw.load_model(model)
    np.testing.assert_allclose(trees.margin(X)[:, 0], model.predict(X), rtol=0, atol=1e-10)


def test_what_cannot_be_read_is_refused_by_name():
    import pandas

    X, y = table("imbalanced")
    frame = pandas.DataFrame(X).assign(job=np.where(y == 1, "cook", "clerk"))
    model = catboost.CatBoostClassifier(**QUIET).fit(frame, y, cat_features=["job"])
    with pytest.raises(hw.UnsupportedModelError, match=r"do not keep the names.*columns \['job'\]"):
        hw.load_model(model)
    with pytest.raises(ValueError, match="CatBoostClassifier is not fitted yet"):
        hw.load_model(catboost.CatBoostClassifier())
    with pytest.raises(hw.UnsupportedModelError, match="cannot read catboost's Pool"):
        hw.load_model(catboost.Pool(X))


TREE = {"leaf_values": [0.0, 1.0], "splits": [{"float_feature_index": 0, "border": 0.5}]}
DOCUMENT = {
    "features_info": {"float_features": [{"flat_feature_index": 0}]},
    "oblivious_trees": [TREE],
    "scale_and_bias": [1, [0]],
}


def test_a_small_document_is_a_model():
    assert load_bytes(json.dumps(DOCUMENT).encode()).predict([[0.5], [0.6]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale_and_bias": 3}, "must be list, got int"),
        ({"scale_and_bias": [1]}, "must be two entries"),
        ({"scale_and_bias": ["a", [0]]}, "scale .* must hold numbers"),
        ({"scale_and_bias": [1, [[0]]]}, r"must be \[number, list\]"),
        ({"oblivious_trees": {}}, "must be list, got dict"),
        ({"oblivious_trees": [3]}, "must be dict, got int"),
        ({"oblivious_trees": [{**TREE, "leaf_values": [1]}]}, "has 1 leaf values, not 2"),
        ({"oblivious_trees": [{**TREE, "leaf_values": [[1], 2]}]}, "must hold numbers"),
        ({"oblivious_trees": [{"splits": TREE["splits"] * 60}]}, "has 60 levels"),
        ({"oblivious_trees": [{"splits": [{"float_feature_index": 7}]}]}, "names column 7"),
        ({"oblivious_trees": [{"splits": [{"float_feature_index": 0}]}]}, "must hold numbers"),
        ({"features_info": {"float_features": [{}]}}, "must be int, got NoneType"),
        (
            {"features_info": {"float_features": [{"flat_feature_index": -1}]}},
            "has the index -1",
        ),
    ],
)
def test_hostile_documents_are_refused_by_name(change, words):
    with pytest.raises(hw.ModelFileError, match=words):
        load_bytes(json.dumps({**DOCUMENT, **change}).encode())
