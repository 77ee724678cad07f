"""Robust forests against scikit-learn's natural forest and XGBoost's, in one run on two threads.

Three tables: numbers and dummies like a census, many binary columns, and continuous columns with
two humps. Fits take turns on the same rows and the fastest turn of each counts, in seconds of the
wall clock, since all use two threads. Accuracy is compared at eps 0 on held-out rows. Writes
build/bench/forest.json; exits with 1 when a target is missed.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb
from measure import Result, circumstances, finish, humps, show, take_turns
from sklearn.ensemble import RandomForestClassifier

import hardwood as hw

SEED = 20190613
N_TREES = 60
MAX_DEPTH = 8
EPS = 0.03
N_THREADS = 2
N_TEST = 20_000
REPORT = Path("build/bench/forest.json")

Rows = tuple[np.ndarray, np.ndarray]


def census(n: int, rng: np.random.Generator) -> Rows:
    """Six numbers in [0, 1] and the dummies of eight categories: 108 columns."""
    law = np.random.default_rng(SEED)
    numbers = rng.random((n, 6))
    dummies = []
    for n_values in (9, 16, 7, 15, 6, 5, 2, 42):
        share = law.random(n_values) ** 3 + 0.01
        dummies.append(np.eye(n_values)[rng.choice(n_values, n, p=share / share.sum())])
    X = np.hstack([numbers, *dummies])
    effect = law.normal(size=X.shape[1] - 6)
    signal = 2.5 * numbers[:, 0] + 2 * (numbers[:, 1] > 0.6) + 1.5 * numbers[:, 2] * numbers[:, 3]
    signal += X[:, 6:] @ effect + 0.8 * rng.normal(size=n)
    return X.astype(np.float32), (signal > 3.4).astype(np.int32)


def binary(n: int, rng: np.random.Generator) -> Rows:
    """A thousand binary columns, a tenth of which matter."""
    law = np.random.default_rng(SEED)
    X = rng.random((n, 1000)) < law.random(1000) / 2
    weight = law.normal(size=1000) * (law.random(1000) < 0.1)
    signal = (X - X.mean(axis=0)) @ weight + 0.5 * rng.normal(size=n)
    return X.astype(np.float32), (signal > 0).astype(np.int32)


def robust(criterion: str, eps: float) -> hw.RobustRandomForestClassifier:
    return hw.RobustRandomForestClassifier(
        eps=eps,
        criterion=criterion,
        n_estimators=N_TREES,
        max_depth=MAX_DEPTH,
        n_jobs=N_THREADS,
        random_state=0,
    )


def natural(criterion: str) -> RandomForestClassifier:
    return RandomForestClassifier(
        N_TREES, criterion=criterion, max_depth=MAX_DEPTH, n_jobs=N_THREADS, random_state=0
    )


def boosted_forest(n_features: int) -> xgb.XGBRFClassifier:
    """XGBoost's forest with as many features a node; it draws rows without replacement."""
    share = max(1, int(np.sqrt(n_features))) / n_features
    return xgb.XGBRFClassifier(
        n_estimators=N_TREES,
        max_depth=MAX_DEPTH,
        colsample_bynode=share,
        n_jobs=N_THREADS,
        random_state=0,
    )


def compare(make: Callable[..., Rows], n: int, n_turns: int) -> list[Result]:
    rng = np.random.default_rng(SEED + 1)
    X, y = make(n, rng)
    X_test, y_test = make(min(n, N_TEST), rng)
    where = f"{n:,} x {X.shape[1]}"
    models: dict[str, Any] = {"XGBoost": boosted_forest(X.shape[1])}
    for criterion in ("gini", "entropy"):
        models[f"scikit-learn {criterion}"] = natural(criterion)
        models[f"hardwood {criterion}"] = robust(criterion, EPS)
    calls = {name: (lambda model=model: model.fit(X, y)) for name, model in models.items()}
    seconds = take_turns(calls, n_turns, time.perf_counter)
    score = {name: float(model.score(X_test, y_test)) for name, model in models.items()}
    results = []
    for criterion in ("gini", "entropy"):
        ours, theirs = f"hardwood {criterion}", f"scikit-learn {criterion}"
        for peer, limit in ((theirs, 0.5), ("XGBoost", 1.0)):
            results.append(
                Result(
                    f"{where}, {criterion}, eps {EPS:g}: fit / {peer}'s natural fit",
                    seconds[ours] / seconds[peer],
                    at_most=limit,
                    seconds={name: seconds[name] for name in (ours, peer)},
                    answer={"accuracy": {name: score[name] for name in (ours, peer)}},
                )
            )
        at_zero = robust(criterion, 0.0).fit(X, y).score(X_test, y_test)
        results.append(
            Result(
                f"{where}, {criterion}, eps 0: accuracy below {theirs}'s",
                score[theirs] - at_zero,
                at_most=0.005,
                answer={"accuracy": [at_zero, score[theirs]]},
            )
        )
    newton = robust("newton", 0.0).fit(X, y).score(X_test, y_test)
    results.append(
        Result(
            f"{where}, newton, eps 0: accuracy below XGBoost's",
            score["XGBoost"] - newton,
            at_most=0.01,
            answer={"accuracy": [newton, score["XGBoost"]], "majority": float(1 - y_test.mean())},
        )
    )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    where = circumstances("scikit-learn", "xgboost-cpu", threads=N_THREADS, seed=SEED, quick=quick)
    results = []
    print(f"wall clock on {N_THREADS} threads, fastest of several turns")
    for make, n in ((census, 16_000), (binary, 16_000), (humps, 100_000)):
        for result in compare(make, n // 8 if quick else n, 1 if quick else 3):
            show(result)
            results.append(result)
    finish(REPORT, where, results)


if __name__ == "__main__":
    main()
