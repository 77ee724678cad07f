"""Splits by sets of categories against enumeration, row by row, in the plainest numpy there is."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardwood.grow.grow import ClassTreeRules
from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.threat import Threat, relative
from property.test_hist_splits import RULES, least_gain

SMOOTHING = 10
N_NUMBERS = 1  # beside one column of categories


def groups_of(codes, changes):
    """Categories that changes connect, whichever way they go."""
    groups = [{code} for code in codes]
    for a, b in changes:
        one, other = (next(group for group in groups if code in group) for code in (a, b))
        if one is not other:
            groups.remove(other)
            one |= other
    return [sorted(group) for group in groups]


def orders(codes, key_of, changes=()):
    """In which steps categories cross to the left: by key; those without rows where it is 0."""
    for units in [[[code] for code in codes]] + [groups_of(codes, changes)] * bool(changes):
        keys = [(key_of(unit), min(unit), unit) for unit in units]
        present = sorted(entry for entry in keys if entry[0] is not None)
        absent = sorted(itertools.chain(*(unit for key, _, unit in keys if key is None)))
        before = [unit for key, _, unit in present if key < 0]
        after = [unit for key, _, unit in present if key >= 0]
        yield [*before, absent, *after] if absent else [*before, *after]


def sets(codes, key_of, changes=()):
    """All sets that may go right: what crossed along an order, or the rest."""
    yield set(codes)  # missing values alone on the left
    for steps in orders(codes, key_of, changes):
        for n in range(1, len(steps)):
            crossed = set(itertools.chain(*steps[:n]))
            yield from (crossed, set(codes) - crossed)


def gain_of(g, h, left, rules):
    def score(rows):
        weight = h[rows].sum() + rules.reg_lambda
        return g[rows].sum() ** 2 / weight if weight > 0 else 0.0

    if min(left.sum(), (~left).sum()) < rules.min_samples_leaf:
        return -np.inf
    if min(h[left].sum(), h[~left].sum()) < rules.min_child_weight:
        return -np.inf
    return (score(left) + score(~left) - score(np.ones(len(g), bool))) / 2 - rules.min_split_gain


def newton_key(column, g, h):
    mean = g.sum() / h.sum() if h.sum() > 0 else 0.0

    def key_of(codes):
        rows = np.isin(column, codes)
        if not (g[rows].sum() or h[rows].sum()):
            return None
        return (g[rows].sum() - mean * h[rows].sum()) / (h[rows].sum() + SMOOTHING)

    return key_of


def rows_of_nodes(tree, X):
    """The rows of every node, found by walking down the written tree."""
    rows = {0: np.arange(len(X))}
    for node in np.flatnonzero(tree.feature >= 0):
        column = X[rows[node], tree.feature[node]]
        listed = tree.category[tree.category_start[node] : tree.category_start[node + 1]]
        right = np.isin(column, listed) if len(listed) else column >= tree.threshold[node]
        left = np.where(np.isnan(column), tree.missing_left[node] == 1, ~right)
        rows[tree.left[node]] = rows[node][left]
        rows[tree.right[node]] = rows[node][~left]
    return rows


@st.composite
def problems(draw):
    n = draw(st.integers(6, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_codes = draw(st.integers(2, 7))
    codes = np.sort(rng.choice(50, n_codes, replace=False)).astype(np.int32)
    X = np.column_stack([rng.choice(codes, n).astype(float), rng.integers(0, 4, n) / 2])
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.2] = np.nan
    g = (rng.integers(-64, 65, (n, 1)) / 64).astype(np.float32)
    h = (rng.integers(0, 65, (n, 1)) / 64).astype(np.float32)
    return X, codes, g, h


@settings(max_examples=100, deadline=None)
@given(problems(), RULES)
def test_the_best_set_along_the_order_is_found(problem, rules):
    X, codes, g, h = problem
    table = HistTable(X, Threat(0).reach(2), categories={0: codes})
    [tree], leaf = table.grow(g, h, features=np.array([0], np.int32), rules=rules)
    g, h, column = g[:, 0].astype(float), h[:, 0].astype(float), X[:, 0]
    for node, rows in rows_of_nodes(tree, X).items():
        assert tree.n_samples[node] == len(rows)
        here = (column[rows], g[rows], h[rows])
        # Missing values go left, whatever the set.
        gains = [
            gain_of(here[1], here[2], ~np.isin(here[0], list(right)), rules)
            for right in sets(codes.tolist(), newton_key(*here))
        ]
        if tree.feature[node] >= 0:
            assert tree.gain[node] == pytest.approx(max(gains), rel=1e-9)
            assert tree.missing_left[node] == 1
            listed = tree.category[tree.category_start[node] : tree.category_start[node + 1]]
            assert set(listed.tolist()) in list(sets(codes.tolist(), newton_key(*here)))
            right = np.isin(here[0], listed)
            assert gain_of(here[1], here[2], ~right, rules) == pytest.approx(tree.gain[node])
            if not np.isnan(here[0]).any():  # what is unseen goes with the heavier side
                assert here[2][~right].sum() >= here[2][right].sum()
        else:
            assert (leaf[rows, 0] == node).all()
            assert max(gains) < 1e-6 or _depth(tree, node) == rules.max_depth


def _depth(tree, node):
    depth = 0
    while node:
        node = int(np.flatnonzero((tree.left == node) | (tree.right == node))[0])
        depth += 1
    return depth


def test_without_smoothing_no_set_of_categories_is_better():
    # Fisher: along the order of the means, the best of all sets. The smoothing is the same for all
    # where the categories are equally heavy, and then the order is that of the means.
    rng = np.random.default_rng(0)
    for _ in range(30):
        column = np.repeat(np.arange(6.0), 4)
        g, h = rng.integers(-64, 65, 24) / 64, np.ones(24)
        rules = NewtonRules(max_depth=1, min_child_weight=0.0, reg_lambda=0.0)
        table = HistTable(column[:, None], Threat(0).reach(1), categories={0: np.arange(6)})
        [tree], _ = table.grow(
            g[:, None].astype(np.float32), h[:, None].astype(np.float32), rules=rules
        )
        best = max(
            gain_of(g, h, ~np.isin(column, right), rules)
            for size in range(1, 6)
            for right in itertools.combinations(range(6), size)
        )
        assert tree.gain[0] == pytest.approx(best, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from(["entropy", "gini"]), st.integers(2, 3), st.sampled_from([1, 3]))
def test_class_trees_find_the_best_set_along_the_orders(problem, impurity, n_classes, least):
    X, codes, g, _ = problem
    label = (np.abs(g[:, 0] * 64).astype(int) % n_classes).astype(np.int32)
    rules = ClassTreeRules(impurity=impurity, min_samples_leaf=least, max_depth=3)
    table = HistTable(X, Threat(0).reach(2), categories={0: codes})
    tree = table.grow_classes(label, n_classes, None, np.empty(0, np.int8), rules)

    def impurity_of(rows):
        share = np.bincount(label[rows], minlength=n_classes) / max(len(rows), 1)
        if impurity == "gini":
            return 1 - (share**2).sum()
        return -(share[share > 0] * np.log2(share[share > 0])).sum()

    def gain(rows, left):
        n = len(rows)
        if min(left.sum(), (~left).sum()) < max(least, 1):
            return -np.inf
        return impurity_of(rows) - (
            left.sum() / n * impurity_of(rows[left]) + (~left).sum() / n * impurity_of(rows[~left])
        )

    for node, rows in rows_of_nodes(tree, X).items():
        column = X[rows, 0]
        gains = [0.0]
        for own in range(n_classes):
            share = (label[rows] == own).mean()

            def key_of(some, own=own, share=share, rows=rows, column=column):
                inside = np.isin(column, some)
                n, n_own = inside.sum(), (label[rows[inside]] == own).sum()
                return (n_own - share * n) / (n + SMOOTHING) if n else None

            gains += [gain(rows, ~np.isin(column, list(r))) for r in sets(codes.tolist(), key_of)]
        numbers = X[rows, 1]
        for threshold in np.unique(numbers[~np.isnan(numbers)]):
            for side in (False, True):
                gains.append(gain(rows, np.where(np.isnan(numbers), side, numbers < threshold)))
        gains.append(gain(rows, np.isnan(numbers)))
        if tree.feature[node] >= 0:
            assert tree.gain[node] == pytest.approx(max(gains), abs=1e-9)


def test_rare_categories_share_the_last_bin():
    rng = np.random.default_rng(0)
    # 300 categories, of which the first 100 come ten times as often.
    column = np.concatenate([np.repeat(np.arange(100.0), 10), np.arange(100.0, 300.0)])
    g = np.where(column < 50, -1, 1).astype(np.float32) + rng.normal(size=len(column)) * 0.1
    table = HistTable(
        column[:, None], Threat(0).reach(1), max_bins=64, categories={0: np.arange(300)}
    )
    rules = NewtonRules(max_depth=1)
    [tree], leaf = table.grow(
        g[:, None].astype(np.float32), np.ones((len(g), 1), np.float32), rules=rules
    )
    # 62 frequent ones have their own; the other 238 go together.
    listed = set(tree.category.tolist())
    rare = set(range(62, 300))
    assert rare <= listed or not rare & listed
    assert (leaf[:, 0] == np.where(np.isin(column, tree.category), 2, 1)).all()


@pytest.mark.parametrize("wide", [False, True])
def test_the_number_of_threads_does_not_matter(wide):
    rng = np.random.default_rng(1)
    n = 70_000  # columns of few codes share one
    X = np.column_stack([rng.integers(0, k, n) for k in (3, 200, 4, 40, 2)]).astype(float)
    X[rng.random(X.shape) < 0.01] = np.nan
    g = rng.normal(size=(n, 1)).astype(np.float32) + (X[:, [1]] % 3 == 0)
    h = np.ones((n, 1), np.float32)
    categories = {f: np.arange(k, dtype=np.int32) for f, k in enumerate((3, 200, 4, 40))}
    rules = NewtonRules(max_depth=6, min_samples_leaf=5 if wide else 1)
    grown = []
    for n_threads in (1, 2, 7):
        table = HistTable(X, Threat(0).reach(5), n_threads=n_threads, categories=categories)
        g32 = g.astype(np.float32)
        grown.append(
            table.grow(g32, h, rules=NewtonRules(**{**vars(rules), "n_threads": n_threads}))
        )
    [first], leaf = grown[0]
    assert len(first.category)
    for [tree], other in grown[1:]:
        assert np.array_equal(leaf, other)
        for name, array in vars(first).items():
            assert np.array_equal(array, getattr(tree, name)), name


@st.composite
def threats(draw, codes):
    """Changes of categories, whether values can be removed, and whose rows are moved."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = {tuple(rng.choice(codes, 2, replace=False).tolist()) for _ in range(rng.integers(4))}
    blank, only = draw(st.booleans()), draw(st.sampled_from([-1, 0, 1]))
    eps = {0: {a: [b for c, b in pairs if c == a] for a, _ in pairs}} if pairs else {}
    threat = Threat(eps, blank=[0] if blank else [])
    return threat.reach(2, None, {0: {int(c): int(c) for c in codes}}), pairs, blank, only


