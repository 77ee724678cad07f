"""The exact engine against row-by-row enumeration, in the plainest numpy there is."""

from itertools import pairwise, product

import numpy as np
import pytest

from hardwood.grow.exact import ExactTable
from hardwood.grow.newton import NewtonRules
from hardwood.threat import Threat

LEAST_GAIN = 5e-7  # below it, a split is rounding noise


def score(g, h, rules):
    g = np.maximum(np.abs(g) - rules.reg_alpha, 0)
    return g * g / (h + rules.reg_lambda)


def gain(g, h, share, rules):
    """Gain when row i is on the left with its share (0, 1 or between)."""
    left_g, left_h = share @ g, share @ h
    both = score(left_g, left_h, rules) + score(g.sum() - left_g, h.sum() - left_h, rules)
    return (both - score(g.sum(), h.sum(), rules)) / 2 - rules.min_split_gain


def four_cases(g, h, left, free, rules):
    moved = [left, left & ~free, left | free, np.where(free, ~left, left)]
    return min(gain(g, h, share.astype(float), rules) for share in moved)


def least_of_all(g, h, left, free, rules):
    """The minimum over all 2^k replies, and over all with one row divided: by ternary search,
    because the gain is convex along a row."""
    rows = np.flatnonzero(free)
    replies = np.array(list(product([0.0, 1.0], repeat=len(rows))))
    shares = np.repeat(left[None].astype(float), len(replies), axis=0)
    shares[:, rows] = replies
    least = gain(g, h, shares, rules).min()
    for row in rows:
        low, high = np.zeros(len(shares)), np.ones(len(shares))
        for _ in range(40):
            third = (high - low) / 3
            values = []
            for at in (low + third, high - third):
                shares[:, row] = at
                values.append(gain(g, h, shares, rules))
            low, high = (
                np.where(values[0] > values[1], low + third, low),
                np.where(values[0] > values[1], high, high - third),
            )
        least = min(least, values[0].min())
        shares[:, rows] = replies
    return least


def every_split(X, g, h, limits, rules):
    """(gain, feature, threshold, missing_left) of every candidate."""
    for feature, (down, up, low, high) in enumerate(limits):
        x = X[:, feature]
        lowest = np.minimum(x, np.maximum(x - down, low)).astype(np.float32)
        highest = np.maximum(x, np.minimum(x + up, high)).astype(np.float32)
        missing = np.isnan(x)
        values = np.unique(x[~missing].astype(np.float32))
        middles = [
            max(np.float32((float(a) + float(b)) / 2), np.nextafter(a, b))
            for a, b in pairwise(values)
        ]
        candidates = [(t, side) for t in middles for side in {False, bool(missing.any())}]
        if missing.any() and not missing.all():
            candidates.append((np.finfo(np.float32).min, True))
        for threshold, missing_left in candidates:
            left = np.where(missing, missing_left, x.astype(np.float32) < threshold)
            free = ~missing & (lowest < threshold) & (highest >= threshold)
            sure_left, sure_right = left & ~free, ~left & ~free
            if min(left.sum(), (~left).sum()) < rules.min_samples_leaf:
                continue
            if min(h[sure_left].sum(), h[sure_right].sum()) < rules.min_child_weight:
                continue
            least = four_cases if rules.inner == "paper" else least_of_all
            yield least(g, h, left, free, rules), feature, threshold, missing_left


def problem(rng):
    """A small node with ties, rows exactly eps apart and one float off that."""
    n = rng.integers(2, 8)
    X = rng.integers(0, 7, size=(n, 2)) / 4.0
    X = np.where(rng.random(X.shape) < 0.15, np.nextafter(X, rng.choice([-9, 9])), X)
    X[rng.random(X.shape) < 0.1] = np.nan
    threat = [
        Threat(0.25 * rng.integers(0, 4)),
        Threat([(0.25, 0), (0, 0.5)]),
        Threat(0.5, low=0.25, high=1),
        Threat(0.75, fixed=[0]),
    ][rng.integers(4)]
    logistic = rng.random() < 0.5
    p = rng.random(n)
    g = np.where(rng.random(n) < 0.5, p, p - 1) if logistic else rng.normal(size=n)
    h = p * (1 - p) if logistic else np.ones(n)
    return X, g.astype(np.float32), h.astype(np.float32), threat


@pytest.mark.parametrize(("inner", "n_nodes"), [("paper", 1000), ("exact", 300)])
def test_the_chosen_split_is_the_best_of_all_by_enumeration(inner, n_nodes):
    n_splits = 0
    for seed in range(n_nodes):
        rng = np.random.default_rng(seed)
        X, g, h, threat = problem(rng)
        rules = NewtonRules(
            inner=inner,
            reg_lambda=rng.choice([0.1, 1.0]),
            reg_alpha=rng.choice([0.0, 0.0, 0.3]),
            min_split_gain=rng.choice([0.0, 0.05]),
            min_child_weight=rng.choice([0.0, 0.3]),
            min_samples_leaf=int(rng.choice([1, 2])),
            max_depth=1,
        )
        reach = threat.reach(2)
        (tree,), leaf = ExactTable(X, reach).grow(g[:, None], h[:, None], rules=rules)
        g, h = g.astype(float), h.astype(float)
        splits = list(every_split(X, g, h, reach.limits, rules))
        best = max([split[0] for split in splits], default=-np.inf)
        if best <= LEAST_GAIN * 2:  # at the bound, rounding decides
            if best < LEAST_GAIN / 2:
                assert tree.feature[0] == -1, seed
            continue
        n_splits += 1
        assert tree.feature[0] != -1, seed
        # Sums in another order: a few bits of a number of size 1.
        assert tree.gain[0] == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        chosen = [
            s[0]
            for s in splits
            if s[1] == tree.feature[0]
            and s[2] == tree.threshold[0]
            and (s[3] == tree.missing_left[0] or not np.isnan(X[:, s[1]]).any())
        ]
        assert max(chosen) == pytest.approx(best, rel=1e-9, abs=1e-12), seed
        x = X[:, tree.feature[0]]
        left = np.where(
            np.isnan(x), tree.missing_left[0], x.astype(np.float32) < tree.threshold[0]
        ).astype(bool)
        assert np.array_equal(leaf[:, 0], np.where(left, tree.left[0], tree.right[0])), seed
        for node, rows in ((tree.left[0], left), (tree.right[0], ~left)):
            shrunk = np.sign(g[rows].sum()) * max(abs(g[rows].sum()) - rules.reg_alpha, 0)
            value = -shrunk / (h[rows].sum() + rules.reg_lambda)
            assert tree.value[node, 0] == pytest.approx(value, rel=1e-6, abs=1e-7), seed
            assert tree.n_samples[node] == rows.sum()
    assert n_splits > n_nodes / 10


def test_no_rule_sees_more_gain_than_a_weaker_adversary_leaves():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X, g, h, threat = problem(rng)
        gains = []
        for inner, reach in (
            ("exact", threat.reach(2)),
            ("paper", threat.reach(2)),
            ("paper", Threat(0).reach(2)),
        ):
            rules = NewtonRules(inner=inner, max_depth=1, min_child_weight=0.1)
            (tree,), _ = ExactTable(X, reach).grow(g[:, None], h[:, None], rules=rules)
            gains.append(tree.gain[0])
        assert gains[0] <= gains[1] + 1e-12 <= gains[2] + 2e-12, seed
