"""What a model decides, not the sign of its margin: the label, the link, the tie, the rounding.

The last steps of every library are asked themselves, at the very floats where a label changes:
xgboost takes any margin as `base_margin`, LightGBM and CatBoost read files with any leaf values.
"""

import itertools
import json

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn import ensemble
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor

import hardwood as hw

RNG = np.random.default_rng(0)
LEVELS = np.arange(8) / 8
X = RNG.choice(LEVELS, (200, 2))
Y = (X[:, 0] + X[:, 1] > 0.8).astype(int)
COUNTS = 1.0 + np.round(6 * X[:, 0] + 3 * X[:, 1])

XGB = {"n_estimators": 4, "max_depth": 2, "n_jobs": 1}
LGB = {"n_estimators": 4, "num_leaves": 4, "min_child_samples": 1, "verbosity": -1, "n_jobs": 1}
CAT = {"iterations": 4, "depth": 2, "verbose": 0, "allow_writing_files": False, "thread_count": 1}

CLASSIFIERS = {
    "squared": lambda: xgboost.XGBClassifier(objective="reg:squarederror", **XGB),
    "logitraw": lambda: xgboost.XGBClassifier(objective="binary:logitraw", **XGB),
    "poisson": lambda: xgboost.XGBClassifier(objective="count:poisson", **XGB),
    "hinge": lambda: xgboost.XGBClassifier(objective="binary:hinge", **XGB),
    "tiny steps": lambda: xgboost.XGBClassifier(
        n_estimators=3, learning_rate=1e-8, base_score=0.5, n_jobs=1
    ),
    **{
        f"lightgbm {objective}": lambda objective=objective: lightgbm.LGBMClassifier(
            objective=objective, **LGB
        )
        for objective in (
            *("regression", "regression_l1", "huber", "fair", "mape", "poisson"),
            *("cross_entropy_lambda", "binary"),
        )
    },
    "catboost": lambda: catboost.CatBoostClassifier(**CAT),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=4, max_depth=2),
    "ada": lambda: ensemble.AdaBoostClassifier(n_estimators=4),
    "forest": lambda: ensemble.RandomForestClassifier(4, max_depth=2, random_state=0),
}


def grid_of(model):
    """All points that a nearest example can be: on an edge, just below it, or where a row is."""
    trees = hw.load_model(model)
    ends = [
        np.concatenate([np.r_[low, high] for _, low, high in [trees.leaf_boxes(k)]])
        for k in range(trees.n_trees)
    ]
    ends = np.concatenate(ends)
    values = []
    for f in range(2):
        edge = np.unique(ends[np.isfinite(ends[:, f]), f])
        values.append(np.unique(np.concatenate([edge, np.nextafter(edge, -np.inf), LEVELS])))
    return np.array(list(itertools.product(*values)))


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_certificates_are_about_the_label_of_the_source(kind):
    model = CLASSIFIERS[kind]().fit(X, Y)
    said = np.asarray(model.predict(X)).astype(int)
    assert hw.certify(model, X, Y, 0.0).certified_accuracy == np.mean(said == Y)
    grid = grid_of(model)
    label = np.asarray(model.predict(grid)).astype(int)
    np.testing.assert_array_equal(hw.load_model(model).predict(grid).astype(int), label)
    eps = 0.2
    status = hw.certify(model, X, said, eps).status
    for row, y, verdict in zip(X, said, status, strict=True):
        inside = np.all(np.abs(grid - row) <= eps, axis=1)
        assert verdict == ("broken" if np.any(label[inside] != y) else "certified")
    distance = hw.minimal_distance(model, X[:40], said[:40])
    for i in range(40):
        away = np.abs(grid - X[i]).max(axis=1)[label != said[i]]
        assert distance.upper[i] == pytest.approx(min(away, default=np.inf), rel=1e-12)
        assert distance.lower[i] == distance.upper[i]


def test_a_probability_threshold_of_catboost():
    model = catboost.CatBoostClassifier(**CAT).fit(X, Y)
    model.set_probability_threshold(0.2)
    label = np.asarray(model.predict(X)).astype(int)
    assert 0 < np.mean(label != catboost_default(model)) < 1
    np.testing.assert_array_equal(hw.load_model(model).predict(X), label)
    assert hw.certify(model, X, label, 0.0).certified_accuracy == 1


def catboost_default(model):
    return (model.predict(X, prediction_type="RawFormulaVal") > 0).astype(int)


def test_an_isolation_forest_with_a_score_of_exactly_zero_is_an_inlier():
    model = ensemble.IsolationForest(n_estimators=10, contamination=0.1, random_state=0).fit(X)
    for row in (7, 70, 170):
        model.offset_ = model.score_samples(X)[row]
        assert model.decision_function(X)[row] == 0
        label = model.predict(X)
        assert label[row] == 1
        trees = hw.load_model(model)
        assert trees.task == "anomaly"
        np.testing.assert_array_equal(trees.predict(X), label)
        assert hw.certify(model, X, label, 0.0).certified_accuracy == 1


