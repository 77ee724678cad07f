"""Trees say what a plain walk says, to the last bit."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardwood as hw
from model_strategies import rows, trees
from oracle.walk import label_of, leaves_of, margin_of


def assert_same_as_a_walk(model, X, n_jobs=None):
    leaf = model.apply(X, n_jobs=n_jobs)
    for tree in range(model.n_trees):
        np.testing.assert_array_equal(leaf[:, tree], leaves_of(model, tree, X))
    np.testing.assert_array_equal(model.margin(X, n_jobs=n_jobs), margin_of(model, X))
    np.testing.assert_array_equal(model.predict(X, n_jobs=n_jobs), label_of(model, X))


@settings(deadline=None, max_examples=250)
@given(st.data())
def test_predicts_as_a_plain_walk(data):
    model = data.draw(trees())
    assert_same_as_a_walk(model, data.draw(rows(model)))


def chain(length, x_dtype=np.float64, n_features=3):
    """A tree that is one long path, in both directions; leaves hang off it at every depth."""
    rng = np.random.default_rng(length)
    feature, left, right = [], [], []
    for k in range(length):
        sides = [2 * k + 1, 2 * k + 2]  # a leaf and the rest of the path
        feature += [int(rng.integers(n_features)), -1]
        left += [sides[k % 2], -1]
        right += [sides[1 - k % 2], -1]
    return hw.Trees(
        [*feature, -1],
        rng.normal(size=2 * length + 1).astype(x_dtype),
        [*left, -1],
        [*right, -1],
        rng.integers(0, 2, 2 * length + 1).astype(bool),
        rng.normal(size=2 * length + 1),
        [0, 2 * length + 1],
        n_features=n_features,
    )


# The lengths lie around the strides and the short index (65,536 nodes) of the reading layout.
@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 17, 300, 32767, 32768])
def test_predicts_along_deep_chains(length):
    model = chain(length, np.float32)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    X[::2] = rng.choice(model.threshold, size=(10, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    assert_same_as_a_walk(model, X)


# Around the number of features (4,096) up to which the reading layout uses a short index.
@pytest.mark.parametrize("n_features", [1, 4095, 4096, 4097])
def test_predicts_on_the_last_of_many_features(n_features):
    model = hw.Trees(
        [n_features - 1, -1, -1],
        np.array([0.5, 0, 0], dtype=np.float32),
        [1, -1, -1],
        [2, -1, -1],
        [False, False, False],
        [0.0, -1.0, 1.0],
        [0, 3],
        n_features=n_features,
    )
    X = np.zeros((4, n_features))
    X[:, -1] = [np.nextafter(np.float32(0.5), np.float32(0)), 0.5, 0.7, np.nan]
    assert_same_as_a_walk(model, X)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 8, 9, 511, 512, 513, 2000])
def test_same_bits_for_any_number_of_threads(n_rows):
    rng = np.random.default_rng(n_rows)
    parts = [chain(length, np.float32, 4) for length in (1, 5, 20)] * 4
    model = hw.Trees(
        np.concatenate([part.feature for part in parts]),
        np.concatenate([part.threshold for part in parts]),
        np.concatenate([part.left for part in parts]),
        np.concatenate([part.right for part in parts]),
        np.concatenate([part.missing_left for part in parts]),
        np.concatenate([part.value for part in parts]).astype(np.float32),
        np.cumsum([0, *(part.n_nodes for part in parts)]),
        np.arange(len(parts)) % 3,
        base=[0.1, 0.2, 0.3],
        n_features=4,
    )
    X = rng.normal(size=(n_rows, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    assert_same_as_a_walk(model, X, n_jobs=1)
    for n_jobs in (2, 7):
        assert model.margin(X, n_jobs=n_jobs).tobytes() == model.margin(X, n_jobs=1).tobytes()
        assert model.apply(X, n_jobs=n_jobs).tobytes() == model.apply(X, n_jobs=1).tobytes()


def test_adds_in_tree_order_in_the_precision_of_the_values():
    """2**24 + 1 is not a float32: added one by one the ones are lost, added first they are not."""
    big_first = [16777216.0, 1.0, 1.0]

    def leaves(values):
        n = len(values)
        nothing = np.zeros(n, dtype=int)
        return hw.Trees([-1] * n, np.zeros(n), nothing, nothing, nothing, values, range(n + 1))

    one = [[0.0]]
    assert leaves(np.float32(big_first)).margin(one)[0, 0] == 16777216
    assert leaves(np.float32(big_first[::-1])).margin(one)[0, 0] == 16777218
    assert leaves(np.float64(big_first)).margin(one)[0, 0] == 16777218


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_leaf_boxes_are_disjoint_cover_and_hold_exactly_their_rows(data):
    model = data.draw(trees(max_trees=2))
    X = data.draw(rows(model))
    X = X[~np.isnan(X).any(axis=1)]
    for tree in range(model.n_trees):
        leaf, low, high = model.leaf_boxes(tree)
        assert sorted(leaf) == np.flatnonzero(tree_of(model, tree) == -1).tolist()
        # Exactly one box holds a row: disjoint and covering, tried where the boxes meet.
        points = np.vstack([X, np.clip(corners_of(low, high), -1e300, 1e300)])
        inside = ((low[None] <= points[:, None]) & (points[:, None] < high[None])).all(axis=2)
        np.testing.assert_array_equal(inside.sum(axis=1), 1)
        np.testing.assert_array_equal(leaf[inside.argmax(axis=1)], leaves_of(model, tree, points))


def tree_of(model, tree):
    return model.feature[model.tree_start[tree] : model.tree_start[tree + 1]]


def corners_of(low, high):
    """Points made of ends of boxes and of the doubles below them."""
    rng = np.random.default_rng(0)
    ends = np.concatenate([low, high, np.nextafter(low, -np.inf), np.nextafter(high, -np.inf)])
    return rng.permuted(np.tile(ends, (5, 1)), axis=0)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_pickle_keeps_every_bit(data):
    model = data.draw(trees())
    X = data.draw(rows(model))
    copy = pickle.loads(pickle.dumps(model))
    for name, value in vars(model).items():
        if name != "_core":
            np.testing.assert_array_equal(getattr(copy, name), value)
    assert (copy.x_dtype, copy.value.dtype) == (model.x_dtype, model.value.dtype)
    assert copy.margin(X).tobytes() == model.margin(X).tobytes()


def test_arrays_of_anything_are_refused_or_predict():
    """Arrays that are nearly right: some of them are models, and none of them is a crash."""
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(3000):
        n = int(rng.integers(1, 6))
        odd = [2**31 - 1, 2**40, -(2**31), -2] if rng.random() < 0.2 else []
        arrays = dict(
            feature=rng.choice([-1, -1, 0, 1, *odd], n),
            threshold=rng.choice([0.5, 0.25, 0.1, np.nan], n, p=[0.5, 0.4, 0.05, 0.05]),
            left=rng.permutation([1, 3, 0, 4, 2][:n] + odd)[:n],
            right=rng.permutation([2, 4, 0, 1, 3][:n] + odd)[:n],
            missing_left=rng.choice([0, 1], n),
            value=rng.choice([0.0, 1.0, np.nan], n, p=[0.5, 0.49, 0.01]),
            tree_start=[0, *rng.choice([-1, 1, 2, n], int(rng.integers(0, 3)) // 2), n],
            base=rng.choice([0.0, np.inf], int(rng.integers(1, 3)), p=[0.95, 0.05]),
            n_features=rng.choice([2, 1, 2**28, 0], p=[0.9, 0.08, 0.01, 0.01]),
        )
        arrays["threshold"] = arrays["threshold"].astype(rng.choice([np.float32, np.float64]))
        try:
            model = hw.Trees(**arrays)
        except hw.ModelFileError:
            continue
        accepted += 1
        assert_same_as_a_walk(model, rng.random((3, model.n_features)))
    assert 50 < accepted < 2950
