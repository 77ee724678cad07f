"""The boosting estimators: what users see."""

import logging
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardwood as hw
from boosted import classifier, make_data, regressor, same_model

METHODS = ["hist", "exact"]


@parametrize_with_checks(
    [
        hw.RobustGradientBoostingClassifier(),
        hw.RobustGradientBoostingRegressor(),
        hw.RobustGradientBoostingClassifier(method="exact", n_estimators=10),
        hw.RobustGradientBoostingRegressor(method="exact", n_estimators=10),
    ]
)
@pytest.mark.filterwarnings("ignore::hardwood.HardwoodWarning")  # eps=0.1 for any data
def test_scikit_learn_protocol(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_of_training_are_those_of_the_model(method, n_classes, monkeypatch):
    from hardwood.estimators import _boosting as boosting

    X, y = make_data(n_classes=n_classes)
    X[::7, 1] = np.nan
    margins = []

    def boost(booster, n_rounds, monitor):
        trees = real(booster, n_rounds, monitor)
        margins.append(booster.margin)
        return trees

    real = boosting.boost
    monkeypatch.setattr(boosting, "boost", boost)
    params = {"inner": "exact", "subsample": 0.7, "colsample_bytree": 0.6}
    model = classifier(method=method, **params).fit(X, y)
    assert np.array_equal(margins[0], model.trees_.margin(X))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_bytes_for_any_number_of_threads(method, n_classes):
    X, y = make_data(9000, n_classes)  # enough for the coarser of the two grids of histograms
    models = [
        classifier(method=method, subsample=0.7, random_state=3, n_jobs=n).fit(X, y)
        for n in (1, 2, 7)
    ]
    assert same_model(models[0], models[1])
    assert same_model(models[0], models[2])


@pytest.mark.parametrize("method", METHODS)
def test_draws_depend_on_the_seed_alone(method):
    X, y = make_data()
    fit = [
        classifier(method=method, subsample=0.5, colsample_bytree=0.5, random_state=s).fit(X, y)
        for s in (1, 1, 2)
    ]
    assert same_model(fit[0], fit[1])
    assert not same_model(fit[0], fit[2])
    rounds = np.split(fit[0].trees_.feature, fit[0].trees_.tree_start[1:-1])
    assert all(len(set(tree[tree >= 0])) <= 2 for tree in rounds)  # half of four features


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_equals_one_long_fit(method, n_classes):
    X, y = make_data(n_classes=n_classes)
    params = {"method": method, "subsample": 0.6, "colsample_bytree": 0.7, "random_state": 0}
    once = classifier(n_estimators=7, **params).fit(X, y)
    twice = classifier(n_estimators=3, warm_start=True, **params).fit(X, y)
    twice.set_params(n_estimators=7).fit(X, y)
    assert same_model(once, twice)
    assert twice.n_estimators_ == 7
    with pytest.raises(ValueError, match=r"n_estimators=2 must be larger than or equal to the 7"):
        twice.set_params(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"y contains .*9.*, which the model has not seen"):
        twice.set_params(n_estimators=9).fit(X, np.where(y == 1, 9, y))
    numbers = regressor(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"with the link 'identity', but loss='poisson' needs"):
        numbers.set_params(loss="poisson").fit(X, y)


def test_warm_start_refuses_columns_at_other_places():
    X, y = make_data()
    X = pd.DataFrame(X).add_prefix("c")
    model = classifier(n_estimators=2, warm_start=True).fit(X, y).set_params(n_estimators=4)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.fit(X[X.columns[::-1]], y)
    with pytest.raises(ValueError, match=f"seen at fit time, yet now missing:\n- {X.columns[-1]}"):
        model.fit(X.iloc[:, :-1], y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_and_models_cut_after_some_rounds(n_classes):
    X, y = make_data(n_classes=n_classes)
    model = classifier().fit(X, y)
    staged = list(model.staged_decision_function(X))
    assert len(staged) == model.n_estimators_ == 8
    assert np.array_equal(staged[-1], model.decision_function(X))
    assert np.array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    assert np.array_equal(list(model.staged_predict_proba(X))[-1], model.predict_proba(X))
    cut = model.trees_.first(3 * model.trees_.n_outputs)
    assert np.array_equal(cut.margin(X).reshape(staged[2].shape), staged[2])
    with pytest.raises(ValueError, match=r"n_trees must be 1 to 8, got n_trees=0"):
        classifier().fit(*make_data()).trees_.first(0)
    numbers = regressor(loss="poisson").fit(X, y)
    assert np.array_equal(list(numbers.staged_predict(X))[-1], numbers.predict(X))


@pytest.mark.parametrize("method", METHODS)
def test_custom_losses_equal_the_built_in_ones(method):
    X, y = make_data()
    params = {"method": method, "inner": "exact"}

    def logistic(y, margin):
        p = 1 / (np.exp(-margin) + np.float32(1))
        return p - y, p * (1 - p)

    builtin = classifier(**params, base_score=0.5).fit(X, y)
    custom = classifier(**params, loss=logistic).fit(X, y)
    # The exponentials of numpy and of the core differ in the last place.
    assert np.array_equal(builtin.trees_.feature, custom.trees_.feature)
    assert np.array_equal(builtin.trees_.threshold, custom.trees_.threshold, equal_nan=True)
    np.testing.assert_allclose(builtin.trees_.value, custom.trees_.value, rtol=1e-4, atol=1e-6)
    builtin = regressor(**params, base_score=0).fit(X, X[:, 0])
    custom = regressor(**params, loss=lambda y, m: (m - y, np.ones_like(m))).fit(X, X[:, 0])
    assert same_model(builtin, custom)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inner", ["paper", "exact"])
def test_monotone_for_every_row(method, inner):
    rng = np.random.default_rng(5)
    X = rng.random((400, 3))
    y = np.sin(6 * X[:, 0]) - X[:, 1] + rng.normal(scale=0.3, size=400)
    model = regressor(method=method, inner=inner, monotonic_cst=[1, -1, 0], max_depth=5).fit(X, y)
    free = regressor(method=method, inner=inner, max_depth=5).fit(X, y)
    rows = np.repeat(rng.random((50, 3))[:, None], 40, axis=1)
    for feature, sign in ((0, 1), (1, -1)):
        moved = rows.copy()
        moved[:, :, feature] = np.linspace(-0.1, 1.1, 40)
        steps = np.diff(model.predict(moved.reshape(-1, 3)).reshape(50, 40), axis=1)
        assert np.all(sign * steps >= 0)
        assert np.any(steps != 0)
        if feature == 0:  # the data itself is not monotone
            assert np.any(np.diff(free.predict(moved.reshape(-1, 3)).reshape(50, 40), axis=1) < 0)
    by_name = regressor(method=method, inner=inner, monotonic_cst={"a": 1, "b": -1}, max_depth=5)
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert np.array_equal(by_name.fit(frame, y).predict(frame), model.predict(X))


def test_monotone_with_what_cannot_keep_it():
    X, y = make_data(n_classes=3)
    with pytest.raises(ValueError, match=r"monotonic_cst needs two classes, y has 3"):
        classifier(monotonic_cst=[1, 0, 0, 0]).fit(X, y)
    with pytest.raises(ValueError, match=r'cannot be kept with loss="quantile"'):
        regressor(loss="quantile", monotonic_cst=[1, 0, 0, 0]).fit(X, y)


def test_quantiles_cover_their_share():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 2))
    y = 100 * X[:, 0] + 50 * rng.normal(size=2000)
    for quantile in (0.1, 0.5, 0.9):
        model = regressor(eps=0, loss="quantile", quantile=quantile, n_estimators=30).fit(X, y)
        assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_natural_trees_do_not_depend_on_the_method_where_bins_hold_one_value(n_classes):
    X, y = make_data(n_classes=n_classes)
    X = np.round(X, 2)
    X[::9, 2] = np.nan
    fits = [classifier(eps=0, method=method, max_depth=6).fit(X, y) for method in METHODS]
    assert np.array_equal(fits[0].trees_.feature, fits[1].trees_.feature)
    # Thresholds lie between neighbours among all rows or among the node's, which parts both alike.
    assert np.array_equal(fits[0].trees_.apply(X), fits[1].trees_.apply(X))
    np.testing.assert_allclose(fits[0].trees_.value, fits[1].trees_.value, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_are_the_same_rows(method):
    X, y = make_data()
    X[X < 0.5] = 0
    dense = classifier(method=method).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csc_matrix):
        other = classifier(method=method).fit(form(X), y)
        assert same_model(dense, other)
        assert np.array_equal(dense.predict_proba(X), other.predict_proba(form(X)))


