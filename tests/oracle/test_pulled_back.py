"""Pipelines over their raw columns: the same answers as the source, on and around every split."""

import pickle

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import hardwood as hw
from pipelines import CATEGORY_STEPS, MODELS, NUMBER_STEPS, around, credit, kinds, pipeline


def test_there_are_sixty_kinds_of_pipelines_and_every_step_is_in_one():
    steps, encoders, models = map(set, zip(*kinds(), strict=True))
    assert len(set(kinds())) >= 60
    assert (steps, encoders, models) == (set(NUMBER_STEPS), set(CATEGORY_STEPS), set(MODELS))


@pytest.mark.parametrize(("steps", "encoder", "model"), kinds())
def test_answers_are_those_of_the_pipeline(steps, encoder, model):
    frame, y = credit()
    with threadpool_limits(limits=1):
        source = pipeline(steps, encoder, model).fit(frame, y)
        trees = hw.load_model(source, X=frame)
        for rows in (frame, around(trees, frame)):
            np.testing.assert_array_equal(trees.predict(rows), source.predict(rows))
            np.testing.assert_allclose(
                trees.predict_proba(rows), source.predict_proba(rows), rtol=1e-6
            )


def strict():
    """A pipeline that takes neither unknown categories nor blanks in words."""
    frame, y = credit()
    known = frame.drop(columns="grade")
    before = ColumnTransformer(
        [("words", OneHotEncoder(), ["job", "city"]), ("numbers", StandardScaler(), ["income"])]
    )
    return make_pipeline(before, GradientBoostingClassifier(n_estimators=5)).fit(known, y), known


def test_columns_that_nobody_reads_may_hold_anything_or_be_gone():
    source, frame = strict()
    trees = hw.load_model(source)
    assert [trees.feature_names[f] for f in sorted(trees.columns.unread)] == [
        name for name in frame if name not in ("job", "city", "income")
    ]
    odd = frame.assign(note=pd.Timestamp("2026-11-17"), age="old")
    np.testing.assert_array_equal(trees.predict(odd), source.predict(frame))
    few = frame[["income", "job", "city"]]
    np.testing.assert_array_equal(trees.predict(few), source.predict(frame))


def test_what_the_pipeline_refuses_is_refused_by_its_column():
    source, frame = strict()
    with pytest.raises(ValueError, match="Column 'job' holds the category 'king', which the model"):
        hw.certify(source, frame.assign(job="king"), source.predict(frame), 0.1)
    with pytest.raises(ValueError, match=r"missing value .NaN. in row 0, column 'city', but"):
        hw.certify(source, frame.assign(city=None), source.predict(frame), 0.1)
    with pytest.raises(ValueError, match="missing: 'income'"):
        hw.certify(source, frame.drop(columns="income"), source.predict(frame), 0.1)


def test_a_column_that_is_number_and_category_needs_known_categories():
    frame, y = credit()
    frame = frame[["loans", "ratio"]]
    for unknown in ("error", "ignore"):
        before = ColumnTransformer(
            [
                ("category", OneHotEncoder(handle_unknown=unknown), ["loans"]),
                ("number", StandardScaler(), ["loans", "ratio"]),
            ]
        )
        source = make_pipeline(before, RandomForestClassifier(5, random_state=0)).fit(frame, y)
        if unknown == "error":
            trees = hw.load_model(source, X=frame)
            assert trees.category_names == {0: sorted(frame["loans"].unique().tolist())}
            np.testing.assert_array_equal(trees.predict(frame), source.predict(frame))
        else:
            with pytest.raises(hw.UnsupportedModelError, match="'loans' is both a number and"):
                hw.load_model(source)


def test_arrays_of_words_are_rows_too():
    frame, y = credit()
    table = frame[["income", "job", "city"]].to_numpy(dtype=object)
    before = ColumnTransformer([("words", OrdinalEncoder(), [1, 2])], remainder="passthrough")
    source = make_pipeline(before, DecisionTreeClassifier(max_depth=5)).fit(table, y)
    trees = hw.load_model(source, X=table)
    np.testing.assert_array_equal(trees.predict(table), source.predict(table))


def test_a_pipeline_has_no_place_in_a_model_file(tmp_path):
    source, _ = strict()
    trees = hw.load_model(source)
    with pytest.raises(
        hw.UnsupportedModelError, match=r"model file cannot .* Save the pipeline its"
    ):
        trees.save_model(tmp_path / "m.json")
    with pytest.raises(hw.UnsupportedModelError, match="to_onnx cannot express this model"):
        trees.to_onnx()
    copy = pickle.loads(pickle.dumps(trees))
    assert copy.columns == trees.columns
    assert copy.category_names == trees.category_names


def test_polars_frames_are_taken_in_any_order_of_columns():
    frame, y = credit()
    source = pipeline("imputed, told", "one-hot", "XGBoost").fit(frame, y)
    trees = hw.load_model(source)
    table = polars.DataFrame(
        {
            name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
            for name in frame
        }
    )
    np.testing.assert_array_equal(
        trees.predict(table.select(frame.columns[::-1])), source.predict(frame)
    )
    nullable = frame.assign(age=frame["age"].astype("Int64"), job=frame["job"].astype("category"))
    np.testing.assert_array_equal(trees.predict(nullable), source.predict(frame))


def test_an_imputer_of_pandas_own_blanks_is_looked_through():
    frame, y = credit()
    frame = frame[["income", "grade"]].astype({"grade": "string"})
    words = make_pipeline(
        SimpleImputer(strategy="most_frequent", missing_values=pd.NA), OrdinalEncoder()
    )
    before = ColumnTransformer([("words", words, ["grade"])], remainder="passthrough")
    source = make_pipeline(before, DecisionTreeClassifier(max_depth=4)).fit(frame, y)
    trees = hw.load_model(source, X=frame)
    np.testing.assert_array_equal(trees.predict(frame), source.predict(frame))


def test_a_threat_cannot_leave_blank_what_the_pipeline_needs():
    source, frame = strict()
    y = source.predict(frame)
    for ask in (hw.certify, hw.find_adversarial):
        with pytest.raises(ValueError, match="leaves column 'city' blank, but the model takes no"):
            ask(source, frame, y, threat=hw.Threat({"income": 1}, blank=["city"]))
    alone = GradientBoostingClassifier(n_estimators=3).fit(frame[["income", "age"]], y)
    with pytest.raises(ValueError, match="leaves column 'age' blank, but the model takes no missi"):
        hw.output_range(alone, frame[["income", "age"]], hw.Threat(blank=["age"]))
