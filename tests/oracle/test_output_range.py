"""Questions about the output itself, against enumeration of all boxes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardwood as hw
from oracle.ensembles import cases, free, length, margins, moves, points

one_output = cases(max_rows=2).filter(lambda case: case.trees.n_outputs == 1)


@settings(max_examples=200, deadline=None)
@given(one_output, st.sampled_from(["inf", "inf", 2, 0]), st.sampled_from([0.0, 0.25, 1 / 3, 1.0]))
def test_the_smallest_change_that_moves_the_output(case, norm, change):
    result = hw.minimal_distance(case.trees, case.X, change=change, norm=norm)
    start = margins(case.trees, case.X)[:, 0].astype(float)
    for i in range(len(case.X)):
        Z, steps = points(case.trees, case.X[i], free(case.trees.n_features))
        output = margins(case.trees, Z)[:, 0].astype(float)
        moved = (output > start[i] + change) | (output < start[i] - change)
        truth = length(steps[moved], norm).min(initial=np.inf)
        assert result.status[i] == "exact"
        assert result.upper[i] == pytest.approx(truth, rel=1e-12)
        if np.isfinite(truth):
            there = margins(case.trees, result.X_adv[i : i + 1])[0, 0]
            assert not start[i] - change <= there <= start[i] + change


@settings(max_examples=200, deadline=None)
@given(one_output, st.sampled_from(["inf", "inf", 1, 0]), st.data())
def test_the_range_is_the_truth(case, norm, data):
    moved = data.draw(moves(case.trees.n_features, norm))
    result = hw.output_range(case.trees, case.X, moved.threat)
    budget = moved.unit if norm != 0 else moved.threat.eps
    low, high = moved.threat.ball(case.X)
    for i in range(len(case.X)):
        Z, steps = points(case.trees, case.X[i], moved)
        # Which side of the ball a point lies on is for the ball to say, up to the last bit.
        total = length(steps, norm)
        if norm != 0 and (np.abs(total - budget) < 1e-12).any():
            continue
        output = margins(case.trees, Z)[total <= budget, 0]
        assert result.lower[i] == result.lowest[i] == output.min()
        assert result.upper[i] == result.highest[i] == output.max()
        assert result.status[i] == "exact"
        for x_adv, found in ((result.X_lowest, output.min()), (result.X_highest, output.max())):
            assert margins(case.trees, x_adv[i : i + 1])[0, 0] == found
            inside = (low[i] <= x_adv[i]) & (x_adv[i] <= high[i])
            assert (inside | np.isnan(case.X[i])).all()


@settings(max_examples=60, deadline=None)
@given(one_output, st.sampled_from([1e-6, 1e-5, 1e-4]))
@pytest.mark.filterwarnings("ignore::hardwood.UndecidedWarning")
def test_the_clock_never_makes_a_range_wrong(case, seconds):
    result = hw.output_range(case.trees, case.X, 0.3, time_limit=seconds)
    exact = hw.output_range(case.trees, case.X, 0.3)
    assert (result.lower <= exact.lower).all()
    assert (exact.lower <= result.lowest).all()
    assert (result.highest <= exact.upper).all()
    assert (exact.upper <= result.upper).all()


@pytest.fixture(scope="module")
def regressor():
    rng = np.random.default_rng(0)
    X = rng.random((400, 4))
    y = 3 * X[:, 0] + np.sin(9 * X[:, 1]) + 0.1 * rng.normal(size=400)
    return hw.RobustGradientBoostingRegressor(eps=0, n_estimators=40).fit(X, y), X, y


def test_a_regression_model(regressor):
    model, X, y = regressor
    result = hw.minimal_distance(model, X[:30], y[:30], change=0.5)
    off = np.abs(model.predict(X[:30]) - y[:30]) > 0.5
    np.testing.assert_array_equal(result.status == "misclassified", off)
    pushed = np.abs(model.predict(result.X_adv) - y[:30])
    assert (pushed > 0.5 - 1e-6).all()
    pushed = hw.output_range(model, X[:30], 0.05, n_jobs=2)
    np.testing.assert_allclose(model.predict(pushed.X_highest), pushed.highest, rtol=1e-6)
    assert repr(pushed).startswith("OutputRange(n_samples=30, threat=Threat(eps=0.05), unknown=0")


def test_what_is_not_settled_is_printed_as_such(regressor):
    model, X, _ = regressor
    with pytest.warns(hw.UndecidedWarning, match="400 of 400 samples are still open"):
        result = hw.output_range(model, X, 0.5, total_time_limit=1e-9)
    found, proven = (result.highest - result.lowest).mean(), (result.upper - result.lower).mean()
    assert found < proven
    assert repr(result).endswith(f"unknown=400, mean_width={found:.4g} to {proven:.4g})")


def test_words(regressor):
    model, X, y = regressor
    with pytest.raises(ValueError, match="y is missing; pass the true labels, or target, or"):
        hw.minimal_distance(model, X)
    with pytest.raises(ValueError, match="change must be a finite number >= 0, got change=-1"):
        hw.minimal_distance(model, X, change=-1)
    with pytest.raises(ValueError, match="change needs method=\"search\", got method='milp'"):
        hw.minimal_distance(model, X, change=1, method="milp")
    with pytest.raises(ValueError, match="one finite number for each of the 400 rows"):
        hw.minimal_distance(model, X, y[:-1], change=1)
    classes = (y > 1).astype(int) + (y > 2)
    two = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=2).fit(X, classes > 0)
    with pytest.raises(ValueError, match="link='identity', got link='logistic'"):
        hw.minimal_distance(two, X, change=1)
    three = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=2).fit(X, classes)
    with pytest.raises(ValueError, match="The model has 3 outputs, one a class"):
        hw.output_range(three, X, 0.1)
