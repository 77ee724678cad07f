"""Distances and certificates of single trees are the truth."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hardwood as hw
from model_strategies import STEPS, THRESHOLDS, rows, threats, trees
from oracle.nearest import BIGGEST, Ball, nearest_by_boxes, nearest_by_points
from oracle.walk import label_of

NORMS = ["inf", 1, 2, 0]
# Within reach of rows and of each other, and the split of missing against present values.
REACHABLE = (0.0, 0.25, 0.5, 0.1, 0.3, -0.3, 1.0, -BIGGEST)


def single_trees(**options):
    return trees(max_trees=1, max_outputs=5, **options)


def ball_of(threat, n_features, limited=True):
    """The threat in the oracle's plain terms; the strategies write eps out as pairs or a number."""
    eps = threat.eps if isinstance(threat.eps, list) else [(threat.eps, threat.eps)] * n_features
    down, up = np.array(eps, dtype=float).T
    down[list(threat.fixed)] = up[list(threat.fixed)] = 0
    low = np.full(n_features, -BIGGEST) if threat.low is None else threat.low
    high = np.full(n_features, BIGGEST) if threat.high is None else threat.high
    radius = threat.eps if threat.norm == 0 else max(*down, *up)
    if threat.norm == 0 and threat.eps < 1:
        down, up = np.zeros(n_features), np.zeros(n_features)
    return Ball(down, up, low, high, threat.norm, radius, limited)


def close(a, b):
    # Sums of a few steps, each rounded: far more than that is allowed here, far less than a step.
    return a == b or np.isclose(a, b, rtol=1e-12, atol=1e-300)


@st.composite
def questions(draw, norm, **options):
    """A tree, rows, labels (right and wrong ones) and a threat."""
    model = draw(single_trees(thresholds=draw(st.sampled_from((REACHABLE, THRESHOLDS))), **options))
    X = draw(rows(model, max_rows=6))
    y = label_of(model, X)
    if draw(st.integers(0, 3)) == 0:
        y[0] = (y[0] + 1) % model.n_classes
    return model, X, y, draw(threats(model.n_features, norm))


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_distance_is_the_nearest_box_of_another_label(norm, data):
    model, X, y, threat = data.draw(questions(norm))
    for given_threat in (None, threat):
        ball = ball_of(given_threat or hw.Threat(1, norm=norm), model.n_features, limited=False)
        found = hw.minimal_distance(model, X, y, norm=norm, threat=given_threat)
        np.testing.assert_array_equal(found.lower, found.upper)
        for i, x in enumerate(X):
            truth = nearest_by_boxes(model, x, y[i], ball)
            assert close(found.upper[i], truth / ball.told_in())
            length = found.upper[i] * ball.told_in()
            assert_example(model, x, y[i], ball, found.X_adv[i], length)
        wrong = label_of(model, X) != y
        np.testing.assert_array_equal(found.status, np.where(wrong, "misclassified", "exact"))
        np.testing.assert_array_equal(found.upper[wrong], 0)
        assert (found.lower[~wrong] > 0).all()


def assert_example(model, x, y, ball, x_adv, distance):
    """It lies in the threat, changes the label, and its distance is its norm."""
    if np.isinf(distance):
        assert np.isnan(x_adv).all()
        return
    assert ball.allows(x, x_adv).all()
    assert label_of(model, x_adv[None])[0] != y
    assert close(ball.length(x, x_adv), distance)


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_a_certificate_is_the_truth_about_all_boxes(norm, data):
    model, X, y, threat = data.draw(questions(norm))
    ball = ball_of(threat, model.n_features)
    certificate = hw.certify(model, X, y, threat)
    for i, x in enumerate(X):
        truth = nearest_by_boxes(model, x, y[i], ball)
        # A step on the very end of the ball is inside; sums of steps are left to rounding there.
        assume(norm == "inf" or truth == ball.eps or not close(truth, ball.eps))
        broken = np.isfinite(truth) and truth <= ball.radius()
        assert certificate.status[i] == ("broken" if broken else "certified")
        if broken:
            assert ball.allows(x, certificate.X_adv[i]).all()
            assert ball.length(x, certificate.X_adv[i]) <= ball.radius() * (1 + 1e-12)
            assert label_of(model, certificate.X_adv[i : i + 1])[0] != y[i]
        else:
            assert np.isnan(certificate.X_adv[i]).all()
    wrong = label_of(model, X) != y
    np.testing.assert_array_equal(certificate.reason == "misclassified", wrong)
    assert certificate.certified_accuracy == np.mean(certificate.status == "certified")
    assert certificate.certified_accuracy == certificate.attacked_accuracy


