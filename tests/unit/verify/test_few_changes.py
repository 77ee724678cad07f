"""Distances where the number of changes is limited."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

import hardwood as hw


@pytest.fixture(scope="module")
def asked():
    X, y = make_classification(300, 4, n_informative=4, n_redundant=0, flip_y=0.1, random_state=3)
    model = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=40, max_depth=4, random_state=0)
    return model.fit(X, y), X[:40], y[:40]


def distances(asked, columns, max_changes=None):
    threat = hw.Threat(dict.fromkeys(columns, 0.1), max_changes=max_changes)
    return hw.minimal_distance(*asked, threat=threat, time_limit=20)


def test_one_change_is_the_best_of_the_single_columns(asked):
    found = distances(asked, range(4), max_changes=1)
    single = np.min([distances(asked, [f]).upper for f in range(4)], axis=0)
    assert set(found.status) <= {"exact", "misclassified"}
    np.testing.assert_array_equal(found.upper, single)
    np.testing.assert_array_equal(found.lower, single)


def test_two_changes_are_the_best_of_the_pairs(asked):
    found = distances(asked, range(4), max_changes=2)
    pairs = [(f, g) for f in range(4) for g in range(f)]
    best = np.min([distances(asked, pair).upper for pair in pairs], axis=0)
    assert set(found.status) <= {"exact", "misclassified"}
    np.testing.assert_array_equal(found.upper, best)


def test_many_changes_are_the_best_of_all_but_one_column():
    X, y = make_classification(300, 6, n_informative=6, n_redundant=0, flip_y=0.1, random_state=4)
    model = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=40, max_depth=4, random_state=0)
    asked = model.fit(X, y), X[:20], y[:20]
    found = distances(asked, range(6), max_changes=5)
    others = [[g for g in range(6) if g != f] for f in range(6)]
    best = np.min([distances(asked, some).upper for some in others], axis=0)
    assert set(found.status) <= {"exact", "misclassified"}
    np.testing.assert_array_equal(found.upper, best)


def test_every_column_may_be_needed():
    """In norm 0 the farthest example changes all columns, and is one."""
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    y = ((X > 0).all(axis=1)).astype(int)
    model = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=5, max_depth=3).fit(X, y)
    row = np.array([[-0.9, -0.9]])
    assert model.predict(row) == 0
    for max_changes, least in ((None, 2), (2, 2), (1, np.inf)):
        threat = hw.Threat({0: 3, 1: 3}, norm=0, max_changes=max_changes)
        found = hw.minimal_distance(model, row, [0], norm=0, threat=threat)
        assert (found.lower, found.upper, found.status) == (least, least, "exact")
