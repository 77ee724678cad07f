"""The curve of certified accuracy: at every eps what `certify` and enumeration say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

import hardwood as hw
from oracle.ensembles import Case, Moves, cases, distance, moves

NORMS = ["inf", 1, 2, 0]


def wide(case: Case, moved: Moves) -> tuple[Case, Moves]:
    """The same in units of 1/16: steps are longer than any number of features."""
    threshold = case.trees.threshold
    trees = case.trees.replace(threshold=threshold * threshold.dtype.type(16))
    low, high, fixed = 16 * moved.low, 16 * moved.high, moved.threat.fixed
    threat = hw.Threat(moved.threat.eps, 0, low, high, fixed)
    return Case(trees, 16 * case.X, case.y), replace(moved, threat=threat, low=low, high=high)


@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), max_trees=st.sampled_from([1, 7]))
def test_the_curve_is_certify_at_every_eps(norm, data, max_trees):
    case = data.draw(cases(max_trees=max_trees, max_rows=6))
    moved = data.draw(moves(case.trees.n_features, norm))
    if not moved.unit > 0:
        return  # no feature moves; another test's case
    if norm == 0:
        case, moved = wide(case, moved)
    # Powers of two of the threat's own eps: proportions are kept to the bit.
    eps = [0, 0.5, 1, 2, 3] if norm == 0 else [moved.unit * s for s in (0, 0.25, 0.5, 1, 2)]
    told = [size / moved.told_in for size in eps]
    curve = hw.certified_accuracy(case.trees, case.X, case.y, told, threat=moved.threat)
    truth = np.array([distance(case, i, moved, norm) for i in range(len(case.X))])
    for k, size in enumerate(eps):
        # Fixed features may have had the largest eps.
        threat = hw.Threat(size, 0, moved.low, moved.high, moved.threat.fixed)
        if norm != 0:
            pairs = zip(
                moved.down * (size / moved.unit), moved.up * (size / moved.unit), strict=True
            )
            threat = hw.Threat(list(pairs), norm, moved.low, moved.high)
        one = hw.certify(case.trees, case.X, case.y, threat)
        np.testing.assert_array_equal(curve.status[k], one.status)
        clear = np.abs(truth - size) > 1e-12 * size
        np.testing.assert_array_equal((curve.status[k] == "broken")[clear], (truth <= size)[clear])


def test_with_norm_0_eps_counts_features_and_steps_have_any_size():
    X, y = load_breast_cancer(return_X_y=True)
    X = 100 * minmax_scale(X)
    for model in (
        hw.RobustDecisionTreeClassifier(eps=10, max_depth=5).fit(X, y),
        hw.RobustGradientBoostingClassifier(eps=10, n_estimators=5, max_depth=3).fit(X, y),
    ):
        threat = hw.Threat(1, norm=0, low=0, high=100, fixed=[0, 1])
        curve = hw.certified_accuracy(model, X[:80], y[:80], [0, 0.5, 1, 2], threat=threat)
        for k, eps in enumerate([0, 0.5, 1, 2]):
            one = hw.certify(
                model, X[:80], y[:80], hw.Threat(eps, norm=0, low=0, high=100, fixed=[0, 1])
            )
            np.testing.assert_array_equal(curve.status[k], one.status)
        assert curve.certified_accuracy[2] < curve.certified_accuracy[1]


def test_a_threat_that_moves_nothing_has_no_proportions():
    X, y = load_breast_cancer(return_X_y=True)
    model = hw.RobustDecisionTreeClassifier(eps=0.1, max_depth=2).fit(X, y)
    for threat in (hw.Threat(0), hw.Threat([0.0] * 30), hw.Threat({}), hw.Threat(0, norm=0)):
        with pytest.raises(ValueError, match=r"threat moves no feature.*Use Threat\(1, ...\)"):
            hw.certified_accuracy(model, X, y, [0.1], threat=threat)
    fixed = hw.Threat(1, fixed=range(30))
    curve = hw.certified_accuracy(model, X, y, [0.1], threat=fixed)
    assert curve.certified_accuracy[0] == model.score(X, y)
