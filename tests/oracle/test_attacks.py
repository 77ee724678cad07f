"""Attacks against enumeration: none beats the truth, the exact ones reach it, all examples fool."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardwood as hw
from oracle.ensembles import Case, cases, distance, free, labels, length, margins, moves, points
from oracle.nearest import label_of_leaf, leaf_boxes

NORMS = ["inf", 1, 2, 0]
SUM_ROUNDING = 1e-12  # l1 and l2 add steps up in another order than the enumeration does
QUICK = hw.ChengSettings(n_directions=5, n_samples=4, n_jumps=4, n_iterations=3)


def attack(case: Case, method: str, norm: str | int, **more) -> hw.AttackResult:
    if method == "cheng":
        more |= {"settings": QUICK, "random_state": 0}
    return hw.find_adversarial(case.trees, case.X, case.y, method=method, norm=norm, **more)


def methods(case: Case, norm: str | int) -> list[str]:
    return [
        "exact",
        "symbolic",
        *(["papernot"] if case.trees.n_trees == 1 else []),
        *(["cheng"] if norm in ("inf", 2) else []),
        *(["descent"] if norm != 0 else []),
    ]


def check_examples(case: Case, result: hw.AttackResult, norm: str | int, truth: list) -> None:
    assert (result.status != "misclassified").all()
    np.testing.assert_array_equal(result.success, result.status == "fooled")
    np.testing.assert_array_equal(result.success, np.isfinite(result.distance))
    for i in np.flatnonzero(result.success):
        z = result.X_adv[i]
        assert labels(case.trees, z[None])[0] != case.y[i]
        np.testing.assert_array_equal(np.isnan(z), np.isnan(case.X[i]))
        assert result.distance[i] >= truth[i] * (1 - SUM_ROUNDING)
    assert np.isnan(result.X_adv[~result.success]).all()


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(NORMS))
def test_no_attack_beats_the_truth(case, norm):
    anything = free(case.trees.n_features)
    truth = [distance(case, i, anything, norm) for i in range(len(case.X))]
    for method in methods(case, norm):
        result = attack(case, method, norm)
        check_examples(case, result, norm, truth)
        moved = np.nan_to_num(np.abs(result.X_adv - case.X))[result.success]
        # The distance is that of the floats returned.
        np.testing.assert_allclose(result.distance[result.success], length(moved, norm), rtol=1e-9)
        if method == "exact":
            np.testing.assert_allclose(result.distance, truth, rtol=SUM_ROUNDING)


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(NORMS), st.data())
def test_every_attack_keeps_to_the_threat(case, norm, data):
    moved = data.draw(moves(case.trees.n_features, norm))
    truth = [distance(case, i, moved, norm) / moved.told_in for i in range(len(case.X))]
    eps = moved.threat.eps if norm == 0 else moved.unit / moved.told_in
    low, high = moved.threat.ball(case.X)
    for method in methods(case, norm):
        result = attack(case, method, norm, threat=moved.threat)
        check_examples(case, result, norm, truth)
        for i in np.flatnonzero(result.success):
            assert result.distance[i] <= eps * (1 + SUM_ROUNDING)
            outside = (result.X_adv[i] < low[i]) | (result.X_adv[i] > high[i])
            assert not outside.any()
        if method == "exact":
            clear = np.abs(np.array(truth) - eps) > 1e-9
            np.testing.assert_array_equal(result.success[clear], np.array(truth)[clear] <= eps)


@settings(max_examples=30, deadline=None)
@given(cases(max_trees=4), st.sampled_from(NORMS))
def test_kantchelian_is_the_truth(case, norm):
    result = attack(case, "kantchelian", norm)
    truth = [distance(case, i, free(case.trees.n_features), norm) for i in range(len(case.X))]
    check_examples(case, result, norm, truth)
    ours = hw.minimal_distance(case.trees, case.X, case.y, norm=norm)
    for i in np.flatnonzero(result.success):
        # The solver asks the rival to win by a little, so a tie at the nearest point is none to it.
        sums = margins(case.trees, ours.X_adv[i : i + 1])[0].astype(float)
        lead = abs(sums[0]) if len(sums) == 1 else sums.max() - sums[case.y[i]]
        if lead <= 1e-4:
            continue
        assert result.lower[i] <= truth[i] * (1 + 1e-5) + 2e-6
        # Steps of the size of a float's spacing are beyond the solver, and it does not say "exact".
        if result.lower[i] == result.distance[i]:
            assert result.distance[i] == pytest.approx(truth[i], rel=1e-5, abs=2e-6)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_symbolic_prediction_sees_every_single_change(case):
    result = attack(case, "symbolic", 0)
    for i in range(len(case.X)):
        Z, steps = points(case.trees, case.X[i], free(case.trees.n_features))
        sums = margins(case.trees, Z[np.count_nonzero(steps, axis=1) == 1]).astype(float)
        if sums.shape[1] == 1:
            lead = sums[:, 0] * (1 if case.y[i] == 0 else -1)
        else:
            lead = np.delete(sums, case.y[i], axis=1).max(axis=1) - sums[:, case.y[i]]
        if lead.max(initial=-1) > 1e-6:  # by less, rounding has a say
            assert result.distance[i] == 1


def way_to_leaf(trees: hw.Trees, node: int) -> list[int]:
    parent = {}
    for at in np.flatnonzero(trees.feature != -1):
        parent[trees.left[at]] = parent[trees.right[at]] = at
    way = [node]
    while way[-1] in parent:
        way.append(parent[way[-1]])
    return way[::-1]


@settings(max_examples=200, deadline=None)
@given(cases(max_trees=1))
def test_papernot_takes_the_leaf_the_fewest_branches_away(case):
    result = attack(case, "papernot", "inf")
    boxes = leaf_boxes(case.trees)
    for i, x in enumerate(case.X):
        home = way_to_leaf(case.trees, int(case.trees.apply(x[None])[0, 0]))
        ways = []
        for node, low, high, missing in boxes:
            reachable = np.where(np.isnan(x), missing, low < high).all()
            if not reachable or label_of_leaf(case.trees, node) == case.y[i]:
                continue
            way = way_to_leaf(case.trees, node)
            shared = sum(a == b for a, b in zip(home, way, strict=False))
            ways.append((len(home) - shared, len(way) - shared, node))
        assert result.success[i] == bool(ways)
        if ways:
            nearest = min(ways)[:2]
            leaf = case.trees.apply(result.X_adv[i : i + 1])[0, 0]
            assert leaf in {node for *way, node in ways if tuple(way) == nearest}
            # Only features on the way move.
            moved = ~(np.isnan(x) | (result.X_adv[i] == x))
            below = way_to_leaf(case.trees, int(leaf))[-nearest[1] - 1 : -1]
            assert set(np.flatnonzero(moved)) <= set(case.trees.feature[below].tolist())


@settings(max_examples=30, deadline=None)
@given(cases(max_rows=9), st.sampled_from(["inf", 1, 2]))
def test_threads_do_not_change_examples(case, norm):
    for method in ("descent", "symbolic"):
        one = attack(case, method, norm, n_jobs=1)
        for n_jobs in (2, 5):
            more = attack(case, method, norm, n_jobs=n_jobs)
            np.testing.assert_array_equal(one.X_adv, more.X_adv)