@pytest.mark.parametrize("shape", [(2**31, 1), (2**27, 17)])
def test_a_table_too_large_is_refused_before_it_is_copied(shape):
    X, y = np.broadcast_to(np.float32(0), shape), np.broadcast_to(0, shape[0])  # take no memory
    with pytest.raises(ValueError, match=rf"{shape[0]} rows x .*at most 2147483647.*Use a sample"):
        classifier().fit(X, y)


def test_fits_without_draws_are_the_same_without_a_random_state():
    rng = np.random.default_rng(0)
    X = rng.random((70_000, 2)).astype(np.float32)  # so many that gradients are rounded
    y = X[:, 0] + rng.normal(size=len(X)) > 0.5
    fits = [classifier(n_jobs=n, n_estimators=3).fit(X, y) for n in (1, 2)]
    assert same_model(*fits)


def test_single_precision_rows_are_the_same_rows():
    X, y = make_data()
    X = X.astype(np.float32)
    for method in METHODS:
        fits = [classifier(method=method).fit(x, y) for x in (X, X.astype(np.float64))]
        assert same_model(*fits)


def test_early_stopping_keeps_the_best_round():
    X, y = make_data(400)
    noisy = np.where(np.random.default_rng(0).random(400) < 0.3, 1 - y, y)
    params = {"n_estimators": 200, "n_iter_no_change": 5, "early_stopping": True}
    for scoring in (None, "roc_auc", "accuracy"):
        model = classifier(scoring=scoring, random_state=0, **params).fit(X, noisy)
        history = model.evals_result_["validation"]
        scores = history["score"] if scoring else -np.array(history["certified_loss"])
        assert model.n_estimators_ == int(np.argmax(scores)) + 1
        assert len(scores) == model.n_estimators_ + 5
        assert model.trees_.n_trees == model.n_estimators_
    held = make_data(200, seed=1)
    model = classifier(scoring="roc_auc", **params).fit(X, noisy, X_val=held[0], y_val=held[1])
    from sklearn.metrics import roc_auc_score

    auc = roc_auc_score(held[1], model.decision_function(held[0]))
    assert max(model.evals_result_["validation"]["score"]) == auc


