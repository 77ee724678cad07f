"""Training on columns of categories, as scikit-learn's histogram boosting is tested, and more."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import hardwood as hw

JOBS = ["cook", "driver", "nurse", "pilot", "smith", "weaver"]
GOOD = ["cook", "pilot", "weaver"]  # no threshold along the alphabet parts these


def frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n).astype(float),
            "job": rng.choice(JOBS, n),
            "member": rng.random(n) < 0.5,
            "town": pd.Categorical(rng.choice(["x", "y", "z"], n), categories=["z", "x", "y"]),
        }
    )
    y = X["job"].isin(GOOD) ^ (X["member"] & (X["age"] > 40))
    return X, np.where(y, "yes", "no")


def in_polars(X):
    return pl.DataFrame({name: X[name].tolist() for name in X.columns})


def boosting(**parameters):
    return hw.RobustGradientBoostingClassifier(
        **{"eps": 0, "n_estimators": 20, "max_depth": 3, "random_state": 0, **parameters}
    )


ALL = [
    boosting(),
    hw.RobustDecisionTreeClassifier(eps=0, max_depth=5),
    hw.RobustRandomForestClassifier(
        eps=0, n_estimators=15, max_features=None, max_depth=6, random_state=0
    ),
    hw.RobustRandomForestClassifier(
        eps=0, criterion="newton", n_estimators=15, max_features=None, max_depth=6, random_state=0
    ),
]
KIND = [type(model).__name__ + getattr(model, "criterion", "") for model in ALL]


@pytest.mark.parametrize("model", ALL, ids=KIND)
def test_a_frame_is_taken_as_it_is(model):
    X, y = frame()
    fitted = clone(model).fit(X, y)
    assert fitted.score(X, y) > 0.95
    assert fitted.is_categorical_.tolist() == [False, True, True, True]
    assert fitted.trees_.category_names == {1: JOBS, 2: [False, True], 3: ["z", "x", "y"]}
    assert fitted.trees_.categorical.any()
    assert (fitted.predict(X) == fitted.trees_.predict(X)).all()
    assert (fitted.predict(in_polars(X)) == fitted.predict(X)).all()


@pytest.mark.parametrize("model", ALL, ids=KIND)
def test_one_split_does_what_thresholds_need_many_for(model):
    X, _ = frame()
    y = X["job"].isin(GOOD).to_numpy()
    one = {"max_depth": 1} | ({"n_estimators": 1} if hasattr(model, "n_estimators") else {})
    model = clone(model).set_params(**one)
    stump = clone(model).fit(X[["job"]], y)
    assert stump.score(X[["job"]], y) == 1.0
    number = X[["job"]].apply(lambda column: column.map(JOBS.index))
    numbers = clone(model).fit(number, y)
    assert numbers.score(number, y) < 0.9
    listed = stump.trees_.category[: stump.trees_.category_start[1]].tolist()
    assert sorted(JOBS[code] for code in listed) in (GOOD, sorted(set(JOBS) - set(GOOD)))


def test_names_positions_and_masks_mean_the_same():
    X, y = frame()
    first = boosting(categorical_features=["job", "member", "town"]).fit(X, y).trees_
    for given in ("auto", [1, 2, 3], [False, True, True, True], np.array([1, 2, 3])):
        trees = boosting(categorical_features=given).fit(X, y).trees_
        assert (trees.value == first.value).all()
        assert (trees.category == first.category).all()


def test_an_array_names_its_categories_by_numbers():
    X, y = frame()
    table = np.column_stack([X["age"], X["job"].map(JOBS.index) * 7])  # 0, 7, 14, ...
    model = boosting(categorical_features=[1]).fit(table, y)
    named = boosting().fit(X[["age", "job"]], y)
    assert (model.predict_proba(table) == named.predict_proba(X[["age", "job"]])).all()
    assert set(model.trees_.category) <= {7 * k for k in range(len(JOBS))}
    # "auto" sees numbers where nobody says otherwise.
    assert not boosting().fit(table, y).is_categorical_.any()
    assert (model.trees_.margin(table)[:, 0] == model.decision_function(table)).all()


def test_categories_in_any_order_are_matched_by_name():
    X, y = frame()
    model = boosting().fit(X, y)
    other = X.iloc[::-1].assign(
        job=pd.Categorical(X["job"][::-1], categories=["unheard", *reversed(JOBS)]),
        town=X["town"][::-1].astype(str),
        member=X["member"][::-1].astype("boolean"),
    )
    assert (model.predict_proba(other)[::-1] == model.predict_proba(X)).all()
    assert (model.predict_proba(in_polars(other))[::-1] == model.predict_proba(X)).all()


def test_the_order_of_categories_in_training_does_not_matter():
    X, y = frame()
    turned = X.assign(
        job=pd.Categorical(X["job"], categories=JOBS[::-1]),
        town=pd.Categorical(X["town"].astype(str), categories=["y", "z", "x"]),
    )
    one, other = boosting().fit(X, y), boosting().fit(turned, y)
    assert (one.predict_proba(X) == other.predict_proba(turned)).all()


def test_nothing_named_is_no_category():
    X, y = frame()
    table = X[["age"]].to_numpy()
    plain = boosting().fit(table, y)
    for given in ([], [False], np.zeros(1, dtype=bool), None):
        model = boosting(categorical_features=given).fit(table, y)
        assert not model.is_categorical_.any()
        assert (model.predict_proba(table) == plain.predict_proba(table)).all()


def test_a_full_tree_is_that_of_one_hot_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"job": rng.choice(JOBS, 300)})
    y = rng.integers(2, size=300)
    native = hw.RobustDecisionTreeClassifier(eps=0).fit(X, y)
    dummies = OneHotEncoder(sparse_output=False).fit_transform(X)
    apart = hw.RobustDecisionTreeClassifier(eps=0).fit(dummies, y)
    np.testing.assert_array_equal(native.predict_proba(X), apart.predict_proba(dummies))
    assert native.trees_.n_leaves == apart.trees_.n_leaves == len(JOBS)


def test_unseen_categories_go_where_missing_values_go():
    X, y = frame()
    for gaps in (False, True):
        if gaps:
            X["job"] = X["job"].where(np.arange(len(X)) % 7 > 0)
        model = boosting().fit(X, y)
        assert model.trees_.missing_left[model.trees_.categorical].all()
        unseen, missing = X.assign(job="astronaut"), X.assign(job=None)
        assert (model.predict_proba(unseen) == model.predict_proba(missing)).all()
        assert (model.trees_.margin(unseen)[:, 0] == model.decision_function(unseen)).all()


def test_missing_categories_are_learned_from():
    X, _ = frame()
    gone = np.arange(len(X)) % 3 == 0
    X["town"] = X["town"].where(~gone)
    model = hw.RobustDecisionTreeClassifier(eps=0, max_depth=1).fit(X[["town"]], gone)
    assert model.score(X[["town"]], gone) == 1.0
    assert model.predict(X[["town"]].assign(town="elsewhere")).all()


def test_many_categories_share_bins_by_frequency():
    rng = np.random.default_rng(0)
    names = np.array([f"id{k}" for k in range(1000)])
    drawn = names[np.minimum(rng.geometric(0.01, 20_000) - 1, 999)]
    good = set(names[::2])
    y = np.array([name in good for name in drawn])
    X = pd.DataFrame({"id": drawn})
    model = boosting(n_estimators=10, reg_lambda=0.1, min_child_weight=0).fit(X, y)
    frequent = pd.Series(drawn).isin(names[:200]).to_numpy()
    assert model.score(X[frequent], y[frequent]) > 0.99


def test_regression_on_categories():
    X, _ = frame()
    target = X["job"].map(dict(zip(JOBS, [3.0, -1.0, 7.0, 0.5, 2.0, 9.0], strict=True)))
    model = hw.RobustGradientBoostingRegressor(eps=0, n_estimators=200, max_depth=3)
    assert model.fit(X, target).score(X, target) > 0.999


def test_it_is_as_good_as_scikit_learn_and_better_than_one_hot():
    X, y = frame(2000)
    ours = cross_val_score(boosting(n_jobs=1), X, y, cv=3).mean()
    settings = {"max_iter": 20, "learning_rate": 0.3, "max_depth": 3, "random_state": 0}
    theirs = HistGradientBoostingClassifier(**settings).fit(X.astype({"job": "category"}), y)
    assert ours > theirs.score(X.astype({"job": "category"}), y) - 0.02
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job", "town"]), remainder="passthrough"
    )
    one_hot = make_pipeline(encoder, boosting(max_depth=1, n_estimators=1)).fit(X, y)
    assert boosting(max_depth=1, n_estimators=1).fit(X, y).score(X, y) > one_hot.score(X, y)


def test_pickles_and_files_keep_names_and_categories(tmp_path):
    X, y = frame()
    X["job"] = X["job"].where(np.arange(len(X)) % 7 > 0)
    model = boosting().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    as_xgboost_has_them = X.astype({"job": "category"}).assign(
        member=pd.Categorical(X["member"].astype(int), categories=[0, 1])
    )
    for name in ("model.json", "model.ubj"):
        model.save_model(tmp_path / name)
        trees = hw.load_model(tmp_path / name)
        assert trees.category_names == model.trees_.category_names
        assert trees.feature_names == list(X.columns)
        assert (trees.margin(X)[:, 0] == model.decision_function(X)).all()
        stock = xgboost.Booster(model_file=tmp_path / name)
        assert stock.feature_types == ["float", "c", "c", "c"]
        data = xgboost.DMatrix(as_xgboost_has_them, enable_categorical=True)
        margin = stock.predict(data, output_margin=True)
        assert (margin == model.decision_function(X).astype(np.float32)).all()
        numbers = xgboost.DMatrix(trees.rows(X), feature_names=list(X.columns))
        assert (stock.predict(numbers, output_margin=True) == margin).all()


def test_names_that_xgboost_has_no_place_for_stay_in_the_note(tmp_path):
    X = pd.DataFrame({"word": ["größer", "kleiner", "größer", "gleich"] * 30})
    model = boosting().fit(X, [1, 0, 1, 0] * 30)
    model.save_model(tmp_path / "model.json")
    trees = hw.load_model(tmp_path / "model.json")
    assert (trees.predict(X) == model.predict(X)).all()
    stock = xgboost.Booster(model_file=tmp_path / "model.json")
    margin = stock.predict(
        xgboost.DMatrix(trees.rows(X), feature_names=["word"]), output_margin=True
    )
    assert (margin == model.decision_function(X).astype(np.float32)).all()


def test_rounds_go_on_and_stop_early_on_categories():
    X, y = frame(600)
    whole = boosting(n_estimators=12).fit(X, y)
    half = boosting(n_estimators=6, warm_start=True).fit(X, y)
    half.set_params(n_estimators=12).fit(X, y)
    assert (half.trees_.value == whole.trees_.value).all()
    assert (half.trees_.category == whole.trees_.category).all()
    stopped = boosting(early_stopping=True, n_iter_no_change=3, n_estimators=200).fit(X, y)
    assert stopped.n_estimators_ < 200
    held = boosting(n_estimators=5).fit(X, y, X_val=X, y_val=y)
    assert held.evals_result_["validation"]["loss"] == held.evals_result_["train"]["loss"]


def test_a_name_that_comes_up_later_trains_as_a_missing_value():
    X, y = frame(600)
    later = X.copy()
    later["job"] = later["job"].where(np.arange(600) % 7 > 0, "tinker")
    blank = X.copy()
    blank["job"] = blank["job"].where(np.arange(600) % 7 > 0, None)
    models = []
    for more in (later, blank):
        model = boosting(n_estimators=3, warm_start=True).fit(X, y)
        models.append(model.set_params(n_estimators=6).fit(more, y))
    assert (models[0].trees_.value == models[1].trees_.value).all()
    assert (models[0].trees_.category == models[1].trees_.category).all()


def test_what_cannot_be_is_refused_with_the_reason():
    X, y = frame()
    number = X[["age"]].to_numpy()
    with pytest.raises(ValueError, match="names the column 'jab', but the columns are"):
        boosting(categorical_features=["jab"]).fit(X, y)
    with pytest.raises(ValueError, match="names the column 'age', but the columns have no names"):
        boosting(categorical_features=["age"]).fit(number, y)
    with pytest.raises(ValueError, match="a mask with 2 entries but X has 4 features"):
        boosting(categorical_features=[True, False]).fit(X, y)
    with pytest.raises(ValueError, match=r"names column 4, but there are 4 columns \(0 to 3\)"):
        boosting(categorical_features=[4]).fit(X, y)
    with pytest.raises(ValueError, match=r"must hold names or positions of columns, got 1\.5"):
        boosting(categorical_features=[1.5]).fit(X, y)
    with pytest.raises(ValueError, match=r"whole numbers from 0 to 16777215, but X\[2, 0\] = -1"):
        boosting(categorical_features=[0]).fit(np.array([[0], [1], [-1]]), [0, 1, 1])
    with pytest.raises(ValueError, match=r"but X\[1, 0\] = 0\.5\. Number them"):
        boosting(categorical_features=[0]).fit(np.array([[0], [0.5]]), [0, 1])
    for model in (boosting(method="exact"), ALL[1].set_params(method="exact")):
        with pytest.raises(ValueError, match="'job' holds categories, which have no order"):
            model.fit(X[["age", "job"]], y)
    ALL[1].set_params(method="auto")
    with pytest.raises(ValueError, match="monotonic_cst has 1 for column 'job'"):
        boosting(monotonic_cst={"job": 1}).fit(X, y)
    model = boosting().fit(X, y)
    with pytest.raises(ValueError, match="holds 3, but it was trained on names of categories such"):
        model.predict(X.assign(job=3))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.drop(columns="job"))


def changed(threat, X, column, a, b):
    """Rows of category a as they are, and with b."""
    rows = X[X[column] == a]
    return rows, rows.assign(**{column: b})


@pytest.mark.parametrize("inner", ["certified", "exact", "paper"])
@pytest.mark.parametrize("kind", ["boosting", "tree", "forest", "newton"])
def test_a_change_of_category_that_is_allowed_is_not_relied_on(kind, inner):
    if inner == "certified" and kind != "boosting":
        pytest.skip("certified is a rule of boosting")
    X, _ = frame(800)
    rng = np.random.default_rng(0)
    y = X["job"].isin(GOOD) ^ (rng.random(len(X)) < 0.05)
    # A cook can say that he is a driver, and a driver that he is a cook.
    threat = hw.Threat({"job": {"cook": ["driver"], "driver": ["cook"]}})
    made = {
        "boosting": lambda t: boosting(threat=t, inner=inner),
        "tree": lambda t: hw.RobustDecisionTreeClassifier(threat=t, max_depth=4, inner=inner),
        "forest": lambda t: hw.RobustRandomForestClassifier(
            threat=t, n_estimators=7, max_depth=4, random_state=0, max_features=None, inner=inner
        ),
        "newton": lambda t: hw.RobustRandomForestClassifier(
            threat=t, criterion="newton", n_estimators=7, max_depth=4, random_state=0, inner=inner
        ),
    }[kind]
    natural, robust = made(hw.Threat(0)).fit(X, y), made(threat).fit(X, y)
    rows, moved = changed(threat, X, "job", "cook", "driver")
    assert (natural.predict(rows) != natural.predict(moved)).mean() > 0.9
    if inner != "paper" or kind != "forest":  # drawn rows leave the paper's cases a chance
        assert (robust.predict(rows) == robust.predict(moved)).all()
    # What cannot be changed is told apart as before.
    rows, moved = changed(threat, X, "job", "pilot", "nurse")
    assert (robust.predict(rows) != robust.predict(moved)).mean() > 0.9


@pytest.mark.parametrize("inner", ["certified", "exact"])
def test_any_change_voids_all_splits_of_a_column(inner):
    X, y = frame()
    threat = hw.Threat({"job": hw.ANY})
    model = boosting(threat=threat, inner=inner, n_estimators=5).fit(X, y)
    assert 1 not in model.trees_.feature
    with pytest.warns(hw.HardwoodWarning, match="No split survives the threat"):
        boosting(threat=threat, inner=inner, n_estimators=2).fit(X[["job"]], y)


@pytest.mark.parametrize("inner", ["certified", "exact"])
def test_columns_that_can_be_left_blank_are_not_relied_on(inner):
    X, y = frame()
    model = boosting(threat=hw.Threat({}, blank=["job", "age"]), inner=inner).fit(X, y)
    assert set(model.trees_.feature) <= {-1, 2, 3}


@pytest.mark.parametrize("inner", ["certified", "exact", "paper"])
def test_only_rows_of_one_class_attack(inner):
    # Frauds at 0.4 can get to 0.7, past some of the honest; these stay where they are.
    x = np.repeat([0.4, 0.5, 1.0], [200, 100, 100])
    y = np.repeat(["fraud", "honest"], 200)
    X = x[:, None]
    one = boosting(threat=hw.Threat(0.3, only="fraud"), inner=inner, n_estimators=30).fit(X, y)
    found = one.predict([[0.4], [0.7], [1.0]]).tolist()
    assert found[::2] == ["fraud", "honest"]
    if inner != "paper":  # whose four cases do not know the reply that voids the other split
        assert found[1] == "fraud"
    if inner != "certified":
        with pytest.warns(hw.HardwoodWarning, match="No split survives the threat"):
            boosting(threat=hw.Threat(0.3), inner=inner, n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match="only='thief', but the classes are"):
        boosting(threat=hw.Threat(0.3, only="thief"), inner=inner).fit(X, y)
    with pytest.raises(ValueError, match="only='fraud', but this is a regression"):
        hw.RobustGradientBoostingRegressor(threat=hw.Threat(0.1, only="fraud"), inner=inner).fit(
            X, x
        )


def test_whole_columns_of_a_frame_lose_nothing_to_steps_below_one():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"visits": rng.integers(0, 2, 300)})
    y = X["visits"] > 0
    assert boosting(eps=0.9, inner="exact", n_estimators=3).fit(X, y).score(X, y) == 1.0
    with pytest.warns(hw.HardwoodWarning, match="No split survives"):
        boosting(eps=0.9, inner="exact", n_estimators=3).fit(X.astype(float), y)


def test_one_hot_groups_and_counts_are_taken_column_by_column():
    X, y = frame()
    dummies = pd.get_dummies(X[["job"]], dtype=float).assign(age=X["age"])
    columns = [name for name in dummies if name != "age"]
    threat = hw.Threat(0, one_hot=[columns], max_changes=1)
    model = boosting(threat=threat, inner="exact", n_estimators=5).fit(dummies, y)
    assert set(model.trees_.feature) <= {-1, dummies.columns.get_loc("age")}


def test_what_training_cannot_know_is_refused():
    X, y = frame()
    numbers = X[["age"]]
    for word, threat in (
        ("blank=", hw.Threat({}, blank=["age"])),
        ("only=", hw.Threat({"age": 1}, only="yes")),
    ):
        with pytest.raises(ValueError, match=f"The threat has {word}, which method"):
            boosting(threat=threat, inner="exact", method="exact").fit(numbers, y)
    many = np.arange(len(X)) % 3
    with pytest.raises(ValueError, match="knows for two classes only, and there are 3; use inner"):
        boosting(threat=hw.Threat({"age": 1}, only=1)).fit(X, many)


def test_the_weight_of_the_second_class():
    X, y = frame()
    heavy = boosting(scale_pos_weight=5).fit(X, y)
    same = boosting(class_weight={"no": 1, "yes": 5}).fit(X, y)
    assert (heavy.predict_proba(X) == same.predict_proba(X)).all()
    with pytest.raises(ValueError, match="scale_pos_weight=5 and class_weight='balanced' both"):
        boosting(scale_pos_weight=5, class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="the second of two classes, but y has 3"):
        boosting(scale_pos_weight=5).fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize("inner", ["certified", "exact"])
def test_more_is_proven_than_of_natural_and_of_one_hot_training(inner):
    rng = np.random.default_rng(0)
    n = 1500
    X = pd.DataFrame({"job": rng.choice(JOBS, n), "age": rng.normal(size=n).round(2)})
    y = X["job"].isin(GOOD) + 0.7 * X["age"] + rng.normal(size=n) * 0.4 > 0.5
    train, test = slice(0, 1000), slice(1000, None)
    threat = hw.Threat({"age": 0.1, "job": {"cook": ["driver"], "pilot": ["nurse"]}})
    natural, robust = (
        boosting(threat=given, inner=inner, n_jobs=1).fit(X[train], y[train])
        for given in (hw.Threat(0), threat)
    )
    dummies = pd.get_dummies(X, columns=["job"], dtype=float)
    group = [name for name in dummies if name != "age"]
    of_dummies = hw.Threat({"age": 0.1}, one_hot=[group])
    one_hot = boosting(threat=of_dummies, inner=inner, n_jobs=1).fit(dummies[train], y[train])
    proven = {
        "natural": hw.certify(natural, X[test], y[test], threat),
        "robust": hw.certify(robust, X[test], y[test], threat),
        "one_hot": hw.certify(one_hot, dummies[test], y[test], of_dummies),
    }
    figures = {name: found.certified_accuracy for name, found in proven.items()}
    assert figures["robust"] == max(figures.values()) > figures["natural"] + 0.05
    assert all((found.status != "unknown").all() for found in proven.values())


DATES = pd.date_range("2020-02-01", periods=20)
NO_NUMBERS = {
    "dates": DATES,
    "dates with a time zone": DATES.tz_localize("UTC"),
    "spans of time": DATES - DATES[0],
    "periods": DATES.to_period("M"),
    "dates of Python": [date.date() for date in DATES],
    "lists": [[1]] * 20,
    "complex numbers": np.arange(20) * 1j,
}


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_refused_by_its_column(kind, library):
    if library is pl and kind in ("periods", "complex numbers"):
        pytest.skip("polars has no such column")
    y = np.arange(20) % 2
    good = library.DataFrame({"size": np.arange(20.0), "when": np.arange(20.0)})
    bad = library.DataFrame({"size": np.arange(20.0), "when": list(NO_NUMBERS[kind])})
    words = "Column 'when' of X holds .*, which is no real number; encode it as one, a date for"
    with pytest.raises(ValueError, match=words):
        hw.RobustDecisionTreeClassifier(eps=0.1).fit(bad, y)
    model = hw.RobustGradientBoostingClassifier(n_estimators=2, eps=0.1).fit(good, y)
    with pytest.raises(ValueError, match=words):
        model.predict(bad)


def test_dates_may_be_categories():
    X = pd.DataFrame({"day": list(DATES[:4]) * 5, "size": np.arange(20.0)})
    y = np.arange(20) % 4 // 2
    model = hw.RobustDecisionTreeClassifier(eps=0, categorical_features=["day"]).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("come_from", ["a", "b"])
@pytest.mark.parametrize(
    "model",
    [
        hw.RobustGradientBoostingClassifier(inner="paper", n_estimators=3),
        hw.RobustGradientBoostingClassifier(inner="exact", n_estimators=3),
        hw.RobustGradientBoostingClassifier(inner="certified", n_estimators=3),
        hw.RobustDecisionTreeClassifier(),
        hw.RobustRandomForestClassifier(n_estimators=3, random_state=0),
    ],
)
def test_a_change_to_a_category_without_rows_counts(model, come_from):
    c = np.random.default_rng(0).choice(["a", "b"], 200)
    X, y = pd.DataFrame({"job": pd.Categorical(c, categories=["a", "c", "b"])}), c == "a"
    threat = hw.Threat({"job": {come_from: ["c"]}})
    model = clone(model).set_params(threat=threat).fit(X, y)
    assert hw.certify(model, X, y, threat).certified_accuracy == 1
    with pytest.raises(ValueError, match="category 'd' of column 'job', which the model does not"):
        clone(model).set_params(threat=hw.Threat({"job": {"a": ["d"]}})).fit(X, y)
