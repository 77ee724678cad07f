"""What the histogram engine promises beside its splits."""

import numpy as np
import pytest
from scipy import sparse

from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.threat import Threat

N, D = 3000, 20
RULES = NewtonRules(max_depth=5, min_child_weight=0.5)


def data(seed, zeros=0.0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(N, D)), 2) * (rng.random((N, D)) >= zeros)
    signal_ = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    g = (signal_ + rng.normal(size=N))[:, None].astype(np.float32)
    h = rng.uniform(0.2, 1, (N, 1)).astype(np.float32)
    return X, g, h


def grown(table, *args, **kwargs):
    trees, leaf = table.grow(*args, **kwargs)
    return [
        np.concatenate([getattr(t, f).ravel() for f in t.__dataclass_fields__]) for t in trees
    ], leaf


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a[0], b[0], strict=True)) and np.array_equal(
        a[1], b[1]
    )


def check_same_tree(X, table, g, h, eps, **how):
    """Rows behind the first N of a table do not train, so the tree is that of the first N alone."""
    reach = Threat(eps).reach(D)
    alone, together = HistTable(X, reach), HistTable(table, reach)
    assert all(np.array_equal(alone.edges(f), together.edges(f)) for f in range(D))
    n_times = len(table) // N
    rows = np.zeros(n_times * N, dtype=np.uint8)
    rows[:N] = np.arange(N) % 3 > 0
    [tree], leaf = alone.grow(g, h, rows=rows[:N], **how)
    assert (tree.feature >= 0).sum() > 5
    [other], other_leaf = together.grow(
        np.tile(g, (n_times, 1)), np.tile(h, (n_times, 1)), rows=rows, **how
    )
    assert same(
        ([getattr(tree, name) for name in tree.__dataclass_fields__], leaf),
        ([getattr(other, name) for name in other.__dataclass_fields__], other_leaf[:N]),
    )
    return other_leaf


@pytest.mark.parametrize("inner", ["paper", "exact"])
@pytest.mark.parametrize("zeros", [0.5, 0.97])
def test_sparse_and_dense_tables_give_the_same_bytes(inner, zeros):
    X, g, h = data(1, zeros)
    X[5, 3] = X[6, 3] = np.nan
    X[:, 4] = 0
    X = X.astype(np.float32)
    reach = Threat(0.0625).reach(D)
    rules = NewtonRules(inner=inner, max_depth=5)
    dense = grown(HistTable(X, reach), g, h, rules=rules)
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array):
        for dtype in (np.float32, np.float64):
            table = HistTable(kind(X.astype(dtype)), reach, n_threads=2)
            assert same(dense, grown(table, g, h, rules=rules))


