"""Ctrl-C and the time for a whole call: every function returns what it has by then."""

import _thread
import threading

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw
from faults import Press

AT_ONCE = {"total_time_limit": 1e-9}
pytestmark = pytest.mark.filterwarnings("ignore::hardwood.UndecidedWarning")


@pytest.fixture(scope="module")
def hard():
    """A model on which all rows together take minutes, and its rows; every fifth label is wrong."""
    rng = np.random.default_rng(0)
    X = rng.random((3000, 10))
    y = (np.sin(9 * X).sum(axis=1) + rng.normal(size=3000) > 0).astype(int)
    model = hw.load_model(RandomForestClassifier(100, random_state=0).fit(X, y))
    X = np.tile(X[:40], (20, 1))
    label = model.predict(X)
    label[::5] = 1 - label[::5]
    return model, X, label


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    X = rng.random((500, 4))
    y = (X.sum(axis=1) > 2).astype(int)
    return (
        DecisionTreeClassifier(random_state=0).fit(X, y),
        X,
        np.where(np.arange(500) % 5, y, 1 - y),
    )


def pressing(call):
    """The answer of a call during which Ctrl-C is pressed once, a little after its start.

    A time limit ends a call that Ctrl-C does not, for the test to fail.
    """
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    try:
        return call(total_time_limit=60)
    finally:
        timer.join()


def test_certificates_and_distances_end_at_ctrl_c(hard):
    model, X, y = hard
    certificate = hw.certify(model, X, y, hw.Threat(0.3, norm=1), progress=Press())
    assert "interrupted" in certificate.reason
    wrong = certificate.reason == "misclassified"
    np.testing.assert_array_equal(wrong, model.predict(X) != y)
    assert (certificate.status[wrong] == "broken").all()
    np.testing.assert_array_equal(certificate.X_adv[wrong], X[wrong])
    result = hw.minimal_distance(model, X, y, norm=2, progress=Press())
    assert "interrupted" in result.reason
    assert (result.lower <= result.upper).all()
    assert (result.upper[result.status == "misclassified"] == 0).all()


def test_both_sides_of_an_output_range_end_at_ctrl_c():
    rng = np.random.default_rng(0)
    X = rng.random((2000, 10))
    model = RandomForestRegressor(100, random_state=0).fit(X, np.sin(9 * X).sum(axis=1))
    trees = hw.load_model(model)
    rows = np.tile(X[:100], (3, 1))
    result = hw.output_range(trees, rows, 0.2, progress=Press())
    assert "interrupted" in result.reason
    never = np.isinf(result.upper)  # pressed on the first side, so nothing of the other one
    assert never.all()
    np.testing.assert_array_equal(result.X_highest, rows)
    np.testing.assert_array_equal(result.highest, trees.predict(rows))
    assert (result.lower <= result.lowest).all()
    hurried = hw.output_range(trees, rows, 0.2, **AT_ONCE)
    assert (hurried.status == "unknown").all()
    assert (hurried.reason == "time limit").all()
    np.testing.assert_array_equal(hurried.lower, -np.inf)


def test_the_curve_ends_at_ctrl_c(hard):
    model, X, y = hard
    threat = hw.Threat(1, norm=1)
    eps = [0.05, 0.1, 0.2, 0.4]
    curve = hw.certified_accuracy(model, X, y, eps, threat=threat, progress=Press())
    wrong = model.predict(X) != y
    assert (curve.status[:, wrong] == "broken").all()
    assert (curve.status[:, ~wrong] == "unknown").any(axis=0).any()
    assert (curve.certified_accuracy <= curve.attacked_accuracy).all()
    hurried = hw.certified_accuracy(model, X, y, eps, threat=threat, **AT_ONCE)
    assert (hurried.status[:, wrong] == "broken").all()
    assert (hurried.status[:, ~wrong] == "unknown").all()


def test_the_exact_attack_ends_at_ctrl_c_and_in_time(hard):
    model, X, y = hard
    for limit in ({"progress": Press()}, {"total_time_limit": 0.2}):
        found = hw.find_adversarial(model, X, y, method="exact", norm=1, **limit)
        assert (found.status == "survived").any()  # rows whose turn never came, for nobody
        assert (found.lower <= found.distance).all()


@pytest.mark.parametrize("method", ["descent", "symbolic", "kantchelian", "cheng"])
def test_attacks_return_what_they_have(hard, method):
    model, X, y = hard
    norm = 2 if method in ("descent", "cheng") else 1

    def call(**limit):
        return hw.find_adversarial(model, X, y, method=method, norm=norm, random_state=0, **limit)

    # HiGHS tells nothing before its first row is done.
    found = pressing(call) if method == "kantchelian" else call(progress=Press())
    assert (found.status != "misclassified").any()
    assert (found.lower <= found.distance).all()
    assert not call(**AT_ONCE).success.any()


@pytest.mark.parametrize("limit", ["ctrl-c", "total_time_limit"])
def test_the_solver_is_left_to_itself(hard, limit):
    """HiGHS hears nothing: the call ends all the same, and what it knew by then is sound."""
    model, X, y = hard
    truth = hw.minimal_distance(model, X[:3], y[:3])

    def call(**limit):
        return hw.minimal_distance(model, X, y, method="milp", **limit)

    result = pressing(call) if limit == "ctrl-c" else call(total_time_limit=0.3)
    reason = "interrupted" if limit == "ctrl-c" else "time limit"
    assert reason in result.reason
    assert (result.lower[:3] <= truth.upper + 2e-6).all()
    assert (result.upper[:3] >= truth.lower).all()
    assert (result.lower[-1], result.upper[-1]) == (0, np.inf)


def test_single_trees_keep_the_time_too(tree):
    model, X, y = tree
    wrong = model.predict(X) != y
    certificate = hw.certify(model, X, y, 0.1, **AT_ONCE)
    np.testing.assert_array_equal(certificate.status, np.where(wrong, "broken", "unknown"))
    assert set(certificate.reason) == {"misclassified", "time limit"}
    result = hw.minimal_distance(model, X, y, **AT_ONCE)
    np.testing.assert_array_equal(result.status, np.where(wrong, "misclassified", "unknown"))
    np.testing.assert_array_equal(result.lower, 0)
    np.testing.assert_array_equal(result.upper, np.where(wrong, 0, np.inf))
    for method in ("exact", "papernot"):
        assert not hw.find_adversarial(model, X, y, method=method, **AT_ONCE).success.any()
