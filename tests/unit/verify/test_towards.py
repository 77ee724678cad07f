"""The smallest change to a wanted label among several."""

import numpy as np
import pytest

import hardwood as hw


def stumps(cuts, outputs, values, base):
    """One tree a feature: beyond its cut, or below it where the cut is negative, a value is added.

    A negative cut stands for its absolute value.
    """
    n = len(cuts)
    value = np.zeros((3 * n, 1), dtype=np.float32)
    for k, (cut, added) in enumerate(zip(cuts, values, strict=True)):
        value[3 * k + (1 if cut < 0 else 2)] = added
    return hw.Trees(
        feature=np.ravel([[k, -1, -1] for k in range(n)]),
        threshold=np.ravel([[abs(cut), 0, 0] for cut in cuts]).astype(np.float32),
        left=np.tile([1, -1, -1], n),
        right=np.tile([2, -1, -1], n),
        missing_left=np.zeros(3 * n, dtype=bool),
        value=value,
        tree_start=3 * np.arange(n + 1),
        tree_output=np.array(outputs),
        base=np.array(base),
        n_features=n,
    )


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]])
@pytest.mark.parametrize("far", [False, True])
def test_of_two_ways_that_a_solver_cannot_tell_apart_the_nearer_one_counts(order, far):
    # Below 1 in one feature, or beyond 2 in another, label 1 wins at once; the other two features
    # beat one rival each, nearer alone and farther together, so that a solver has to be asked.
    cuts, outputs, values = [-1.0, 2.0, 1.5, 1.5], [1, 1, 0, 2], [3.0, 3.0, -2.0, -2.0]
    x = np.array([3.0000001 if far else 2.9999998807907104, 0.0, 0.0, 0.0])
    trees = stumps(*(np.array(of)[order] for of in (cuts, outputs, values)), base=[0.5, 0.0, 1.0])
    X = x[order][None]
    assert trees.predict(X).tolist() == [2]
    below = x[0] - np.nextafter(first_float32(1.0), 0)
    beyond = first_float32(2.0)
    assert abs(below - beyond) < 3e-7
    for method in ("search", "milp"):
        found = hw.minimal_distance(trees, X, [2], norm=1, target=1, method=method)
        assert found.status.tolist() == ["exact"]
        np.testing.assert_allclose(found.upper, min(below, beyond), rtol=1e-12)
        np.testing.assert_array_equal(found.lower, found.upper)


def first_float32(threshold):
    """The smallest double that rounds to a float32."""
    before = float(np.nextafter(np.float32(threshold), np.float32(0)))
    middle = (before + threshold) / 2  # to which of the two it goes is a matter of the last bit
    return middle if np.float32(middle) == np.float32(threshold) else np.nextafter(middle, 9)
