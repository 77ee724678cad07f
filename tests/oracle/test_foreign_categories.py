"""Splits on categories: read from their sources, walked, boxed, saved, and held fixed in proofs."""

import base64
import json

import numpy as np
import pandas
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from threadpoolctl import threadpool_limits

import hardwood as hw
from hardwood.model.load import load_bytes
from hardwood.model.xgboost.write import document_of
from oracle.walk import label_of, leaves_of, margin_of
from samples import assert_same_trees

JOBS = ["clerk", "cook", "mason", "smith", "tailor", "weaver"]


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


def frame(n=500, seed=0):
    """Numbers, names and numbers as categories; all with missing values."""
    rng = np.random.default_rng(seed)
    job, place = rng.choice(JOBS, n), rng.integers(0, 40, n)
    X = pandas.DataFrame(
        {
            "age": rng.normal(size=n).round(1),
            "job": pandas.Categorical(job, categories=JOBS),
            "place": pandas.Categorical(place * 10, categories=np.arange(40) * 10),
            "pay": rng.normal(size=n),
        }
    )
    for name in X.columns:
        X.loc[rng.random(n) < 0.1, name] = np.nan
    y = (np.isin(job, ["cook", "smith"]) ^ (place % 7 == 2) ^ (X["age"] > 1)).astype(int)
    return X, np.asarray(y)


def codes(n, rng, numbers=None):
    """Rows of numbers: known categories, unknown ones, out of range, missing."""
    X = rng.normal(size=(n, 4))
    X[:, 1] = rng.choice([*range(8), 100, -1, 2.0**24, np.nan], n)
    X[:, 2] = rng.choice([*(range(45) if numbers is None else numbers), 1e9, -3, np.nan], n)
    X[rng.random(n) < 0.1, 0] = np.nan
    return X


def xgboost_model(n_onehot):
    import xgboost

    X, y = frame()
    model = xgboost.XGBClassifier(
        n_estimators=20,
        max_depth=4,
        enable_categorical=True,
        max_cat_to_onehot=n_onehot,
        n_jobs=1,
    ).fit(X, y)

    def raw(rows):
        matrix = xgboost.DMatrix(rows)
        found = model.get_booster().predict(matrix, output_margin=True, validate_features=False)
        return found.astype(np.float64)

    return model, raw, lambda X: model.predict(X, output_margin=True)


def lightgbm_model(X):
    import lightgbm

    model = lightgbm.LGBMClassifier(
        n_estimators=20, min_child_samples=3, min_data_per_group=3, cat_smooth=1, verbose=-1,
        n_jobs=1,
    )  # fmt: skip
    categories = "auto" if hasattr(X, "columns") else [1, 2]
    model.fit(X, frame()[1], categorical_feature=categories)
    booster = model.booster_
    return model, lambda rows: booster.predict(rows, raw_score=True, validate_features=False)


@pytest.mark.parametrize("n_onehot", [1, 100], ids=["sets", "one category"])
def test_xgboost(tmp_path, n_onehot):
    model, raw, of_frame = xgboost_model(n_onehot)
    X, _ = frame(300, 1)
    trees = hw.load_model(model, X=X)
    assert trees.categorical.sum() > 20
    assert (np.diff(trees.category_start).max() > 1) == (n_onehot == 1)
    assert trees.category_names == {1: JOBS, 2: (np.arange(40) * 10).tolist()}
    rows = codes(3000, np.random.default_rng(0))
    np.testing.assert_array_equal(trees.margin(rows)[:, 0], raw(rows))
    np.testing.assert_array_equal(trees.margin(X)[:, 0], of_frame(X))
    for suffix in (".json", ".ubj"):
        model.save_model(tmp_path / f"theirs{suffix}")
        assert_same_trees(hw.load_model(tmp_path / f"theirs{suffix}"), with_classes(trees, None))


def with_classes(trees, classes):
    return trees.replace(classes=classes)


@pytest.mark.parametrize("as_frame", [True, False], ids=["frame", "numbers"])
def test_lightgbm(tmp_path, as_frame):
    X = frame()[0]
    if not as_frame:
        X = np.column_stack([X["age"], X["job"].cat.codes, X["place"].cat.codes, X["pay"]])
    model, raw = lightgbm_model(X)
    trees = hw.load_model(model, X=X)
    assert trees.categorical.sum() > 5
    rows = codes(3000, np.random.default_rng(0))
    np.testing.assert_array_equal(trees.margin(rows)[:, 0], raw(rows))
    if as_frame:
        np.testing.assert_array_equal(trees.margin(X)[:, 0], model.predict(X, raw_score=True))
    model.booster_.save_model(tmp_path / "m.txt")
    read = hw.load_model(tmp_path / "m.txt")
    np.testing.assert_array_equal(read.margin(rows), trees.margin(rows))
    assert read.category_names == trees.category_names


