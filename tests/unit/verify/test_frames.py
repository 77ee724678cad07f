"""Questions asked with a data frame about models that know its columns by other names, or none."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw

LOANS = pd.DataFrame({"n loans": [0, 1, 2, 3] * 5, "income": np.linspace(0.0, 1.0, 20)})
MANY = (LOANS["n loans"] >= 2).to_numpy().astype(int)


def by_array():
    return DecisionTreeClassifier(random_state=0).fit(LOANS.to_numpy(), MANY)


def by_lightgbm():
    """A model that calls the first column n_loans."""
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=2, min_child_samples=1, verbose=-1, n_jobs=1)
    return model.fit(LOANS, MANY)


@pytest.mark.parametrize("train", [by_array, by_lightgbm])
def test_integer_columns_hold_whole_numbers_whatever_the_model_calls_them(train):
    found = hw.minimal_distance(train(), LOANS[:4], MANY[:4], n_jobs=1)
    assert found.upper.tolist() == [2, 1, 1, 2]
    assert found.X_adv["n loans"].tolist() == [2, 2, 1, 1]
    assert found.X_adv["n loans"].dtype == LOANS["n loans"].dtype


def test_integer_columns_of_frames_whose_columns_are_numbered():
    rows = LOANS.set_axis([0, 1], axis=1)
    found = hw.minimal_distance(by_array(), rows[:4], MANY[:4], n_jobs=1)
    assert found.upper.tolist() == [2, 1, 1, 2]
    assert found.X_adv[0].tolist() == [2, 2, 1, 1]
    assert list(found.to_frame().columns[-2:]) == ["x0", "x1"]
    assert str(found.changes(1)) == "0 1 -> 2"


@pytest.mark.parametrize(
    "threat",
    [
        hw.Threat({"n loans": 1}),
        hw.Threat(1, fixed=["income"]),
        hw.Threat(1, high={"n loans": 1, "income": 1}, integer=["n loans"]),
    ],
)
def test_a_threat_names_the_columns_of_the_frame_where_the_model_has_no_names(threat):
    model, named = by_array(), DecisionTreeClassifier(random_state=0).fit(LOANS, MANY)
    answers = [hw.certify(one, LOANS, MANY, threat, n_jobs=1) for one in (model, named)]
    assert answers[0].status.tolist() == answers[1].status.tolist()
    assert "broken" in answers[0].status
    assert set(hw.audit(model, LOANS, MANY, threat, n_jobs=1).fragile["row"]) <= set(range(20))
    with pytest.raises(ValueError, match="have no names; pass a data frame"):
        hw.certify(model, LOANS.to_numpy(), MANY, threat)
    assert list(answers[0].X_adv.columns) == list(LOANS.columns)