@pytest.mark.parametrize("inner", ["paper", "exact"])
@pytest.mark.parametrize("min_samples_leaf", [1, 5])  # with 5, rows are counted
@pytest.mark.parametrize("n_features", [D, 13])
def test_rows_that_are_passed_over_change_nothing(inner, min_samples_leaf, n_features):
    # Features are 0 in the same rows, and such rows are passed over; but not where rows that do not
    # train make the table dense.
    rng = np.random.default_rng(10)
    X, g, h = data(10)
    X = np.clip(np.round(X, 1), -3, 3) * np.repeat(rng.random((N, 2)) < 0.2, D // 2, axis=1)
    g = g + X[:, :1].astype(np.float32)
    X[:, 3] = -np.abs(X[:, 3])
    X[:, 4] = np.where(X[:, 4] == 0, np.nan, X[:, 4])
    X[:, 5] = 0
    X[7] = 0
    dense = np.zeros((9 * N, D))
    for f, x in enumerate(X.T):
        if x.any():
            dense[:, f] = rng.choice(x[(x != 0) & ~np.isnan(x)], 9 * N)
    features = np.sort(rng.permutation(D)[:n_features]).astype(np.int32)
    rules = NewtonRules(inner=inner, max_depth=6, min_samples_leaf=min_samples_leaf)
    check_same_tree(X, np.vstack([X, dense]), g, h, 0.05, features=features, rules=rules)


@pytest.mark.parametrize("inner", ["paper", "exact"])
@pytest.mark.parametrize("min_samples_leaf", [1, 5])  # with 5, rows are counted
@pytest.mark.parametrize("n_features", [D, 13])
def test_features_that_share_a_column_change_nothing(inner, min_samples_leaf, n_features):
    # Features of few values share columns of codes in large tables, not in small ones.
    rng = np.random.default_rng(20)
    n_values = np.array([2, 2, 2, 3, 3, 1, 7, 200, 2, 30])[np.arange(D) % 10]
    X = rng.integers(0, n_values, (N, D)) / 2.0
    X[:, 8] *= rng.random(N) < 0.05
    X[rng.random(N) < 0.1, 3] = np.nan
    X[rng.random(N) < 0.9, 4] = np.nan
    g = (X[:, :1] - 2 * X[:, 1:2] * X[:, 6:7] + X[:, 7:8] / 50).astype(np.float32)
    g += rng.normal(size=(N, 1)).astype(np.float32) + np.where(np.isnan(X[:, 3:4]), 1, 0)
    h = rng.uniform(0.2, 1, (N, 1)).astype(np.float32)
    n_times = 22
    features = np.sort(rng.permutation(D)[:n_features]).astype(np.int32)
    rules = NewtonRules(inner=inner, max_depth=6, min_samples_leaf=min_samples_leaf)
    table = np.tile(X, (n_times, 1))
    leaf = check_same_tree(X, table, g, h, 0.2, features=features, rules=rules)
    assert np.array_equal(np.tile(leaf[:N], (n_times, 1)), leaf)


def test_sparse_input_in_any_order_is_left_as_it_is():
    X, g, h = data(11, 0.8)
    table = sparse.csr_matrix(X)
    twice = sparse.csr_matrix(
        (np.repeat(table.data / 2, 2), np.repeat(table.indices, 2), table.indptr * 2), X.shape
    )
    for i in range(N):
        line = slice(*twice.indptr[i : i + 2])
        twice.data[line] = twice.data[line][::-1]
        twice.indices[line] = twice.indices[line][::-1]
    before = twice.copy()
    reach = Threat(0.05).reach(D)
    assert same(
        grown(HistTable(table, reach), g, h, rules=RULES),
        grown(HistTable(twice, reach), g, h, rules=RULES),
    )
    assert np.array_equal(before.indices, twice.indices)


def test_float32_input_is_taken_as_it_is():
    X, g, h = data(2)
    X = X.astype(np.float32)
    reach = Threat(0.0625).reach(D)
    assert same(
        grown(HistTable(X, reach), g, h, rules=RULES),
        grown(HistTable(X.astype(float), reach), g, h, rules=RULES),
    )


def test_rows_that_do_not_train_change_nothing_and_find_their_leaf():
    X, g, h = data(3)
    X[np.random.default_rng(3).random(X.shape) < 0.05] = np.nan
    table = HistTable(X, Threat(0.1).reach(D))
    sampled = (np.arange(N) % 3 > 0).astype(np.uint8)
    other = np.where(sampled[:, None] == 1, g, -g)
    [tree], leaf = table.grow(g, h, rows=sampled, rules=RULES)
    assert same(
        grown(table, g, h, rows=sampled, rules=RULES),
        grown(table, other, h, rows=sampled, rules=RULES),
    )
    assert tree.n_samples[0] == sampled.sum()
    for row in range(N):
        node = 0
        while tree.feature[node] >= 0:
            x = X[row, tree.feature[node]]
            left = tree.missing_left[node] if np.isnan(x) else np.float32(x) < tree.threshold[node]
            node = tree.left[node] if left else tree.right[node]
        assert leaf[row, 0] == node


def test_only_the_features_asked_for_are_used():
    X, g, h = data(4)
    features = np.array([1, 2, 7, 19], np.int32)
    [tree], _ = HistTable(X, Threat(0.1).reach(D)).grow(g, h, features=features, rules=RULES)
    used = set(tree.feature[tree.feature >= 0])
    assert used
    assert used <= set(features)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_values_are_monotone_along_a_monotone_feature(sign, eps):
    X, g, h = data(5)
    monotonic = np.zeros(D, np.int8)
    monotonic[0] = monotonic[1] = sign
    rules = NewtonRules(max_depth=6)
    [tree], _ = HistTable(X, Threat(eps).reach(D)).grow(g, h, monotonic=monotonic, rules=rules)
    assert {0, 1} & set(tree.feature)
    steps = np.linspace(-3, 3, 50)
    for row in X[:100]:
        for feature in (0, 1):
            values = []
            for step in steps:
                node = 0
                while tree.feature[node] >= 0:
                    f = tree.feature[node]
                    x = step if f == feature else row[f]
                    left = np.float32(x) < tree.threshold[node]
                    node = tree.left[node] if left else tree.right[node]
                values.append(tree.value[node, 0])
            assert (sign * np.diff(values) >= 0).all()


def test_best_first_growth_takes_the_largest_gains():
    X, g, h = data(6)
    table = HistTable(X, Threat(0.05).reach(D))
    limited = NewtonRules(max_depth=-1, max_leaf_nodes=9)
    [small], _ = table.grow(g, h, rules=limited)
    [large], _ = table.grow(g, h, rules=NewtonRules(max_depth=-1))
    assert (small.feature < 0).sum() == 9
    # The first split is the same, and the eight best reachable ones leave no better one behind: no
    # child of a taken split gains more than the least of them unless it was taken itself.
    taken = small.gain[small.feature >= 0]
    assert large.gain[0] == small.gain[0]
    left_behind = []
    pairs = [(0, 0)]
    while pairs:
        a, b = pairs.pop()
        if small.feature[a] < 0:
            left_behind.append(large.gain[b])
        else:
            assert small.gain[a] == large.gain[b]
            pairs += [(small.left[a], large.left[b]), (small.right[a], large.right[b])]
    assert max(left_behind) <= taken.min()


def test_gradients_of_very_different_size_are_not_lost():
    # One outlier would leave no 16-bit grid for the other rows.
    X, _, h = data(7)
    g = np.where(X[:, :1] < 0, -1e-4, 1e-4).astype(np.float32)
    g[0] = 1e4
    h = np.ones_like(h)
    X[:, 1] = np.arange(N) == 0
    [tree], leaf = HistTable(X, Threat(0.0).reach(D)).grow(
        g, h, rules=NewtonRules(max_depth=4, reg_lambda=0.0, min_child_weight=0.0)
    )
    value = tree.value[leaf[:, 0], 0]
    assert np.allclose(value[1:], -g[1:, 0], rtol=1e-2)


def test_refusals_show_the_value():
    X, g, h = data(9)
    reach = Threat(0.1).reach(D)
    table = HistTable(X, reach)
    with pytest.raises(ValueError, match=r"max_bins must be from 2 to 256, got max_bins=257\."):
        HistTable(X, reach, max_bins=257)
    with pytest.raises(
        ValueError, match=r"one row for each of the table's 3000 rows.*got 2999 x 1"
    ):
        table.grow(g[1:].copy(), h, rules=RULES)
    with pytest.raises(ValueError, match="features must be increasing and from 0 to 19, got 2 at"):
        table.grow(g, h, features=np.array([3, 2], np.int32), rules=RULES)
    with pytest.raises(ValueError, match="rows must keep at least one row"):
        table.grow(g, h, rows=np.zeros(N, np.uint8), rules=RULES)
    with pytest.raises(ValueError, match="one entry for each of the table's 20 features, got 3"):
        table.grow(g, h, monotonic=np.ones(3, np.int8), rules=RULES)
    with pytest.raises(ValueError, match="hessian must be finite and >= 0"):
        table.grow(g, -h, rules=RULES)


def test_numbers_beyond_the_known_categories_are_refused():
    X = np.arange(6.0)[:, None]
    known = {0: np.arange(5, dtype=np.int32)}
    with pytest.raises(ValueError, match="feature 0 has categories from 0 to 4, got 5"):
        HistTable(X, Threat(0).reach(1), categories=known)
