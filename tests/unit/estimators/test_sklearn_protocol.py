"""The estimator keeps scikit-learn's promises."""

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
