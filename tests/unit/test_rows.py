"""What tables users pass: frames, sparse ones, missing values of all kinds, and no numbers."""

from decimal import Decimal

import dask.dataframe
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PowerTransformer, StandardScaler
from xgboost import XGBClassifier

import hardwood as hw
from hardwood import _check


def questions(model, X, y):
    """Every public function that takes rows of a model."""
    return {
        "load_model": lambda: hw.load_model(model, X),
        "margin": lambda: hw.load_model(model).margin(X),
        "certify": lambda: hw.certify(model, X, y, 0.1),
        "minimal_distance": lambda: hw.minimal_distance(model, X, y),
        "certified_accuracy": lambda: hw.certified_accuracy(model, X, y, [0.1]),
        "output_range": lambda: hw.output_range(model, X, 0.1),
        "find_adversarial": lambda: hw.find_adversarial(model, X, y),
        "cheng": lambda: hw.find_adversarial(hw.load_model(model), X, y, method="cheng"),
    }


@pytest.fixture(scope="module")
def boosted():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (300, 3)).astype(float)
    y = (X.sum(axis=1) > 75).astype(int)
    return HistGradientBoostingClassifier(max_iter=5).fit(X, y), X[:20], y[:20]


def test_complex_numbers_are_refused(boosted):
    model, X, y = boosted
    for ask in questions(model, X + 1j, y).values():
        with pytest.raises(ValueError, match="X holds complex numbers, which have no order"):
            ask()
    with pytest.raises(ValueError, match="column 'b' of X holds complex numbers"):
        hw.load_model(model).margin(
            pd.DataFrame(X + np.array([0, 1j, 0]), columns=list("abc")).assign(a=1.0)
        )
    with pytest.raises(ValueError, match=r"X holds \(1\+2j\) at \[0, 1\], which is no real number"):
        hw.load_model(model).margin(np.array([[1, 1 + 2j, "x"]], dtype=object))


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array", "lil_matrix"])
def test_sparse_tables_are_written_out(boosted, kind):
    model, X, y = boosted
    sparse = getattr(scipy.sparse, kind)(X)
    for name, ask in questions(model, sparse, y).items():
        if name == "find_adversarial":
            continue  # the source itself takes no sparse rows
        ask()
    np.testing.assert_array_equal(
        hw.load_model(model).margin(sparse), hw.load_model(model).margin(X)
    )
    status = hw.certify(model, sparse, y, 1.0).status
    np.testing.assert_array_equal(status, hw.certify(model, X, y, 1.0).status)
    found = hw.find_adversarial(model, sparse, y)
    np.testing.assert_array_equal(found.X_adv, hw.find_adversarial(model, X, y).X_adv)