@pytest.mark.parametrize("norm", NORMS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_distance_is_the_nearest_of_all_points_that_matter(norm, data):
    model, X, y, threat = data.draw(questions(norm, max_splits=4, max_features=2))
    ball = ball_of(threat, model.n_features, limited=False)
    found = hw.minimal_distance(model, X[:1], y[:1], norm=norm, threat=threat)
    # Values outside of what a row may hold are no points of the ball.
    truth = nearest_by_points(model, X[0], y[0], ball)
    assert close(found.upper[0], truth / ball.told_in())


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_certify_agrees_with_the_distance_to_the_last_bit(data):
    model, X, y, _ = data.draw(questions("inf"))
    found = hw.minimal_distance(model, X, y)
    distance, X_adv = found.lower, found.X_adv
    for i in np.flatnonzero(np.isfinite(distance)):
        row, label = X[i : i + 1], y[i : i + 1]
        assert hw.certify(model, row, label, distance[i]).status[0] == "broken"
        # x - eps is rounded: below the distance by more than such a rounding, nothing is reached.
        below = distance[i] - 2 * np.spacing(np.nanmax(np.abs([row[0], X_adv[i], [0] * row.size])))
        if below > 0:
            assert hw.certify(model, row, label, below).status[0] == "certified"


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_norms_are_ordered_and_larger_threats_certify_less(data):
    model, X, y, _ = data.draw(questions("inf"))
    inf, one, two = (hw.minimal_distance(model, X, y, norm=norm).upper for norm in ("inf", 1, 2))
    assert (inf <= two * (1 + 1e-12)).all()
    assert (two <= one * (1 + 1e-12)).all()
    steps = sorted(STEPS)
    for norm in NORMS:
        certified = [
            hw.certify(model, X, y, hw.Threat(eps, norm=norm)).status == "certified"
            for eps in ([0, 1, 2, 3] if norm == 0 else steps)
        ]
        np.testing.assert_array_equal(certified[0], label_of(model, X) == y)
        for smaller, larger in pairwise(certified):
            assert (larger <= smaller).all()


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_nothing_is_found_around_certified_rows(data):
    model, X, y, threat = data.draw(questions("inf"))
    low, high = threat.ball(X)
    rng = np.random.default_rng(0)
    for i in np.flatnonzero(hw.certify(model, X, y, threat).status == "certified"):
        share = rng.random((500, model.n_features))
        points = np.clip(low[i] + share * (high[i] - low[i]), low[i], high[i])
        ends = rng.random(points.shape)
        points = np.where(ends < 0.3, low[i], np.where(ends > 0.7, high[i], points))
        assert (label_of(model, points) == y[i]).all()


@settings(max_examples=300, deadline=None)
@given(
    st.floats(-1e30, 1e30) | st.floats(-2, 2),
    st.floats(-1e30, 1e30) | st.floats(-2, 2),
    st.sampled_from([np.float32, np.float64]),
)
def test_a_row_breaks_at_its_distance_and_not_two_roundings_below(x, threshold, dtype):
    stump = hw.Trees(
        [0, -1, -1],
        np.array([threshold, 0, 0], dtype=dtype),
        [1, -1, -1],
        [2, -1, -1],
        [False] * 3,
        [0.0, -1.0, 1.0],
        [0, 3],
    )
    X, y = [[x]], stump.predict([[x]])
    upper = hw.minimal_distance(stump, X, y).upper[0]
    assert hw.certify(stump, X, y, upper).status[0] == "broken"
    below = upper - 2.01 * np.spacing(abs(x) + upper)
    if below > 0:
        assert hw.certify(stump, X, y, below).status[0] == "certified"
