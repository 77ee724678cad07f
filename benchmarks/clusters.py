"""Rows in parts against one process: time, peak memory and the same trees, in one run.

Rows have 28 columns, as in HIGGS. Each fit has a process of its own: in memory with two threads,
batch by batch from disk, and on a Dask cluster of two workers with one thread each;
natural XGBoost (hist, and from batches by ExtMemQuantileDMatrix) beside them.
Peak memory is the process's own (VmHWM). 10,500,000 rows take 1.2 GB of disk under build/bench, and
about as much memory more than the larger of the fits.
Writes build/bench/clusters.json and exits with 1 when a target is missed. `--quick`: 100,000 rows.
"""

import argparse
import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

REPORT = Path("build/bench/clusters.json")
FOLDER = Path("build/bench/cluster-rows")
DEPTH, EPS = 8, 0.02
BATCH = 1 << 17  # rows; partitions are the same, so that edges are
TARGETS = {  # at most
    "robust in memory / xgboost": 0.5,
    "robust out of core / xgboost": 0.5,
    "memory out of core / xgboost's": 1.0,
    "two workers / two threads": 1.25,
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


def fit_on_workers(rounds: int, inner: str):
    import dask

    from distributed import Client, LocalCluster
    from hardwood import dask as hd

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, memory_limit=0) as cluster, Client(cluster) as client:
        client.run(__import__, "hardwood.dask")
        begin = time.perf_counter()
        load = dask.delayed(_part, pure=False)
        parts = [load(str(FOLDER.resolve()), a, b) for a, b in itertools.pairwise(cuts())]
        fitted = hd.RobustGradientBoostingClassifier(**model(rounds, inner, 1).get_params()).fit(
            [part[0] for part in parts], [part[1] for part in parts]
        )
        return fitted.trees_, time.perf_counter() - begin


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
    "xgboost out of core": fit_xgboost_out_of_core,
}


def peak_mb() -> float:
    """Most memory that this process had: getrusage also counts what its parent had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM; run this on Linux")


def run_one(who: str, rounds: int, inner: str) -> None:
    __import__("xgboost" if who.startswith("xgboost") else "hardwood.distributed")
    begin = time.perf_counter()
    given = FITS[who](rounds, inner)
    wall = time.perf_counter() - begin
    if isinstance(given, tuple):
        given, wall = given
    peak = peak_mb()
    trees = None
    if given is not None:
        trees = [float(given.value.sum()), int(given.feature.sum()), int(given.tree_start[-1])]
    print(json.dumps({"wall": wall, "peak_mb": peak, "trees": trees}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_500_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--inner", choices=("exact", "paper", "certified"), default="exact")
    parser.add_argument("--quick", action="store_true", help="100,000 rows, 5 rounds")
    parser.add_argument("--one", choices=FITS, help="run one fit in this process")
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.rounds, arguments.inner)
        return 0
    n_rows, rounds = (100_000, 5) if arguments.quick else (arguments.rows, arguments.rounds)
    write_rows(n_rows)
    results = {}
    for who in FITS:
        command = [sys.executable, __file__, "--one", who, "--rounds", str(rounds)]
        command += ["--inner", arguments.inner]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        results[who] = json.loads(done.stdout.splitlines()[-1])
        print(f"{who:20} {results[who]['wall']:8.2f} s {results[who]['peak_mb']:8.0f} MB")
    wall = {who: result["wall"] for who, result in results.items()}
    peak = {who: result["peak_mb"] for who, result in results.items()}
    figures = {
        "robust in memory / xgboost": wall["in memory"] / wall["xgboost"],
        "robust out of core / xgboost": wall["out of core"] / wall["xgboost out of core"],
        "memory out of core / xgboost's": peak["out of core"] / peak["xgboost out of core"],
        "two workers / two threads": wall["two workers"] / wall["in memory"],
    }
    same = results["out of core"]["trees"] == results["two workers"]["trees"]
    for name, value in figures.items():
        print(f"{name:32} {value:6.2f} (at most {TARGETS[name]})")
    print(f"out of core and two workers give the same trees: {same}")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    report = {"n_rows": n_rows, "rounds": rounds, "inner": arguments.inner}
    report |= {"results": results, "figures": figures}
    REPORT.write_text(json.dumps(report, indent=1))
    missed = [name for name, value in figures.items() if value > TARGETS[name]]
    # Small tables say nothing about speed: the quick form checks that everything runs.
    return int(not same or (bool(missed) and not arguments.quick))


if __name__ == "__main__":
    sys.exit(main())
