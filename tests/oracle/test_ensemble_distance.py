"""The exact engine against enumeration of all boxes, on ensembles small enough to enumerate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardwood as hw
from oracle.ensembles import Case, cases, distance, free, labels, margins, moves

# l1 and l2 add steps up in another order than the enumeration does.
SUM_ROUNDING = 1e-12


def check_example(case: Case, i: int, x_adv: np.ndarray) -> None:
    assert labels(case.trees, x_adv[None])[0] != case.y[i]
    assert np.isnan(x_adv[np.isnan(case.X[i])]).all()


@settings(max_examples=600, deadline=None)
@given(cases())
def test_maximum_norm_is_the_truth(case):
    result = hw.minimal_distance(case.trees, case.X, case.y)
    for i in range(len(case.X)):
        truth = distance(case, i, free(case.trees.n_features), "inf")
        assert result.lower[i] == result.upper[i] == truth
        assert result.status[i] == "exact"
        if np.isfinite(truth):
            check_example(case, i, result.X_adv[i])
        else:
            assert np.isnan(result.X_adv[i]).all()


@settings(max_examples=400, deadline=None)
@given(cases(), st.data())
def test_threats_limit_and_scale_the_maximum_norm(case, data):
    moved = data.draw(moves(case.trees.n_features))
    result = hw.minimal_distance(case.trees, case.X, case.y, threat=moved.threat)
    certificate = hw.certify(case.trees, case.X, case.y, moved.threat)
    low, high = moved.threat.ball(case.X)
    for i in range(len(case.X)):
        truth = distance(case, i, moved, "inf")
        assert result.lower[i] == result.upper[i] == truth / moved.told_in
        # Only the last bit of the division by a scale can tell the ball and the distance apart.
        if abs(truth - moved.unit) > 1e-12:
            assert (certificate.status[i] == "broken") == (truth <= moved.unit)
        if certificate.status[i] == "broken":
            check_example(case, i, certificate.X_adv[i])
            inside = (low[i] <= certificate.X_adv[i]) & (certificate.X_adv[i] <= high[i])
            assert (inside | np.isnan(case.X[i])).all()


@settings(max_examples=100, deadline=None)
@given(cases(max_trees=12), st.sampled_from([1e-6, 1e-5, 1e-4, 1e-3]))
@pytest.mark.filterwarnings("ignore::hardwood.UndecidedWarning")
def test_the_clock_never_makes_a_bound_wrong(case, seconds):
    result = hw.minimal_distance(case.trees, case.X, case.y, time_limit=seconds)
    for i in range(len(case.X)):
        truth = distance(case, i, free(case.trees.n_features), "inf")
        assert result.lower[i] <= truth <= result.upper[i]
        if np.isfinite(result.upper[i]):
            check_example(case, i, result.X_adv[i])


@settings(max_examples=40, deadline=None)
@given(cases(max_rows=9))
def test_threads_do_not_change_answers(case):
    one = hw.minimal_distance(case.trees, case.X, case.y, n_jobs=1)
    for n_jobs in (2, 7):
        more = hw.minimal_distance(case.trees, case.X, case.y, n_jobs=n_jobs)
        np.testing.assert_array_equal(one.upper, more.upper)
        np.testing.assert_array_equal(one.X_adv, more.X_adv)


@settings(max_examples=60, deadline=None)
@given(cases(max_rows=6), st.booleans())
def test_certify_and_the_curve_agree_with_the_distance(case, flip):
    y = np.where(np.arange(len(case.y)) == 0, (case.y + flip) % case.trees.n_classes, case.y)
    upper = hw.minimal_distance(case.trees, case.X, y).upper
    eps = np.array([0.0, 0.05, 0.1, 0.2, 0.4, *upper[np.isfinite(upper)]])
    curve = hw.certified_accuracy(case.trees, case.X, y, eps)
    # The last bit can tell x +- eps and the distance apart, as in 0.9 - 0.05 and 0.9 - 0.85.
    apart = np.abs(upper[None, :] - np.sort(eps)[:, None]) > 1e-12
    within = upper[None, :] <= np.sort(eps)[:, None]
    np.testing.assert_array_equal((curve.status == "broken")[apart], within[apart])
    for k in range(0, len(eps), 3):
        status = hw.certify(case.trees, case.X, y, float(curve.eps[k])).status
        np.testing.assert_array_equal(status, curve.status[k])


@settings(max_examples=400, deadline=None)
@given(cases(), st.sampled_from([1, 2, 0]), st.data())
def test_other_norms_are_the_truth(case, norm, data):
    moved = data.draw(moves(case.trees.n_features, norm))
    result = hw.minimal_distance(case.trees, case.X, case.y, norm=norm, threat=moved.threat)
    certificate = hw.certify(case.trees, case.X, case.y, moved.threat)
    budget = moved.unit if norm != 0 else moved.threat.eps
    for i in range(len(case.X)):
        truth = distance(case, i, moved, norm)
        assert result.status[i] == "exact"
        assert result.upper[i] == pytest.approx(truth / moved.told_in, rel=SUM_ROUNDING)
        if abs(truth - budget) > SUM_ROUNDING or norm == 0:
            assert (certificate.status[i] == "broken") == (truth <= budget)
        if np.isfinite(truth):
            check_example(case, i, result.X_adv[i])


@settings(max_examples=100, deadline=None)
@given(cases(max_trees=12), st.sampled_from([1, 2, 0]), st.sampled_from([1e-6, 1e-5, 1e-4, 1e-3]))
@pytest.mark.filterwarnings("ignore::hardwood.UndecidedWarning")
def test_the_clock_never_makes_a_bound_wrong_in_other_norms(case, norm, seconds):
    result = hw.minimal_distance(case.trees, case.X, case.y, norm=norm, time_limit=seconds)
    for i in range(len(case.X)):
        truth = distance(case, i, free(case.trees.n_features), norm)
        assert result.lower[i] <= truth * (1 + SUM_ROUNDING)
        assert result.upper[i] >= truth * (1 - SUM_ROUNDING)


@settings(max_examples=30, deadline=None)
@given(cases(max_trees=5), st.sampled_from(["inf", 1, 2, 0]))
@pytest.mark.filterwarnings("ignore::hardwood.UndecidedWarning")
def test_the_mixed_integer_program_agrees(case, norm):
    ours = hw.minimal_distance(case.trees, case.X, case.y, norm=norm)
    other = hw.minimal_distance(case.trees, case.X, case.y, norm=norm, method="milp")
    # HiGHS asks the rival to win by a little, so ties and rounding can only make it dearer.
    assert (other.upper >= ours.upper * (1 - 1e-9)).all()
    # Steps of the size of a float's spacing are beyond the solver; it may then find no example.
    for i in np.flatnonzero(np.isfinite(ours.upper) & np.isfinite(other.upper)):
        sums = margins(case.trees, ours.X_adv[i : i + 1])[0].astype(float)
        lead = abs(sums[0]) if len(sums) == 1 else sums.max() - sums[case.y[i]]
        if lead > 1e-4:
            assert other.upper[i] == pytest.approx(ours.upper[i], rel=1e-5, abs=1e-6)


def random_trees(rng: np.random.Generator, n_trees: int, depth: int, n_features: int) -> hw.Trees:
    """Full trees, thresholds on a grid of fortieths, leaves at random."""
    n_nodes = 2 ** (depth + 1) - 1
    at = np.arange(n_nodes)
    inner = at < n_nodes // 2
    feature = np.where(inner, rng.integers(n_features, size=(n_trees, n_nodes)), -1)
    threshold = np.where(inner, rng.integers(1, 40, size=(n_trees, n_nodes)) / 40, 0.0)
    return hw.Trees(
        feature.ravel(),
        threshold.ravel(),
        np.tile(np.where(inner, 2 * at + 1, -1), n_trees),
        np.tile(np.where(inner, 2 * at + 2, -1), n_trees),
        np.ones(n_trees * n_nodes, dtype=bool),
        rng.normal(size=(n_trees * n_nodes, 1)),
        np.arange(n_trees + 1) * n_nodes,
        None,
        base=[0.0],
        n_features=n_features,
    )


@pytest.mark.parametrize(
    ("seed", "shape", "norm", "row"),
    [
        (1794, (20, 3, 6), 1, 16),
        (4441, (15, 4, 6), 1, 5),
        (4080, (20, 3, 6), 2, 16),
        (5006, (30, 3, 8), 2, 4),
    ],
)
def test_a_box_that_a_better_example_narrows_to_one_point(seed, shape, norm, row):
    # One row in some twenty thousand comes by such a box; there was no cell left to split it at.
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, *shape)
    X = rng.random((20, trees.n_features))[row : row + 1]
    y = trees.predict_class(X)
    ours = hw.minimal_distance(trees, X, y, norm=norm)
    other = hw.minimal_distance(trees, X, y, norm=norm, method="milp")
    assert ours.status[0] == "exact"
    np.testing.assert_allclose(ours.upper, other.upper, rtol=1e-6)


def test_the_mixed_integer_program_keeps_the_optimum_in_the_norm_0():
    # The solver's presolve lost it for one row in some seven thousand of trees like these.
    rng = np.random.default_rng(831)
    n_trees, n_nodes, n_features = 4, 15, 2
    at = np.tile(np.arange(n_nodes), n_trees)
    inner = at < n_nodes // 2
    trees = hw.Trees(
        np.where(inner, rng.integers(n_features, size=len(at)), -1),
        np.where(inner, rng.integers(1, 10, size=len(at)) / 10, 0.0).astype(np.float32),
        np.where(inner, 2 * at + 1, -1),
        np.where(inner, 2 * at + 2, -1),
        np.ones(len(at), dtype=bool),
        rng.integers(-2, 3, size=(len(at), 1)) / 2,
        np.arange(n_trees + 1) * n_nodes,
        None,
        base=[0.25],
        n_features=n_features,
    )
    X = rng.random((3, n_features))[1:2]
    y = trees.predict_class(X)
    ours = hw.minimal_distance(trees, X, y, norm=0)
    other = hw.minimal_distance(trees, X, y, norm=0, method="milp")
    assert ours.upper[0] == ours.lower[0] == other.upper[0] == other.lower[0] == 1
