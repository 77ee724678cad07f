"""Attacks on whole numbers, categories, dummies, blanks, shares and counts: all points are rows."""

from dataclasses import replace

import numpy as np
import pytest

import hardwood as hw
from oracle.changes import Column, Plan
from oracle.mixed import mixed

SEEDS = range(16)


def methods(case):
    single = ["papernot"] if case.trees.n_trees == 1 else []
    black_box = ["cheng"] if case.plan.norm in ("inf", 2) else []
    return ["kantchelian", "symbolic", *single, *black_box]


def attack(case, method, **arguments):
    settings = hw.ChengSettings(n_iterations=5, n_directions=8) if method == "cheng" else None
    return hw.find_adversarial(
        case.trees,
        case.X,
        case.y,
        method=method,
        norm=case.plan.norm,
        threat=case.plan.threat(),
        settings=settings,
        random_state=0,
        **arguments,
    )


def made_by(plan, x, z):
    """Whether the threat can make z of x, said again in plain words; and how far that is."""
    sizes = []
    for f, column in enumerate(plan.columns):
        if any(f in group for group in plan.groups):
            continue
        if np.isnan(x[f]) or (np.isnan(z[f]) and not column.blank):
            assert np.isnan(x[f])
            assert np.isnan(z[f])
        if column.to is not None and z[f] != x[f] and not np.isnan(z[f]):
            assert z[f] in column.to[int(x[f])]
        if column.whole and not np.isnan(z[f]):
            assert z[f] == np.floor(z[f])
        if column.to is None and z[f] != x[f] and not np.isnan(z[f]):
            assert column.low <= z[f] <= column.high
        sizes.append(column.size(x[f], z[f]))
    for group in plan.groups:
        assert sorted(z[group]) == [0, 0, 1]
        sizes.append(float((z[group] != x[group]).any()))
    assert max(sizes) <= 1 + 1e-12
    assert plan.max_changes is None or np.count_nonzero(sizes) <= plan.max_changes
    return plan.length(sizes)


def case_of(seed):
    return mixed(seed, max_trees=3 if seed % 2 else 1, n_outputs=1 if seed % 4 < 2 else 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_example_is_a_row_that_the_threat_makes(seed):
    case = case_of(seed)
    truth = [
        case.plan.nearest(case.trees, x, lambda label, y=y: label != y, limit=1.0)
        for x, y in zip(case.X, case.y, strict=True)
    ]
    for method in methods(case):
        result = attack(case, method)
        assert result.method == method
        for i in np.flatnonzero(result.success):
            z = result.X_adv[i]
            length = made_by(case.plan, case.X[i], z)
            assert result.distance[i] == pytest.approx(length)
            assert length <= 1 + 1e-9 or case.plan.norm == 0
            assert result.distance[i] >= truth[i] * (1 - 1e-9)
            assert case.trees.predict_class(z[None])[0] != case.y[i]
        if method == "kantchelian":
            np.testing.assert_array_equal(result.success, np.isfinite(truth))
            assert result.distance == pytest.approx(truth, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("method", ["symbolic", "papernot", "cheng", "descent"])
def test_quick_attacks_find_most_of_what_there_is(method):
    n_found = n_there = 0
    for case in map(case_of, SEEDS):
        if method in methods(case) or (method == "descent" and case.plan.norm != 0):
            n_found += np.count_nonzero(attack(case, method).success)
            certificate = hw.certify(case.trees, case.X, case.y, case.plan.threat())
            n_there += np.count_nonzero(certificate.status == "broken")
    assert n_there > 5
    assert n_found > n_there / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_every_example_has_the_wanted_label(seed):
    case = mixed(seed, n_outputs=3, max_trees=2)
    for method in methods(case):
        result = attack(case, method, target=2)
        for i in np.flatnonzero(result.success):
            made_by(case.plan, case.X[i], result.X_adv[i])
            assert case.trees.predict_class(result.X_adv[i : i + 1])[0] == 2
        np.testing.assert_array_equal(result.status == "there", case.y == 2)
        if method == "kantchelian":
            truth = [
                case.plan.nearest(case.trees, x, lambda label: label == 2, limit=1.0)
                for x in case.X
            ]
            np.testing.assert_array_equal(result.success | (case.y == 2), np.isfinite(truth))


def test_rows_of_other_classes_are_not_attacked():
    case = mixed(3, n_outputs=1, n_rows=20)
    everyone = hw.find_adversarial(case.trees, case.X, case.y, threat=hw.Threat(2))
    some = hw.find_adversarial(case.trees, case.X, case.y, threat=hw.Threat(2, only=1))
    attacking = case.y == 1
    np.testing.assert_array_equal(some.success, everyone.success & attacking)
    assert set(some.status[~attacking]) == {"survived"}
    assert np.isnan(some.X_adv[~attacking]).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_quick_attack_finds_rows_that_the_threat_can_make(seed):
    case = mixed(seed, norm=["inf", 1, 2][seed % 3], n_rows=8)
    result = attack(case, "descent")
    certificate = hw.certify(case.trees, case.X, case.y, case.plan.threat())
    assert set(certificate.status[result.success]) <= {"broken"}
    for i in np.flatnonzero(result.success):
        made_by(case.plan, case.X[i], result.X_adv[i])


@pytest.mark.parametrize("method", ["descent", "symbolic", "exact"])
@pytest.mark.parametrize("seed", range(8))
def test_quick_attacks_move_whole_numbers_and_shares(seed, method):
    case = mixed(seed, n_outputs=1, norm=["inf", 1, 2][seed % 3], n_rows=10)
    columns = [*case.plan.columns[:2], Column(), Column(0.5, 0.5, share=True), *[Column()] * 3]
    numbers = Plan([replace(column, blank=False) for column in columns], norm=case.plan.norm)
    trees = case.trees.replace(category_start=None, category=None)
    y = trees.predict_class(case.X)
    threat = numbers.threat()
    result = hw.find_adversarial(trees, case.X, y, method=method, norm=numbers.norm, threat=threat)
    for i in np.flatnonzero(result.success):
        made_by(numbers, case.X[i], result.X_adv[i])
    certificate = hw.certify(trees, case.X, y, threat)
    assert not (result.success & (certificate.status == "certified")).any()
    if method == "exact":
        np.testing.assert_array_equal(result.success, certificate.status == "broken")