def test_ties_of_gradient_boosting_are_the_second_class():
    model = GradientBoostingClassifier(n_estimators=1, max_depth=1, init="zero", random_state=0)
    balanced = np.repeat([[0.0], [1.0]], 4, axis=0)
    model.fit(balanced, [0, 1, 0, 1, 0, 1, 0, 1])
    assert model.decision_function(balanced)[0] == 0
    np.testing.assert_array_equal(hw.load_model(model).predict(balanced), model.predict(balanced))
    assert hw.certify(model, balanced, np.ones(8, int), 0.0).certified_accuracy == 1


def test_early_ends_of_prediction_are_refused():
    model = lightgbm.LGBMClassifier(pred_early_stop=True, **LGB).fit(X, Y)
    with pytest.raises(hw.UnsupportedModelError, match="pred_early_stop=True: it leaves out trees"):
        hw.certify(model, X, Y, 0.1)


def beside(cut, dtype):
    at = dtype(cut)
    near = [at]
    for way in (-np.inf, np.inf):
        one = at
        for _ in range(40):
            one = np.nextafter(one, dtype(way))
            near.append(one)
    return np.array(near)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw", "count:poisson"])
def test_the_cut_is_where_xgboost_itself_changes_its_label(objective):
    model = xgboost.XGBClassifier(objective=objective, **XGB).fit(X, Y)
    cut = hw.load_model(model).cut
    margin = beside(cut, np.float32)
    rows = np.zeros((len(margin), 1))
    bare = xgboost.train({"objective": objective}, xgboost.DMatrix(rows, Y[: len(rows)]), 0)
    probability = bare.predict(xgboost.DMatrix(rows, base_margin=margin))
    np.testing.assert_array_equal(probability > 0.5, margin > cut)


@pytest.mark.parametrize(
    "objective", ["binary sigmoid:1", "binary sigmoid:0.7", "poisson", "cross_entropy_lambda"]
)
def test_the_cut_is_where_lightgbm_itself_passes_one_half(objective):
    def text(value):
        return (
            "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
            f"max_feature_idx=0\nobjective={objective}\nfeature_names=a\nfeature_infos=[0:1]\n\n"
            f"Tree=0\nnum_leaves=1\nnum_cat=0\nleaf_value={value!r}\nshrinkage=1\n\n\n"
            "end of trees\n\n"
        )

    from hardwood.model.decision import cut_at
    from hardwood.model.load.lightgbm import _about

    _, link, slope = _about(objective.split())
    cut = cut_at(0.5, link, np.float64, 1.0, slope)
    for margin in beside(cut, np.float64):
        booster = lightgbm.Booster(model_str=text(float(margin)))
        assert (booster.predict([[0.0]])[0] > 0.5) == (margin > cut)


def test_the_cut_is_where_catboost_itself_changes_its_label(tmp_path):
    model = catboost.CatBoostClassifier(**CAT).fit(X, Y)
    for threshold in (0.2, 0.5, 0.77):
        model.set_probability_threshold(threshold)
        model.save_model(str(tmp_path / "m.json"), format="json")
        document = json.loads((tmp_path / "m.json").read_text())
        cut = hw.load_model(model).cut
        split = {"border": 0.5, "float_feature_index": 0, "split_index": 0}
        for margin in beside(cut, np.float64)[::8]:
            document["oblivious_trees"] = [
                {
                    "leaf_values": [float(margin), 0.0],
                    "leaf_weights": [1, 1],
                    "splits": [{**split, "split_type": "FloatFeature"}],
                }
            ]
            document["scale_and_bias"] = [1, [0]]
            (tmp_path / "one.json").write_text(json.dumps(document))
            one = catboost.CatBoostClassifier().load_model(str(tmp_path / "one.json"), "json")
            assert bool(one.predict([[0.0, 0.0]])[0]) == (margin > cut)


REGRESSORS = {
    "xgboost poisson": lambda: xgboost.XGBRegressor(objective="count:poisson", **XGB),
    "xgboost gamma": lambda: xgboost.XGBRegressor(objective="reg:gamma", **XGB),
    "lightgbm poisson": lambda: lightgbm.LGBMRegressor(objective="poisson", **LGB),
    "lightgbm reg_sqrt": lambda: lightgbm.LGBMRegressor(reg_sqrt=True, **LGB),
    "catboost poisson": lambda: catboost.CatBoostRegressor(loss_function="Poisson", **CAT),
    "histograms poisson": lambda: HistGradientBoostingRegressor(
        loss="poisson", max_iter=4, min_samples_leaf=2
    ),
    "ours poisson": lambda: hw.RobustGradientBoostingRegressor(
        loss="poisson", n_estimators=4, max_depth=2, eps=0.05, inner="exact"
    ),
}