def stays(column, right, changes, blank, movable):
    """Rows that nothing the adversary may do brings to the other side; missing values go left."""
    fixed = np.ones(len(column), dtype=bool)
    for row, code in enumerate(column):
        if np.isnan(code) or not movable[row]:
            continue
        reached = {code, *(b for a, b in changes if a == code)}
        sides = {each in right for each in reached} | ({False} if blank else set())
        fixed[row] = len(sides) == 1
    return fixed


@settings(max_examples=150, deadline=None)
@given(problems(), RULES, st.data())
def test_robust_gains_count_every_row_that_a_change_brings_across(problem, rules, data):
    X, codes, g, h = problem
    reach, changes, blank, only = data.draw(threats(codes))
    table = HistTable(X, reach, categories={0: codes}, only=only)
    [tree], _ = table.grow(g, h, features=np.array([0], np.int32), rules=rules)
    g, h, column = g[:, 0].astype(float), h[:, 0].astype(float), X[:, 0]
    movable = np.ones(len(g), bool) if only < 0 else (g < 0) == (only == 1)

    def judge(rows, right):
        left = ~np.isin(column[rows], list(right))
        if min(left.sum(), (~left).sum()) < rules.min_samples_leaf:
            return -np.inf
        fixed = stays(column[rows], right, changes, blank, movable[rows])
        return least_gain(g[rows], h[rows], left, fixed, rules)

    for node, rows in rows_of_nodes(tree, X).items():
        tried = list(sets(codes.tolist(), newton_key(column[rows], g[rows], h[rows]), changes))
        gains = [judge(rows, right) for right in tried]
        if tree.feature[node] >= 0:
            listed = tree.category[tree.category_start[node] : tree.category_start[node + 1]]
            assert tree.gain[node] == pytest.approx(judge(rows, set(listed.tolist())), rel=1e-9)
            # Without missing values only the heavier side is tried on their side.
            assert tree.gain[node] <= max(gains) + 1e-9
            if blank or np.isnan(column[rows]).any():
                assert tree.gain[node] == pytest.approx(max(gains), rel=1e-9)
        elif blank or np.isnan(column[rows]).any():
            assert max(gains) < 1e-6 or _depth(tree, node) == rules.max_depth


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(["entropy", "gini"]), st.data())
def test_class_trees_count_every_row_that_a_change_brings_across(problem, impurity, data):
    X, codes, g, _ = problem
    reach, changes, blank, only = data.draw(threats(codes))
    label = (g[:, 0] < 0).astype(np.int32)
    column = np.ascontiguousarray(X[:, :1])
    table = HistTable(column, replace_columns(reach), categories={0: codes}, only=only)
    rules = ClassTreeRules(impurity=impurity, max_depth=2)
    tree = table.grow_classes(label, 2, None, np.empty(0, np.int8), rules)
    for node, rows in rows_of_nodes(tree, X).items():
        if tree.feature[node] < 0:
            continue
        listed = tree.category[tree.category_start[node] : tree.category_start[node + 1]]
        column = X[rows, 0]
        movable = np.ones(len(rows), bool) if only < 0 else label[rows] == only
        fixed = stays(column, set(listed.tolist()), changes, blank, movable)
        left = ~np.isin(column, listed)
        # The adversary chooses sides for the others; whole rows bound what it can force.
        least = min(class_gain(label[rows], moved, impurity) for moved in every_reply(left, fixed))
        assert 0 < tree.gain[node] <= least + 1e-9
        assert tree.gain[node] == pytest.approx(
            two_class_minimum(label[rows], left, fixed, impurity), abs=1e-9
        )


