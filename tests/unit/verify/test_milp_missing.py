"""Programs for models in which a split only tells missing values from the others."""

import numpy as np

import hardwood as hw


def test_infinite_thresholds_take_no_variable_of_the_next_feature():
    # Feature 0 is asked whether it is missing, feature 1 whether it is below one half.
    trees = hw.Trees(
        feature=[0, 1, -1, -1, -1],
        threshold=[np.inf, 0.5, 0, 0, 0],
        left=[1, 2, -1, -1, -1],
        right=[4, 3, -1, -1, -1],
        missing_left=[False] * 5,
        value=[0.0, 0.0, -1.0, 1.0, 1.0],
        tree_start=[0, 5],
        n_features=2,
    )
    X, y = np.array([[0.3, 0.2], [np.nan, 0.2]]), np.array([0, 1])
    for norm in ("inf", 1, 2, 0):
        solver = hw.minimal_distance(trees, X, y, norm=norm, method="milp")
        search = hw.minimal_distance(trees, X, y, norm=norm)
        np.testing.assert_allclose(solver.upper, search.upper, rtol=1e-5)
        np.testing.assert_allclose(solver.lower, search.lower, rtol=1e-5)
