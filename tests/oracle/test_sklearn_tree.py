"""With eps=0 the tree is scikit-learn's, split by split.

Both look at midpoints and take the largest gain, but on equal gains scikit-learn takes the feature
that its random order puts first and we take the first column. So the trees are walked side by side:
at every node the gains must agree; where the two split the training rows otherwise, the gains being
equal, it was a tie, and the walk ends there. New rows whose ways do not part at a tie must get the
same label.
Gains agree up to 1e-9, which is far above the rounding of both sums and far below the difference of
any two gains of whole rows here. scikit-learn takes values closer than 1e-7 for equal; the data
have none that close.
"""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

import hardwood as hw


def continuous():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 8))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=600) > 1).astype(int)


DATA = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "continuous": continuous,
}


def goes_left(ours, node, X):
    t = ours.trees_
    return X[:, t.feature[node]].astype(np.float32) < t.threshold[node]


def peer_goes_left(peer, node, X):
    t = peer.tree_
    return X[:, t.feature[node]].astype(np.float32) <= t.threshold[node]


def peer_gain(peer, node):
    t = peer.tree_
    children = [t.children_left[node], t.children_right[node]]
    share = t.weighted_n_node_samples[children] / t.weighted_n_node_samples[node]
    return t.impurity[node] - share @ t.impurity[children]


def rows_in_matching_leaves(ours, peer, X, X_new):
    """Walk both trees; give the new rows that end in leaves that match."""
    matched = np.zeros(len(X_new), dtype=bool)
    open_nodes = [(0, 0, np.arange(len(X)), np.arange(len(X_new)))]
    while open_nodes:
        node, other, rows, new_rows = open_nodes.pop()
        gain = ours.trees_.gain[node]
        is_leaf = peer.tree_.children_left[other] == -1
        assert gain == pytest.approx(0 if is_leaf else peer_gain(peer, other), abs=1e-9)
        if gain == 0:
            matched[new_rows] = is_leaf
            continue
        left = goes_left(ours, node, X[rows])
        if np.any(left != peer_goes_left(peer, other, X[rows])):
            continue
        assert ours.trees_.cover[node] == len(rows)
        new_left = goes_left(ours, node, X_new[new_rows])
        together = new_left == peer_goes_left(peer, other, X_new[new_rows])
        if ours.trees_.feature[node] == peer.tree_.feature[other]:
            assert together.all()
        new_rows, new_left = new_rows[together], new_left[together]
        for child, peer_child, part, new_part in (
            (ours.trees_.left, peer.tree_.children_left, left, new_left),
            (ours.trees_.right, peer.tree_.children_right, ~left, ~new_left),
        ):
            open_nodes.append((child[node], peer_child[other], rows[part], new_rows[new_part]))
    return matched


@pytest.mark.parametrize("max_depth", [1, 3, None])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("name", DATA)
def test_natural_tree_is_scikit_learns(name, criterion, max_depth):
    X, y = DATA[name]()
    train = np.random.default_rng(0).random(len(X)) < 0.7
    peer = DecisionTreeClassifier(criterion=criterion, max_depth=max_depth, random_state=0)
    peer.fit(X[train], y[train])
    ours = hw.RobustDecisionTreeClassifier(eps=0, criterion=criterion, max_depth=max_depth)
    ours.fit(X[train], y[train])
    alike = rows_in_matching_leaves(ours, peer, X[train], X)
    assert alike.mean() > 0.5, "too many ties to say anything"
    np.testing.assert_array_equal(ours.predict(X[alike]), peer.predict(X[alike]))
    np.testing.assert_allclose(
        ours.predict_proba(X[alike]), peer.predict_proba(X[alike]), atol=1e-6
    )