@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, HistGradientBoostingRegressor])
def test_scikit_learn(kind):
    X, y = frame()
    model = kind(categorical_features="from_dtype", max_iter=15).fit(X, y)
    raw = model.decision_function if hasattr(model, "classes_") else model.predict
    trees = hw.load_model(model, X=X)
    assert trees.categorical.sum() > 15
    assert trees.category_names == {1: JOBS, 2: []}
    np.testing.assert_array_equal(trees.margin(X)[:, 0], raw(X))
    table = np.column_stack([X["age"], X["job"].cat.codes, X["place"], X["pay"]]).astype(float)
    table[table[:, 1] < 0, 1] = np.nan
    model = kind(categorical_features=[1, 2], max_iter=15).fit(table, y)
    raw = model.decision_function if hasattr(model, "classes_") else model.predict
    trees = hw.load_model(model, X=table)
    rows = codes(3000, np.random.default_rng(0), np.arange(45) * 10)
    np.testing.assert_array_equal(trees.margin(rows)[:, 0], raw(rows))


def stump(sets, **more):
    """Two splits on feature 0: `sets[0]` at the root, `sets[1]` on its left."""
    return hw.Trees(
        [0, 0, -1, -1, -1],
        np.zeros(5, np.float32),
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        [True, False, False, False, False],
        np.float32([0, 0, 1, -2, 4]),
        [0, 5],
        n_features=2,
        category_start=np.cumsum([0, len(sets[0]), len(sets[1]), 0, 0, 0]),
        category=[*sets[0], *sets[1]],
        **more,
    )


def test_leaf_categories_say_who_ends_where():
    model, _, _ = xgboost_model(1)
    trees = hw.load_model(model)
    rows = codes(2000, np.random.default_rng(0))
    rows = rows[~np.isnan(rows).any(axis=1)]
    for k in range(trees.n_trees):
        leaf, low, high = trees.leaf_boxes(k)
        asked = trees.leaf_categories(k)
        inside = ((low[:, None] <= rows) & (rows < high[:, None])).all(axis=2)
        for i, by_feature in enumerate(asked):
            for feature, (all_but, listed) in by_feature.items():
                inside[i] &= np.isin(rows[:, feature], listed) != all_but
        assert (inside.sum(axis=0) == 1).all()
        np.testing.assert_array_equal(leaf[np.argmax(inside, axis=0)], leaves_of(trees, k, rows))
    np.testing.assert_array_equal(trees.margin(rows), margin_of(trees, rows))
    asked = stump([[2, 5], [3, 5]]).leaf_categories()  # in the order -2, 4, 1
    assert [(a, listed.tolist()) for a, listed in (leaf[0] for leaf in asked)] == [
        (True, [2, 3, 5]),
        (False, [3]),
        (False, [2, 5]),
    ]


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_categories_travel_in_our_files_and_through_xgboost(tmp_path, suffix):
    import xgboost

    sources = [
        hw.load_model(xgboost_model(1)[0]),
        hw.load_model(lightgbm_model(frame()[0])[0]),
        stump([[2, 5], [3]], base=[0.5], link="logistic"),
    ]
    rng = np.random.default_rng(0)
    for trees in sources:
        trees.save_model(tmp_path / f"m{suffix}")
        read = hw.load_model(tmp_path / f"m{suffix}")
        assert_same_trees(read, trees)
        rows = codes(2000, rng)[:, : trees.n_features].astype(np.float32).astype(float)
        rows[:, trees.categorical_features] = np.round(rows[:, trees.categorical_features])
        booster = xgboost.Booster(model_file=tmp_path / f"m{suffix}")
        theirs = booster.predict(xgboost.DMatrix(rows), output_margin=True, validate_features=False)
        tolerance = 0 if trees.value.dtype == np.float32 else 1e-5  # rounded to float32 there
        np.testing.assert_allclose(theirs, trees.margin(rows)[:, 0], rtol=0, atol=tolerance)
        booster.save_model(tmp_path / f"again{suffix}")
        assert_same_trees(hw.load_model(tmp_path / f"again{suffix}"), trees)
        assert_same_trees(read.first(1), trees.first(1))