def replace_columns(reach):
    """The threat for the first column alone."""
    return replace(
        reach,
        limits=reach.limits[:1],
        share=reach.share[:1],
        whole=reach.whole[:1],
        blank=reach.blank[:1],
        down_scale=reach.down_scale[:1],
        up_scale=reach.up_scale[:1],
    )


def every_reply(left, fixed):
    free = np.flatnonzero(~fixed)[:10]  # any of these already bounds the least gain from above
    for sides in itertools.product([False, True], repeat=len(free)):
        moved = left.copy()
        moved[free] = sides
        yield moved


def class_gain(label, left, impurity):
    def of(rows):
        share = np.bincount(label[rows], minlength=2) / max(rows.sum(), 1)
        if impurity == "gini":
            return 1 - (share**2).sum()
        return -(share[share > 0] * np.log2(share[share > 0])).sum()

    n = len(label)
    both = left.sum() / n * of(left) + (~left).sum() / n * of(~left)
    return of(np.ones(n, bool)) - both


def two_class_minimum(label, left, fixed, impurity):
    """The least gain is at a corner: all free rows of one class left, of the other right."""
    corners = []
    for own in (0, 1):
        moved = np.where(fixed, left, label == own)
        corners.append(class_gain(label, moved, impurity))
    return min(corners)


