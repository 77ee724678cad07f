"""Whole numbers, categories, dummies, blanks, shares, counts: against all points of a threat."""

import numpy as np
import pytest

import hardwood as hw
from oracle.mixed import GROUP, mixed

SEEDS = range(24)


def check_points(case, result):
    """Every example is a row that the threat can make, whatever its size."""
    for i in np.flatnonzero(np.isfinite(result.upper)):
        x, z = case.X[i], result.X_adv[i]
        assert case.trees.predict_class(z[None])[0] != case.y[i]
        whole, category = z[1], z[2]
        assert np.isnan(whole) or whole == np.floor(whole)
        assert np.isnan(category) or category in range(4)
        if case.plan.groups:
            assert sorted(z[GROUP]) == [0, 0, 1]
        for f, column in enumerate(case.plan.columns):
            assert not np.isnan(z[f]) or np.isnan(x[f]) or column.blank


@pytest.mark.parametrize("method", ["search", "milp"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_change_is_the_truth(seed, method):
    case = mixed(seed)
    result = hw.minimal_distance(
        case.trees, case.X, case.y, norm=case.plan.norm, threat=case.plan.threat(), method=method
    )
    for i, x in enumerate(case.X):
        truth = case.plan.nearest(case.trees, x, lambda label, y=case.y[i]: label != y)
        assert result.lower[i] == result.upper[i]
        assert result.upper[i] == pytest.approx(truth, rel=1e-5, abs=1e-6)
    check_points(case, result)


@pytest.mark.parametrize("method", ["search", "milp"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_smallest_change_to_a_wanted_label(seed, method):
    case = mixed(seed, n_rows=2)
    plan = case.plan
    target = int(seed % case.trees.n_classes)
    result = hw.minimal_distance(
        case.trees, case.X, norm=plan.norm, target=target, threat=plan.threat(), method=method
    )
    for i, x in enumerate(case.X):
        truth = plan.nearest(case.trees, x, lambda label: label == target)
        assert result.lower[i] == result.upper[i]
        assert result.upper[i] == pytest.approx(truth, rel=1e-5, abs=1e-6)
        if np.isfinite(truth):
            assert case.trees.predict_class(result.X_adv[i : i + 1])[0] == target
        assert result.status[i] == "exact"
        assert (result.reason[i] == "has this label already") == (case.y[i] == target)


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_other_classes_do_not_attack(seed):
    case = mixed(seed, n_outputs=1)
    y = case.y.copy()
    y[0] = 1 - y[0]  # one that is wrong already
    moved = hw.Threat(1.0, only=1, fixed=[2])
    result = hw.minimal_distance(case.trees, case.X, y, threat=moved)
    certificate = hw.certify(case.trees, case.X, y, moved)
    everyone = hw.minimal_distance(case.trees, case.X, y, threat=hw.Threat(1.0, fixed=[2]))
    still = y == 0
    wrong = case.y != y
    np.testing.assert_array_equal(result.upper[still], np.where(wrong, 0, np.inf)[still])
    np.testing.assert_array_equal(result.lower, np.where(still, result.upper, everyone.lower))
    np.testing.assert_array_equal(result.upper[~still], everyone.upper[~still])
    assert set(certificate.status[still & ~wrong]) <= {"certified"}
    assert set(certificate.status[wrong]) <= {"broken"}
    curve = hw.certified_accuracy(case.trees, case.X, y, [0.5, 1.0], threat=moved)
    np.testing.assert_array_equal(curve.status[1], certificate.status)


def test_labels_that_no_row_can_have_are_refused():
    case = mixed(0, n_outputs=1)
    for what, arguments in (
        ("target", dict(target=7)),
        ("only", dict(threat=hw.Threat(1, only=7))),
    ):
        with pytest.raises(ValueError, match=f"{what}=7 is no label of this model; .* are 0, 1"):
            hw.minimal_distance(case.trees, case.X, case.y, **arguments)


def test_rows_that_are_not_one_hot_are_refused():
    case = mixed(0, n_outputs=1)
    X = case.X.copy()
    X[2, GROUP] = [1, 1, 0]
    with pytest.raises(ValueError, match=r"Row 2 is not one-hot .* \[4, 5, 6\]: it holds 1, 1, 0"):
        hw.minimal_distance(case.trees, X, case.y, threat=hw.Threat(one_hot=[GROUP]), method="milp")
