import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import hardwood as hw
from hardwood.report.plots import plot_boundaries, plot_tree

# x0 < 0.5 -> class a; else x1 < 0.25 -> class b, else class a
TREE = hw.Trees(
    feature=[0, -1, 1, -1, -1],
    threshold=np.array([0.5, 0, 0.25, 0, 0], dtype=np.float32),
    left=[1, -1, 3, -1, -1],
    right=[2, -1, 4, -1, -1],
    missing_left=[False] * 5,
    value=[[0.6, 0.4], [1, 0], [0.2, 0.8], [0, 1], [0.75, 0.25]],
    tree_start=[0, 5],
    base=[0, 0],
    link="share",
    classes=["a", "b"],
    feature_names=["height", "width"],
    cover=[10, 5, 5, 4, 1],
)


def boxes(ax):
    return {text.get_text(): text for text in ax.texts if text.get_bbox_patch() is not None}


def test_nodes_say_condition_weight_and_share():
    assert set(boxes(plot_tree(TREE))) == {
        "height < 0.50\nweight 10\nclass a: 0.60",
        "weight 5\nclass a: 1.00",
        "width < 0.25\nweight 5\nclass b: 0.80",
        "weight 4\nclass b: 1.00",
        "weight 1\nclass a: 0.75",
    }


def test_leaves_are_evenly_spaced_and_parents_over_their_children():
    ax = plot_tree(TREE)
    place = {text.split("\n")[0]: box.get_position() for text, box in boxes(ax).items()}
    assert place == {
        "weight 5": (0, -1),
        "weight 4": (1, -2),
        "weight 1": (2, -2),
        "width < 0.25": (1.5, -1),
        "height < 0.50": (0.75, 0),
    }


def test_colour_tells_the_class_and_its_share():
    colour = {
        text.split("\n")[-1]: np.array(to_rgb(box.get_bbox_patch().get_facecolor()))
        for text, box in boxes(plot_tree(TREE)).items()
    }
    red, blue = 0, 2
    assert colour["class a: 1.00"][blue] > colour["class a: 1.00"][red]
    assert colour["class b: 1.00"][blue] < colour["class b: 1.00"][red]
    purer = [colour[f"class a: {share}"][red] for share in ("0.60", "0.75", "1.00")]
    assert purer == sorted(purer, reverse=True)


def test_max_depth_cuts_with_dots():
    ax = plot_tree(TREE, max_depth=1)
    assert [text.get_text() for text in ax.texts].count("...") == 1
    assert len(boxes(ax)) == 3


def test_deep_trees_are_drawn_without_recursion():
    depth = sys.getrecursionlimit() + 1
    n = 2 * depth + 1
    node = np.arange(n)
    split = (node % 2 == 0) & (node < n - 1)
    chain = hw.Trees(
        feature=np.where(split, 0, -1),
        threshold=np.arange(n, 0, -1.0),
        left=np.where(split, node + 1, -1),
        right=np.where(split, node + 2, -1),
        missing_left=np.zeros(n, dtype=bool),
        value=np.tile([0.5, 0.5], (n, 1)),
        tree_start=[0, n],
        base=[0, 0],
        link="share",
    )
    ax = plot_tree(chain, ax=Figure().subplots())
    assert sum(text.get_bbox_patch() is not None for text in ax.texts) == n


def test_margins_are_written_as_values():
    stump = hw.Trees([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [False] * 3,
                     [0.0, -1.5, 2.0], [0, 3])  # fmt: skip
    assert set(boxes(plot_tree(stump))) == {"feature 0 < 0.50", "value -1.50", "value 2.00"}


def test_wrong_tree_and_depth_are_refused():
    with pytest.raises(ValueError, match=r"tree must be 0 to 0, got tree=1\."):
        plot_tree(TREE, tree=1)
    with pytest.raises(ValueError, match=r"max_depth must be None or >= 0, got max_depth=-1\."):
        plot_tree(TREE, max_depth=-1)


def test_pyplot_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    plot_tree(TREE)
    plot_boundaries({"one": TREE}, [[0, 0], [1, 1]], ["a", "b"])


def test_regions_are_the_models_own():
    X, y = [[0.0, 0.0], [1.0, 1.0]], ["a", "a"]
    (ax,) = plot_boundaries({"tree": TREE}, X, y)
    mesh = ax.collections[0]
    x_edges, y_edges = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    np.testing.assert_allclose(x_edges, [-0.05, 0.5, 1.05])
    np.testing.assert_allclose(y_edges, [-0.05, 0.25, 1.05])
    colours = np.asarray(mesh.get_array())  # rows are y, columns are x
    is_b = colours[..., 0] > colours[..., 2]
    assert is_b.tolist() == [[False, True], [False, False]]


def test_titles_carry_the_accuracy():
    X, y = [[0.0, 0.0], [0.9, 0.1]], ["a", "a"]
    (ax,) = plot_boundaries({"tree": TREE}, X, y)
    assert ax.get_title() == "tree\naccuracy 0.500"
    axes = plot_boundaries({"one": TREE, "two": TREE}, X, y, X_test=X[:1], y_test=y[:1])
    assert [ax.get_title() for ax in axes] == [
        "one\ntest accuracy 1.000",
        "two\ntest accuracy 1.000",
    ]


def test_what_cannot_be_drawn_is_refused():
    three = hw.Trees([-1], [0.0], [-1], [-1], [False], [[1.0, 0.0]], [0, 1], base=[0, 0],
                     n_features=3)  # fmt: skip
    with pytest.raises(ValueError, match=r"models of 2 features, but 'big' has 3"):
        plot_boundaries({"big": three}, [[0, 0, 0]], [0])
    with pytest.raises(ValueError, match="X_test and y_test go together"):
        plot_boundaries({"tree": TREE}, [[0, 0]], ["a"], X_test=[[0, 0]])
    with pytest.raises(ValueError, match="axes has 2 entries but there are 1 models"):
        plot_boundaries({"tree": TREE}, [[0, 0]], ["a"], axes=Figure().subplots(1, 2))


@pytest.mark.parametrize("draw", [plot_tree, lambda t: plot_boundaries({"t": t}, [[0, 0]], ["a"])])
def test_absent_matplotlib_is_named(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'report needs matplotlib.*"hardwood\[report\]"'):
        draw(TREE)
