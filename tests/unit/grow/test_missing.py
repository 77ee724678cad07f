"""Missing values: a side of their own, out of the adversary's reach."""

import numpy as np
import pytest

import hardwood as hw

NAN = np.nan
METHODS = ("hist", "exact")


@pytest.mark.parametrize("missing_class", [0, 1])
@pytest.mark.parametrize(
    "way", [{"candidates": "midpoints"}, {"candidates": "intervals"}, {"method": "hist"}]
)
def test_missing_rows_are_never_ambiguous(missing_class, way):
    X = np.array([[0.1], [0.2], [0.3], [NAN], [NAN]])
    y = np.where(np.isnan(X[:, 0]), missing_class, 1 - missing_class)
    model = hw.RobustDecisionTreeClassifier(eps=1e6, **way).fit(X, y)
    assert model.trees_.gain[0] == pytest.approx(-0.6 * np.log2(0.6) - 0.4 * np.log2(0.4))
    lowest = float(np.finfo(np.float32).min)
    rows = [[NAN], [0.0], [-1e6], [lowest], [1e30]]
    expected = [missing_class] + 4 * [1 - missing_class]
    assert model.predict(rows).tolist() == expected


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("like", [0, 1])
def test_missing_rows_follow_the_side_they_resemble(like, method):
    X = np.array([[0.0], [0.1], [0.2], [0.8], [0.9], [1.0], [NAN], [NAN]])
    y = np.array([0, 0, 0, 1, 1, 1, like, like])
    model = hw.RobustDecisionTreeClassifier(eps=0.1, method=method).fit(X, y)
    assert model.get_n_leaves() == 2
    assert model.trees_.missing_left[0] == (like == 0)
    assert model.predict([[NAN]]) == like


@pytest.mark.parametrize("method", METHODS)
def test_without_missing_rows_they_follow_the_heavier_side(method):
    X, y = [[0.0], [0.1], [1.0]], [0, 0, 1]
    fit = hw.RobustDecisionTreeClassifier(eps=0.1, method=method).fit
    assert fit(X, y).predict([[NAN]]) == 0
    assert fit(X, y, sample_weight=[1, 1, 5]).predict([[NAN]]) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_column_of_missing_values_is_no_obstacle(method):
    X = [[NAN, 0.0], [NAN, 1.0]]
    model = hw.RobustDecisionTreeClassifier(eps=0.1, method=method).fit(X, [0, 1])
    assert model.trees_.feature[0] == 1
