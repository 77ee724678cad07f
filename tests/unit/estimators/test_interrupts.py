"""Ctrl-C reaches every long call of the core while it trains."""

import contextlib
import os
import signal
import threading

import numpy as np
import pytest

import hardwood as hw
from hardwood.grow.exact import ExactTable
from hardwood.grow.grow import ClassTreeRules, SortedTable
from hardwood.grow.hist import HistTable
from hardwood.grow.newton import NewtonRules
from hardwood.threat import Threat


@contextlib.contextmanager
def insistent_signal():
    """A signal that comes again and again; the second one that is heard interrupts.

    A call that only hears signals when it is over hears a single one: all of them at once.
    """
    n_heard = 0

    def hear(*_):
        nonlocal n_heard
        n_heard += 1
        if n_heard == 2:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, hear)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        yield
    finally:
        n_heard = 2  # nothing interrupts any more
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def hears(call):
    """Whether a call is interrupted, and not only when it is over."""
    finished = False
    with contextlib.suppress(KeyboardInterrupt), insistent_signal():
        call()
        finished = True
    return not finished


RNG = np.random.default_rng(0)
N = 400_000
NATURAL = Threat(0.0)


def table(n_features):
    return RNG.random((N, n_features))


@pytest.fixture(scope="module")
def rows():
    X = table(16)
    return X, (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 1).astype(np.int32)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_class_trees(rows, n_threads):
    X, y = rows
    rules = ClassTreeRules(n_threads=n_threads)
    reach = NATURAL.reach(X.shape[1])
    signs = np.empty(0, np.int8)
    assert hears(lambda: SortedTable(X, reach).grow_classes(y, 2, None, signs, rules))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_sorting_columns(rows, n_threads):
    X, _ = rows
    assert hears(lambda: ExactTable(X, NATURAL.reach(X.shape[1]), n_threads=n_threads))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_binning(n_threads):
    X = RNG.random((200_000, 300), dtype=np.float32)
    assert hears(lambda: HistTable(X, NATURAL.reach(X.shape[1]), n_threads=n_threads))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_growth_on_bins_and_the_table_still_works(rows, n_threads):
    X, _ = rows
    table = HistTable(X, NATURAL.reach(X.shape[1]), n_threads=n_threads)
    g = RNG.normal(size=(N, 12)).astype(np.float32)
    rules = NewtonRules(max_depth=-1, n_threads=n_threads)
    assert hears(lambda: table.grow(g, np.ones_like(g), rules=rules))
    g = g[:, :1].copy()
    [tree], _ = table.grow(g, np.ones_like(g), rules=NewtonRules(max_depth=1))
    assert tree.n_samples[0] == N


def test_one_long_column():
    # Every threshold of it is judged by all rows that the adversary can move.
    X, y = table(1)[:60_000], RNG.random((60_000, 1)).astype(np.float32)
    exact = ExactTable(X, Threat(0.02).reach(1))
    y += X < 0.5
    rules = NewtonRules(inner="exact", max_depth=-1, min_child_weight=0.0)
    assert hears(lambda: exact.grow(y - y.mean(), np.ones_like(y), rules=rules))


def test_predictions(rows):
    X, y = rows
    model = hw.RobustGradientBoostingClassifier(eps=0, n_estimators=1).fit(X[:2000], y[:2000])
    model.set_params(n_estimators=400, warm_start=True).fit(X[:2000], y[:2000])
    trees = model.trees_
    assert hears(lambda: trees.margin(X, n_jobs=1))
    assert hears(lambda: trees.apply(X, n_jobs=2))


@pytest.mark.parametrize(
    "model",
    [
        hw.RobustDecisionTreeClassifier(eps=0.0),
        hw.RobustRandomForestClassifier(eps=0.0, n_estimators=40, n_jobs=2),
        hw.RobustGradientBoostingClassifier(eps=0.0, n_estimators=10_000, n_jobs=2),
        hw.RobustGradientBoostingClassifier(eps=0.0, n_estimators=1000, method="exact"),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'method', '')}",
)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(rows, model):
    X, y = rows
    before = dict(vars(model))
    press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    press.join()
    assert vars(model) == before
