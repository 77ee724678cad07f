"""Categories in an order: what the ends of ranks say is what changes of category do."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import hardwood as hw
from hardwood import _core
from hardwood.ensemble.boosting import Model
from hardwood.ensemble.certified import Ends
from hardwood.ensemble.ranked import CategorySums, Ranks
from hardwood.estimators._boosting import as_thresholds

NAMES = list("abcdefgh")


def table(n=400, seed=0):
    """Categories whose effect rises along the alphabet, and a number."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(NAMES), n)
    number = rng.normal(size=n)
    y = (code + number + rng.logistic(size=n) > 3.5).astype(int)
    return pd.DataFrame({"letter": np.array(NAMES)[code], "number": number}), y


def random_changes(rng, n):
    """What each code can become, itself included; the last entry is for codes nobody knows."""
    some = [np.flatnonzero(rng.random(n) < 0.15).astype(np.int32) for _ in range(n)]
    own = [np.union1d(one, [at]).astype(np.int32) for at, one in enumerate(some)]
    return (*own, np.empty(0, np.int32))


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_parts_the_ends_of_those_that_a_change_brings_across(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    known = np.sort(rng.permutation(12)[:n]).astype(np.int32)
    changes = {0: random_changes(rng, 12)}
    X, y = rng.choice(known, (200, 1)).astype(float), rng.integers(0, 2, 200).astype(np.float32)
    ranks = Ranks.learn(CategorySums.learn(X, y, None, 2, {0: known}), {0: known}, changes)
    order, ends = ranks.order[0].tolist(), ranks.ends(changes)[0]
    assert sorted(order) == known.tolist()
    for threshold in range(1, n):
        left = set(order[:threshold])
        for rank, code in enumerate(order):
            reached = {to for to in changes[0][code].tolist() if to in order} | {code}
            ambiguous = bool(reached & left) and bool(reached - left)
            assert (ends[rank, 0] < threshold <= ends[rank, 1]) == ambiguous
    # Candidates: every place where no gain to its left or right is better, found one by one.
    reach = np.concatenate([[0, 0, -np.inf, np.inf, 0, 0, 0], ends.ravel()])[None]
    count = np.ones(n, np.uint64)
    found = _core.choose_candidates(
        np.arange(n, dtype=np.float32), count, False, reach, max_bins=255, at_rest=False
    )
    inside = sorted({*ends[:, 0], *ends[:, 1]})
    truth = [(a, b) for a, b in pairwise(inside) if a in ends[:, 1] and b in ends[:, 0]]
    assert len(found) == len(truth)
    for threshold, (below, above) in zip(found, truth, strict=True):
        assert below < threshold <= above


def test_no_change_leaves_the_ends_of_the_margins():
    X, y = table()
    letters = {a: [b] for a, b in pairwise(NAMES)} | {"h": ["a", "d"]}
    threat = hw.Threat({"letter": letters, "number": 0.1})
    model = hw.RobustGradientBoostingClassifier(threat=threat, n_estimators=10, max_depth=3)
    model.fit(X, y)
    assert 0 in model.trees_.feature
    reach = model._training_reach(model._columns(model._check_rows(X)))
    rows, ranked = as_thresholds(model._check_rows(X), model._ranks, reach)
    ends = Ends.of(Model.from_trees(model._grown), rows, ranked, 1)
    for number in (-0.1, 0.0, 0.1):
        for at in range(3):
            moved = X.assign(number=X["number"] + number)
            for row, letter in enumerate(X["letter"]):
                to = [letter, *letters[letter]]
                moved.loc[row, "letter"] = to[at % len(to)]
            margin = model.decision_function(moved)
            assert (ends.low[:, 0] <= margin + 1e-6).all()
            assert (margin <= ends.high[:, 0] + 1e-6).all()


def test_a_chain_of_changes_does_not_void_the_column():
    X, y = table(1500)
    threat = hw.Threat({"letter": {a: [b] for a, b in pairwise(NAMES)}})
    proven = {}
    for name, columns in (("whole", list(X)), ("without it", ["number"])):
        how = {"threat": threat} if name == "whole" else {"eps": 0}
        model = hw.RobustGradientBoostingClassifier(n_estimators=20, max_depth=3, **how)
        model.fit(X[columns][:1000], y[:1000])
        asked = threat if name == "whole" else 0.0
        proven[name] = hw.certify(model, X[columns][1000:], y[1000:], asked).certified_accuracy
    assert proven["whole"] > proven["without it"] + 0.05
