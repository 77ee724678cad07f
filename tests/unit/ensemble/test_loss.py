"""Losses: derivatives, constants and domains."""

import numpy as np
import pytest

from hardwood.ensemble.loss import (
    BinaryLogistic,
    Custom,
    Huber,
    Poisson,
    Quantile,
    Softmax,
    SquaredError,
)
from hardwood.model.decision import means

RNG = np.random.default_rng(0)
LABELS = {
    "real": RNG.normal(size=40).astype(np.float32),
    "two": RNG.integers(0, 2, 40).astype(np.float32),
    "four": np.arange(40).astype(np.float32) % 4,
    "count": RNG.poisson(2.0, 40).astype(np.float32),
}
LOSSES = [
    (BinaryLogistic(), "two"),
    (Softmax(4), "four"),
    (SquaredError(), "real"),
    (Huber(0.7), "real"),
    (Poisson(), "count"),
    (Quantile(0.3), "real"),
]


@pytest.mark.parametrize(("loss", "labels"), LOSSES, ids=lambda x: type(x).__name__)
def test_gradient_is_the_slope_of_the_loss(loss, labels):
    y = LABELS[labels]
    margin = RNG.normal(size=(len(y), loss.n_outputs))
    gradient, hessian = loss.derivatives(y, margin.astype(np.float32))
    step = 1e-5
    for k in range(loss.n_outputs):
        moved = margin.copy()
        moved[:, k] += step
        slope = (loss.per_row(y, moved) - loss.per_row(y, margin)) / step
        np.testing.assert_allclose(gradient[:, k], slope, atol=2e-4)
    assert np.all(hessian > 0)
    assert gradient.dtype == hessian.dtype == np.float32


@pytest.mark.parametrize(("loss", "labels"), LOSSES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_other_constant_is_better_than_the_base(loss, labels, weighted):
    y = LABELS[labels]
    weight = (RNG.integers(1, 4, len(y))).astype(np.float32) if weighted else None
    base = loss.base(y, weight)
    at_base = loss.mean(y, np.tile(base, (len(y), 1)), weight)
    tolerance = 0.02 if isinstance(loss, Huber) else 1e-6  # Huber starts at the median
    for move in RNG.normal(scale=0.1, size=(50, loss.n_outputs)):
        assert at_base <= loss.mean(y, np.tile(base + move, (len(y), 1)), weight) + tolerance


def test_extreme_margins_stay_finite():
    margin = np.array([[-1e4], [-90], [0], [90], [1e4]], dtype=np.float32)
    y = np.array([0, 1, 0, 1, 0], dtype=np.float32)
    gradient, hessian = BinaryLogistic().derivatives(y, margin)
    assert np.isfinite(gradient).all()
    assert np.all((hessian > 0) & np.isfinite(hessian))
    probability = means(margin.astype(np.float64), "logistic", np.float64)
    assert np.array_equal(probability[[0, 2, 4], 0], [0, 0.5, 1])
    gradient, hessian = Softmax(2).derivatives(y, np.hstack([margin, -margin]))
    assert np.isfinite(gradient).all()
    assert np.all(hessian > 0)


def test_quantile_of_a_leaf():
    residual = np.array([5, 1, 4, 2, 3], dtype=np.float32)
    assert Quantile(0.5).leaf_value(residual, None) == 3
    assert Quantile(0.2).leaf_value(residual, None) == 1
    assert Quantile(0.5).leaf_value(residual, np.array([9, 1, 1, 1, 1], dtype=np.float32)) == 5


def test_labels_outside_the_domain():
    with pytest.raises(ValueError, match=r'y contains -2, but loss="poisson" needs counts'):
        Poisson().check(np.array([1, -2], dtype=np.float32))
    with pytest.raises(ValueError, match=r"y is zero for all rows"):
        Poisson().base(np.zeros(3, dtype=np.float32), None)


@pytest.mark.parametrize(
    ("loss", "base_score", "words"),
    [
        (BinaryLogistic(), 1.0, r"between 0 and 1, got base_score=1.0"),
        (Poisson(), -3, r"must be positive, got base_score=-3"),
        (SquaredError(), np.nan, r"must be a finite number"),
        (Softmax(3), [1, 2], r"or 3 of them, one per output"),
    ],
)
def test_base_scores_outside_the_domain(loss, base_score, words):
    with pytest.raises(ValueError, match=words):
        loss.base_of(base_score)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda y, m: m, r"must return a pair \(gradient, hessian\), got ndarray"),
        (lambda y, m: (m[:1], m), r"gradient of shape \(1,\); expected \(3,\)"),
        (lambda y, m: (m, m - 5), r"hessian of -5; it must be positive"),
        (lambda y, m: (m + np.inf, m + 1), r"gradient of inf; it must be finite"),
    ],
)
def test_custom_losses_that_break_their_word(function, words):
    with pytest.raises(ValueError, match=words):
        Custom(function, 1, "identity").derivatives(
            np.zeros(3, dtype=np.float32), np.zeros((3, 1), dtype=np.float32)
        )
