"""Rows in parts against one process: time, peak memory and the same trees, in one run.

Rows have 28 columns, as in HIGGS. Each fit has a process of its own: in memory with two threads,
batch by batch from disk, and on a Dask cluster of two workers with one thread each;
natural XGBoost (hist, from batches by ExtMemQuantileDMatrix, and xgboost.dask) beside them. Fits
take turns and the fastest turn of each counts; reading the rows is part of a fit, starting
processes is not. Seconds of the processor are reported, too: on a machine that others use, they
say more.
Peak memory is the process's own (VmHWM). 10,500,000 rows take 1.2 GB of disk under build/bench, and
about as much memory more than the larger of the fits.
Writes build/bench/clusters.json and exits with 1 when a target is missed. `--quick`: 100,000 rows.
"""

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from measure import Result, circumstances, finish, show

REPORT = Path("build/bench/clusters.json")
FOLDER = Path("build/bench/cluster-rows")
DEPTH, EPS = 8, 0.02
BATCH = 1 << 17  # rows; partitions are the same, so that edges are
COMPARISONS = {  # name: who, against whom, which figure, at most
    "in memory: time": ("in memory", "xgboost", "wall", 0.5),
    "in memory: memory": ("in memory", "xgboost", "peak_mb", 1.0),
    "out of core: time": ("out of core", "xgboost out of core", "wall", 0.5),
    "out of core: memory": ("out of core", "xgboost out of core", "peak_mb", 1.0),
    "two workers against two threads: time": ("two workers", "in memory", "wall", 1.25),
    "two workers against xgboost.dask": ("two workers", "xgboost two workers", "wall", None),
    "in memory: processor": ("in memory", "xgboost", "cpu", None),
    "out of core: processor": ("out of core", "xgboost out of core", "cpu", None),
    "two workers against two threads: processor": ("two workers", "in memory", "cpu", None),
}


def write_rows(n_rows: int) -> None:
    """Put rows on disk, a block at a time."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(20190613)
    shape = {"X": (n_rows, 28), "y": (n_rows,)}
    X, y = (
        np.lib.format.open_memmap(FOLDER / f"{name}.npy", "w+", np.float32, shape[name])
        for name in ("X", "y")
    )
    for begin in range(0, n_rows, 1 << 18):
        block = rng.normal(size=(min(1 << 18, n_rows - begin), 28)).astype(np.float32)
        label = block[:, 0] * block[:, 1] + np.abs(block[:, 2]) - 0.7 * block[:, 3] ** 2
        label += 0.5 * block[:, 7:14].sum(axis=1) + rng.normal(size=len(block)) * 1.5
        block[:, 14:21] = np.exp(0.6 * block[:, 14:21])
        block[:, 24:] = np.clip(np.round(block[:, 24:]), -1, 1)
        X[begin : begin + len(block)] = block / 10
        y[begin : begin + len(block)] = label > 0


def rows() -> tuple[np.ndarray, np.ndarray]:
    X, y = (np.load(FOLDER / f"{name}.npy") for name in ("X", "y"))
    return X, y


def cuts() -> list[int]:
    n_rows = len(np.load(FOLDER / "y.npy", mmap_mode="r"))
    return [*range(0, n_rows, BATCH), n_rows]


class Blocks:
    """Batches read from disk; a map that stays open would count as memory."""

    def __iter__(self):
        for begin, end in itertools.pairwise(cuts()):
            yield _part(str(FOLDER), begin, end)


def model(rounds: int, inner: str, n_jobs: int):
    import hardwood as hw

    return hw.RobustGradientBoostingClassifier(
        eps=EPS, inner=inner, n_estimators=rounds, max_depth=DEPTH, n_jobs=n_jobs
    )


def fit_in_memory(rounds: int, inner: str):
    return model(rounds, inner, 2).fit(*rows()).trees_


def fit_out_of_core(rounds: int, inner: str):
    import hardwood as hw

    return hw.distributed.fit_batches(model(rounds, inner, 2), Blocks()).trees_


@contextmanager
def two_workers():
    """A client, two workers with one thread each, and what all of them use: wall, processor."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, memory_limit=0) as cluster, Client(cluster) as client:
        client.run(__import__, "hardwood.dask")

        def processor() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        begin, used = time.perf_counter(), processor()

        def since() -> tuple[float, float]:
            wall = time.perf_counter() - begin
            return wall, processor() - used

        yield client, since


def partitions() -> tuple[list, list]:
    import dask

    load = dask.delayed(_part, pure=False)
    parts = [load(str(FOLDER.resolve()), a, b) for a, b in itertools.pairwise(cuts())]
    return [part[0] for part in parts], [part[1] for part in parts]


