"""The estimator keeps scikit-learn's promises."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import hardwood as hw

# The checks fit tables of a few unscaled rows, on some of which no split survives the default eps;
# that warning has its own test.
pytestmark = pytest.mark.filterwarnings("ignore::hardwood.HardwoodWarning")


@parametrize_with_checks(
    [
        hw.RobustDecisionTreeClassifier(),
        hw.RobustDecisionTreeClassifier(criterion="gini"),
        hw.RobustDecisionTreeClassifier(candidates="intervals"),
        hw.RobustDecisionTreeClassifier(eps=0),
        hw.AdversarialBoostingClassifier(n_rounds=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        hw.RobustDecisionTreeClassifier(),
        hw.RobustRandomForestClassifier(n_estimators=2),
        hw.RobustGradientBoostingClassifier(n_estimators=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_odd_labels_are_refused_in_words(estimator):
    rows = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match=r"y\[1\] is None, which is no label; leave the row out"):
        estimator.fit(rows, np.array(["a", None, "b"] * 2, dtype=object))
    with pytest.raises(ValueError, match="y mixes labels that have no order, of the types int"):
        estimator.fit(rows, np.array([1, "b"] * 3, dtype=object))
    with pytest.raises(ValueError, match=r"y has only one class, 0\.0; a classifier"):
        estimator.fit(rows, np.zeros(6))


def test_callbacks_are_callable():
    model = hw.RobustGradientBoostingClassifier(n_estimators=2, callbacks=[3])
    with pytest.raises(ValueError, match="callbacks must be a list of callables, got 3 in it"):
        model.fit(np.arange(6.0)[:, None], [0, 1] * 3)
