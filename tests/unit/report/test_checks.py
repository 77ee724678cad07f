"""Every check of an audit fails where it should, and passes elsewhere."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw

RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": RNG.uniform(0, 100, 60), "age": RNG.uniform(0, 80, 60)})
Y = (X["income"] > 50).astype(int)
TREE = DecisionTreeClassifier(random_state=0).fit(X, Y)  # looks at the income alone


@pytest.mark.parametrize(
    ("y", "threat", "failed"),
    [
        (Y, hw.Threat(1), set()),
        (1 - Y, hw.Threat(1), {"better than guessing"}),
        (Y, hw.Threat({"age": 1}), {"the threat reaches the model"}),
        (Y, hw.Threat({"income": 200, "age": 1}), {"no step is larger than its column"}),
        (Y, hw.Threat({"income": 1e-6, "age": 1}), {"no step is lost in its column"}),
        (Y, hw.Threat({"income": 1, "age": 1}, low={"age": 5}), {"rows lie in the valid range"}),
    ],
)
@pytest.mark.filterwarnings("ignore::hardwood.UnitWarning")
def test_checks_that_fail(y, threat, failed):
    checks = hw.audit(TREE, X, y, threat, n_fragile=0).checks
    assert {one["name"] for one in checks if not one["passed"]} == failed


def test_one_size_for_columns_of_different_ranges():
    wide = X.assign(age=X["age"] * 1000)
    checks = {one["name"]: one for one in hw.audit(TREE, wide, Y, 1).checks}
    one_size = checks["one size suits all columns"]
    assert not one_size["passed"]
    assert "ranges differ by a factor of 789;" in one_size["words"]


def test_whole_numbers_of_a_frame_move_by_whole_steps_alone_as_well():
    years = pd.DataFrame({"age": [29, 30, 31, 32] * 5, "size": np.arange(20.0)})
    old = (years["age"] > 30).astype(int)
    tree = DecisionTreeClassifier(random_state=0).fit(years, old)  # splits at 30.5
    for eps, turned in ((0.7, 0), (1.0, 10)):
        content = hw.audit(tree, years, old, hw.Threat({"age": eps})).content
        assert content["certificate"]["broken"] == turned
        assert [one["turned"] for one in content["alone"]["columns"]] == [turned]
