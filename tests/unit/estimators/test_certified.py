"""inner="certified" in both boosting estimators: what users see."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

import boosted
import hardwood as hw
from boosted import same_model

classifier = partial(boosted.classifier, eps=0.05)
regressor = partial(boosted.regressor, eps=0.05)


def make_data(n=200, n_classes=2):
    return boosted.make_data(n, n_classes)


def tempting_data(n=600):
    """One feature tells most labels by far; another tells all, but within the adversary's reach."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=n)
    seen = np.where(rng.random(n) < 0.2, 1 - y, y)
    X = np.column_stack([0.4 * seen + 0.3 * rng.random(n), 0.5 + 0.02 * y, rng.random(n)])
    return X, y


def accuracies(model, X, y):
    return model.score(X, y), hw.certify(model, X, y, hw.Threat(0.05)).certified_accuracy


def test_it_is_the_default_and_resists_temptation():
    X, y = tempting_data()
    assert classifier().inner == regressor().inner == "certified"
    assert classifier().robustness == regressor().robustness == 1
    clean, certified = accuracies(classifier().fit(X[:300], y[:300]), X[300:], y[300:])
    assert clean == pytest.approx(0.8, abs=0.05)
    assert certified > clean - 0.05
    assert accuracies(classifier(eps=0).fit(X[:300], y[:300]), X[300:], y[300:]) == (1, 0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["hist", "exact"])
def test_nobody_to_fear_is_natural_boosting(n_classes, method):
    X, y = make_data(n_classes=n_classes)
    natural = classifier(eps=0, inner="exact", method=method).fit(X, y)
    assert same_model(natural, classifier(eps=0, method=method).fit(X, y))
    assert same_model(natural, classifier(robustness=0, method=method).fit(X, y))
    fixed = hw.Threat(0.3, fixed=[0, 1, 2, 3])
    assert same_model(natural, classifier(threat=fixed, method=method).fit(X, y))


def test_the_dial_trades_certified_for_clean_accuracy():
    X, y = tempting_data()
    shares = (0.0, 0.05, 0.5, 1.0)
    fits = [classifier(robustness=share).fit(X[:300], y[:300]) for share in shares]
    clean, certified = zip(*[accuracies(model, X[300:], y[300:]) for model in fits], strict=True)
    assert list(clean) == sorted(clean, reverse=True)
    assert list(certified) == sorted(certified)
    assert clean[0] > clean[-1]
    assert certified[0] < certified[-1]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("robustness", [1.0, 0.7])
def test_same_bytes_for_any_number_of_threads(n_classes, robustness):
    X, y = make_data(9000, n_classes)  # enough for the coarser of the two grids of histograms
    models = [
        classifier(
            n_estimators=4, subsample=0.7, robustness=robustness, random_state=3, n_jobs=n
        ).fit(X, y)
        for n in (1, 2, 7)
    ]
    assert same_model(models[0], models[1])
    assert same_model(models[0], models[2])


def test_a_single_feature_is_shared_by_threads():
    X, y = make_data(9000)
    X = np.ascontiguousarray(X[:, :1])
    models = [classifier(n_estimators=3, n_jobs=n).fit(X, y) for n in (1, 3)]
    assert same_model(*models)


