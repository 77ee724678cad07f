"""Fits on a real cluster: a scheduler and workers, each a process of its own, on loopback."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from sklearn.base import clone

import hardwood as hw
from distributed import Client
from faults import EatMemory, SignalAt, rows_after_signal, wait_for_ever
from hardwood import dask as hd
from hardwood.dask import cluster as on_cluster
from workers import assert_same_trees

TESTS = Path(__file__).resolve().parents[1]

RNG = np.random.default_rng(1)
N = 1100
X = RNG.normal(size=(N, 4))
X[RNG.random(X.shape) < 0.05] = np.nan
BINARY = np.array(["no", "yes"])[(np.nansum(X, axis=1) + RNG.normal(size=N) > 0).astype(int)]
MANY = np.digitize(np.nansum(X, axis=1), [-1, 1])
NUMBERS = np.nansum(X, axis=1)
WEIGHT = RNG.random(N) * 2
SMALL = {"eps": 0.1, "inner": "exact", "n_estimators": 6, "max_depth": 3}
CERTIFIED = {"inner": "certified"}


class Cluster:
    """Processes that are started when they are needed, and all stopped in the end."""

    def __init__(self, folder):
        self.folder = folder
        file = folder / "scheduler.json"
        self.processes = []
        where = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
        self._start("scheduler", *where)
        self.client = Client(scheduler_file=str(file), timeout=60)

    def _start(self, kind, *options):
        log = open(self.folder / f"{kind}{len(self.processes)}.log", "w")
        # Loaded before anything is asked of it: on a busy machine it takes its time.
        options = (*options, "--preload", "hardwood.dask")
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}
        process = subprocess.Popen(
            [*command, "--no-dashboard"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,  # its children are found by it
        )
        self.processes.append(process)
        return process

    def at_least(self, n_workers, options=("--no-nanny", "--memory-limit", "0")):
        """Addresses of as many workers, with new ones for those that tests have ended."""
        alive = set(self.client.nthreads())
        n_missing = n_workers - len(alive)
        always = ["--nthreads", "1"]
        address = self.client.scheduler.address
        for _ in range(n_missing):
            self._start("worker", address, *always, *options)
        self.client.wait_for_workers(n_workers, timeout=90)
        return sorted(self.client.nthreads())[:n_workers]

    def pid(self, address):
        return self.client.run(os.getpid, workers=[address])[address]

    def idle(self):
        """Whether no worker has a task left, within ten seconds."""
        return within(10, lambda: not any(self.client.processing().values()))

    def close(self):
        """End all processes and what they have started."""
        self.client.close(timeout=5)
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        assert within(10, lambda: not self.left())

    def left(self):
        """Processes that still run."""
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                ours = os.getsid(process.pid) in [started.pid for started in self.processes]
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process)
        return left


def within(seconds, holds):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.close()


def cut(array, cuts):
    borders = [0, *cuts, len(array)]
    return [dask.delayed(array[a:b]) for a, b in itertools.pairwise(borders)]


CASES = {  # workers, partitions, model, labels, weights
    "paper": (1, 1, {"inner": "paper"}, BINARY, None),
    "classes": (2, 5, {"subsample": 0.7, "random_state": 1}, MANY, WEIGHT),
    "numbers": (3, 17, {}, NUMBERS, None),
    "forest": (4, 9, {"n_estimators": 3, "random_state": 1, "method": "hist"}, MANY, None),
    "certified": (4, 17, CERTIFIED, BINARY, WEIGHT),
    "certified classes": (3, 5, CERTIFIED, MANY, None),
    "certified categories": (2, 9, CERTIFIED, BINARY, None),
    "categories": (3, 4, {"inner": "exact"}, MANY, WEIGHT),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_cluster_trains_the_model_of_one_process(cluster, kind):
    n_workers, n_partitions, change, y, weight = CASES[kind]
    workers = cluster.at_least(n_workers)
    name = {"numbers": "RobustGradientBoostingRegressor", "forest": "RobustRandomForestClassifier"}
    name = name.get(kind, "RobustGradientBoostingClassifier")
    parameters = {**SMALL, **change}
    rows = X
    if "categories" in kind:
        del parameters["eps"]
        parameters["threat"] = hw.Threat({"a": 0.1, "d": {"u": ["v"]}})
        rows = pd.DataFrame(X, columns=list("abcd"))
        rows["d"] = np.array(list("uvwxy"))[np.digitize(X[:, 3], [-1, -0.3, 0.3, 1])]
    wanted = getattr(hw, name)(**parameters, n_jobs=1).fit(rows, y, weight)
    cuts = np.sort(np.random.default_rng(n_partitions).integers(0, N, n_partitions - 1))
    cuts[: n_partitions // 4] = 0  # empty partitions, also the first one
    fitted = getattr(hd, name)(**parameters).fit(
        cut(rows, cuts),
        cut(y, cuts),
        None if weight is None else cut(weight, cuts),
        workers=workers,
    )
    assert type(fitted) is getattr(hw, name)
    assert_same_trees(fitted.trees_, wanted.trees_)


def test_arrays_and_frames_with_validation_rows(cluster):
    cluster.at_least(2)
    model = hd.RobustGradientBoostingClassifier(
        **{**SMALL, "n_estimators": 40, "learning_rate": 0.9},
        early_stopping=True,
        n_iter_no_change=2,
    )
    local = hw.RobustGradientBoostingClassifier(**model.get_params())
    table = pd.DataFrame(X, columns=list("abcd"))
    wanted = clone(local).fit(table[:900], BINARY[:900], X_val=table[900:], y_val=BINARY[900:])
    assert wanted.n_estimators_ < 38
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        ports = [free.getsockname()[1] for free in (one, other)]
    for _ in range(2):  # a second fit that stops early
        fitted = model.fit(
            dd.from_pandas(table[:900], npartitions=4),
            dd.from_pandas(pd.Series(BINARY[:900]), npartitions=4),
            X_val=dd.from_pandas(table[900:], npartitions=1),
            y_val=dd.from_pandas(pd.Series(BINARY[900:]), npartitions=1),
            tracker_port=ports,  # one is still closed when the second fit begins
        )
        assert_same_trees(fitted.trees_, wanted.trees_)
        assert fitted.evals_result_ == wanted.evals_result_
    assert list(fitted.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.predict(table), wanted.predict(table))
    rows, labels = da.from_array(X, chunks=(300, 3)), da.from_array(BINARY, chunks=500)
    from_arrays = hd.RobustGradientBoostingClassifier(**SMALL).fit(rows, labels)
    alone = hw.RobustGradientBoostingClassifier(**SMALL).fit(X, BINARY)
    assert_same_trees(from_arrays.trees_, alone.trees_)


def test_questions_are_asked_partition_by_partition(cluster):
    cluster.at_least(2)
    model = hw.RobustGradientBoostingClassifier(**SMALL).fit(X, BINARY)
    some = np.nan_to_num(X[:60])
    label = BINARY[:60]
    cuts = [0, 25]  # the first partition is empty
    rows, labels = cut(some, cuts), cut(label, cuts)
    np.testing.assert_array_equal(
        hd.predict(model, da.from_array(some, chunks=(20, 4))).compute(), model.predict(some)
    )
    proba = hd.predict(model, da.from_array(some, chunks=(20, 4)), method="predict_proba")
    np.testing.assert_array_equal(proba.compute(), model.predict_proba(some))
    threat = hw.Threat(0.1)
    certificate = hd.certify(model, rows, labels, threat)
    np.testing.assert_array_equal(certificate.status, hw.certify(model, some, label, threat).status)
    distance = hd.minimal_distance(model, rows, labels)
    alone = hw.minimal_distance(model, some, label)
    np.testing.assert_array_equal(distance.upper, alone.upper)
    found = hd.find_adversarial(model, rows, labels, method="kantchelian")
    np.testing.assert_array_equal(found.success, distance.upper > 0)
    report = hd.audit(model, rows, labels, threat, max_rows=40, n_distances=20)
    drawn = hd.sample(rows, labels, 40)
    same = hw.audit(model, *drawn, threat, max_rows=40, n_distances=20)
    assert report.content["certificate"] == same.content["certificate"]
    assert "40 rows of this report were drawn from the 60 rows" in report.checks[-1]["words"]
    assert all(one["passed"] for one in report.check(model, *drawn))


@pytest.mark.parametrize(
    ("kind", "n_rounds", "inner"),
    [
        ("killed", 1, "exact"),
        ("killed", 3, "certified"),
        ("stopped", 3, "exact"),
        ("killed", 6, "exact"),
        ("first killed", 6, "certified"),
        ("killed after", 6, "exact"),
        ("first killed after", 6, "exact"),
    ],
)
def test_a_lost_worker_costs_some_rounds_and_nothing_else(cluster, kind, n_rounds, inner):
    workers = cluster.at_least(3)
    parameters = {**SMALL, "inner": inner}
    wanted = hw.RobustGradientBoostingClassifier(**parameters, n_jobs=1).fit(X, MANY)
    victim = cluster.pid(workers[0 if "first" in kind else 2])
    number = signal.SIGSTOP if kind == "stopped" else signal.SIGKILL
    signal_at = SignalAt(n_rounds, victim, number, delay=0.05 if "after" in kind else 0)
    model = hd.RobustGradientBoostingClassifier(**parameters, callbacks=[signal_at])
    cuts = [200, 200, 500, 700, 900]
    fitted = model.fit(
        cut(X, cuts), cut(MANY, cuts), workers=workers, timeout=4, checkpoint_every=2
    )
    assert_same_trees(fitted.trees_, wanted.trees_)
    assert cluster.idle()


def test_a_part_that_never_ends_does_not_keep_its_worker(tmp_path):
    alone = Cluster(tmp_path)  # where no test before has ended a worker
    try:
        alone.at_least(1)
        hangs = alone.client.submit(wait_for_ever, 0.5, pure=False)
        assert within(30, lambda: any(alone.client.processing().values()))
        after = alone.client.submit(int, 7, pure=False)
        alone.client.cancel(hangs, force=True)
        assert after.result(timeout=60) == 7
    finally:
        alone.close()


def test_a_worker_out_of_memory_is_started_again_and_the_fit_goes_on(tmp_path):
    small = Cluster(tmp_path)
    try:
        workers = small.at_least(2, ["--memory-limit", "800MB"])  # its nanny ends it at 95 %
        flag = tmp_path / "eaten"
        model = hd.RobustGradientBoostingClassifier(**SMALL, callbacks=[EatMemory(3, flag)])
        cuts = [200, 500, 700]
        fitted = model.fit(
            cut(X, cuts), cut(MANY, cuts), client=small.client, timeout=20, checkpoint_every=2
        )
        assert flag.exists()
        assert sorted(small.client.nthreads()) != workers
        wanted = hw.RobustGradientBoostingClassifier(**SMALL).fit(X, MANY)
        assert_same_trees(fitted.trees_, wanted.trees_)
    finally:
        small.close()


def test_two_fits_at_once_wait_for_each_other(cluster):
    cluster.at_least(2)
    fitted = {}

    def fit(label):
        y = {"binary": BINARY, "many": MANY}[label]
        model = hd.RobustGradientBoostingClassifier(**SMALL)
        cuts = [300, 600]
        fitted[label] = model.fit(cut(X, cuts), cut(y, cuts), client=cluster.client)

    threads = [threading.Thread(target=fit, args=(label,)) for label in ("binary", "many")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for label, y in {"binary": BINARY, "many": MANY}.items():
        alone = hw.RobustGradientBoostingClassifier(**SMALL).fit(X, y)
        assert_same_trees(fitted[label].trees_, alone.trees_)


def test_many_fits_one_after_another(cluster):
    workers = cluster.at_least(2)
    model = hd.RobustGradientBoostingClassifier(eps=0.1, n_estimators=1, max_depth=1)
    alone = hw.RobustGradientBoostingClassifier(**model.get_params()).fit(X, MANY)
    for _ in range(50):
        fitted = model.fit(cut(X, [300]), cut(MANY, [300]), workers=workers)
        assert_same_trees(fitted.trees_, alone.trees_)
    assert cluster.idle()


def test_a_port_that_others_use_is_named(cluster, monkeypatch):
    cluster.at_least(1)
    monkeypatch.setattr(on_cluster, "_PORT_WAITS", 0)
    model = hd.RobustGradientBoostingClassifier(**SMALL)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(hw.CommunicationError, match=rf"on tracker_port=\[{port}\] within 0 s"):
            model.fit(cut(X, [300]), cut(MANY, [300]), tracker_port=port)
    fitted = model.fit(cut(X, [300]), cut(MANY, [300]), tracker_port=port)
    alone = hw.RobustGradientBoostingClassifier(**SMALL).fit(X, MANY)
    assert_same_trees(fitted.trees_, alone.trees_)


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGKILL, "was lost"), (signal.SIGSTOP, "has not answered for 8 s")],
)
def test_a_lost_scheduler_ends_in_words(tmp_path, number, words):
    lonely = Cluster(tmp_path)
    try:
        lonely.at_least(2)
        callbacks = [SignalAt(3, lonely.processes[0].pid, number)]
        model = hd.RobustGradientBoostingClassifier(**SMALL, callbacks=callbacks)
        with pytest.raises(hw.CommunicationError, match=rf"scheduler at tcp://127.* {words}"):
            model.fit(cut(X, [300]), cut(MANY, [300]), client=lonely.client, timeout=8)
    finally:
        lonely.close()


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGKILL, "was lost"), (signal.SIGSTOP, "has not answered for 8 s")],
)
def test_questions_end_in_words_when_the_scheduler_is_lost(tmp_path, number, words):
    model = hw.RobustGradientBoostingClassifier(**SMALL).fit(X, MANY)
    lonely = Cluster(tmp_path)
    try:
        lonely.at_least(2)
        pid = lonely.processes[0].pid
        parts = [X[:9], dask.delayed(rows_after_signal)(X[9:18], pid, number)]
        with (
            lonely.client.as_current(),
            pytest.raises(hw.CommunicationError, match=rf"scheduler at tcp://127.* {words}"),
        ):
            hd.certify(model, parts, cut(MANY[:18], [9]), hw.Threat(0.1), timeout=8)
    finally:
        lonely.close()


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([X[:9], X[:9, :2]], [MANY[:9], MANY[:9]], "partition 1 has 2 features but partition 0"),
        ([X[:9], X[:9]], [MANY[:9], np.full(9, np.nan)], "partition 1: Input y contains NaN"),
        ([X[:9], X[:9]], [np.ones(9), np.ones(9)], "only one class, 1.0, in all 2 partitions"),
        ([X[:9], X[:9]], [MANY[:9]], "X has 2 partitions but y has 1"),
        ([X[:0]], [MANY[:0]], "There are no rows: all 1 partitions are empty"),
    ],
)
def test_bad_partitions_are_named(cluster, X, y, words):
    cluster.at_least(1)
    model = hd.RobustGradientBoostingClassifier(**SMALL)
    with pytest.raises(ValueError, match=words):
        model.fit([dask.delayed(part) for part in X], [dask.delayed(part) for part in y])


def test_arrays_in_memory_are_refused():
    with pytest.raises(TypeError, match="X must be a dask"):
        hd.RobustGradientBoostingClassifier(**SMALL).fit(X, BINARY)
