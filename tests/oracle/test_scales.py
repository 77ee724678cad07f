"""Columns and eps of all sizes, against enumeration in exact rational arithmetic."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardwood as hw
from oracle.ensembles import labels

SCALES = (1e-300, 1e-165, 1e-150, 1e-40, 1.0, 1e20, 1e37)
CLOSE = Fraction(1, 10**11)  # relative: lengths that count as equal, and the rounding of eps


def model(rng: np.random.Generator, scale: np.ndarray, n_trees: int) -> hw.Trees:
    """Full trees of depth 2 that split each column where its values are."""
    nodes = []
    for _ in range(n_trees):
        for at in range(7):
            inner = at < 3
            f = int(rng.integers(len(scale)))
            threshold = scale[f] * rng.choice([0.2, 0.4, 0.5, 0.7]) if inner else 0.0
            children = (2 * at + 1, 2 * at + 2) if inner else (-1, -1)
            nodes.append((f if inner else -1, threshold, *children, rng.normal()))
    feature, threshold, left, right, value = map(np.array, zip(*nodes, strict=True))
    start = 7 * np.arange(n_trees + 1)
    return hw.Trees(
        feature, threshold, left, right, feature < -1, value, start, n_features=len(scale)
    )


def truth(trees: hw.Trees, x: np.ndarray, y: int, share: list[Fraction], norm: int) -> Fraction:
    """The smallest sum of counted steps (norm 2: of their squares) that changes the label."""
    options = []
    for f in range(trees.n_features):
        here = {float(x[f])}
        for edge in np.unique(trees.threshold[trees.feature == f]):
            here.add(float(edge) if x[f] < edge else float(np.nextafter(edge, -np.inf)))
        options.append(sorted(here))
    Z = np.array(list(product(*options)))
    best = None
    for z in Z[labels(trees, Z) != y]:
        steps = [
            abs(Fraction(float(a)) - Fraction(float(b))) / s
            for a, b, s in zip(z, x, share, strict=True)
        ]
        total = sum(step**norm for step in steps)
        best = total if best is None else min(best, total)
    return best


def is_close(length: float, total: Fraction, norm: int) -> bool:
    return abs(Fraction(length) ** norm - total) <= norm * CLOSE * total


@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("norm", [1, 2])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_steps_of_any_size(norm, n_trees, seed):
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, 4))
    scale = rng.choice(SCALES, n_features)
    trees = model(rng, scale, n_trees)
    X = scale * rng.random((3, n_features))
    y = labels(trees, X)
    # As they come; relative to the columns; tiny or huge beyond reason.
    kind = rng.integers(3)
    eps = [1.0] * n_features
    if kind:
        eps = scale if kind == 1 else rng.choice([1e-160, 1e-3, 1.0, 1e90], n_features)
        eps = [float(step) for step in eps / np.max(eps) if step > 0]
    if len(eps) != n_features or max(eps) > 1e259 * min(eps):
        eps = [1.0] * n_features
    unit = max(eps)
    share = [Fraction(step) / Fraction(unit) for step in eps]
    threat = hw.Threat(eps, norm=norm)
    result = hw.minimal_distance(trees, X, y, norm=norm, threat=threat)
    quick = hw.find_adversarial(trees, X, y, norm=norm, method="descent")
    for i in range(len(X)):
        total = truth(trees, X[i], y[i], share, norm)
        if total is None:
            assert result.lower[i] == result.upper[i] == np.inf
            continue
        assert result.lower[i] == result.upper[i]
        assert is_close(result.upper[i], total, norm)
        assert labels(trees, result.X_adv[i : i + 1])[0] != y[i]
        plain = truth(trees, X[i], y[i], [Fraction(1)] * n_features, norm)
        if quick.success[i]:
            assert Fraction(quick.distance[i]) ** norm >= plain * (1 - norm * CLOSE)
        sizes = [float(result.upper[i]) * part for part in (0.5, 0.999, 1.001, 2)]
        assert 0 < min(sizes)
        assert max(sizes) < np.inf
        one, label = X[i : i + 1], y[i : i + 1]
        curve = hw.certified_accuracy(trees, one, label, sizes, threat=threat)
        for k, size in enumerate(sizes):
            broken = total <= Fraction(size) ** norm
            sized = hw.Threat([step / unit * size for step in eps], norm=norm)
            for status in (
                curve.status[k, 0],
                hw.certify(trees, one, label, sized).status[0],
            ):
                assert status == ("broken" if broken else "certified")


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1e-300, 1e-165, 1.0, 1e37])
def test_the_quick_attack_misses_no_more_at_one_size_than_at_another(norm, size):
    n_there = n_found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scale = size * rng.choice([1e-3, 1.0], 3)
        trees = model(rng, scale, 3)
        X = scale * rng.random((10, 3))
        y = labels(trees, X)
        there = np.isfinite(hw.minimal_distance(trees, X, y, norm=norm).upper)
        n_there += there.sum()
        n_found += hw.find_adversarial(trees, X, y, norm=norm, method="descent").success.sum()
    assert 0.98 * n_there <= n_found <= n_there


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1e155, 1e-165, 1e-300])
def test_a_huge_or_tiny_eps(norm, size):
    """Two features that must both move by half of eps, or a little less, in two trees."""
    feature, threshold = [0, -1, -1, 1, -1, -1], [0.5, 0, 0, 0.5, 0, 0]
    value = [0, -1.0, 0.4, 0, -1.0, 0.7]
    trees = hw.Trees(
        feature,
        np.array(threshold) * min(size, 1e38),
        [1, -1, -1] * 2,
        [2, -1, -1] * 2,
        [False] * 6,
        value,
        [0, 3, 6],
    )
    need = 0.5 * min(size, 1e38) * (2 if norm == 1 else np.sqrt(2))
    for factor, status in ((0.99, "certified"), (1.01, "broken")):
        found = hw.certify(trees, [[0.0, 0.0]], [0], hw.Threat(need * factor, norm=norm))
        assert found.status[0] == status
    huge = hw.certify(trees, [[0.0, 0.0]], [0], hw.Threat(max(size, 1e155), norm=norm))
    assert huge.status[0] == "broken"
    for method in ("search", "milp"):
        result = hw.minimal_distance(trees, [[0.0, 0.0]], [0], norm=norm, method=method)
        np.testing.assert_allclose(result.upper, need, rtol=1e-12)


def test_eps_too_far_apart_is_refused():
    threat = hw.Threat([1e-200, 1e200], norm=2)
    trees = model(np.random.default_rng(0), np.ones(2), 2)
    words = r"factor of 1e\+260 between features, got 1e-200 and 1e\+200"
    for ask in (
        lambda: hw.certify(trees, [[0.0, 0.0]], [0], threat),
        lambda: hw.minimal_distance(trees, [[0.0, 0.0]], [0], norm=2, threat=threat),
        lambda: hw.find_adversarial(trees, [[0.0, 0.0]], [0], norm=2, threat=threat),
        lambda: hw.output_range(trees, [[0.0, 0.0]], threat),
    ):
        with pytest.raises(ValueError, match=words):
            ask()