def test_whole_numbers_lose_no_split_to_a_step_below_one():
    X = np.repeat(np.arange(4.0), 10)[:, None]
    g = np.where(X[:, 0] < 2, -1, 1)[:, None].astype(np.float32)
    h = np.ones_like(g)
    rules = NewtonRules(max_depth=1)
    natural, whole, free = (
        HistTable(X, threat.reach(1)).grow(g, h, rules=rules)[0][0]
        for threat in (Threat(0), Threat(0.9, integer=[0]), Threat(0.9))
    )
    assert whole.gain[0] == natural.gain[0] > free.gain[0]


def test_relative_steps_give_each_row_its_own_ball():
    X = np.array([1.0, 2.0, 10.0, 14.0])[:, None].repeat(5, axis=0)
    g = np.where(X[:, 0] < 5, -1, 1)[:, None].astype(np.float32)
    rules = NewtonRules(max_depth=1, min_child_weight=0)
    reach = Threat({0: relative(0.5, 0.5)}).reach(1)  # 2 reaches 3, 10 reaches 5
    [tree], _ = HistTable(X, reach).grow(g, np.ones_like(g), rules=rules)
    [natural], _ = HistTable(X, Threat(0).reach(1)).grow(g, np.ones_like(g), rules=rules)
    assert tree.gain[0] == natural.gain[0]
    assert 3 < tree.threshold[0] <= 5
