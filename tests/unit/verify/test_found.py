"""What a search found counts if the model's own library agrees."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import hardwood as hw
from hardwood.verify import ensemble, milp, tree
from hardwood.verify.effort import Effort
from hardwood.verify.problem import Problem

SEARCHES = {"ensemble": ensemble.nearest, "tree": tree.nearest, "milp": milp.nearest}


def problem(n_trees):
    rng = np.random.default_rng(0)
    X = rng.random((80, 2))
    y = (X[:, 0] > 0.5).astype(int)
    forest = RandomForestClassifier(n_trees, max_depth=3, random_state=0).fit(X, y)
    return Problem.of(forest, X[:6], None, 1)


@pytest.mark.parametrize("name", SEARCHES)
def test_an_example_that_the_source_denies_leaves_its_row_open(name):
    asked = problem(1 if name == "tree" else 5)
    reach = asked.reach(hw.Threat(1))
    sure = SEARCHES[name](asked, "inf", reach, Effort())
    assert np.isfinite(sure.upper).all()
    assert (sure.reason == "").all()

    def denies(X):
        """Agrees about the first example alone, and refuses the second one."""
        label = asked.y[: len(X)].copy()
        label[0], label[1] = 1 - label[0], -1
        return label

    doubted = SEARCHES[name](replace(asked, source=denies), "inf", reach, Effort())
    np.testing.assert_array_equal(np.isfinite(doubted.upper), np.arange(6) == 0)
    assert np.isnan(doubted.X_adv[1:]).all()
    np.testing.assert_array_equal(doubted.lower, sure.lower)
    assert set(doubted.reason[1:]) == {"within the rounding of the source's own sum"}
    assert doubted.verdict().tolist() == ["broken"] + ["unknown"] * 5
