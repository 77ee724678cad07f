"""Warnings where a threat looks as if it were meant for other units."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw

RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": 1e5 * RNG.random(60), "age": RNG.uniform(18, 90, 60)})
Y = (X["income"] > 5e4).astype(int).to_numpy()
TREE = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("threat", "words"),
    [
        (hw.Threat(1, low=0, high=80), r"Column 'income': \d+ of 60 rows lie outside .* high=80"),
        (
            hw.Threat({"age": 1}, low=20),
            r"Column 'age': \d+ of 60 rows .*\(such as 1\d\.?\d*, with",
        ),
        (hw.Threat({"age": 100}), "Column 'age': a step of 100 is larger than the whole spread"),
        (
            hw.Threat(1e6),
            "Column 'income': a step of 1e.06 is larger .* any of them can become",
        ),
    ],
    ids=str,
)
def test_one_warning_with_the_column(threat, words):
    for ask in (hw.certify, lambda *given: hw.find_adversarial(*given[:3], threat=given[3])):
        with pytest.warns(hw.UnitWarning, match=words) as told:
            ask(TREE, X, Y, threat)
        assert len(told) == 1


def test_a_scaler_between_the_threat_and_the_columns():
    pipeline = make_pipeline(StandardScaler(), clone(TREE)).fit(X, Y)
    words = r"Column 'income': eps=0.1 is in its own unit, .* not in that of the StandardScaler"
    with pytest.warns(hw.UnitWarning, match=words):
        hw.certify(pipeline, X, Y, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hw.certify(pipeline, X, Y, hw.Threat.from_frame(X))
        hw.certify(TREE, X, Y, 0.1)


def test_nothing_to_say():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hw.certify(TREE, X, Y, hw.Threat({"age": 5, "income": 1000}, low=0))
        hw.certify(TREE, X[:5], Y[:5], 1e6)  # five rows show no spread
        hw.certify(TREE, X, Y, 200)  # one number for columns of different units
        hw.certify(TREE, X, Y, hw.Threat(5, high=np.nextafter(X["income"].max(), 0)))  # a float
        hw.minimal_distance(TREE, X, Y, threat=hw.Threat(200))  # its size does not count
        hw.certify(TREE, X, Y, hw.Threat(2, norm=0))


def test_a_range_matters_to_distances_too():
    with pytest.warns(hw.UnitWarning, match="rows lie outside of the threat's range"):
        hw.minimal_distance(TREE, X, Y, threat=hw.Threat(1, high=1))
    with pytest.warns(hw.UnitWarning, match="rows lie outside of the threat's range"):
        hw.certified_accuracy(TREE, X, Y, [0.1], threat=hw.Threat(1, high=1))


def test_both_eps_and_threat():
    model = hw.RobustDecisionTreeClassifier(eps=0.3, threat=hw.Threat(0.2), max_depth=2)
    with pytest.warns(hw.UnitWarning, match=r"Both eps=0.3 and threat are set; the threat counts"):
        model.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hw.RobustDecisionTreeClassifier(threat=hw.Threat(0.2), max_depth=2).fit(X, Y)
