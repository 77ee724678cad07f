"""Laws of growing that hold for every table, threat and setting."""

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hardwood as hw
from strategies import problems

# Threats under which nothing can be split are part of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::hardwood.HardwoodWarning")

seeds = st.integers(0, 2**32 - 1)
criteria = st.sampled_from(["entropy", "gini"])
ways = st.sampled_from(
    [{"candidates": "midpoints"}, {"candidates": "intervals"}, {"method": "hist"}]
)
NODE_ARRAYS = ("feature", "threshold", "left", "right", "missing_left", "value", "gain", "cover")


def bytes_of(model):
    return {name: getattr(model.trees_, name).tobytes() for name in NODE_ARRAYS}


def table(seed, n_rows, n_features, n_classes=2, *, missing=0.0, round_to=2):
    """A noisy table; rounded values make ties and values exactly eps apart."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n_rows, n_features)), round_to)
    signal = X[:, 0] + 0.5 * X[:, -1] + 0.3 * rng.random(n_rows)
    y = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, rng


def in_float32(problem):
    """As bins are: ends of balls that only doubles tell apart share an edge."""
    return dataclasses.replace(problem, X=problem.X.astype(np.float32).astype(float))


def impurity(share, criterion):
    if criterion == "gini":
        return 1 - (share**2).sum(axis=1)
    return -(share * np.log2(np.where(share > 0, share, 1))).sum(axis=1)


@given(seeds, criteria, ways, st.integers(2, 4), st.sampled_from([0, 0.03, 0.1]))
def test_robust_gain_is_at_most_the_plain_gain(seed, criterion, way, n_classes, eps):
    X, y, rng = table(seed, 120, 3, n_classes, missing=0.1)
    model = hw.RobustDecisionTreeClassifier(eps=eps, criterion=criterion, **way)
    trees = model.fit(X, y, rng.random(len(y)) + 0.1).trees_
    split = trees.feature != -1
    part = trees.cover * impurity(trees.value.astype(float), criterion)
    plain = (part[split] - part[trees.left[split]] - part[trees.right[split]]) / trees.cover[split]
    # Leaves hold float32 shares, so the plain gain is known to about 1e-6.
    assert np.all(trees.gain[split] > 0)
    assert np.all(trees.gain[split] <= plain + 1e-5)
    if eps == 0:
        np.testing.assert_allclose(trees.gain[split], plain, atol=1e-5)


@settings(max_examples=6)
@given(seeds, criteria, ways, st.sampled_from([None, 0.4]), st.integers(2, 3), st.booleans())
def test_same_bytes_for_any_number_of_threads(
    seed, criterion, way, max_features, n_classes, weighted
):
    # 3,000 x 12 entries: above the size from which several threads work on one node.
    X, y, rng = table(seed, 3000, 12, n_classes, missing=0.05)
    X[:, 6:9] = -X[:, :3]  # gains that differ by rounding only
    weight = rng.random(len(y)) if weighted else None
    params = {
        "criterion": criterion,
        **way,
        "max_features": max_features,
        "random_state": 0,
        "max_depth": 6,
    }
    one, two, seven = (
        bytes_of(
            hw.RobustDecisionTreeClassifier(eps=0.03, n_jobs=n_jobs, **params).fit(X, y, weight)
        )
        for n_jobs in (1, 2, 7)
    )
    assert one == two
    assert one == seven


@given(seeds, criteria, ways)
def test_permuted_columns_give_the_same_tree(seed, criterion, way):
    X, y, rng = table(seed, 60, 4, missing=0.1)
    eps = np.array([0.0, 0.02, 0.05, 0.1])
    order = rng.permutation(4)
    params = {"criterion": criterion, **way, "min_samples_leaf": 3}
    one = hw.RobustDecisionTreeClassifier(eps=eps, **params).fit(X, y).trees_
    two = hw.RobustDecisionTreeClassifier(eps=eps[order], **params).fit(X[:, order], y).trees_
    open_nodes = [(0, 0)]
    while open_nodes:
        a, b = open_nodes.pop()
        assert one.gain[a] == two.gain[b]
        if one.feature[a] == -1 or one.feature[a] != order[two.feature[b]]:
            continue  # a leaf in both, or a tie, on which the first column wins
        assert one.threshold[a] == two.threshold[b]
        assert one.missing_left[a] == two.missing_left[b]
        open_nodes += [(one.left[a], two.left[b]), (one.right[a], two.right[b])]


@given(problems(max_classes=3, weights=False), criteria, ways, st.data())
def test_weight_two_is_a_row_repeated_and_weight_zero_a_row_removed(problem, criterion, way, data):
    n_times = np.array(data.draw(st.lists(st.integers(0, 2), min_size=9, max_size=9)))
    n_times = n_times[: len(problem.y)]
    assume(len(np.unique(problem.y[n_times > 0])) > 1)
    params = {"criterion": criterion, **way}
    weighted = dataclasses.replace(problem, weight=n_times.astype(float))
    repeated = dataclasses.replace(
        problem, X=np.repeat(problem.X, n_times, axis=0), y=np.repeat(problem.y, n_times)
    )
    assert bytes_of(weighted.fit(**params)) == bytes_of(repeated.fit(**params))


@given(problems(max_classes=3), st.sampled_from([1e-200, 0.001, 1 / 3, 1e200]), ways)
def test_the_unit_of_weights_does_not_matter(problem, unit, way):
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    one = dataclasses.replace(problem, weight=weight).fit(criterion="gini", **way).trees_
    two = dataclasses.replace(problem, weight=weight * unit).fit(criterion="gini", **way).trees_
    assert one.gain[0] == pytest.approx(two.gain[0], abs=1e-12)
    np.testing.assert_allclose(one.cover[0] * unit, two.cover[0])


@given(problems(max_classes=3), criteria, ways)
def test_a_stronger_threat_never_has_a_larger_root_gain(problem, criterion, way):
    # Where thresholds are tried does not depend on eps at the root, or is everywhere that matters.
    if way.get("method") == "hist":
        problem = in_float32(problem)
    gains = [
        dataclasses.replace(problem, threat=hw.Threat(eps))
        .fit(criterion=criterion, **way, max_depth=1)
        .trees_.gain[0]
        for eps in (0, 0.05, 0.1, 0.25, 0.5, 1)
    ]
    assert np.all(np.diff(gains) <= 1e-12)


@given(problems(max_classes=3), criteria)
def test_intervals_are_at_least_as_good_as_midpoints(problem, criterion):
    midpoints, intervals = (
        problem.fit(criterion=criterion, candidates=place, max_depth=1).trees_.gain[0]
        for place in ("midpoints", "intervals")
    )
    assert intervals >= midpoints - 1e-12


@given(problems(max_classes=3), criteria, st.sampled_from(["exact", "paper"]))
def test_an_edge_at_every_event_is_as_good_as_every_threshold(problem, criterion, inner):
    if inner == "paper":
        assume(problem.weight is None and len(np.unique(problem.y)) == 2)
    problem = in_float32(problem)
    params = {"criterion": criterion, "inner": inner, "max_depth": 1}
    hist = problem.fit(method="hist", **params).trees_.gain[0]
    exact = [
        problem.fit(method="exact", candidates=place, **params).trees_.gain[0]
        for place in ("midpoints", "intervals")
    ]
    assert hist == pytest.approx(max(exact), abs=1e-12)


@given(seeds, st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3), ways)
def test_monotonic_features_are_monotonic(seed, signs, way):
    X, y, rng = table(seed, 80, 3, missing=0.05)
    y = np.where(rng.random(80) < 0.3, 1 - y, y)
    model = hw.RobustDecisionTreeClassifier(eps=0.01, **way, monotonic_cst=signs)
    model.fit(X, y, rng.random(80) + 0.1)
    for feature, sign in enumerate(signs):
        rows = np.round(rng.random((30, 3)), 1)[:, None, :].repeat(25, axis=1)
        rows[:, :, feature] = np.linspace(-0.1, 1.1, 25)
        share = model.predict_proba(rows.reshape(-1, 3))[:, 1].reshape(30, 25)
        if sign:
            assert np.all(sign * np.diff(share, axis=1) >= -1e-12)


@given(
    seeds,
    st.integers(1, 12),
    st.integers(2, 40),
    st.integers(1, 5),
    st.sampled_from([0, 0.05, 0.3]),
    st.sampled_from([0, 0.1, 0.25]),
    ways,
)
def test_limits_are_respected(
    seed, min_samples_leaf, min_samples_split, max_depth, min_gain, min_share, way
):
    X, y, rng = table(seed, 100, 3, missing=0.1)
    weight = rng.random(100)
    model = hw.RobustDecisionTreeClassifier(
        eps=0.01,
        min_samples_leaf=min_samples_leaf,
        min_samples_split=min_samples_split,
        max_depth=max_depth,
        min_split_gain=min_gain,
        min_weight_fraction_leaf=min_share,
        **way,
    ).fit(X, y, weight)
    visits = model.decision_path(X).toarray()
    n_rows, trees = visits.sum(axis=0), model.trees_
    split = trees.feature != -1
    assert np.all(n_rows[~split] >= min(min_samples_leaf, 100))
    assert np.all(n_rows[split] >= min_samples_split)
    assert model.get_depth() <= max_depth
    assert np.all(trees.gain[split] > min_gain)
    if split.any():
        assert np.all(weight @ visits >= min_share * weight.sum() - 1e-9)
    np.testing.assert_allclose(weight @ visits, trees.cover)


@given(seeds, criteria, ways, st.integers(2, 8))
def test_best_first_takes_the_largest_gains(seed, criterion, way, max_leaf_nodes):
    X, y, _ = table(seed, 100, 3)
    params = {"eps": 0.01, "criterion": criterion, **way}
    whole = hw.RobustDecisionTreeClassifier(**params).fit(X, y)
    unlimited = hw.RobustDecisionTreeClassifier(max_leaf_nodes=10**6, **params).fit(X, y)
    assert bytes_of(whole) == bytes_of(unlimited)
    few = hw.RobustDecisionTreeClassifier(max_leaf_nodes=max_leaf_nodes, **params).fit(X, y)
    assert few.get_n_leaves() == min(max_leaf_nodes, whole.get_n_leaves())
    # The plain rule on the whole tree: open the best of the nodes in sight, the older one on ties.
    worth = whole.trees_.gain * whole.trees_.cover
    in_sight, opened = [0], []
    while in_sight and len(opened) < max_leaf_nodes - 1:
        best = max(in_sight, key=lambda node: worth[node])
        in_sight.remove(best)
        if worth[best] == 0:
            break
        opened.append(worth[best])
        in_sight += [int(whole.trees_.left[best]), int(whole.trees_.right[best])]
    taken = (few.trees_.gain * few.trees_.cover)[few.trees_.feature != -1]
    np.testing.assert_allclose(np.sort(taken), np.sort(opened))
