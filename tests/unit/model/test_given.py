"""Rows as their user gave them: what comes back is the same kind of table."""

import numpy as np
import pandas as pd
import polars
import pytest
from pandas.testing import assert_frame_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw
from hardwood.model.given import Given
from pipelines import credit, pipeline


@pytest.fixture(scope="module")
def lender():
    frame, y = credit()
    return pipeline("imputed, told", "one-hot", "XGBoost").fit(frame, y), frame, y


def given_of(lender, X):
    trees = hw.load_model(lender[0])
    return Given(X, trees.rows(X), trees)


def moved(given, row, **new):
    """The rows' numbers with some others in one row, and no example in all other rows."""
    Z = np.full(given.table.shape, np.nan)
    Z[row] = given.table[row]
    for name, number in new.items():
        Z[row, given.trees.feature_names.index(name)] = number
    return Z


def test_a_frame_comes_back_with_its_columns_dtypes_and_index(lender):
    frame = lender[1].iloc[:5, ::-1].copy()
    frame.index = list("abcde")
    frame["age"] = frame["age"].astype("Int64")
    frame["ratio"] = frame["ratio"].astype("float32")
    frame["job"] = frame["job"].astype(
        pd.CategoricalDtype(["clerk", "driver", "nurse", "pilot", "smith"])
    )
    given = given_of(lender, frame)
    Z = moved(given, 2, age=33, loans=7, ratio=0.25, job=3, owner=1, grade=0, income=1.5)
    back = given.back(Z)
    assert back.dtypes.equals(frame.dtypes)
    wanted = frame.copy()
    values = {"age": 33, "loans": 7, "ratio": 0.25, "job": "pilot", "owner": True, "income": 1.5}
    for name, value in {**values, "grade": "high"}.items():
        wanted.loc["c", name] = value
    assert_frame_equal(back, wanted)


def test_a_number_that_the_dtype_cannot_hold_is_kept_as_it_is(lender):
    given = given_of(lender, lender[1][:3])
    back = given.back(moved(given, 1, loans=1.5, debt=np.nan))
    assert back["loans"].dtype == np.float64
    assert back["loans"].tolist()[1] == 1.5
    assert np.isnan(back["debt"].iloc[1])


def test_nullable_columns_can_be_blanked(lender):
    frame = lender[1][:4].astype({"age": "Int64", "owner": "boolean", "income": "Float64"})
    given = given_of(lender, frame)
    back = given.back(moved(given, 1, age=np.nan, owner=np.nan, income=np.nan))
    assert back.dtypes.equals(frame.dtypes)
    assert back.loc[back.index[1], ["age", "owner", "income"]].isna().all()
    assert back.drop(index=back.index[1]).equals(frame.drop(index=frame.index[1]))


def test_truth_values_that_a_model_takes_for_numbers_are_told_as_such():
    for frame in (pd.DataFrame, polars.DataFrame):
        X = frame({"owner": [True, False], "size": [0.0, 1.0]})
        given = Given(X, np.array([[1.0, 0.0], [0.0, 1.0]]))
        Z = np.array([[0.0, 1.0], [np.nan, 1.0]])
        changes = given.changes(Z, 0)
        assert str(changes) == "owner True -> False; size 0 -> 1"
        assert changes[0] == ("owner", True, False)
        assert str(given.changes(Z, 1)) == "owner False -> blank"


def test_polars_frames_come_back_too(lender):
    frame = lender[1][:4].astype(object)
    content = frame.where(frame.notna(), None).to_dict("list")
    X = polars.DataFrame(content)
    given = given_of(lender, X)
    back = given.back(moved(given, 0, age=40, job=1, grade=np.nan))
    assert back.schema == X.schema
    assert back["age"].to_list() == [40, *content["age"][1:]]
    assert back["job"].to_list() == ["driver", *content["job"][1:]]
    assert back["grade"][0] is None


def test_changes_are_data_and_words(lender):
    frame = lender[1][:3].assign(job=["king", "clerk", "clerk"])
    given = given_of(lender, frame)
    changes = given.changes(moved(given, 0, job=4, income=41950, owner=1 - given.table[0, 5]), 0)
    assert [change.column for change in changes] == ["income", "job", "owner"]
    assert changes[1] == ("job", "king", "smith")
    owner = f"owner {frame['owner'].iloc[0]} -> {not frame['owner'].iloc[0]}"
    assert str(changes) == f"income 23,456 -> 41,950; job king -> smith; {owner}"
    assert str(given.changes(moved(given, 0), 0)) == ""


def test_arrays_stay_arrays():
    table = np.arange(6.0).reshape(2, 3)
    given = Given(table, table)
    assert given.back(table + 1) is not table
    assert str(given.changes(table + np.eye(2, 3, 1), 0)) == "1 1 -> 2"


def test_a_frame_of_which_the_pipeline_thinks_otherwise_is_refused():
    """To an encoder, None is another category than the NaN that it has seen."""
    frame = pd.DataFrame({"grade": np.array(["low", "mid", np.nan] * 20, dtype=object)})
    y = frame["grade"].isna().to_numpy().astype(int)
    encoder = OneHotEncoder(handle_unknown="ignore")
    source = make_pipeline(encoder, DecisionTreeClassifier()).fit(frame, y)
    assert hw.certify(source, frame, y, 0).certified_accuracy == 1
    other = frame.astype(object).where(frame.notna(), None)
    with pytest.raises(
        hw.UnsupportedModelError, match=r"gives row 2 of X the label .* as it stand"
    ):
        hw.certify(source, other, y, 0)