@pytest.mark.parametrize("trained", ["dense", "sparse"])
def test_what_xgboost_takes_for_missing_is_missing(trained, tmp_path):
    """Zeros that a sparse table does not store get another label there than stored ones."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (80, 4)) * (rng.random((80, 4)) < 0.5) * 1.0
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 1)).astype(int)
    sparse = scipy.sparse.csr_array(X)
    sparse.data[:20] = 0  # stored zeros are zeros
    model = XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1)
    model.fit(sparse if trained == "sparse" else X, y)
    label = model.predict(sparse)
    assert not np.array_equal(label, model.predict(sparse.toarray()))
    with pytest.warns(hw.UnitWarning, match=r"store is missing to XGBoost, not 0, .*toarray"):
        found = hw.certify(model, sparse, label, 1.0)
    assert found.status[0] in ("certified", "broken")
    broken = found.status == "broken"
    assert 0 < np.count_nonzero(broken) < len(X)
    assert (model.predict(found.X_adv[broken]) != label[broken]).all()
    model.save_model(tmp_path / "theirs.json")
    trees = hw.load_model(model, X=sparse)
    trees.save_model(tmp_path / "ours.json")
    model.get_booster().dump_model(tmp_path / "dump.json", dump_format="json")
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.coo_array, scipy.sparse.csc_array):
        np.testing.assert_array_equal(trees.predict(kind(sparse)), label)
    for file in ("theirs.json", "ours.json", "dump.json"):
        again = hw.load_model(tmp_path / file, X=sparse)
        np.testing.assert_array_equal(again.predict(sparse), label)


def test_a_sparse_table_that_xgboost_gets_from_steps_is_refused_where_labels_differ():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 4, (80, 4)) * (rng.random((80, 4)) < 0.5) * 1.0
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 1)).astype(int)
    sparse = scipy.sparse.csr_array(X)
    last = XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1)
    model = make_pipeline(MaxAbsScaler(), last).fit(sparse, y)
    with pytest.raises(hw.UnsupportedModelError, match=r"gives row \d+ .* out by X.toarray\(\)"):
        hw.certify(model, sparse, y, 0.1)


def test_a_sparse_table_that_is_too_large_is_refused_before_it_is_written_out():
    trees = hw.Trees([-1], [0.0], [-1], [-1], [False], [1.0], [0, 1], n_features=2_000_000)
    empty = scipy.sparse.csr_array((2_000, 2_000_000))
    with pytest.raises(ValueError, match=r"X is sparse with 2000 rows x 2000000 .*fewer rows at a"):
        trees.margin(empty)


FRAMES = {
    "pandas, nullable": lambda X: pd.DataFrame(X, columns=list("abc")).astype(
        {"a": "Int64", "b": "Float64", "c": "boolean"}
    ),
    "pandas, objects": lambda X: (
        pd.DataFrame(X, columns=list("abc"))
        .astype({"a": "Int64", "b": "Float64", "c": "boolean"})
        .astype(object)
    ),
    "polars": lambda X: pl.DataFrame(
        {
            name: pl.Series([None if v != v else int(v) for v in X[:, f]]).cast(kind)
            for f, (name, kind) in enumerate(
                {"a": pl.Int64, "b": pl.Float64, "c": pl.Boolean}.items()
            )
        }
    ),
    "list": lambda X: [[None if v != v else v for v in row] for row in X.tolist()],
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("holes", [False, True])
def test_missing_values_of_all_kinds(kind, holes):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (300, 3)).astype(float)
    X[:, 2] = X[:, 2] > 20
    y = (X.sum(axis=1) > 50).astype(int)
    if holes:
        X[rng.random(X.shape) < 0.2] = np.nan
    trees = hw.load_model(HistGradientBoostingClassifier(max_iter=5).fit(X, y))
    given = FRAMES[kind](X[:30])
    np.testing.assert_array_equal(trees.rows(given), X[:30])
    np.testing.assert_array_equal(trees.margin(given), trees.margin(X[:30]))
    status = hw.certify(trees, given, y[:30], 2.0).status
    np.testing.assert_array_equal(status, hw.certify(trees, X[:30], y[:30], 2.0).status)


def test_words_are_refused_with_their_column(boosted):
    trees = hw.load_model(boosted[0])
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"column 'b' of X holds .*'x'.*; encode it as numbers"):
        trees.margin(frame)
    with pytest.raises(ValueError, match=r"column 'b' of X holds .*'x'.*; encode it as numbers"):
        trees.margin(pl.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"X holds <U1, not numbers, first 'x'; encode it"):
        trees.margin(np.full((2, 3), "x"))
    with pytest.raises(ValueError, match=r"column 'b' of X holds datetime64.*; encode it"):
        trees.margin(frame.assign(b=pd.to_datetime(["2020-01-01", "2020-01-02"])))
    with pytest.raises(ValueError, match="X must be a table of numbers"):
        trees.margin([[1.0, 2.0, 3.0], [1.0]])
    with pytest.raises(ValueError, match="X has several columns named 'a'"):
        trees.margin(pd.DataFrame(np.ones((2, 3)), columns=["a", "a", "b"]))
    numbers = [[1, Decimal("0.5"), True]]
    np.testing.assert_array_equal(trees.rows(np.array(numbers, dtype=object)), [[1, 0.5, 1]])


def test_whole_numbers_that_float64_rounds_are_refused():
    nodes = [0, -1, -1], [2.0**53 + 2, 0, 0], [1, -1, -1], [2, -1, -1]
    trees = hw.Trees(*nodes, [True] * 3, [0, -1.0, 1.0], [0, 3])
    odd, even = 2**53 + 1, 2**53 + 2
    words = rf"holds {odd} at \[1.*\], which float64 rounds to {2**53}: whole numbers beyond"
    for X in (
        np.array([[1], [odd]]),
        np.array([[1], [odd]], dtype=np.uint64),
        np.array([[1], [odd]], dtype=object),
        pd.DataFrame({"a": [1, odd]}),
        pd.DataFrame({"a": pd.array([None, odd], dtype="Int64")}),
        pl.DataFrame({"a": [None, odd]}),
        pl.DataFrame({"a": [1, odd]}),
        scipy.sparse.csr_array(np.array([[1], [odd]])),
    ):
        with pytest.raises(ValueError, match=words):
            trees.margin(X)
    np.testing.assert_array_equal(trees.margin(np.array([[even], [2**60]])), [[1.0], [1.0]])


@pytest.mark.parametrize("kind", [np.asarray, lambda X: pd.DataFrame(X, columns=list("abc"))])
def test_rows_of_float32_of_which_a_pipeline_thinks_otherwise_are_refused(kind):
    """PowerTransformer computes in float32 then, far off where a spread is small beside values."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 3)) * 10 + 1000).astype(np.float32)
    y = (X.sum(axis=1) > 3000).astype(int)
    forest = RandomForestClassifier(5, max_depth=5, random_state=1)
    model = make_pipeline(PowerTransformer(), forest).fit(kind(X.astype(np.float64)), y)
    rows = np.repeat(X[:20], 10, axis=0)
    trees = hw.load_model(model)
    rows[:, 0] = rng.choice(trees.threshold[trees.feature == 0], len(rows))
    assert (model.predict(kind(rows)) != model.predict(kind(rows.astype(np.float64)))).any()
    with pytest.raises(
        hw.UnsupportedModelError, match=r"gives row \d+ of X the label . as it stands"
    ):
        hw.certify(model, kind(rows), model.predict(kind(rows).astype(np.float64)), 0.0)
    wide = kind(rows).astype(np.float64)
    assert hw.certify(model, wide, model.predict(wide), 0.0).certified_accuracy == 1


