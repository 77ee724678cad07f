"""What users meet when they ask about ensembles: clocks, warnings, progress, Ctrl-C, curves."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import minmax_scale

import hardwood as hw
from faults import Press


@pytest.fixture(scope="module")
def forest():
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X)
    return RandomForestClassifier(40, random_state=0).fit(X[:400], y[:400]), X[400:], y[400:]


@pytest.fixture(scope="module")
def hard():
    """A model on which a row takes long: many deep random trees on few features."""
    rng = np.random.default_rng(0)
    X = rng.random((4000, 10))
    y = (np.sin(9 * X).sum(axis=1) + rng.normal(size=4000) > 0).astype(int)
    return RandomForestClassifier(150, random_state=0).fit(X, y), X[:40], y[:40]


def test_examples_fool_scikit_learn_itself(forest):
    model, X, y = forest
    result = hw.minimal_distance(model, X[:60], y[:60], n_jobs=2)
    found = np.isfinite(result.upper)
    assert found.all()
    assert (model.predict(result.X_adv) != y[:60]).all()
    right = result.status != "misclassified"
    np.testing.assert_array_equal(right, model.predict(X[:60]) == y[:60])
    moved = np.abs(result.X_adv - X[:60]).max(axis=1)
    np.testing.assert_allclose(moved, result.upper, rtol=1e-12)


def test_more_than_two_classes():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(25, max_depth=4, random_state=1).fit(X, y)
    result = hw.minimal_distance(model, X, y)
    assert set(result.status) <= {"exact", "misclassified"}
    assert (model.predict(result.X_adv) != y).all()
    at_eps_zero = hw.certify(model, X, y, 0.0)
    assert at_eps_zero.certified_accuracy == model.score(X, y)


def test_rows_that_the_clock_stops_are_counted_and_bounded(hard):
    model, X, y = hard
    with pytest.warns(
        hw.UndecidedWarning,
        match=r"of 40 samples are still open after time_limit=1e-06 s; they are reported as "
        r'"unknown", not as certified. Raise the limit',
    ):
        result = hw.minimal_distance(model, X, y, time_limit=1e-6)
    unknown = result.status == "unknown"
    assert set(result.reason[unknown]) == {"time limit"}
    assert (result.lower[unknown] < result.upper[unknown]).all()
    with pytest.warns(hw.UndecidedWarning, match="after total_time_limit=1e-06 s"):
        certificate = hw.certify(model, X, y, 0.2, total_time_limit=1e-6)
    assert certificate.certified_accuracy < certificate.attacked_accuracy


def test_progress_is_told(forest):
    model, X, y = forest
    seen = []
    hw.minimal_distance(model, X, y, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (len(X), 0, len(X))
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)


def test_a_failing_callback_stops_the_search_and_is_heard(forest):
    model, X, y = forest

    def fail(*counts):
        raise RuntimeError("no bar")

    with pytest.raises(RuntimeError, match="no bar"):
        hw.certify(model, X, y, 0.1, progress=fail)


def test_ctrl_c_returns_what_is_proven(hard):
    model, X, y = hard
    X, y = X.repeat(50, axis=0), y.repeat(50)

    with pytest.warns(hw.UndecidedWarning, match="still open"):
        result = hw.minimal_distance(model, X, y, norm=1, progress=Press())
    assert "interrupted" in result.reason
    assert (result.lower <= result.upper).all()


def test_the_curve_falls_and_brackets_the_truth(forest):
    model, X, y = forest
    curve = hw.certified_accuracy(model, X[:40], y[:40], [0.1, 0, 0.01, 0.03])
    np.testing.assert_array_equal(curve.eps, [0, 0.01, 0.03, 0.1])
    assert (np.diff(curve.certified_accuracy) <= 0).all()
    np.testing.assert_array_equal(curve.certified_accuracy, curve.attacked_accuracy)
    assert curve.certified_accuracy[0] == model.score(X[:40], y[:40])
    assert repr(curve) == "AccuracyCurve(n_eps=4, n_samples=40)"


def test_the_curve_keeps_what_the_clock_left_open(hard):
    model, X, y = hard
    with pytest.warns(hw.UndecidedWarning, match="still open"):
        curve = hw.certified_accuracy(model, X, y, [0.05, 0.1, 0.3], time_limit=1e-6)
    assert (curve.certified_accuracy <= curve.attacked_accuracy).all()
    assert (curve.status == "unknown").any()


@pytest.mark.parametrize("name", ["time_limit", "total_time_limit"])
def test_limits_must_be_positive(forest, name):
    model, X, y = forest
    with pytest.raises(ValueError, match=rf"{name} must be a number of seconds > 0, got {name}=-1"):
        hw.minimal_distance(model, X, y, **{name: -1})


def test_words_about_methods_and_grids(forest):
    model, X, y = forest
    with pytest.raises(ValueError, match='method must be "search" or "milp", got method=\'sat\''):
        hw.minimal_distance(model, X, y, method="sat")
    with pytest.raises(ValueError, match=r"eps must hold finite numbers >= 0, got -0.5"):
        hw.certified_accuracy(model, X, y, [0.1, -0.5])
    with pytest.raises(ValueError, match=r"eps must be a list of one or more numbers"):
        hw.certified_accuracy(model, X, y, 0.1)
    with pytest.raises(ValueError, match=r"eps must be a list of one or more numbers, got eps='a'"):
        hw.certified_accuracy(model, X, y, "a")
    with pytest.raises(ValueError, match=r"time_limit must be a number of seconds > 0, got .*'a'"):
        hw.certify(model, X, y, 0.1, time_limit="a")
    rows = np.full((1, X.shape[1]), 1.0000000000002)
    with pytest.raises(ValueError, match=r"row 0 has 1\.0000000000002; leave the column out"):
        hw.certify(model, rows, y[:1], hw.Threat(0.1, integer=[0]))


def test_certify_breaks_a_row_at_its_distance_and_not_below(forest):
    model, X, y = forest
    # Away from zero, where x +- eps is rounded more coarsely than eps.
    X, same = X[:25] + 3, y[:25]
    by_rounding = 0
    for source in (model.estimators_[0], model):
        trees = hw.load_model(source).__getstate__()
        trees["threshold"] = trees["threshold"].astype(np.float64) + 3
        shifted = hw.Trees(**trees)
        result = hw.minimal_distance(shifted, X, same)
        assert np.isfinite(result.upper).all()
        for i in np.flatnonzero(result.status == "exact"):
            upper = result.upper[i]

            def status(eps, trees=shifted, i=i):
                return hw.certify(trees, X[i : i + 1], same[i : i + 1], eps).status[0]

            assert status(upper) == "broken"
            rounding = 2 * np.spacing(np.abs(X[i]).max() + upper)
            assert upper > rounding
            assert status(upper - 1.01 * rounding) == "certified"
            by_rounding += status(np.nextafter(upper, 0)) == "broken"
    assert by_rounding > 0  # so no more than this can be said
