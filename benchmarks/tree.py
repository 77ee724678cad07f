"""Times of the single tree against scikit-learn's, in one run on one thread.

Three questions: does a robust fit cost more than scikit-learn's natural one, does it grow with the
number of rows as sorting does, and how fast does a forest predict? Competitors take turns on the
same rows and the fastest turn of each counts, in seconds of the processor, so that other work on
the machine disturbs little. Writes build/bench/tree.json; exits with 1 when a
target is missed.
"""

import argparse
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread each, also in the libraries below numpy; must be set before they load.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from measure import Result, circumstances, finish, humps, show, take_turns  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

import hardwood as hw  # noqa: E402

SEED = 20190613
MAX_DEPTH = 8
# Sorting is n log n; memory that no longer fits the caches may cost half as much again.
GROWTH_LIMIT = 1.5
REPORT = Path("build/bench/tree.json")


def make_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    return humps(n, np.random.default_rng(SEED))


def robust(
    eps: float, criterion: str = "entropy", method: str = "exact"
) -> hw.RobustDecisionTreeClassifier:
    return hw.RobustDecisionTreeClassifier(
        eps=eps, criterion=criterion, method=method, max_depth=MAX_DEPTH, n_jobs=1
    )


def fits(n: int, n_turns: int) -> list[Result]:
    """Robust fits against scikit-learn's natural fit; each gets the dtype it works in."""
    X32, y = make_rows(n)
    X64 = X32.astype(np.float64)
    results = []
    for criterion in ("entropy", "gini"):
        natural = DecisionTreeClassifier(criterion=criterion, max_depth=MAX_DEPTH, random_state=0)
        models = {
            f"{method}, eps {eps:g}": robust(eps, criterion, method)
            for method in ("exact", "hist")
            for eps in (0.0, 0.05, 0.1)
        }
        calls: dict[str, Callable[[], Any]] = {"scikit-learn": lambda m=natural: m.fit(X32, y)}
        for name, model in models.items():
            calls[name] = lambda m=model: m.fit(X64, y)
        seconds = take_turns(calls, n_turns, time.process_time)
        for name, model in models.items():
            results.append(
                Result(
                    f"fit, {criterion}, {name} / scikit-learn's natural fit",
                    seconds[name] / seconds["scikit-learn"],
                    at_most=1.0,
                    seconds={
                        "hardwood": seconds[name],
                        "scikit-learn": seconds["scikit-learn"],
                    },
                    answer={
                        "rows": n,
                        "leaves": [model.get_n_leaves(), int(natural.get_n_leaves())],
                        "training accuracy": [model.score(X64, y), natural.score(X32, y)],
                    },
                )
            )
    return results


def growth(sizes: list[int], n_turns: int) -> list[Result]:
    """Time of a robust fit over n log n, relative to the smallest n."""
    X, y = make_rows(sizes[-1])
    X = X.astype(np.float64)
    models = {n: robust(0.1) for n in sizes}
    calls = {str(n): lambda n=n: models[n].fit(X[:n], y[:n]) for n in sizes}
    seconds = take_turns(calls, n_turns, time.process_time)
    unit = seconds[str(sizes[0])] / (sizes[0] * math.log2(sizes[0]))
    return [
        Result(
            f"fit, eps 0.1, {n:,} rows: time / (n log n), relative to {sizes[0]:,}",
            seconds[str(n)] / (n * math.log2(n)) / unit,
            at_most=GROWTH_LIMIT,
            seconds={"hardwood": seconds[str(n)]},
            answer={"leaves": models[n].get_n_leaves()},
        )
        for n in sizes[1:]
    ]


def predictions(n: int, n_trees: int, n_turns: int) -> list[Result]:
    """The same forest, predicted by scikit-learn and by `Trees`."""
    X32, y = make_rows(n)
    X64 = X32.astype(np.float64)
    forest = RandomForestClassifier(
        n_trees, max_depth=MAX_DEPTH, max_samples=min(n, 20_000), random_state=0, n_jobs=-1
    ).fit(X32, y)
    forest.set_params(n_jobs=1)
    trees = hw.load_model(forest)
    seconds = take_turns(
        {
            "scikit-learn": lambda: forest.predict(X32),
            "hardwood": lambda: trees.predict(X64, n_jobs=1),
        },
        n_turns,
        time.process_time,
    )
    return [
        Result(
            f"predict, {n_trees} trees: scikit-learn's time / ours",
            seconds["scikit-learn"] / seconds["hardwood"],
            at_least=3.0,
            seconds=seconds,
            answer={
                "rows": n,
                "leaves": trees.n_leaves,
                "labels that differ": int(np.sum(forest.predict(X32) != trees.predict(X64))),
            },
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    where = circumstances("scikit-learn", "scipy", threads=1, seed=SEED, quick=quick)
    results = []
    print("processor time on one thread, fastest of several turns")
    for part in (
        lambda: fits(10_000 if quick else 100_000, 2 if quick else 5),
        lambda: growth([2**k * (1_000 if quick else 62_500) for k in range(5)], 2 if quick else 3),
        lambda: predictions(10_000 if quick else 100_000, 20 if quick else 100, 3 if quick else 7),
    ):
        for result in part():
            show(result)
            results.append(result)
    finish(REPORT, where, results)


if __name__ == "__main__":
    main()
