"""Natural boosting on columns of categories against LightGBM's and scikit-learn's, in one run.

Three questions: is it as good on tables of categories at equal settings (five folds; accuracy and
log loss), is more proven of it where an adversary changes some of the categories than of natural
training and of robust training on one-hot columns (`--only robust`), and how long does a fit take
on 500,000 rows of 20 numbers and 10 categories? Competitors
take turns on the same frame and the fastest turn of each counts, two threads each. The tables are
read from the directory that HARDWOOD_DATA names. `--clock cpu` judges by processor time, which
other work on the machine disturbs less. Writes build/bench/categories.json; exits with 1 when a
target is missed.
"""

import argparse
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from measure import Result, circumstances, finish, show, take_turns
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import hardwood as hw

SEED = 20190613
REPORT = Path("build/bench/categories.json")
TABLES = {"bank_marketing": ("y", "yes"), "mushroom": ("class", "p")}
TAMPERED = {
    "made, 12": ["a", "b", "c"],
    "made, 30": ["a", "b", "c"],
    "bank_marketing": ["job", "month", "poutcome"],
    "mushroom": [
        "odor",
        "gill-color",
        "spore-print-color",
        "gill-size",
        "ring-type",
        "stalk-root",
        "habitat",
    ],
}


def models(rounds: int, leaves: int) -> dict[str, Callable[[], Any]]:
    """The same settings in three libraries: those that LightGBM has by default."""
    return {
        "hardwood": lambda: hw.RobustGradientBoostingClassifier(
            eps=0,
            n_estimators=rounds,
            learning_rate=0.1,
            max_depth=None,
            max_leaf_nodes=leaves,
            min_samples_leaf=20,
            min_child_weight=1e-3,
            reg_lambda=0,
            n_jobs=2,
        ),
        "lightgbm": lambda: lightgbm.LGBMClassifier(
            n_estimators=rounds, num_leaves=leaves, n_jobs=2, verbose=-1
        ),
        "scikit-learn": lambda: HistGradientBoostingClassifier(
            max_iter=rounds, max_leaf_nodes=leaves, early_stopping=False, random_state=0
        ),
    }


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of the frames directory; categories as pandas has them, which all three take."""
    label, positive = TABLES[name]
    frame = pd.read_csv(Path(os.environ["HARDWOOD_DATA"]) / "frames" / f"{name}.csv.gz")
    y = (frame.pop(label) == positive).to_numpy().astype(int)
    words = frame.select_dtypes(exclude="number").columns
    return frame.astype(dict.fromkeys(words, "category")), y


def quality(name: str) -> list[Result]:
    """How far accuracy and log loss are from those of the others; below 0 is better than theirs."""
    X, y = load(name)
    figures: dict[str, list[tuple[float, float]]] = {}
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    for train, test in folds.split(X, y):
        for who, make in models(100, 31).items():
            chance = make().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])[:, 1]
            right = float(np.mean((chance > 0.5) == y[test]))
            figures.setdefault(who, []).append((right, log_loss(y[test], chance)))
    mean = {who: np.mean(given, axis=0) for who, given in figures.items()}
    answer = {who: {"accuracy": a, "log_loss": b} for who, (a, b) in mean.items()}
    results = []
    for other in ("lightgbm", "scikit-learn"):
        results += [
            Result(
                f"{name}: accuracy lost to {other}",
                float(mean[other][0] - mean["hardwood"][0]),
                at_most=0.003,
                answer=answer,
            ),
            Result(
                f"{name}: log loss above {other}",
                float(mean["hardwood"][1] - mean[other][1]),
                at_most=0.003,
            ),
        ]
    return results


def booster(**how: Any) -> Any:
    return hw.RobustGradientBoostingClassifier(
        n_estimators=50, max_depth=4, learning_rate=0.3, n_jobs=1, **how
    )


def made_categories(name: str, n_rows: int = 4000) -> tuple[pd.DataFrame, np.ndarray]:
    """Three columns of 12 or 30 categories, neighbours much alike, and three numbers."""
    size = int(name.split()[1])
    rng = np.random.default_rng(SEED + size)
    words = [f"{k:02d}" for k in range(size)]
    X = pd.DataFrame({f"x{k}": rng.normal(size=n_rows) for k in range(3)})
    margin = 0.5 * X["x0"] + 0.5 * X["x1"] * X["x2"]
    for column in TAMPERED[name]:
        code = rng.integers(size, size=n_rows)
        X[column] = pd.Categorical.from_codes(code, words)
        margin += np.sin(np.linspace(0, 2 * np.pi, size))[code]
    return X, (margin + rng.logistic(scale=0.3, size=n_rows) > 0).to_numpy().astype(int)


def known(X: pd.DataFrame, columns: list[str]) -> list[tuple[str, list[str]]]:
    return [(column, X[column].cat.categories.tolist()) for column in columns]


def robust(name: str, n_rows: int = 4000) -> list[Result]:
    """Certified accuracy where some categories may change, less that of the others."""
    X, y = load(name) if name in TABLES else made_categories(name)
    some = np.random.default_rng(SEED).permutation(len(X))[:n_rows]
    X, y, columns = X.iloc[some], y[some], TAMPERED[name]
    words = list(X.select_dtypes("category"))
    X = X.assign(**{word: X[word].astype(str).astype("category") for word in words})
    # Every category may become the next one, in the order of the alphabet.
    moves = {c: {a: [b] for a, b in pairwise(k)} for c, k in known(X, columns)}
    threat = hw.Threat(moves)
    encode = ColumnTransformer(
        [("words", OneHotEncoder(handle_unknown="ignore"), words)],
        remainder="passthrough",
        sparse_threshold=0,
    )
    ends = np.cumsum([0, *(len(k) for _, k in known(X, words))])
    groups = [list(range(ends[at], ends[at + 1])) for at in map(words.index, columns)]
    makes = {
        "natural": booster(eps=0),
        "robust": booster(threat=threat),
        "one-hot": make_pipeline(encode, booster(threat=hw.Threat(one_hot=groups))),
    }
    proven = {}
    train, test = slice(n_rows // 4, None), slice(n_rows // 4)
    for who, model in makes.items():
        model.fit(X[train], y[train])
        proven[who] = hw.certify(model, X[test], y[test], threat, n_jobs=1).certified_accuracy
    return [
        Result(
            f"{name}: certified accuracy of {other} training above ours",
            proven[other] - proven["robust"],
            at_most=-1e-4,  # above, not as good as
            answer=proven,
        )
        for other in ("natural", "one-hot")
    ]


def made_up(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """20 numbers and 10 columns of 4 to 200 categories, of which some matter."""
    rng = np.random.default_rng(SEED)
    numbers = {f"x{k}": rng.normal(size=n_rows) for k in range(20)}
    sizes = [4, 6, 9, 14, 20, 30, 50, 80, 120, 200]
    codes = {f"c{k}": rng.zipf(1.4, n_rows) % size for k, size in enumerate(sizes)}
    effect = sum(rng.normal(size=size)[codes[f"c{k}"]] for k, size in enumerate(sizes[::2]))
    margin = effect + numbers["x0"] + numbers["x1"] * numbers["x2"] + rng.logistic(size=n_rows)
    frame = pd.DataFrame({**numbers, **{k: pd.Categorical(v) for k, v in codes.items()}})
    return frame, (margin > 0).astype(int)


def quick_models(rounds: int) -> dict[str, Callable[[], Any]]:
    """Equal settings without a least number of rows a leaf, which both would have to count."""
    return {
        "hardwood": lambda: hw.RobustGradientBoostingClassifier(
            eps=0,
            n_estimators=rounds,
            learning_rate=0.1,
            max_depth=None,
            max_leaf_nodes=31,
            min_child_weight=1,
            reg_lambda=0,
            n_jobs=2,
        ),
        "lightgbm": lambda: lightgbm.LGBMClassifier(
            n_estimators=rounds, min_child_samples=1, min_child_weight=1, n_jobs=2, verbose=-1
        ),
    }


def speed(n_rows: int, turns: int, clock: Callable[[], float]) -> Result:
    """The time of a fit in shares of LightGBM's."""
    X, y = made_up(n_rows)
    calls = {who: lambda make=make: make().fit(X, y) for who, make in quick_models(100).items()}
    best = take_turns(calls, turns, clock)
    return Result(
        f"fit of {n_rows} rows x (20 numbers + 10 categories) in shares of LightGBM's",
        best["hardwood"] / best["lightgbm"],
        at_most=0.6,
        seconds=best,
    )


def main() -> None:
    """Measure, show, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--only", choices=("speed", "quality", "robust"))
    given = parser.parse_args()
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    results = []
    if given.only in (None, "speed"):
        results.append(speed(given.rows, given.turns, clock))
        show(results[-1])
    for part in (quality, robust):
        tables = TABLES if part is quality else TAMPERED
        for name in tables if given.only in (None, part.__name__) else ():
            for result in part(name):
                results.append(result)
                show(result)
    finish(REPORT, circumstances("lightgbm", "scikit-learn", clock=given.clock), results)


if __name__ == "__main__":
    main()