@pytest.mark.parametrize("kind", REGRESSORS)
def test_regression_is_asked_in_the_units_of_the_prediction(kind):
    model = REGRESSORS[kind]().fit(X, COUNTS)
    said = model.predict(X)
    trees = hw.load_model(model)
    assert trees.task == "regression"
    np.testing.assert_allclose(trees.predict(X), said, rtol=1e-6)
    grid = grid_of(model)
    predicted = model.predict(grid)
    eps, change = 0.2, 1.0
    found = hw.output_range(model, X[:30], eps)
    moved = hw.minimal_distance(model, X[:30], change=change)
    for i in range(30):
        inside = np.all(np.abs(grid - X[i]) <= eps, axis=1)
        reached = np.append(predicted[inside], said[i])
        np.testing.assert_allclose(found.highest[i], reached.max(), rtol=1e-6)
        np.testing.assert_allclose(found.lowest[i], reached.min(), rtol=1e-6)
        away = np.abs(grid - X[i]).max(axis=1)[np.abs(predicted - said[i]) > change]
        assert moved.upper[i] == pytest.approx(min(away, default=np.inf), rel=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        xgboost.XGBRegressor(**XGB),
        lightgbm.LGBMRegressor(**LGB),
        catboost.CatBoostRegressor(**CAT),
        hw.RobustGradientBoostingRegressor(n_estimators=2, eps=0.1, inner="exact"),
        ensemble.RandomForestRegressor(2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_questions_about_labels_of_regressors_are_refused(model):
    model.fit(X, Y)
    for ask in (
        lambda: hw.certify(model, X, Y, 0.1),
        lambda: hw.minimal_distance(model, X, Y),
        lambda: hw.find_adversarial(model, X, Y),
        lambda: hw.certified_accuracy(model, X, Y, [0.1]),
    ):
        with pytest.raises(hw.UnsupportedModelError, match=r"predicts numbers \(task='regression'"):
            ask()


def test_rankers_and_several_numbers_are_refused():
    ranker = xgboost.XGBRanker(**XGB).fit(X, Y, group=[len(X)])
    with pytest.raises(hw.UnsupportedModelError, match=r"scores without labels \(task='raw'\)"):
        hw.certify(ranker, X, Y, 0.1)
    both = np.column_stack([Y, 1 - Y])
    for loss in ("MultiRMSE", "MultiLogloss"):
        model = catboost.CatBoost({"loss_function": loss, **CAT}).fit(X, both)
        with pytest.raises(hw.UnsupportedModelError, match=f"loss_function='{loss}'"):
            hw.certify(model, X, Y, 0.1)
    model = catboost.CatBoostRegressor(loss_function="RMSEWithUncertainty", **CAT).fit(X, COUNTS)
    with pytest.raises(hw.UnsupportedModelError, match="loss_function='RMSEWithUncertainty'"):
        hw.output_range(model, X, 0.1)


LOSSES = {"squared_error": COUNTS, "huber": COUNTS, "poisson": COUNTS, "quantile": COUNTS}


@pytest.mark.parametrize("loss", LOSSES)
def test_stock_libraries_predict_what_our_regressors_predict(tmp_path, loss):
    model = hw.RobustGradientBoostingRegressor(
        loss=loss, n_estimators=5, max_depth=3, eps=0.05, inner="exact"
    ).fit(X, COUNTS)
    grid = grid_of(model)
    model.save_model(tmp_path / "m.json")
    stock = xgboost.XGBRegressor()
    stock.load_model(tmp_path / "m.json")
    np.testing.assert_allclose(stock.predict(grid), model.predict(grid), rtol=1e-6)
    np.testing.assert_array_equal(
        hw.load_model(tmp_path / "m.json").predict(grid), model.predict(grid)
    )
    booster = lightgbm.Booster(model_str=model.trees_.to_lightgbm())
    np.testing.assert_allclose(booster.predict(grid), model.predict(grid), rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stock_xgboost_says_the_labels_that_our_classifiers_say(tmp_path, n_classes):
    y = Y if n_classes == 2 else np.minimum(Y + (X[:, 1] > 0.7), 2)
    for eps in (0, 0.1):
        model = hw.RobustGradientBoostingClassifier(n_estimators=3, eps=eps, inner="exact")
        model.fit(X, y).save_model(tmp_path / "m.json")
        stock = xgboost.XGBClassifier()
        stock.load_model(tmp_path / "m.json")
        grid = grid_of(model)
        np.testing.assert_array_equal(stock.predict(grid), model.predict(grid))


def test_a_proof_by_programs_does_not_miss_ties():
    exact = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 4, (24, 2)) / 4.0
        y = rng.integers(0, 2, 24)
        model = ensemble.RandomForestClassifier(2, max_depth=2, random_state=seed).fit(rows, y)
        if len(model.classes_) < 2:
            continue
        truth = hw.minimal_distance(model, rows, y)
        solver = hw.minimal_distance(model, rows, y, method="milp")
        assert np.all(solver.lower <= truth.upper * (1 + 1e-5) + 1e-6)
        assert np.all(solver.upper >= truth.upper)
        exact += np.count_nonzero(solver.status == "exact")
    assert exact > 100