def fit_on_workers(rounds: int, inner: str):
    from hardwood import dask as hd

    with two_workers() as (_, since):
        estimator = hd.RobustGradientBoostingClassifier(**model(rounds, inner, 1).get_params())
        return estimator.fit(*partitions()).trees_, *since()


def fit_xgboost_on_workers(rounds: int, inner: str):
    import dask.array as da
    from xgboost import dask as xd

    with two_workers() as (client, since):
        of_rows, of_labels = partitions()
        sizes = np.diff(cuts())
        X, y = (
            da.concatenate(
                [
                    da.from_delayed(part, (n, *width), np.float32)
                    for part, n in zip(parts, sizes, strict=True)
                ]
            )
            for parts, width in ((of_rows, (28,)), (of_labels, ()))
        )
        xd.train(client, {**_natural(), "nthread": 1}, xd.DaskQuantileDMatrix(client, X, y), rounds)
        return None, *since()


def _part(folder: str, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(
        np.array(np.load(f"{folder}/{name}.npy", mmap_mode="r")[begin:end]) for name in ("X", "y")
    )


def fit_xgboost(rounds: int, inner: str) -> None:
    import xgboost

    X, y = rows()
    xgboost.train(_natural(), xgboost.QuantileDMatrix(X, y, max_bin=256), rounds)


def fit_xgboost_out_of_core(rounds: int, inner: str) -> None:
    import xgboost

    class Batches(xgboost.DataIter):
        def __init__(self):
            self.reset()
            super().__init__(cache_prefix=str(FOLDER / "cache"))

        def next(self, input_data):
            for X, y in self.blocks:
                input_data(data=X, label=y)
                return True
            return False

        def reset(self):
            self.blocks = iter(Blocks())

    table = xgboost.ExtMemQuantileDMatrix(Batches(), max_bin=256)
    xgboost.train(_natural(), table, rounds)


def _natural():
    return {"tree_method": "hist", "max_depth": DEPTH, "objective": "binary:logistic", "nthread": 2}


FITS = {
    "in memory": fit_in_memory,
    "out of core": fit_out_of_core,
    "two workers": fit_on_workers,
    "xgboost": fit_xgboost,
    "xgboost two workers": fit_xgboost_on_workers,
    "xgboost out of core": fit_xgboost_out_of_core,
}


OURS = ("in memory", "out of core", "two workers")


def peak_mb() -> float:
    """Most memory that this process had: getrusage also counts what its parent had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM; run this on Linux")


def run_one(who: str, rounds: int, inner: str) -> None:
    __import__("xgboost" if who.startswith("xgboost") else "hardwood.distributed")
    begin, used = time.perf_counter(), time.process_time()
    given = FITS[who](rounds, inner)
    wall, cpu = time.perf_counter() - begin, time.process_time() - used
    if isinstance(given, tuple):  # without what it took to start a cluster
        given, wall, cpu = given
    peak = peak_mb()
    trees = None
    if given is not None:
        trees = [float(given.value.sum()), int(given.feature.sum()), int(given.tree_start[-1])]
    print(json.dumps({"wall": wall, "cpu": cpu, "peak_mb": peak, "trees": trees}))


def in_a_process(who: str, rounds: int, inner: str) -> dict:
    command = [sys.executable, __file__, "--one", who, "--rounds", str(rounds), "--inner", inner]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{who:20} {figures['wall']:8.2f} s {figures['cpu']:8.2f} s of the processor "
        f"{figures['peak_mb']:8.0f} MB",
        flush=True,
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_500_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--inner", choices=("exact", "paper", "certified"), default="exact")
    parser.add_argument("--quick", action="store_true", help="100,000 rows, 5 rounds, no targets")
    parser.add_argument("--one", choices=FITS, help="run one fit in this process")
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.rounds, arguments.inner)
        return
    n_rows, rounds = (100_000, 5) if arguments.quick else (arguments.rows, arguments.rounds)
    write_rows(n_rows)
    turns = [
        {who: in_a_process(who, rounds, arguments.inner) for who in FITS}
        for _ in range(arguments.turns)
    ]
    shutil.rmtree(FOLDER)
    figures = ("wall", "cpu", "peak_mb")
    best = {who: {f: min(turn[who][f] for turn in turns) for f in figures} for who in FITS}
    ours = [turn[who]["trees"] for turn in turns for who in OURS]
    results = [
        Result("fits with other trees than in memory", sum(t != ours[0] for t in ours), at_most=0)
    ]
    for name, (who, against, figure, at_most) in COMPARISONS.items():
        ratio = best[who][figure] / best[against][figure]
        results.append(Result(name, ratio, None if arguments.quick else at_most))
    for result in results:
        show(result)
    where = circumstances("xgboost-cpu", "dask", n_rows=n_rows, rounds=rounds, best=best)
    finish(REPORT, {**where, "inner": arguments.inner, "turns": turns}, results)


if __name__ == "__main__":
    main()