def test_scorers_may_look_at_other_rows():
    X, y = make_data()

    def on_a_copy(model, X, y):
        return model.score(X.copy(), y)

    watched = classifier(scoring=on_a_copy).fit(X, y, X_val=X, y_val=y)
    plain = classifier(scoring="accuracy").fit(X, y, X_val=X, y_val=y)
    assert (
        watched.evals_result_["validation"]["score"] == (plain.evals_result_["validation"]["score"])
    )


def test_history_is_the_loss_of_the_stages():
    X, y = make_data()
    model = classifier().fit(X, y, X_val=X[:50], y_val=y[:50])
    for where, rows in (("train", slice(None)), ("validation", slice(50))):
        for proba, loss in zip(
            model.staged_predict_proba(X[rows]), model.evals_result_[where]["loss"], strict=True
        ):
            own = proba[np.arange(len(proba)), y[rows]]
            assert loss == pytest.approx(-np.log(own).mean(), rel=1e-5)
    assert classifier().fit(X, y).evals_result_ == {}
    longer = classifier(n_estimators=3, warm_start=True).fit(X, y, X_val=X[:50], y_val=y[:50])
    longer.set_params(n_estimators=8).fit(X, y, X_val=X[:50], y_val=y[:50])
    assert longer.evals_result_ == model.evals_result_


