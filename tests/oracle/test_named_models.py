"""Distances on the paper's data sets against HiGHS, and bounds of a stopped search against both."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import hardwood as hw
from samples import paper_data

N_ROWS = 52  # of each of four models


def model_and_rows(name, n_rows, **shape):
    X, y = paper_data("mnist" if name == "mnist 2 v. 6" else name)
    if name == "mnist 2 v. 6":
        some = np.isin(y, (2, 6))
        X, y = X[some] / 255, (y[some] == 6).astype(int)
    n = min(4000, len(X) - n_rows)
    model = hw.RobustGradientBoostingClassifier(eps=0, learning_rate=0.3, n_jobs=1, **shape)
    return model.fit(X[:n], y[:n]), X[-n_rows:], y[-n_rows:]


@pytest.mark.parametrize("name", ["breast_cancer", "diabetes", "ijcnn1", "mnist 2 v. 6"])
def test_the_solver_finds_the_same_distance(name):
    depth = 3 if name == "mnist 2 v. 6" else 4
    model, X, y = model_and_rows(name, N_ROWS, n_estimators=15, max_depth=depth)
    for norm, n in (("inf", N_ROWS), (2, 5), (1, 5)):
        ours = hw.minimal_distance(model, X[:n], y[:n], norm=norm)
        theirs = hw.minimal_distance(model, X[:n], y[:n], norm=norm, method="milp")
        assert set(ours.status) | set(theirs.status) <= {"exact", "misclassified"}
        # The solver asks the rival to win by a little, so it may end one threshold further.
        assert (theirs.upper >= ours.upper * (1 - 1e-9)).all()
        np.testing.assert_allclose(theirs.upper, ours.upper, rtol=1e-5, atol=2e-6)


@pytest.fixture(scope="module")
def forest():
    """A model on which rows take from one to hundreds of milliseconds."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 8))
    y = (np.sin(9 * X).sum(axis=1) + rng.normal(size=3000) > 0).astype(int)
    model = RandomForestClassifier(60, max_depth=8, random_state=0, n_jobs=1).fit(X, y)
    return hw.load_model(model), X[:12], model.predict(X[:12])


@pytest.mark.parametrize("norm", ["inf", 2])
@pytest.mark.filterwarnings("ignore::hardwood.UndecidedWarning")
def test_a_stopped_search_brackets_the_truth(forest, norm):
    trees, X, y = forest
    truth = hw.minimal_distance(trees, X, y, norm=norm)
    assert (truth.status == "exact").all()
    lower = np.zeros(len(X))
    for seconds in (0.001, 0.01, 0.1):
        stopped = hw.minimal_distance(trees, X, y, norm=norm, time_limit=seconds)
        assert (stopped.lower <= truth.upper * (1 + 1e-12)).all()
        assert (stopped.upper >= truth.upper * (1 - 1e-12)).all()
        found = np.isfinite(stopped.upper)
        assert (trees.predict_class(stopped.X_adv[found]) != y[found]).all()
        lower = np.maximum(lower, stopped.lower)
    assert (lower > 0).any()
