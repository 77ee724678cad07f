import numpy as np

import hardwood as hw


def arrays(tree):
    """Nodes of a tree on one feature, told as (threshold, left, right) or the value of a leaf."""
    if not isinstance(tree, tuple):
        return [(-1, 0.0, -1, -1, tree)]
    below, above = arrays(tree[1]), arrays(tree[2])
    at = [
        [(f, t, *((c + by if c >= 0 else c) for c in (a, b)), v) for f, t, a, b, v in nodes]
        for nodes, by in ((below, 1), (above, 1 + len(below)))
    ]
    return [(0, tree[0], 1, 1 + len(below), 0.0), *at[0], *at[1]]


def test_the_solver_loses_nothing_to_its_presolve():
    a, b, c, d = -1.4999998807907104, -0.4999999701976776, 0.5000000596046448, 1.5000001192092896
    trees = [
        arrays(tree)
        for tree in (
            (d, (a, 0.11111111, (b, 0.07407407, 0.10256410)), 0.06666667),
            (b, (a, 0.04761905, 0.08333334), (d, (c, 0.11111111, 0.11111111), 0.125)),
            (a, 0.1, (b, 0.04166667, (c, 0.06666667, 0.04545455))),
            (d, (b, (a, 0.06666667, 0.08333334), 0.16666667), 0.01851852),
            (a, 0.01282051, (d, (b, 0.1, 0.14285715), 0.08333334)),
            (b, (a, 0.13333334, 0.04545455), (d, (c, 0.16666667, 0.14583333), 0.0952381)),
        )
    ]
    nodes = [np.array(column) for column in zip(*(n for tree in trees for n in tree), strict=True)]
    model = hw.Trees(
        *nodes[:4],
        np.ones(len(nodes[0]), dtype=bool),
        nodes[4],
        tree_start=np.cumsum([0, *map(len, trees)]),
        cut=0.5,
        n_features=1,
    )
    X = [[0.4990234673023225]]
    y = model.predict(X)
    found = hw.find_adversarial(model, X, y, method="kantchelian", norm="inf")
    np.testing.assert_allclose(found.lower, hw.minimal_distance(model, X, y).upper)
    np.testing.assert_allclose(found.lower, X[0][0] - b, rtol=1e-6)