def test_callbacks_see_every_round_and_can_stop():
    X, y = make_data()
    seen = []

    def callback(now):
        seen.append((now.n_rounds, now.trees().n_trees, now.evals_result["train"]["loss"][-1]))
        return now.n_rounds == 4

    model = classifier(callbacks=[callback]).fit(X, y)
    assert [n for n, _, _ in seen] == [n for _, n, _ in seen] == [1, 2, 3, 4]
    assert model.n_estimators_ == 4
    assert [loss for _, _, loss in seen] == model.evals_result_["train"]["loss"]


def test_verbose_logs_the_rounds(caplog, capsys):
    X, y = make_data()
    with caplog.at_level(logging.INFO, logger="hardwood"):
        classifier(n_estimators=2, verbose=True).fit(X, y)
    assert [record.getMessage()[:20] for record in caplog.records] == [
        "round 1: train loss ",
        "round 2: train loss ",
    ]
    assert capsys.readouterr().out == ""


def test_an_interrupted_fit_leaves_nothing_behind():
    X, y = make_data()

    def interrupt(now):
        if now.n_rounds == 3:
            raise KeyboardInterrupt

    model = classifier(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == vars(classifier(callbacks=[interrupt]))
    fitted = classifier(n_estimators=2).fit(X, y)
    before = fitted.predict_proba(X)
    fitted.set_params(callbacks=[interrupt], n_estimators=5)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:, :2], y)
    assert np.array_equal(fitted.predict_proba(X), before)


def test_class_weight_is_a_sample_weight():
    X, y = make_data(n_classes=3)
    weight = np.array([1.0, 2.0, 0.5])
    by_class = classifier(class_weight=dict(enumerate(weight))).fit(X, y)
    by_row = classifier().fit(X, y, weight[y])
    assert same_model(by_class, by_row)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inner", ["paper", "exact"])
def test_a_fragile_feature_is_worth_nothing_to_a_robust_model(method, inner):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    fragile = 0.5 + 0.02 * (2 * y - 1)  # tells the classes apart, until someone moves it by 0.02
    solid = 0.5 + 0.3 * np.where(rng.random(1000) < 0.1, 1 - 2 * y, 2 * y - 1)
    X = np.column_stack([fragile, solid + rng.uniform(-0.1, 0.1, 1000)])
    X_adv = X + [0.05, 0] * (1 - 2 * y)[:, None]
    natural = classifier(method=method, inner=inner, eps=0).fit(X, y)
    robust = classifier(method=method, inner=inner, eps=0.05).fit(X, y)
    assert natural.score(X, y) == 1
    assert natural.score(X_adv, y) == 0
    assert robust.score(X, y) == robust.score(X_adv, y) == pytest.approx(0.9, abs=0.02)


def test_importances_name_the_features_that_matter():
    X, y = make_data()
    X = np.column_stack([X, np.ones(len(X))])
    importances = classifier().fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances.argmax() == 0
    assert importances[4] == 0


def test_a_threat_that_leaves_no_split_is_said():
    X, y = make_data()
    with pytest.warns(hw.HardwoodWarning, match=r"No split survives the threat \(largest step 5\)"):
        model = classifier(eps=5).fit(X, y)
    assert np.allclose(model.predict_proba(X)[:, 1], y.mean())


