"""One kind of model: how a random one is made, and how its users ask it.

Models are small and full of ties: few trees of few levels, few values a column, rows that occur
with every label, labels of several types.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

Rng = np.random.Generator
Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Source:
    """A fitted model and how its users ask it.

    `task` is "label" (a classifier, or who tells inliers from outliers), "value" (predictions are
    numbers: questions about labels must be refused), "raw" (scores: the same, and questions about
    numbers may be refused, too) or "refused" (nothing can be asked). `twins` are pairs of ways to
    ask for numbers or labels that must agree in every cell.
    """

    model: Any  # what hardwood is given: an object, or the path of a file
    predict: Predict
    X: np.ndarray
    task: str = "label"
    classes: Any = None
    missing: bool = False  # rows may have holes
    columns: list[str] | None = None  # hardwood is given data frames
    special: tuple[float, ...] = ()  # values that the source treats by themselves
    twins: dict[str, tuple[Predict, Predict]] = field(default_factory=dict)
    keep: Any = None  # what must live as long as the source
    categories: dict[int, np.ndarray] = field(default_factory=dict)  # values of such features
    bare: bool = False  # a Booster or a file of numbers: its users may cut them at a half

    def given(self, X: np.ndarray) -> Any:
        """Rows in the form in which the model's user has them."""
        return in_columns(X, self.columns)


KINDS: dict[str, Callable[[Rng], Source]] = {}


def enter(name: str, make: Callable[..., Source], *given: Any, **settings: Any) -> None:
    """Add a kind; `make` takes the random numbers first, then what is given here."""
    assert name not in KINDS, name
    KINDS[name] = partial(_make, make, given, settings)


def _make(make: Callable[..., Source], given: Any, settings: Any, rng: Rng) -> Source:
    return make(rng, *given, **settings)


def heads(columns: bool, X: np.ndarray) -> list[str] | None:
    """Names with spaces, as tables have them; None: plain arrays."""
    return [f"a column {f}" for f in range(X.shape[1])] if columns else None


def in_columns(X: np.ndarray, columns: list[str] | None) -> Any:
    if columns is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=columns)


def table(rng: Rng, missing: bool = False) -> np.ndarray:
    """Few values a column, so that rows repeat and lie on thresholds."""
    n, d = int(rng.integers(12, 49)), int(rng.integers(1, 4))
    columns = []
    for _ in range(d):
        k = int(rng.integers(2, 6))
        values = [
            np.arange(k),
            np.arange(k) - k // 2,
            np.arange(k) * 0.25,
            np.arange(k) * 0.1,
            rng.normal(size=k),
            rng.normal(size=k) * 10.0 ** rng.integers(-6, 7),
            2.0**24 + np.arange(k),
            np.arange(k) * 1e-165,
            np.arange(k) * 5e37,
        ][rng.choice(9, p=[0.25, 0.2, 0.15, 0.15, 0.14, 0.06, 0.03, 0.01, 0.01])]
        columns.append(rng.choice(values, size=n).astype(np.float64))
    X = np.column_stack(columns)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def with_categories(rng: Rng, X: np.ndarray) -> dict[int, np.ndarray]:
    """Make one or more columns categories, in place."""
    chosen = [f for f in range(X.shape[1]) if rng.random() < 0.5] or [0]
    for f in chosen:
        X[:, f] = rng.integers(4, size=len(X))
    return {f: np.unique(X[:, f]) for f in chosen}


def classes_of(rng: Rng, X: np.ndarray, k: int) -> np.ndarray:
    """Labels 0 to k - 1, all there: by a rule, by chance, or rows with every label in turn."""
    n = len(X)
    how = rng.random()
    if how < 0.4:
        score = np.nan_to_num(X) @ rng.normal(size=X.shape[1]) + rng.normal(size=n) * 0.3
        y = np.argsort(np.argsort(score, kind="stable")) * k // n
    elif how < 0.7:
        y = rng.permutation(np.arange(n) % k)
    else:
        X[:] = np.resize(X[: -(-n // k)].repeat(k, axis=0), X.shape)
        y = np.arange(n) % k
        again = rng.random(n) < 0.3
        y[again] = rng.integers(k, size=int(again.sum()))
    y[:k] = np.arange(k)
    return y.astype(int)


def names_of(rng: Rng, k: int) -> np.ndarray:
    """What the classes are called."""
    choices = [
        np.arange(k),
        np.array([3, 7, 11])[:k],
        np.array([-1, 1, 2])[:k],
        np.array(["a", "b", "c"])[:k],
        np.array(["no", "yes", "zero"])[:k],
        np.array([False, True]) if k == 2 else np.arange(k) + 1,
    ]
    return choices[rng.integers(len(choices))]


def numbers_of(rng: Rng, X: np.ndarray, positive: bool = False) -> np.ndarray:
    """What regressors learn."""
    score = np.nan_to_num(X)
    span = np.ptp(score, axis=0)
    score = (score - score.min(axis=0)) / np.where(span > 0, span, 1) @ rng.normal(size=X.shape[1])
    y = score + rng.normal(size=len(X)) * 0.3
    if positive:
        return np.round(np.exp(y) * 4) / 2 + 0.5
    return np.round(y * 4) / 4 * float(rng.choice([1.0, 1.0, 10.0, 0.1, 1000.0]))


def shares_of(rng: Rng, X: np.ndarray) -> np.ndarray:
    """What a logistic regression learns."""
    y = numbers_of(rng, X)
    return (y - y.min()) / (np.ptp(y) or 1.0)


def size(rng: Rng) -> tuple[int, int]:
    """Numbers of trees and levels."""
    return int(rng.choice([1, 1, 2, 3, 4, 6])), int(rng.integers(1, 4))


def flat(answer: Any, n: int) -> np.ndarray:
    return np.asarray(answer).reshape(n)


def decided(answer: Any) -> np.ndarray:
    """The label of who only gives numbers: above a half, or the largest."""
    answer = np.asarray(answer)
    return (answer > 0.5).astype(int) if answer.ndim == 1 else answer.argmax(axis=1)


def folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="hunt")
