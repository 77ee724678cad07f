"""What load_model refuses, and in which words."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

import hardwood as hw
from hardwood.model.load.sklearn import strictly_below


@pytest.mark.parametrize(
    "source",
    [DecisionTreeClassifier(), RandomForestClassifier(), hw.RobustDecisionTreeClassifier()],
    ids=lambda source: type(source).__name__,
)
def test_not_fitted(source):
    with pytest.raises(
        ValueError, match=f"This {type(source).__name__} is not fitted yet; call fit"
    ):
        hw.load_model(source)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, ExtraTreesClassifier])
def test_many_targets(kind):
    X = np.arange(8.0).reshape(-1, 1)
    model = kind().fit(X, np.column_stack([X[:, 0] > 3, X[:, 0] > 5]))
    with pytest.raises(
        hw.UnsupportedModelError, match="predicts 2 targets at once; train one model"
    ):
        hw.load_model(model)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, LGBMClassifier, XGBClassifier])
def test_one_class(kind):
    model = kind().fit(np.arange(40.0).reshape(-1, 1), np.zeros(40, dtype=int))
    with pytest.raises(
        hw.UnsupportedModelError,
        match=rf"This {kind.__name__} was trained on one class, \[0\]: .* Train it on two or more",
    ):
        hw.load_model(model)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (LinearRegression(), r"cannot read sklearn.linear_model._base.LinearRegression; it reads"),
        (hw.Threat(0.1), r"cannot read hardwood\.threat\.\S*Threat; it reads"),
        (12, "cannot read builtins.int"),
        (None, "ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_objects(source, words):
    with pytest.raises(hw.UnsupportedModelError, match=words):
        hw.load_model(source)


def test_own_models_come_back_as_they_are():
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) > 3
    model = hw.RobustDecisionTreeClassifier(eps=0).fit(X, y)
    assert hw.load_model(model) is model.trees_
    assert hw.load_model(model.trees_) is model.trees_


def test_not_above_becomes_strictly_below():
    """For every float32 around every threshold: x <= t exactly where x < t'."""
    biggest = np.finfo(np.float32).max
    t = np.array(
        [0.5, 0.1, -0.1, 0.0, 1e-60, -1e-60, 1e-45, biggest, -float(biggest), np.inf, 1e39]
    )
    strict = strictly_below(t)
    assert strict.dtype == np.float32
    for threshold, strict_threshold in zip(t, strict, strict=True):
        with np.errstate(over="ignore"):
            x = np.float32(threshold)
            around = np.nextafter(x, np.float32([-np.inf, x, np.inf]))
        for value in around:
            if abs(value) <= biggest:
                assert (float(value) <= threshold) == (value < strict_threshold)
