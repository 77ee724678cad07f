"""Rows in parts: the same model as of one process with all rows, bit for bit.

Workers are threads here; `test_cluster.py` has processes.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import hardwood as hw
from hardwood import _core
from hardwood.grow.sketch import FeatureSketch, Sketch
from workers import assert_same_trees, on_workers

N = 1200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
X[:, 3] = np.round(X[:, 3])
X[RNG.random(X.shape) < 0.05] = np.nan
SCORE = np.nansum(X[:, :3], axis=1)
BINARY = (SCORE + RNG.normal(size=N) > 0).astype(int)
MANY = np.array(["a", "b", "c"])[np.digitize(SCORE, [-1, 1])]
NUMBERS = SCORE + RNG.normal(size=N)
WEIGHT = RNG.random(N) * 3
WEIGHT[RNG.random(N) < 0.1] = 0
CUTS = [0, 500, 500, 1190, N]  # one part has no rows

BOOSTED = {"n_estimators": 4, "max_depth": 4, "n_jobs": 1}
FOREST = {"n_estimators": 3, "max_depth": 5, "method": "hist", "n_jobs": 1, "random_state": 1}
MODELS = {
    "paper": (hw.RobustGradientBoostingClassifier(eps=0.1, inner="paper", **BOOSTED), BINARY, None),
    "classes, draws": (
        hw.RobustGradientBoostingClassifier(
            eps=0.1, inner="exact", subsample=0.5, colsample_bytree=0.5, random_state=3, **BOOSTED
        ),
        MANY,
        WEIGHT,
    ),
    "squares": (
        hw.RobustGradientBoostingRegressor(
            threat=hw.Threat([0.1, 0, 0.2, 0.5, (0, 0.1)]), inner="exact", **BOOSTED
        ),
        NUMBERS,
        WEIGHT,
    ),
    "huber, leaves": (
        hw.RobustGradientBoostingRegressor(
            eps=0.1, inner="exact", loss="huber", n_estimators=3, max_leaf_nodes=7, n_jobs=1
        ),
        NUMBERS,
        None,
    ),
    "balanced": (
        hw.RobustGradientBoostingClassifier(
            eps=0.1,
            inner="exact",
            class_weight="balanced",
            monotonic_cst=[1, 0, 0, 0, 0],
            **BOOSTED,
        ),
        BINARY,
        None,
    ),
    "natural": (hw.RobustGradientBoostingClassifier(eps=0, inner="exact", **BOOSTED), MANY, None),
    "forest": (hw.RobustRandomForestClassifier(eps=0.1, **FOREST), MANY, None),
    "forest, weights": (
        hw.RobustRandomForestClassifier(eps=0.1, bootstrap=False, max_samples=0.5, **FOREST),
        BINARY,
        WEIGHT,
    ),
    "newton forest": (
        hw.RobustRandomForestClassifier(eps=0.1, criterion="newton", **FOREST),
        BINARY,
        WEIGHT,
    ),
    "certified": (hw.RobustGradientBoostingClassifier(eps=0.1, **BOOSTED), BINARY, None),
    "certified, draws": (
        hw.RobustGradientBoostingClassifier(
            eps=0.1,
            robustness=0.8,
            subsample=0.5,
            colsample_bytree=0.7,
            max_leaf_nodes=6,
            min_samples_leaf=5,
            random_state=3,
            n_estimators=4,
            n_jobs=1,
        ),
        BINARY,
        WEIGHT,
    ),
    "certified, classes": (hw.RobustGradientBoostingClassifier(eps=0.1, **BOOSTED), MANY, WEIGHT),
    "certified, numbers": (
        hw.RobustGradientBoostingRegressor(
            threat=hw.Threat([0.1, 0, 0.2, 0.5, (0, 0.1)]),
            monotonic_cst=[1, 0, 0, 0, 0],
            **BOOSTED,
        ),
        NUMBERS,
        WEIGHT,
    ),
    "certified, only and blank": (
        hw.RobustGradientBoostingClassifier(
            threat=hw.Threat(0.1, only=1, blank=[1]), max_bins=40, **BOOSTED
        ),
        BINARY,
        None,
    ),
    "certified, quantile": (
        hw.RobustGradientBoostingRegressor(eps=0.1, loss="quantile", quantile=0.7, **BOOSTED),
        NUMBERS,
        WEIGHT,
    ),
    "only and blank": (
        hw.RobustGradientBoostingClassifier(
            threat=hw.Threat(0.1, only="b", blank=[1]), inner="exact", **BOOSTED
        ),
        MANY,
        None,
    ),
    "quantile": (
        hw.RobustGradientBoostingRegressor(
            eps=0.1, inner="exact", loss="quantile", quantile=0.3, **BOOSTED
        ),
        NUMBERS,
        WEIGHT,
    ),
}


def rows_of(rank, *arrays):
    some = slice(CUTS[rank], CUTS[rank + 1])
    return [None if array is None else array[some] for array in arrays]


def assert_same_model(fitted, wanted):
    assert not isinstance(fitted, Exception), fitted
    assert type(fitted) is type(wanted)
    assert_same_trees(fitted.trees_, wanted.trees_)
    if hasattr(wanted, "classes_"):
        np.testing.assert_array_equal(fitted.classes_, wanted.classes_)


@pytest.mark.parametrize("kind", MODELS)
def test_parts_and_batches_train_the_model_of_one_process(kind):
    model, y, weight = MODELS[kind]
    wanted = clone(model).fit(X, y, weight)
    assert (wanted.trees_.feature >= 0).sum() > 10

    def work(communicator):
        rows = rows_of(communicator.rank, X, y, weight)
        return hw.distributed.fit_part(model, *rows, communicator=communicator)

    for fitted in on_workers(4, work):
        assert_same_model(fitted, wanted)
    batches = hw.distributed.ArrayBatches(X, y, weight, n_rows=301)
    assert_same_model(hw.distributed.fit_batches(model, batches), wanted)


KINDS = pd.DataFrame(X[:, [0, 1, 3]], columns=list("abc"))
KINDS["d"] = np.array(list("uvwxyz"))[np.digitize(X[:, 2], [-2, -1, 0, 1, 2])]
KINDS["e"] = pd.Categorical.from_codes(
    np.digitize(X[:, 4], [-1, 0, 1]), categories=["q", "p", "o", "n", "m"]
)
KINDS["f"] = RNG.integers(0, 4, N)
KINDS.loc[RNG.random(N) < 0.05, "d"] = None
THREAT = hw.Threat({"a": 0.1, "f": 1, "d": {"u": ["v"], "w": ["x"]}, "e": hw.ANY})


@pytest.mark.parametrize("inner", ["certified", "exact"])
@pytest.mark.parametrize("kind", ["frames", "codes"])
def test_categories_of_parts_are_those_of_all(inner, kind):
    threat, table, y = THREAT, KINDS, MANY
    options = {"inner": inner, **BOOSTED}
    if kind == "codes":
        threat, y = hw.Threat([0.1, 0.1, 0.1, 0, 0]), NUMBERS
        table = np.column_stack([X[:, :3], np.nan_to_num(X[:, 3]) + 9, X[:, 3] > 0])
        table[RNG.random(N) < 0.05, 3] = np.nan
        options |= {"categorical_features": [3], "max_bins": 4}
    estimator = {"frames": hw.RobustGradientBoostingClassifier}
    model = estimator.get(kind, hw.RobustGradientBoostingRegressor)(threat=threat, **options)
    wanted = clone(model).fit(table, y, WEIGHT)
    assert len(wanted.trees_.category) > 0
    fitted = on_workers(
        4,
        lambda communicator: hw.distributed.fit_part(
            model, *rows_of(communicator.rank, table, y, WEIGHT), communicator=communicator
        ),
    )
    assert_same_model(fitted[0], wanted)
    np.testing.assert_array_equal(fitted[3].predict(table), wanted.predict(table))
    batches = hw.distributed.ArrayBatches(table, y, WEIGHT, n_rows=301)
    assert_same_model(hw.distributed.fit_batches(model, batches), wanted)


def test_pieces_may_be_sparse():
    table = sparse.csr_matrix(np.where(np.abs(np.nan_to_num(X)) > 0.7, np.nan_to_num(X), 0))
    model = hw.RobustGradientBoostingClassifier(eps=0.1, **BOOSTED)
    wanted = clone(model).fit(table, BINARY)
    fitted = hw.distributed.fit_batches(
        model, [(table[:500], BINARY[:500]), (table[500:], BINARY[500:])]
    )
    assert_same_model(fitted, wanted)


@pytest.mark.parametrize(
    ("scoring", "inner"), [(None, "exact"), ("accuracy", "exact"), (None, "certified")]
)
def test_early_stopping_looks_at_the_rows_of_all_workers(scoring, inner):
    model = hw.RobustGradientBoostingClassifier(
        eps=0.1,
        inner=inner,
        n_estimators=60,
        learning_rate=0.8,
        early_stopping=True,
        n_iter_no_change=3,
        scoring=scoring,
        n_jobs=1,
    )
    train, held = slice(0, 800), slice(800, N)
    wanted = clone(model).fit(X[train], BINARY[train], X_val=X[held], y_val=BINARY[held])
    assert wanted.n_estimators_ < 50

    def work(communicator):
        first = slice(0, 100) if communicator.rank == 0 else slice(100, 800)
        some = held if communicator.rank == 1 else slice(0, 0)  # one has no validation rows
        return hw.distributed.fit_part(
            model,
            X[first],
            BINARY[first],
            X_val=X[some],
            y_val=BINARY[some],
            communicator=communicator,
        )

    for fitted in on_workers(2, work):
        assert_same_model(fitted, wanted)
        assert fitted.evals_result_ == wanted.evals_result_
        assert fitted.n_estimators_ == wanted.n_estimators_


@pytest.mark.parametrize("inner", ["exact", "certified"])
def test_training_goes_on_from_a_checkpoint(inner):
    model = hw.RobustGradientBoostingClassifier(
        eps=0.1, inner=inner, n_estimators=7, subsample=0.7, random_state=2, n_jobs=1
    )
    wanted = clone(model).fit(X, MANY)
    kept = []

    def work(communicator, start=None):
        rows = rows_of(communicator.rank, X, MANY)
        return hw.distributed.fit_part(
            model,
            *rows,
            communicator=communicator,
            start=start,
            checkpoint=kept.append if communicator.rank == 0 else None,
            checkpoint_every=3,
        )

    on_workers(4, work)
    assert [checkpoint.n_rounds for checkpoint in kept] == [3, 6]
    for fitted in on_workers(4, lambda communicator: work(communicator, kept[0])):
        assert_same_model(fitted, wanted)


def test_what_one_worker_refuses_all_refuse():
    model = hw.RobustGradientBoostingClassifier(inner="exact", n_jobs=1)

    def work(communicator):
        rows, y = rows_of(communicator.rank, X, BINARY.astype(float))
        if communicator.rank == 2:
            y[5] = np.nan
        return hw.distributed.fit_part(model, rows, y, communicator=communicator)

    for answer in on_workers(4, work):
        assert isinstance(answer, ValueError)
        assert "the rows of worker 2: Input y contains NaN" in str(answer)


def frame(columns):
    return pd.DataFrame(X[:50, : len(columns)], columns=list(columns))


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([(frame("ab"), BINARY[:50]), (frame("ac"), BINARY[:50])], "batch 1 has the columns"),
        (
            [(X[:9], BINARY[:9]), (X[:9, :2], BINARY[:9])],
            "batch 1 has 2 features but batch 0 has 5",
        ),
        ([(X[:9], np.zeros(9)), (X[:9], np.zeros(9))], "only one class, 0.0, in all 2"),
        ([(X[:0], BINARY[:0])], "There are no rows: all 1"),
        ([(X[:9], BINARY[:8])], "batch 0: Found input variables with inconsistent"),
        (
            [(X[:9], BINARY[:9], np.zeros(9)), (X[:0], BINARY[:0], np.zeros(0))],
            "All weights are zero",
        ),
        ([(X[:9], BINARY[:9], -np.ones(9))], "batch 0: sample_weight must be finite and >= 0"),
    ],
)
def test_bad_pieces_are_named(batches, words):
    model = hw.RobustGradientBoostingClassifier(inner="exact")
    with pytest.raises(ValueError, match=words):
        hw.distributed.fit_batches(model, batches)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "exact"}, 'method="exact" tries every value'),
        ({"early_stopping": True}, "early_stopping needs X_val"),
        ({"warm_start": True}, "warm_start does not go on"),
    ],
)
def test_what_rows_in_parts_cannot_do_is_refused(change, words):
    model = hw.RobustGradientBoostingClassifier(**{"inner": "exact", **change})
    with pytest.raises(ValueError, match=words):
        hw.distributed.fit_batches(model, [(X, BINARY)])
    if "warm_start" in change:
        with pytest.raises(ValueError, match=words):
            hw.distributed.fit_batches(hw.RobustRandomForestClassifier(**change), [(X, BINARY)])
    with pytest.raises(TypeError, match="not RobustDecisionTreeClassifier"):
        hw.distributed.fit_part(hw.RobustDecisionTreeClassifier(), X, BINARY)


def test_a_generator_is_refused():
    model = hw.RobustGradientBoostingClassifier(inner="exact")
    with pytest.raises(ValueError, match="a generator runs once"):
        hw.distributed.fit_batches(model, ((X, BINARY) for _ in range(1)))


def test_batches_of_parquet_files_and_of_maps(tmp_path):
    model = hw.RobustGradientBoostingRegressor(eps=0.1, inner="exact", **BOOSTED)
    table = pd.DataFrame(X, columns=list("abcde")).assign(target=NUMBERS, w=WEIGHT)
    table.iloc[:700].to_parquet(tmp_path / "0.parquet")
    table.iloc[700:].to_parquet(tmp_path / "1.parquet")
    wanted = clone(model).fit(table[list("abcde")], NUMBERS, WEIGHT)
    files = hw.distributed.ParquetBatches(tmp_path, "target", "w", n_rows=256)
    fitted = hw.distributed.fit_batches(model, files)
    assert_same_model(fitted, wanted)
    assert list(fitted.feature_names_in_) == list("abcde")
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    batches = hw.distributed.ArrayBatches(on_disk, NUMBERS, WEIGHT, n_rows=256)
    assert_same_model(hw.distributed.fit_batches(model, batches), wanted)
    with pytest.raises(ValueError, match="There is no column 'label'"):
        hw.distributed.ParquetBatches(tmp_path, "label")


@pytest.mark.parametrize("weight", ["none", "whole", "any"])
@pytest.mark.parametrize("inner", ["exact", "certified"])
def test_large_tables_have_the_edges_of_one_process_too(inner, weight):
    n = _core.SAMPLED_ROWS + 50_000  # one process looks at some of them
    rng = np.random.default_rng(2)
    table = rng.normal(size=(n, 2)).astype(np.float32)
    table[:, 1] = np.round(50 * table[:, 1])  # more values than bins
    table[-1, 1] = np.nan  # in no sample
    y = (table[:, 0] + rng.normal(size=n) > 0).astype(int)
    kinds = {"none": None, "whole": rng.integers(0, 3, n), "any": rng.random(n)}
    model = hw.RobustGradientBoostingClassifier(
        eps=0.01, inner=inner, n_estimators=1, max_depth=4, n_jobs=1
    )
    wanted = clone(model).fit(table, y, kinds[weight])
    batches = hw.distributed.ArrayBatches(table, y, kinds[weight], n_rows=60_001)
    assert_same_model(hw.distributed.fit_batches(model, batches), wanted)


@pytest.mark.parametrize("weighted", [False, True])
def test_sketches_keep_ranks_within_their_stated_error(weighted):
    rng = np.random.default_rng(1)
    column = rng.exponential(size=20_000)
    count = rng.integers(1, 5, len(column)).astype(np.uint64) if weighted else None
    exact = FeatureSketch.of(column, count, 1 << 20)
    assert exact.error == 0
    pieces = [
        FeatureSketch.of(part, None if count is None else some, 400)
        for part, some in zip(
            np.array_split(column, 9),
            np.array_split(np.zeros(len(column)) if count is None else count, 9),
            strict=True,
        )
    ]
    merged = Sketch.merged([Sketch([piece], np.zeros(1, bool)) for piece in pieces]).features[0]
    small = FeatureSketch.merged([merged], 400)
    assert len(small.x) <= 400
    assert 0 < small.error < 0.06 * exact.count.sum()
    assert small.count.sum() == exact.count.sum()
    for value in np.quantile(column, [0, 0.01, 0.3, 0.5, 0.99, 1]):
        ranks = [int(one.count[one.x <= np.float32(value)].sum()) for one in (exact, small)]
        assert abs(ranks[0] - ranks[1]) <= small.error