@pytest.mark.parametrize("norm", ["inf", 1, 2, 0])
@pytest.mark.parametrize("n_trees", [1, 4])
def test_no_threat_changes_a_category(norm, n_trees):
    """Distances against brute force over the cells of the other features."""
    trees = hw.load_model(xgboost_model(1)[0]).first(n_trees)
    X, y = frame(12, 3)
    found = hw.minimal_distance(trees, X, y, norm=norm)
    rows, examples = trees.rows(X), trees.rows(found.X_adv)
    cuts = [np.unique(trees.threshold[trees.feature == f]).astype(np.float64) for f in (0, 3)]
    for i, x in enumerate(rows):
        values = []
        for f, edges in zip((0, 3), cuts, strict=True):
            beside = [np.nextafter(edges.astype(np.float32), np.float32(-np.inf)), edges]
            values.append([x[f], *([] if np.isnan(x[f]) else np.concatenate(beside))])
        grid = np.repeat(x[None], len(values[0]) * len(values[1]), axis=0)
        grid[:, 0] = np.repeat(values[0], len(values[1]))
        grid[:, 3] = np.tile(values[1], len(values[0]))
        step = np.nan_to_num(np.abs(grid - x))
        length = (
            np.count_nonzero(step, axis=1)
            if norm == 0
            else np.linalg.norm(step, ord=np.inf if norm == "inf" else norm, axis=1)
        )
        fooled = label_of(trees, grid) != y[i]
        best = min(length[fooled], default=np.inf)
        # The grid lies on float32 numbers; the nearest double can be half of one nearer.
        np.testing.assert_allclose(found.upper[i], best, rtol=1e-5, atol=1e-6)
        if np.isfinite(best):
            np.testing.assert_array_equal(examples[i, [1, 2]], x[[1, 2]])
    if norm == "inf":
        eps = 0.1
        broken = hw.certify(trees, X, y, eps).status == "broken"
        np.testing.assert_array_equal(broken, found.upper <= eps)
        curve = hw.certified_accuracy(trees, X, y, [0.1, 0.3])
        np.testing.assert_array_equal(curve.status[0] == "broken", broken)


def test_names_that_xgboost_garbles_are_not_taken_for_names():
    import xgboost

    X, y = frame()
    X["job"] = X["job"].cat.rename_categories({"mason": "maçon"})
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True, n_jobs=1).fit(X, y)
    trees = hw.load_model(model)
    assert 1 not in trees.category_names
    with pytest.raises(ValueError, match="'job' holds names of categories, but this model knows"):
        trees.margin(X)


def test_time_is_shared_between_the_parts():
    trees = hw.load_model(xgboost_model(1)[0])
    X, y = frame(30, 3)
    told = []
    with pytest.warns(hw.UndecidedWarning, match="still open after total_time_limit=1e-09 s"):
        result = hw.certify(
            trees, X, y, 0.5, total_time_limit=1e-9, progress=lambda *what: told.append(what)
        )
    assert "unknown" in result.status
    assert told[-1][0] == told[-1][2] == 30
    told.clear()
    assert "unknown" not in hw.certify(trees, X, y, 0.5).status


