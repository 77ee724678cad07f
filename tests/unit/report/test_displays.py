"""Displays keep numbers that are true, and draw them where they are told."""

import sys

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y), X, y


def test_the_curve_is_that_of_certify(iris):
    threat = hw.Threat(0.2)
    display = hw.RobustnessCurveDisplay.from_estimator(*iris, threat, multiples=[0, 0.5, 1, 2])
    truth = hw.certified_accuracy(*iris, [0, 0.1, 0.2, 0.4]).certified_accuracy
    np.testing.assert_array_equal(display.certified, truth)
    np.testing.assert_array_equal(display.attacked, truth)
    np.testing.assert_array_equal(display.line_.get_ydata(), truth)
    assert display.ax_.figure is display.figure_


def test_open_rows_make_a_band():
    _, ax = plt.subplots()
    display = hw.RobustnessCurveDisplay.from_predictions(
        [0, 0.5, 1.5], [0, 1.5, 1.5], multiples=[0, 1], name="forest", ax=ax, color="red"
    )
    assert display.ax_ is ax
    np.testing.assert_allclose(display.certified, [2 / 3, 1 / 3])
    np.testing.assert_allclose(display.attacked, [2 / 3, 2 / 3])
    assert display.line_.get_color() == "red"
    assert ax.get_legend().get_texts()[0].get_text() == "forest"


def test_distances_leave_out_wrong_rows_and_those_nobody_fools(iris):
    shown = hw.DistanceDistributionDisplay.from_predictions([0, 0.2, 0.4, np.inf], bins=2)
    assert sum(bar.get_height() for bar in shown.ax_.patches) == 2
    display = hw.DistanceDistributionDisplay.from_estimator(*iris, 0.2)
    truth = hw.minimal_distance(*iris).lower
    np.testing.assert_allclose(display.lower, truth / 0.2)


def test_boundaries_with_the_boxes_of_the_threat():
    X, y = make_moons(40, noise=0.2, random_state=0)
    tree = DecisionTreeClassifier(max_depth=3).fit(X, np.where(y, "b", "a"))
    threat = hw.Threat((0, 0.1))
    display = hw.DecisionBoundaryDisplay.from_estimator(
        tree, X, np.where(y, "b", "a"), threat=threat
    )
    low, high = threat.ball(X)
    for k, box in enumerate(display.ax_.patches):
        np.testing.assert_allclose(box.get_bbox().bounds, [*low[k], *(high - low)[k]])
    assert len(hw.DecisionBoundaryDisplay.from_estimator(tree, X).ax_.patches) == 0


def test_boundaries_of_more_columns_are_refused(iris):
    with pytest.raises(ValueError, match="draws models of 2 columns, but this one has 4; train on"):
        hw.DecisionBoundaryDisplay.from_estimator(*iris)


def test_images_and_their_examples():
    X, y = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=8, random_state=0).fit(X, y)
    display = hw.AdversarialGridDisplay.from_estimator(tree, X, y, image=(8, 8), n_images=4)
    assert display.axes_.shape == (3, 4)
    pairs = zip(tree.predict(display.X), tree.predict(display.X_adv), strict=True)
    said = [f"{a} → {b}" for a, b in pairs]
    assert display.titles == said
    assert all(a != b for a, b in (title.split(" → ") for title in said))
    with pytest.raises(ValueError, match=r"image=\(3, 8\) has 24 pixels but X has 64 columns"):
        hw.AdversarialGridDisplay.from_estimator(tree, X, y, image=(3, 8))


def test_columns_on_which_changes_are_spent(iris):
    display = hw.ColumnBudgetDisplay.from_estimator(*iris, 0.3, n_columns=2)
    assert len(display.ax_.patches) == 2
    assert np.all(np.diff(display.share) <= 0)
    spent = hw.audit(*iris, 0.3).content["spent"]["columns"]
    assert display.names == [one["column"] for one in spent]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: hw.DistanceDistributionDisplay.from_predictions([0.4, 0.9]),
        lambda: hw.AdversarialGridDisplay.from_predictions(
            [[0, 1]], [[0, 0.4]], ["3"], ["8"], image=(1, 2)
        ),
    ],
)
def test_absent_matplotlib_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'Displays need matplotlib.*"hardwood\[report\]"'):
        draw()
