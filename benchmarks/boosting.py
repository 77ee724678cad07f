"""Robust boosting against natural XGBoost and LightGBM: time, peak memory, accuracy, in one run.

Everyone gets the same float32 arrays, rounds, depth, bins, learning rate and threads; binning is
included. Each fit has a process of its own, so that peak memory is its own. Competitors take turns
and the fastest turn counts; everyone takes turns under both wait policies of OpenMP.
`--clock cpu` judges by processor time, which other work on the machine disturbs less. Fashion-MNIST
is read from the directory that HARDWOOD_DATA names. Writes build/bench/boosting.json; exits with 1
when a target is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import Result, circumstances, finish, show

SEED = 20190613
LEARNING_RATE = 0.3
REPORT = Path("build/bench/boosting.json")


@dataclass(frozen=True)
class Fit:
    """One training run: by whom, on what, how."""

    who: str  # "hardwood", "xgboost" or "lightgbm"
    data: str = "higgs-like"
    n_rows: int = 1_000_000
    rounds: int = 100
    depth: int = 8
    bins: int = 256
    method: str = "hist"
    eps: float = 0.0
    inner: str = "paper"
    sparse: bool = False
    threads: int = 2


@dataclass(frozen=True)
class Outcome:
    """What a run took and gave."""

    wall: float
    cpu: float
    memory: float  # MB beside the input
    accuracy: float  # on test rows
    leaves: float = float("nan")  # a tree


def higgs_like(n_rows: int) -> tuple[np.ndarray, ...]:
    """28 columns as in HIGGS: skewed and bell-shaped floats, four with three values; in [0, 1]."""
    n_test = 100_000
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n_rows + n_test, 28)).astype(np.float32)
    label = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) - 0.7 * X[:, 3] ** 2 + X[:, 4] * X[:, 5] * X[:, 6]
    label += 0.5 * X[:, 7:14].sum(axis=1) + rng.normal(size=len(X)) * 1.5
    X[:, 14:21] = np.exp(0.6 * X[:, 14:21])
    X[:, 24:] = np.clip(np.round(X[:, 24:]), -1, 1)
    X -= X.min(axis=0)
    X /= X.max(axis=0)
    y = (label > 0).astype(np.float32)
    return X[:n_rows].copy(), y[:n_rows], X[n_rows:].copy(), y[n_rows:]


def fashion_mnist(n_rows: int) -> tuple[np.ndarray, ...]:
    with np.load(Path(os.environ["HARDWOOD_DATA"]) / "fashion_mnist.npz") as file:
        parts = [file[name] for name in ("X_train", "y_train", "X_test", "y_test")]
    X, y, X_test, y_test = parts
    X, X_test = (
        np.asarray(part.reshape(len(part), -1), dtype=np.float32) / np.float32(255)
        for part in (X, X_test)
    )
    return X[:n_rows], y[:n_rows].astype(np.float32), X_test, y_test.astype(np.float32)


DATA = {"higgs-like": higgs_like, "fashion_mnist": fashion_mnist}


def train_hardwood(X: Any, y: np.ndarray, fit: Fit) -> tuple[Callable[[Any], Any], float]:
    import hardwood as hw

    model = hw.RobustGradientBoostingClassifier(
        eps=fit.eps,
        inner=fit.inner,
        method=fit.method,
        n_estimators=fit.rounds,
        max_depth=fit.depth,
        max_bins=fit.bins,
        learning_rate=LEARNING_RATE,
        n_jobs=fit.threads,
        random_state=0,
    ).fit(X, y)
    return model.predict, model.trees_.n_leaves / model.trees_.n_trees


def train_xgboost(X: np.ndarray, y: np.ndarray, fit: Fit) -> tuple[Callable[[Any], Any], float]:
    import xgboost

    n_classes = int(y.max()) + 1
    parameters = {
        "objective": "binary:logistic" if n_classes == 2 else "multi:softmax",
        "tree_method": fit.method,
        "max_depth": fit.depth,
        "eta": LEARNING_RATE,
        "nthread": fit.threads,
    }
    if n_classes > 2:
        parameters["num_class"] = n_classes
    if fit.method == "hist":
        parameters["max_bin"] = fit.bins
        data = xgboost.QuantileDMatrix(X, y, max_bin=fit.bins, nthread=fit.threads)
    else:
        data = xgboost.DMatrix(X, y, nthread=fit.threads)
    booster = xgboost.train(parameters, data, fit.rounds)
    return lambda rows: np.round(booster.inplace_predict(rows)), float("nan")


def train_lightgbm(X: np.ndarray, y: np.ndarray, fit: Fit) -> tuple[Callable[[Any], Any], float]:
    import lightgbm

    n_classes = int(y.max()) + 1
    parameters = {
        "objective": "binary" if n_classes == 2 else "multiclass",
        "num_class": 1 if n_classes == 2 else n_classes,
        "max_depth": fit.depth,
        "num_leaves": 2**fit.depth,
        "max_bin": fit.bins - 1,
        "learning_rate": LEARNING_RATE,
        "lambda_l2": 1.0,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 1.0,
        "num_threads": fit.threads,
        "verbose": -1,
    }
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y), fit.rounds)

    def label(rows: Any) -> Any:
        share = booster.predict(rows)
        return share > 0.5 if share.ndim == 1 else share.argmax(axis=1)

    return label, float("nan")


TRAIN = {"hardwood": train_hardwood, "xgboost": train_xgboost, "lightgbm": train_lightgbm}


def peak_memory() -> float:
    """The most memory this process has held, in MB (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def run_here(fit: Fit) -> Outcome:
    X, y, X_test, y_test = DATA[fit.data](fit.n_rows)
    if fit.sparse:
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
    TRAIN[fit.who](X[:1000], y[:1000], replace(fit, rounds=1))  # imports and threads, not timed
    Path("/proc/self/clear_refs").write_text("5")  # counts the peak anew
    memory = peak_memory()
    wall, cpu = time.perf_counter(), time.process_time()
    label, leaves = TRAIN[fit.who](X, y, fit)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = peak_memory() - memory
    return Outcome(wall, cpu, memory, float(np.mean(label(X_test) == y_test)), leaves)


def run(fit: Fit, policy: str = "passive") -> Outcome:
    """Train in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--fit", json.dumps(asdict(fit))],
        env={**os.environ, "OMP_WAIT_POLICY": policy},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    outcome = Outcome(**json.loads(done.stdout))
    print(
        f"  {fit.who} {fit.inner if fit.who == 'hardwood' else 'natural'} eps {fit.eps:g} "
        f"{policy}: {outcome.wall:.2f} s, cpu {outcome.cpu:.2f} s, {outcome.memory:.0f} MB, "
        f"accuracy {outcome.accuracy:.4f}, leaves a tree {outcome.leaves:.0f}",
        file=sys.stderr,
        flush=True,
    )
    return outcome


def best_of(fits: list[Fit], n_turns: int) -> list[Outcome]:
    """Take turns; of every fit the least time, and the least memory, over turns and policies."""
    outcomes: list[list[Outcome]] = [[] for _ in fits]
    for _ in range(n_turns):
        for found, fit in zip(outcomes, fits, strict=True):
            found.extend(run(fit, policy) for policy in ("passive", "active"))
    return [
        replace(
            found[0],
            wall=min(one.wall for one in found),
            cpu=min(one.cpu for one in found),
            memory=min(one.memory for one in found),
        )
        for found in outcomes
    ]


class Benchmark:
    """The questions; each gives results."""

    def __init__(self, clock: str, n_turns: int, scale: float) -> None:
        self.clock, self.n_turns, self.scale = clock, n_turns, scale

    def _fit(self, who: str, **how: Any) -> Fit:
        fit = Fit(who, **how)
        return replace(fit, n_rows=int(fit.n_rows * self.scale))

    def _ratio(self, name: str, ours: Outcome, theirs: Outcome, **target: float) -> Result:
        seconds = {"ours": getattr(ours, self.clock), "theirs": getattr(theirs, self.clock)}
        ratio = seconds["ours"] / seconds["theirs"]
        answer = {"ours": asdict(ours), "theirs": asdict(theirs)}
        return Result(name, ratio, seconds=seconds, answer=answer, **target)

    def large(self) -> list[Result]:
        """1,000,000 x 28: time and memory against both, accuracy of natural mode."""
        kinds = [("paper", 0.0), ("paper", 0.05), ("paper", 0.1)]
        kinds += [("exact", 0.01), ("exact", 0.05), ("exact", 0.1)]
        fits = [self._fit("xgboost"), self._fit("lightgbm")]
        fits += [self._fit("hardwood", inner=inner, eps=eps) for inner, eps in kinds]
        xgboost, lightgbm, *ours = best_of(fits, self.n_turns)
        found = dict(zip(kinds, ours, strict=True))
        natural = found["paper", 0.0]
        results = []
        for (inner, eps), outcome in found.items():
            name = f"1,000,000 x 28, eps {eps:g}, inner {inner}: "
            # Natural mode is there to compare with; the limits are those of robust training.
            paper = {"at_most": 0.45} if eps > 0 else {}
            limit = paper if inner == "paper" else {"at_most": 0.70}
            results.append(self._ratio(name + "time / XGBoost natural", outcome, xgboost, **limit))
            if inner == "paper":
                limit = {"at_most": 0.42} if eps > 0 else {}
                results.append(
                    self._ratio(name + "time / LightGBM natural", outcome, lightgbm, **limit)
                )
                if eps > 0:
                    results.append(
                        self._ratio(name + "time / our natural", outcome, natural, at_most=1.3)
                    )
            results.append(
                Result(name + "memory / XGBoost", outcome.memory / xgboost.memory, at_most=1.0)
            )
        short = xgboost.accuracy - natural.accuracy
        answer = {"ours": natural.accuracy, "xgboost": xgboost.accuracy}
        answer["lightgbm"] = lightgbm.accuracy
        results.append(
            Result(
                "1,000,000 x 28, natural: test accuracy short of XGBoost's",
                short,
                at_most=0.003,
                answer=answer,
            )
        )
        return results

    def images(self) -> list[Result]:
        """Fashion-MNIST, ten classes, dense and sparse."""
        how = {"data": "fashion_mnist", "n_rows": 60_000, "rounds": 20}
        xgboost, lightgbm, dense, sparse, natural = best_of(
            [
                self._fit("xgboost", **how),
                self._fit("lightgbm", **how),
                self._fit("hardwood", eps=0.1, **how),
                self._fit("hardwood", eps=0.1, sparse=True, **how),
                self._fit("hardwood", **how),
            ],
            self.n_turns,
        )
        name = "Fashion-MNIST, eps 0.1: "
        return [
            self._ratio(name + "time / XGBoost natural", dense, xgboost, at_most=0.20),
            self._ratio(name + "time / LightGBM natural", dense, lightgbm, at_most=0.45),
            self._ratio(name + "time / our natural", dense, natural, at_most=1.3),
            Result(name + "memory / XGBoost", dense.memory / xgboost.memory, at_most=1.0),
            self._ratio(name + "sparse / dense time", sparse, dense, at_most=1.0),
            Result(
                "Fashion-MNIST, natural: test accuracy short of XGBoost's",
                xgboost.accuracy - natural.accuracy,
                at_most=0.003,
                answer={"ours": natural.accuracy, "xgboost": xgboost.accuracy},
            ),
        ]

    def certified(self) -> list[Result]:
        """inner="certified": time and memory against natural XGBoost, and growth with the rows."""
        images = {"data": "fashion_mnist", "n_rows": 60_000, "rounds": 20}
        ours = {"inner": "certified", "eps": 0.02}
        sizes = (200_000, 4_000_000)
        fits = [
            self._fit("xgboost"),
            self._fit("hardwood", **ours),
            self._fit("xgboost", **images),
            self._fit("hardwood", **images, **(ours | {"eps": 0.1})),
            *[self._fit("hardwood", n_rows=n, rounds=10, **ours) for n in sizes],
        ]
        large, rows, theirs, pixels, few, many = best_of(fits, self.n_turns)
        name = "1,000,000 x 28, eps 0.02, inner certified: "
        per_row = getattr(many, self.clock) / sizes[1] / (getattr(few, self.clock) / sizes[0])
        return [
            self._ratio(name + "time / XGBoost natural", rows, large, at_most=1.2),
            Result(name + "memory / XGBoost", rows.memory / large.memory, at_most=1.0),
            self._ratio(
                "Fashion-MNIST, eps 0.1, inner certified: time / XGBoost natural",
                pixels,
                theirs,
                at_most=0.6,
            ),
            Result(
                "4,000,000 x 28, inner certified: time a row relative to 200,000 rows",
                per_row,
                at_most=1.1,
                answer={"few": asdict(few), "many": asdict(many)},
            ),
        ]

    def growth(self) -> list[Result]:
        """Time a row at 1,000,000 and 4,000,000 rows relative to 200,000."""
        sizes = (200_000, 1_000_000, 4_000_000)
        fits = [self._fit("hardwood", eps=0.1, n_rows=n, rounds=10) for n in sizes]
        least, *others = best_of(fits, self.n_turns)
        unit = getattr(least, self.clock) / sizes[0]
        # Caches hold 200,000 rows and not the others: a tenth is theirs.
        return [
            Result(
                f"{n:,} x 28, eps 0.1: time a row relative to 200,000 rows",
                getattr(outcome, self.clock) / n / unit,
                at_most=1.1,
                answer=asdict(outcome),
            )
            for n, outcome in zip(sizes[1:], others, strict=True)
        ]

    def every_threshold(self) -> list[Result]:
        """method="exact" on 50,000 rows against XGBoost's exact method."""
        how = {"n_rows": 50_000, "rounds": 20, "depth": 6, "method": "exact"}
        kinds = [("paper", 0.0), ("paper", 0.1), ("exact", 0.01), ("exact", 0.1)]
        fits = [self._fit("xgboost", **how)]
        fits += [self._fit("hardwood", inner=inner, eps=eps, **how) for inner, eps in kinds]
        xgboost, *ours = best_of(fits, self.n_turns)
        return [
            self._ratio(
                f'method "exact", 50,000 x 28, eps {eps:g}, inner {inner}: time / XGBoost exact',
                outcome,
                xgboost,
                at_most=1.0,
            )
            for (inner, eps), outcome in zip(kinds, ours, strict=True)
        ]

    def predictions(self) -> list[Result]:
        """The same model, predicted by XGBoost and by us."""
        import xgboost

        import hardwood as hw

        X, y, X_test, _ = higgs_like(int(200_000 * self.scale))
        model = hw.RobustGradientBoostingClassifier(
            eps=0.05, n_estimators=100, max_depth=8, learning_rate=LEARNING_RATE, n_jobs=2
        ).fit(X, y)
        path = REPORT.parent / "boosting-model.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save_model(path)
        booster = xgboost.Booster({"nthread": 2}, model_file=path)
        stock = xgboost.XGBClassifier(n_jobs=2)
        stock.load_model(path)
        trees, rows = model.trees_, [X_test[i : i + 1] for i in range(300)]

        def one_by_one(predict: Callable[[Any], Any]) -> Callable[[], Any]:
            return lambda: [predict(row) for row in rows]

        def booster_margin(rows: Any) -> Any:
            return booster.inplace_predict(rows, predict_type="margin")

        same = np.array_equal(trees.margin(X_test)[:, 0], booster_margin(X_test).astype(np.float64))
        calls = {
            "100,000 rows at once": (
                lambda: trees.margin(X_test, n_jobs=2),
                lambda: booster_margin(X_test),
            ),
            "one row at a time": (
                one_by_one(lambda x: trees.margin(x, n_jobs=1)),
                one_by_one(booster_margin),
            ),
            "one row at a time, estimators": (one_by_one(model.predict), one_by_one(stock.predict)),
        }
        results = []
        for name, pair in calls.items():
            best = [float("inf")] * 2
            for _ in range(7):
                for k, call in enumerate(pair):
                    begin = time.perf_counter()
                    call()
                    best[k] = min(best[k], time.perf_counter() - begin)
            results.append(
                Result(
                    f"predict, 100 trees, {name}: time / XGBoost, same model",
                    best[0] / best[1],
                    at_most=1.0,
                    seconds={"ours": best[0], "theirs": best[1]},
                    answer={"bit-equal margins": same},
                )
            )
        return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = ["large", "images", "certified", "growth", "every_threshold", "predictions"]
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; all by default")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fit:
        print(json.dumps(asdict(run_here(Fit(**json.loads(args.fit))))))
        return
    where = circumstances("xgboost-cpu", "lightgbm", clock=args.clock, threads=2, quick=args.quick)
    benchmark = Benchmark(args.clock, args.turns, 0.01 if args.quick else 1.0)
    results = []
    for part in args.parts or parts:
        for result in getattr(benchmark, part)():
            show(result)
            results.append(result)
    finish(REPORT, where, results)


if __name__ == "__main__":
    main()
