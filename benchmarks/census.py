"""A pipeline in the columns of its users: how long loading, certificates and distances take.

Fourteen raw columns, six whole numbers and eight categories, 100 columns after one-hot encoding;
XGBoost, 200 trees of depth 6. Two adversaries: one may change every category to any other and move
whole numbers by 2, three columns at most, which turns nearly every row; one may move whole numbers
by 1 and change two of the categories, two columns at most, which leaves some rows proven. Processor
time of one thread. Writes build/bench/census.json; exits with 1 when a target is missed.
"""

import argparse
import os
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from measure import Result, circumstances, finish, show  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402
from xgboost import XGBClassifier  # noqa: E402

import hardwood as hw  # noqa: E402

REPORT = Path("build/bench/census.json")
LEVELS = {
    "work": 9,
    "degree": 16,
    "status": 7,
    "job": 15,
    "role": 6,
    "group": 5,
    "sex": 2,
    "land": 34,
}
SPREADS = {"age": 70, "years": 15, "gain": 5000, "loss": 2000, "hours": 80, "weight": 400}
N_TRAIN = 15_000


def census(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Whole numbers and categories, and a label that hangs on most of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.integers(0, most + 1, n) for name, most in SPREADS.items()})
    score = sum(rng.normal() * X[name] / most for name, most in SPREADS.items())
    score += 2.0 * (X["age"] > 30) * (X["hours"] > 35) + 1.5 * (X["gain"] > 3500)
    for name, n_levels in LEVELS.items():
        code = rng.integers(n_levels, size=n)
        X[name] = np.array([f"{name} {k}" for k in range(n_levels)])[code]
        score += np.random.default_rng(len(name)).normal(size=n_levels)[code] * 0.7
    noise = rng.normal(size=n) * 0.7
    return X, np.asarray(score + noise > np.median(score), dtype=int)


def pipeline(X: pd.DataFrame, y: np.ndarray, n_trees: int) -> Pipeline:
    """Dummies of the categories, the numbers as they are, and boosted trees.

    Dense: XGBoost takes the zeros of a sparse table for missing values, and not everybody who is
    asked about its trees knows that.
    """
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    before = ColumnTransformer([("words", words, list(LEVELS))], remainder="passthrough")
    model = make_pipeline(before, XGBClassifier(n_estimators=n_trees, max_depth=6, n_jobs=1))
    return model.fit(X, y)


THREATS = {
    "all categories, whole numbers by 2, three changes": hw.Threat(
        {**dict.fromkeys(SPREADS, 2), **dict.fromkeys(LEVELS, hw.ANY)}, max_changes=3
    ),
    "two categories, whole numbers by 1, two changes": hw.Threat(
        {**dict.fromkeys(SPREADS, 1), "role": hw.ANY, "sex": hw.ANY}, max_changes=2
    ),
}


def main() -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    given = parser.parse_args()
    X, y = census(N_TRAIN + given.rows, seed=0)
    model = pipeline(X[:N_TRAIN], y[:N_TRAIN], 200)
    X, y = X[N_TRAIN:], y[N_TRAIN:]
    begin = time.process_time()
    trees = hw.load_model(model, X=X)
    results = [Result("loading, in seconds", time.process_time() - begin, at_most=2.0)]
    show(results[-1])
    for name, threat in THREATS.items():
        begin = time.process_time()
        proof = hw.certify(trees, X, y, threat, n_jobs=1)
        middle = time.process_time()
        near = hw.minimal_distance(trees, X, y, threat=threat, n_jobs=1)
        end = time.process_time()
        statuses, counts = np.unique(proof.status, return_counts=True)
        found = dict(zip(statuses.tolist(), counts.tolist(), strict=True))
        measured = {"exact": int((near.status == "exact").sum())}
        for what, seconds, target, answer in (
            ("certify", middle - begin, 20.0, found),
            ("distance", end - middle, 50.0, measured),
        ):
            title = f"{what}, ms a row: {name}"
            results.append(Result(title, 1e3 * seconds / len(X), at_most=target, answer=answer))
            show(results[-1])
            print(f"    {answer}")
    finish(REPORT, circumstances("xgboost-cpu", "scikit-learn"), results)


if __name__ == "__main__":
    main()
