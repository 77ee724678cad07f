"""1 to 4 workers by 1 to 17 uneven partitions, some empty: the trees of one process, bit for bit.

Workers are threads that hold partitions as those of a Dask cluster do; `test_cluster.py` has
processes.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import hardwood as hw
from hardwood.distributed.plan import Piece, encode, make_plan
from hardwood.distributed.train import Share, train
from workers import assert_same_trees, on_workers

N = 500
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 4))
X[:, 2] = np.round(X[:, 2])
X[RNG.random(X.shape) < 0.05] = np.nan
SCORE = np.nansum(X, axis=1) + RNG.normal(size=N)
BINARY = np.array(["no", "yes"])[(SCORE > 0).astype(int)]
MANY = np.digitize(SCORE, [-1, 1])
WEIGHT = RNG.random(N) * 2
TABLE = pd.DataFrame(X, columns=list("abcd"))
TABLE["d"] = np.array(list("uvwxy"))[np.digitize(X[:, 3], [-1, -0.3, 0.3, 1])]
CHANGES = hw.Threat({"a": 0.1, "d": {"u": ["v"], "w": ["x"]}})


def boosted(inner, threat=None):
    return hw.RobustGradientBoostingClassifier(
        eps=0.1 if threat is None else None,
        threat=threat,
        inner=inner,
        n_estimators=2,
        max_depth=3,
        subsample=0.9,
        random_state=1,
        n_jobs=1,
    )


def forest(criterion):
    return hw.RobustRandomForestClassifier(
        eps=0.1,
        criterion=criterion,
        method="hist",
        n_estimators=2,
        max_depth=3,
        random_state=1,
        n_jobs=1,
    )


KINDS = {
    "paper": (boosted("paper"), X, BINARY, None),
    "paper, classes": (boosted("paper"), X, MANY, WEIGHT),
    "paper, categories": (boosted("paper", CHANGES), TABLE, BINARY, WEIGHT),
    "exact": (boosted("exact"), X, BINARY, WEIGHT),
    "exact, classes": (boosted("exact"), X, MANY, None),
    "exact, categories": (boosted("exact", CHANGES), TABLE, MANY, None),
    "certified": (boosted("certified"), X, BINARY, WEIGHT),
    "certified, classes": (boosted("certified"), X, MANY, None),
    "certified, categories": (boosted("certified", CHANGES), TABLE, BINARY, None),
    "forest": (forest("gini"), X, BINARY, None),
    "forest, classes": (forest("entropy"), X, MANY, WEIGHT),
    "newton forest": (forest("newton"), X, BINARY, WEIGHT),
}


class Partitions:
    """All pieces of a table, at hand."""

    def __init__(self, n, *arrays):
        cuts = np.sort(np.random.default_rng(n).integers(1, N, n - 1))
        cuts[: n // 4] = 0 if n % 2 else cuts[0]  # some are empty, in every other table the first
        self.pieces = [
            Piece(*(None if a is None else a[b:e] for a in arrays), f"partition {i}", i)
            for i, (b, e) in enumerate(zip([0, *cuts], [*cuts, N], strict=True))
        ]

    def each(self, ask):
        return [ask(piece) for piece in self.pieces]

    def together(self, ask, merge):
        return merge(self.each(ask))


@cache
def in_partitions(kind):
    """The trees of one process, and the plan and the codes of every number of partitions."""
    model, *arrays = KINDS[kind]
    wanted = clone(model).fit(*arrays).trees_
    assert (wanted.feature >= 0).sum() > 8
    cut = []
    for n in range(1, 18):
        partitions = Partitions(n, *arrays)
        plan = make_plan(model, partitions, model.max_bins, has_validation=False)
        cut.append((plan, partitions.each(lambda piece, plan=plan: encode(plan, 1, piece))))
    return wanted, cut


@pytest.mark.parametrize("n_workers", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_who_holds_which_rows_changes_no_bit(kind, n_workers):
    wanted, cut = in_partitions(kind)

    def work(communicator):
        trained = []
        for plan, coded in cut:
            holder = np.random.default_rng(len(coded)).integers(0, n_workers, len(coded))
            mine = np.flatnonzero(holder == communicator.rank)
            share = Share(plan, [coded[i] for i in mine], plan.stretches(mine), n_threads=1)
            trained.append(train(share, communicator).trees)
        return trained

    for trained in on_workers(n_workers, work):
        assert not isinstance(trained, Exception), trained
        assert len(trained) == 17
        for trees in trained:
            assert_same_trees(trees, wanted)
