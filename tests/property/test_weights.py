"""A row of weight w is w rows, and the unit of weights and targets does not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import hardwood as hw
from hardwood.grow.hist import HistTable
from hardwood.threat import Threat


def same_edges(a, b, n_features):
    return all(np.array_equal(a.edges(f), b.edges(f)) for f in range(n_features))


@st.composite
def weighted_tables(draw):
    """Few or many values, zeros and missing ones among them, with whole weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 200)), draw(st.integers(1, 3))
    X = rng.normal(size=(n, d))
    if draw(st.booleans()):
        X = np.round(X, 1)
    X[rng.random((n, d)) < draw(st.sampled_from([0, 0.3]))] = 0
    X[rng.random((n, d)) < draw(st.sampled_from([0, 0.2]))] = np.nan
    return X, rng.integers(1, draw(st.sampled_from([2, 4, 1000])), size=n).astype(np.float32)


@given(weighted_tables(), st.sampled_from([0.0, 0.05, 0.5]), st.sampled_from([2, 5, 16, 64, 256]))
def test_edges_of_weighted_rows_are_those_of_repeated_rows(table, eps, max_bins):
    X, weight = table
    d = X.shape[1]
    reach = Threat(eps).reach(d)
    repeated = HistTable(np.repeat(X, weight.astype(int), axis=0), reach, max_bins=max_bins)
    weighted = HistTable(X, reach, weight=weight, max_bins=max_bins)
    assert same_edges(weighted, repeated, d)
    for kind in (sparse.csr_matrix, sparse.csc_matrix):
        assert same_edges(HistTable(kind(X), reach, weight=weight, max_bins=max_bins), weighted, d)
    doubled = HistTable(X, reach, weight=weight * 2**-30, max_bins=max_bins)
    assert same_edges(doubled, weighted, d)


@pytest.mark.parametrize("eps", [0.0, 0.01])
@pytest.mark.parametrize("n", [150_000, 250_000])
def test_edges_of_a_sample_of_weighted_rows_are_those_of_repeated_rows(n, eps):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 1)).astype(np.float32)
    weight = rng.integers(1, 4, size=n).astype(np.float32)
    reach = Threat(eps).reach(1)
    weighted = HistTable(X, reach, weight=weight)
    assert same_edges(weighted, HistTable(np.repeat(X, weight.astype(int), axis=0), reach), 1)
    assert not same_edges(weighted, HistTable(X, reach), 1)


def test_edges_of_a_large_table_follow_weights_that_are_not_whole():
    rng = np.random.default_rng(0)
    X = rng.random((300_000, 1)).astype(np.float32)
    weight = np.where(X[:, 0] < 0.1, 9.5, 0.1).astype(np.float32)
    edges = HistTable(X, Threat(0.0).reach(1), weight=weight).edges(0)
    share = weight[X[:, 0] < 0.1].sum() / weight.sum()
    assert np.mean(edges < 0.1) == pytest.approx(share, abs=0.01)


def test_a_weight_for_each_row():
    with pytest.raises(ValueError, match="weight needs one entry for each of the table's 3 rows"):
        HistTable(np.eye(3), Threat(0.0).reach(3), weight=np.ones(2, np.float32))


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, signal, rng.integers(1, 5, size=n)


def same_structure(a, b):
    return np.array_equal(a.trees_.feature, b.trees_.feature) and np.array_equal(
        a.trees_.threshold, b.trees_.threshold
    )


@pytest.mark.parametrize("inner", ["paper", "exact"])
@pytest.mark.parametrize("max_bins", [16, 256])
def test_weighted_rows_train_the_model_of_repeated_rows(inner, max_bins):
    X, signal, weight = data()
    many = np.repeat(np.arange(len(X)), weight)
    how = {"eps": 0.02, "inner": inner, "max_bins": max_bins, "n_estimators": 20}
    for model, y in (
        (hw.RobustGradientBoostingRegressor, signal),
        (hw.RobustGradientBoostingClassifier, signal > 0),
    ):
        weighted = model(**how).fit(X, y, weight)
        repeated = model(**how).fit(X[many], y[many])
        assert same_structure(weighted, repeated)
        assert np.allclose(weighted.trees_.value, repeated.trees_.value, rtol=1e-6)


@pytest.mark.parametrize("method", ["hist", "exact"])
@pytest.mark.parametrize("factor", [1e-3, 1e-9, 1e-30])
def test_small_weights_train_like_large_ones(method, factor):
    X, signal, weight = data()
    how = {"eps": 0.02, "method": method, "n_estimators": 10}
    regressor, y = hw.RobustGradientBoostingRegressor(**how), signal
    natural = hw.RobustGradientBoostingRegressor(**how).fit(X, y)
    assert same_structure(regressor.fit(X, y, np.full(len(X), factor)), natural)
    uneven = weight / weight.mean() / 2
    half = hw.RobustGradientBoostingRegressor(**how).fit(X, y, uneven)
    assert same_structure(regressor.fit(X, y, uneven * factor), half)
    forest = hw.RobustRandomForestClassifier(
        eps=0.02, criterion="newton", n_estimators=5, max_features=None, random_state=0
    )
    label = signal > 0
    light = forest.fit(X, label, np.full(len(X), factor)).trees_
    assert np.array_equal(light.threshold, forest.fit(X, label).trees_.threshold)


@pytest.mark.parametrize("method", ["hist", "exact"])
@pytest.mark.parametrize("factor", [2.0**-60, 2.0**-17, 2.0**-3, 2.0**9, 2.0**40])
def test_targets_train_alike_in_every_unit(method, factor):
    X, y, _ = data()
    for eps in (0.0, 0.02):
        how = {"eps": eps, "method": method, "n_estimators": 60}
        one = hw.RobustGradientBoostingRegressor(**how).fit(X, y)
        other = hw.RobustGradientBoostingRegressor(**how).fit(X, y * factor)
        assert same_structure(one, other)
        assert np.array_equal(one.trees_.value * factor, other.trees_.value)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "custom"])
@pytest.mark.parametrize("factor", [1e-5, 1e-9])
def test_small_targets_are_learned(loss, factor):
    X, y, _ = data()
    if loss == "custom":
        loss = lambda y, margin: (margin - y, np.ones_like(margin))  # noqa: E731
    model = hw.RobustGradientBoostingRegressor(eps=0, loss=loss)
    # As squares do at any size, and as Huber's loss does where it is quadratic.
    at_one = hw.RobustGradientBoostingRegressor(eps=0).fit(X, y).score(X, y)
    assert at_one > 0.98
    assert model.fit(X, y * factor).score(X, y * factor) == pytest.approx(at_one, abs=0.005)


def test_a_packed_grid_keeps_small_targets_too():
    X, y, _ = data(n=20_000)
    how = {"eps": 0, "n_estimators": 20, "n_jobs": 2}
    at_one = hw.RobustGradientBoostingRegressor(**how).fit(X, y).score(X, y)
    small = hw.RobustGradientBoostingRegressor(**how).fit(X, y * 1e-9).score(X, y * 1e-9)
    assert small == pytest.approx(at_one, abs=0.002)