TABLES = {
    "LazyFrame of polars": (lambda frame: pl.from_pandas(frame).lazy(), r"Pass X\.collect\(\)"),
    "Table of pyarrow": (pyarrow.Table.from_pandas, r"Pass X\.to_pandas\(\)"),
    "RecordBatch of pyarrow": (pyarrow.RecordBatch.from_pandas, r"Pass X\.to_pandas\(\)"),
    "DataFrame of dask": (
        lambda frame: dask.dataframe.from_pandas(frame, npartitions=2),
        r"Pass X\.compute\(\), or ask hw\.dask",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_other_kinds_are_refused_in_words(boosted, name):
    model, X, y = boosted
    make, advice = TABLES[name]
    table = make(pd.DataFrame(X, columns=list("abc")))
    ours = hw.RobustDecisionTreeClassifier(eps=0).fit(X, y)
    asked = {
        **questions(model, table, y),
        "fit": lambda: hw.RobustGradientBoostingClassifier().fit(table, y),
        "predict": lambda: ours.predict(table),
    }
    for ask in asked.values():
        with pytest.raises(ValueError, match=f"X is a {name}; tables are read .* {advice}"):
            ask()


def test_lightgbm_sees_what_float64_does_not():
    """Why such numbers are refused: LightGBM's own label would be another one."""
    X = np.array([[2**53 + k] for k in range(40)] * 5)
    y = (np.arange(200) % 40 > 20).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=1, verbose=-1).fit(X, y)
    with pytest.raises(ValueError, match=r"beyond 2\*\*53 cannot all be told apart"):
        hw.certify(model, X, y, 0.0)


REFUSE = {
    "gradient boosting": GradientBoostingClassifier(n_estimators=3),
    "AdaBoost": AdaBoostClassifier(n_estimators=3),
    "pipeline": make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=3)),
}


@pytest.mark.parametrize("kind", REFUSE)
def test_missing_values_are_refused_where_the_source_does(kind, tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :5]
    model = REFUSE[kind].fit(X, y)
    holed = X[:20].copy()
    holed.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(holed)
    for ask in questions(model, holed, y[:20]).values():
        with pytest.raises(
            ValueError, match=r"missing value \(NaN\) in row 3, column 'mean texture'.*takes none"
        ):
            ask()
    trees = hw.load_model(model)
    trees.save_model(tmp_path / "m.json")
    for again in (hw.load_model(tmp_path / "m.json"), trees.first(1)):
        assert not again.takes_missing
        with pytest.raises(ValueError, match="takes none"):
            again.predict(holed)


def test_missing_values_are_taken_where_the_source_does():
    X, y = load_breast_cancer(return_X_y=True)
    holed = X.copy()
    holed[::3, 2] = np.nan
    for model in (
        RandomForestClassifier(3, random_state=0).fit(X, y),
        RandomForestClassifier(3, random_state=0).fit(holed, y),
        HistGradientBoostingClassifier(max_iter=3).fit(X, y),
    ):
        trees = hw.load_model(model)
        assert trees.takes_missing
        np.testing.assert_array_equal(trees.predict(holed), model.predict(holed))
    forest = IsolationForest(n_estimators=5, random_state=0).fit(X)
    takes = forest.__sklearn_tags__().input_tags.allow_nan
    assert hw.load_model(forest).takes_missing == takes


def test_frames_and_columns_become_rows_as_numpy_does_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(5000, 3)), columns=list("abc"))
    X["d"] = rng.integers(9, size=5000)
    X["e"] = X["a"].astype(np.float32)
    table = _check.frame_in_rows(X)
    assert table.flags.c_contiguous
    np.testing.assert_array_equal(table, X.to_numpy())
    turned = _check.in_rows(np.asfortranarray(table))
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, table)
    others = [X.astype(np.float32), X.convert_dtypes(), X.assign(d="x"), X[["a", "a"]], X[[]]]
    assert all(_check.frame_in_rows(other) is None for other in [*others, pl.DataFrame(X), table])