@pytest.mark.parametrize("robustness", [1.0, 0.5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_of_two_is_two_rows(robustness, n_classes):
    X, y = make_data(100, n_classes)  # so few that counts do not choose the candidates
    weight = np.random.default_rng(0).integers(1, 4, size=len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    twice = classifier(robustness=robustness).fit(X[repeated], y[repeated])
    once = classifier(robustness=robustness).fit(X, y, weight)
    assert np.array_equal(once.trees_.feature, twice.trees_.feature)
    assert np.array_equal(once.trees_.value, twice.trees_.value)


def test_small_leaves_can_be_ruled_out():
    X, y = make_data()
    model = classifier(min_samples_leaf=20).fit(X, y)
    leaf = model.trees_.apply(X)
    assert len(set(leaf[:, 0])) > 1
    assert not same_model(model, classifier().fit(X, y))
    best_first = classifier(max_leaf_nodes=4, max_depth=None).fit(X, y)
    assert best_first.trees_.n_leaves <= 4 * 8


def test_sparse_rows_are_the_same_rows():
    X, y = make_data()
    X[X < 0.4] = 0
    X[::9, 1] = np.nan
    dense = classifier().fit(X, y)
    for kind in (sparse.csr_matrix, sparse.csc_matrix):
        assert same_model(dense, classifier().fit(kind(X), y))
    held = {"X_val": X[:50], "y_val": y[:50]}
    plain = classifier().fit(X, y, **held).evals_result_
    assert plain == classifier().fit(sparse.csr_matrix(X), y, **held).evals_result_


def test_missing_values_stay_where_they_are():
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = rng.random(300) < 0.5
    X[y, 0] = np.nan  # nothing but the gap tells the classes apart
    model = classifier(eps=0.5).fit(X, y)
    assert model.score(X, y) == 1
    assert hw.certify(model, X, y, hw.Threat(0.5)).certified_accuracy == 1


def test_fixed_features_are_trusted():
    X, y = make_data(400)
    threat = hw.Threat(0.5, fixed=[0])
    model = classifier(threat=threat).fit(X, y)
    assert set(model.trees_.feature) == {-1, 0}
    assert hw.certify(model, X, y, threat).certified_accuracy == model.score(X, y)


def test_monotone_features_are_kept():
    X, y = make_data(300)
    rng = np.random.default_rng(1)
    noisy = np.where(rng.random(300) < 0.3, 1 - y, y)
    model = classifier(monotonic_cst=[1, -1, 0, 0], n_estimators=20, max_depth=5).fit(X, noisy)
    for f, sign in ((0, 1), (1, -1)):
        grid = np.repeat(X[:30], 40, axis=0)
        grid[:, f] = np.tile(np.linspace(-0.1, 1.1, 40), 30)
        margins = model.decision_function(grid).reshape(30, 40)
        assert (sign * np.diff(margins, axis=1) >= 0).all()
    assert {0, 1} & set(model.trees_.feature)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "quantile"])
def test_regression_learns_from_the_worse_side(loss):
    rng = np.random.default_rng(0)
    X = rng.random((600, 3))
    y = np.floor(6 * X[:, 0] + 2 * (X[:, 1] > 0.5) + 0.3 * rng.random(600))
    held = {"X_val": X[300:], "y_val": y[300:]}
    params = {"loss": loss, "eps": 0.04, "n_estimators": 40}
    model = regressor(**params).fit(X[:300], y[:300], **held)
    history = model.evals_result_["validation"]
    assert history["certified_loss"][-1] < history["certified_loss"][0]
    assert all(a >= b for a, b in zip(history["certified_loss"], history["loss"], strict=True))
    assert "certified_accuracy" not in history
    natural = regressor(**(params | {"eps": 0})).fit(X[:300], y[:300])
    worst = []
    for trees in (model.trees_, natural.trees_):
        ranges = hw.output_range(trees, X[300:], hw.Threat(0.04))
        worst.append(np.maximum(ranges.upper - y[300:], y[300:] - ranges.lower).mean())
    assert worst[0] < worst[1]


def test_early_stopping_looks_at_the_certified_loss():
    X, y = make_data(400)
    noisy = np.where(np.random.default_rng(0).random(400) < 0.3, 1 - y, y)
    params = {"n_estimators": 200, "n_iter_no_change": 5, "early_stopping": True}
    model = classifier(random_state=0, **params).fit(X, noisy)
    losses = model.evals_result_["validation"]["certified_loss"]
    assert model.n_estimators_ == int(np.argmin(losses)) + 1
    assert len(losses) == model.n_estimators_ + 5


def test_figures_of_many_classes_are_those_of_the_finished_model():
    X, y = make_data(300, 3)
    model = classifier().fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    history = model.evals_result_["validation"]
    probability = model.predict_proba(X[200:])[np.arange(100), y[200:]]
    assert history["loss"][-1] == pytest.approx(-np.log(probability).mean(), rel=1e-5)
    assert len(history["certified_loss"]) == len(history["loss"]) == 8


def test_leaves_of_many_classes_are_refitted_together(monkeypatch):
    from hardwood.ensemble import certified

    X, y = make_data(300, 4)
    watched = {"callbacks": [lambda now: None], "reg_lambda": 0.01}  # so that little holds them
    together = classifier(**watched).fit(X, y)
    monkeypatch.setattr(certified.CertifiedBooster, "refit_together", lambda self, trees: trees)
    alone = classifier(**watched).fit(X, y)
    assert np.array_equal(together.trees_.threshold, alone.trees_.threshold)
    losses = [m.evals_result_["train"]["certified_loss"] for m in (together, alone)]
    assert losses[0][:-1] == losses[1][:-1]
    assert losses[0][-1] < losses[1][-1] - 0.05


def test_callbacks_see_certified_figures():
    X, y = make_data()
    seen = []
    classifier(callbacks=[lambda now: seen.append(dict(now.evals_result["train"]))]).fit(X, y)
    assert set(seen[-1]) == {"loss", "certified_loss", "certified_accuracy"}
    assert len(seen) == 8


@pytest.mark.parametrize("norm", [0, 1, 2])
def test_other_norms_are_refused(norm):
    X, y = make_data()
    threat = hw.Threat(1, norm=norm)
    words = rf'known for the maximum norm only; the threat has norm={norm}. Use .* inner="exact"'
    with pytest.raises(ValueError, match=words):
        classifier(threat=threat).fit(X, y)
    with pytest.raises(ValueError, match=words):
        regressor(threat=threat).fit(X, y)
    classifier(threat=hw.Threat(0, norm=norm)).fit(X, y)  # nothing moves in any norm


def test_words_for_what_cannot_be_trained():
    X, y = make_data()
    with pytest.raises(ValueError, match=r"a callable loss, .* does not say which margin is worse"):
        regressor(loss=lambda y, m: (m - y, np.ones_like(m))).fit(X, y)
    with pytest.raises(ValueError, match=r"robustness is the dial of inner=\"certified\".*got ro"):
        classifier(inner="exact", robustness=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"'robustness' parameter .* in the range \[0.0, 1.0\]"):
        classifier(robustness=1.5).fit(X, y)


def test_a_threat_beyond_everything_leaves_a_constant():
    X, y = make_data()
    with pytest.warns(hw.HardwoodWarning, match=r"No split survives the threat"):
        model = classifier(eps=5).fit(X, y)
    assert len(set(model.predict(X))) == 1