@pytest.mark.parametrize("eps", [0, 0.02, 5])
@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"min_child_weight": 200},
            r"allowed by min_child_weight=200, .*needs that much of the sum of hessians, and all "
            r"rows together have 75\.",
        ),
        ({"min_samples_leaf": 151}, r"allowed by min_samples_leaf=151, .*use smaller values\."),
        ({"min_split_gain": 1e6}, r"allowed by min_split_gain=1e\+06, .*use smaller values\."),
        (
            {"min_samples_leaf": 151, "min_split_gain": 1e6},
            r"allowed by min_samples_leaf=151, min_split_gain=1e\+06, with or without a threat",
        ),
    ],
)
def test_a_parameter_that_allows_no_split_is_named(eps, params, words):
    X, y = make_data()
    with pytest.warns(hw.HardwoodWarning, match=words) as seen:
        classifier(eps=eps, **{"min_child_weight": 0, **params}).fit(X, y)
    assert [warning.filename for warning in seen] == [__file__]


def test_nothing_to_learn_is_no_reason_to_warn():
    X, y = make_data()
    assert regressor(eps=0.1).fit(X, np.ones(len(X))).trees_.n_leaves == 8
    assert classifier(eps=0.1).fit(np.ones_like(X), y).trees_.n_leaves == 8


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"X_val": np.zeros((5, 3)), "y_val": [0, 1, 0, 1, 0]}, r"X_val cannot be used: X has 3 f"),
        ({"X_val": np.zeros((2, 4)), "y_val": [0, 7]}, r"y_val cannot be used: y contains .*7"),
        ({"X_val": np.zeros((2, 4)), "y_val": [0]}, r"y_val cannot be used: y has shape \(1,\)"),
        ({"X_val": np.zeros((2, 4))}, r"X_val and y_val belong together"),
        ({"y_val": [0]}, r"X_val and y_val belong together"),
    ],
)
def test_validation_data_that_does_not_fit(given, words):
    X, y = make_data()
    with pytest.raises(ValueError, match=words):
        classifier().fit(X, y, **given)


def test_words_for_what_cannot_be_trained():
    X, y = make_data()
    with pytest.raises(ValueError, match=r'y contains -1, but loss="poisson" needs counts'):
        regressor(loss="poisson").fit(X, np.where(y == 0, -1, y))
    with pytest.raises(ValueError, match=r"y_val cannot be used: y contains -1, but loss"):
        regressor(loss="poisson").fit(X, y, X_val=X[:2], y_val=[1, -1])
    with pytest.raises(ValueError, match=r"hessian of 0; it must be positive"):
        regressor(inner="exact", loss=lambda y, m: (m - y, np.zeros_like(m))).fit(X, y)
    with pytest.raises(
        ValueError, match=r"value too large for dtype\('float32'\): y\[3\] = 1e\+39"
    ):
        regressor().fit(X, np.where(np.arange(len(y)) == 3, 1e39, y))
    derivatives = {"inner": "exact", "loss": lambda y, m: (m - y, np.ones_like(m))}
    with pytest.raises(ValueError, match=r"early_stopping cannot look at a custom loss"):
        regressor(early_stopping=True, **derivatives).fit(X, y)
    with pytest.raises(ValueError, match=r"cannot hold out validation_fraction=0.1 of 3 rows"):
        classifier(early_stopping=True).fit(X[:3], [0, 1, 1])
    with pytest.raises(ValueError, match=r"dtype\('float32'\) can hold, got 1e-60"):
        classifier().fit(X, y, np.where(np.arange(len(y)) == 3, 1e-60, 0.5))
    with pytest.raises(TypeError, match=r"eta"):
        hw.RobustGradientBoostingClassifier(eta=0.3)


def test_clone_and_pickle():
    X, y = make_data()
    model = classifier(early_stopping=True, scoring="accuracy", random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert same_model(clone(model).fit(X, y), model)