def test_what_categories_cannot_do_is_said_by_name():
    trees = hw.load_model(xgboost_model(1)[0])
    X, y = frame(5, 3)
    words = r"Tree 0, node \d+ splits on categories of column '(job|place)', which {} cannot"
    for name in ("to_lightgbm", "to_onnx", "to_shap"):
        with pytest.raises(hw.UnsupportedModelError, match=words.format(name)):
            getattr(trees, name)()
    with pytest.raises(ValueError, match="moves column 'job' by 1, but to this model it holds cat"):
        hw.certify(trees, X, y, hw.Threat({"job": 1, "age": 0.1}))
    with pytest.raises(ValueError, match=r"holds categories, .* but X\[0, 1\] = 0.5"):
        trees.margin([[0, 0.5, 0, 0]])
    X["job"] = "baker"
    with pytest.raises(ValueError, match="category 'baker', which the model has not seen; it kno"):
        trees.margin(X)
    X, _ = frame(5, 3)
    X["place"] = pandas.Categorical([1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match="'job' holds names of categories, but this model knows"):
        trees.replace(category_names=None).margin(X)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"category_start": [0, 1, 2]}, "category_start must have 6 entries"),
        ({"category_start": [0, 2, 1, 2, 2, 2]}, "that do not fall"),
        ({"category": [3, 3, 2]}, "tree 0, node 0 has category 3 after 3; they must increase"),
        ({"category": [3, 2**24, 2]}, "has category 16777216 after 3; .* to 16777215"),
        ({"category": [-1, 2, 2]}, "has category -1 after -1"),
        ({"category_start": [0, 2, 2, 3, 3, 3]}, "node 2 is a leaf, but has categories"),
        ({"category_names": {7: ["a"]}}, "category_names names feature 7, but the model has 2"),
    ],
)
def test_broken_sets_are_refused_by_name(change, words):
    trees = stump([[2, 5], [3]])
    with pytest.raises(hw.ModelFileError, match=words):
        trees.replace(**change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"split_type": [0, 0, 0, 0, 0]}, "Tree 0 .* for other nodes than those that split on cat"),
        ({"categories_nodes": [0, 9]}, "Tree 0 .* for other nodes than those"),
        ({"categories_nodes": [1, 0]}, "Tree 0 .* for other nodes than those"),
        ({"categories_segments": [0, 0]}, "Tree 0 .* has empty or overlapping categories"),
        ({"categories_sizes": [3, 0]}, "Tree 0 .* has empty or overlapping categories"),
        ({"categories_sizes": [2]}, "categories_sizes in the XGBoost file has 1 entries, not 2"),
        ({"categories": [2, 5, 3, 4]}, "Tree 0 .* has 4 categories, not 3"),
        ({"categories": [2, -5, 3]}, "node 0 has category -5 after -1"),
    ],
)
def test_hostile_sets_of_xgboost_are_refused_by_name(change, words):
    model = document_of(stump([[2, 5], [3]]))
    model["learner"]["attributes"] = {}
    model["learner"]["gradient_booster"]["model"]["trees"][0].update(change)
    with pytest.raises(hw.ModelFileError, match=words):
        load_bytes(json.dumps(model, default=lambda array: array.tolist()).encode())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("num_cat=", "num_cat=7", "cat_boundaries in the LightGBM file has . entries, not 7"),
        ("cat_boundaries=0", "cat_boundaries=1", "must rise from 0"),
        ("cat_threshold=", "cat_threshold=9 ", "cat_threshold in the LightGBM file has"),
        ("pandas_categorical:[", "pandas_categorical:[[", "is not JSON"),
        ('[["clerk"', '[[[1], "clerk"', "must be lists of names"),
    ],
)
def test_hostile_sets_of_lightgbm_are_refused_by_name(old, new, words):
    model, _ = lightgbm_model(frame()[0])
    text = model.booster_.model_to_string()
    assert old in text
    with pytest.raises(hw.ModelFileError, match=words):
        load_bytes(text.replace(old, new, 1).encode())


def test_an_order_of_nodes_that_is_none_is_refused():
    trees = stump([[2, 5], [3]])
    model = document_of(trees.replace(left=[2, 4, -1, -1, -1], right=[1, 3, -1, -1, -1]))
    note = json.loads(model["learner"]["attributes"]["hardwood"])
    for broken in ([0, 1, 2, 3, 3], [1, 0, 2, 3, 4], [0, 1, 2, 3, 9]):
        note["node"] = base64.b64encode(np.array(broken, "<i4").tobytes()).decode()
        model["learner"]["attributes"]["hardwood"] = json.dumps(note)
        with pytest.raises(hw.ModelFileError, match="node in the file's note is no order of the"):
            load_bytes(json.dumps(model, default=lambda array: array.tolist()).encode())


def test_histogram_boosting_that_saw_its_categories_as_objects():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(4, size=200), rng.normal(size=200)]).astype(object)
    y = ((X[:, 0] == 2) ^ (X[:, 1].astype(float) > 0)).astype(int)
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0]).fit(X, y)
    assert model._preprocessor.named_transformers_["encoder"].categories_[0].dtype == object
    trees = hw.load_model(model)
    np.testing.assert_array_equal(trees.predict(X.astype(float)), model.predict(X))


def test_a_pipeline_whose_own_predict_needs_objects_is_refused_with_the_reason():
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"land": rng.choice(["AT", "DE"], 200), "mobile": rng.random(200) < 0.5})
    X["score"] = rng.normal(size=200)  # beside truth values: an array of objects
    y = (X.land == "AT") ^ X.mobile
    encode = make_column_transformer((OrdinalEncoder(), ["land"]), remainder="passthrough")
    boosting = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0])
    pipeline = make_pipeline(encode, boosting).fit(X, y)
    with pytest.raises(hw.UnsupportedModelError, match="truth values or objects are the usual rea"):
        hw.load_model(pipeline, X)
