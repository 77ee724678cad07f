"""The attacks beside the truth, beside the paper and beside a peer, in one run.

Cheng's attack on natural and robust models: its mean l_inf beside the exact one and the paper's,
questions and rows a second; the adversarial-robustness-toolbox (ART), asking one point at a time,
on the same model. Our quick attack against the exact engine: excess and speed, and 10,000 rows in
one call. Adversarial training beside natural and robust training. Needs HARDWOOD_DATA; models are
trained once and kept under build/bench. `--clock cpu` judges the speed of the quick attack
by processor time, which other work on the machine disturbs less. Writes build/bench/attacks.json;
exits with 1 when a target is missed.
"""

import argparse
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One thread in the libraries below numpy; must be set before they load.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from measure import Result, circumstances, finish, show
from peers import distance
from rich.console import Console
from rich.progress import Progress

import hardwood as hw

SEED = 20190613
CACHE = Path("build/bench/attacks")
REPORT = Path("build/bench/attacks.json")
Rows = tuple[np.ndarray, np.ndarray]

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}

results: list[Result] = []


def target(name: str, ratio: float, **limits: float) -> None:
    """Print and keep a figure with what it has to be."""
    results.append(Result(name, float(ratio), **limits))
    show(results[-1])


# --- data and models ------------------------------------------------------------------------------


def load_data(name: str) -> tuple[Rows, Rows]:
    """Training rows and test rows."""
    return distance.load_data(name) if name == "mnist26" else distance.archive(name)


@dataclass(frozen=True)
class Model:
    """How a model is trained; eps = 0 is a natural one."""

    data: str
    n_estimators: int
    max_depth: int
    learning_rate: float
    eps: float = 0.0
    min_split_gain: float = 0.0

    def new(self) -> hw.RobustGradientBoostingClassifier:
        """An estimator that is not fitted yet."""
        return hw.RobustGradientBoostingClassifier(
            eps=self.eps,
            inner="paper",
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            learning_rate=self.learning_rate,
            min_split_gain=self.min_split_gain,
            n_jobs=-1,
            random_state=0,
        )

    def trees(self) -> hw.Trees:
        """The model, from the cache if it is there."""
        path = CACHE / f"{self.data}-{self.n_estimators}-{self.max_depth}-{self.eps}.json"
        if not path.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            self.new().fit(*load_data(self.data)[0]).save_model(path)
        return hw.load_model(path)


def right_rows(trees: hw.Trees, rows: Rows, n_rows: int) -> Rows:
    """Some rows that the model gets right."""
    right = np.flatnonzero(trees.predict_class(rows[0]) == rows[1])
    some = right[np.linspace(0, len(right) - 1, min(n_rows, len(right))).astype(int)]
    return np.ascontiguousarray(rows[0][some]), rows[1][some]


MNIST = Model("mnist26", 1000, 4, 0.02)
MNIST_ROBUST = Model("mnist26", 1000, 6, 0.01, eps=0.3)

# --- the quick attack -----------------------------------------------------------------------------

# Of the exact engine's benchmark: model, rows in the maximum norm, rows in the norms 2 and 1 (none
# where the exact engine is too slow), and how many times as fast as it the attack has to be.
QUICK = (
    ("small", 160, 160, None),
    ("ijcnn1", 200, 200, None),
    ("mnist 2 v. 6", 100, 40, 3.0),
    ("mnist 2 v. 6, robust .3", 100, 40, 3.0),
    ("28 features", 60, 60, 3.0),
    ("28 features, robust .05", 60, 0, 3.0),
    ("mnist", 100, 0, None),
    ("mnist, robust .3", 100, 0, None),
    ("ten classes", 60, 0, None),
    ("ten classes, robust .03", 40, 0, None),
)


def measure_quick(options: argparse.Namespace) -> None:
    print(f"\nOur quick attack against the exact engine, one thread, {options.clock} time a row")
    now = CLOCKS[options.clock]
    for model, n_rows, n_summed, faster in QUICK:
        path, rows = distance.get_model(model, Path("build/bench/distance/models"))
        trees = hw.load_model(path)
        for norm in ("inf", 2, 1) if n_summed else ("inf",):
            few = 10 if options.quick else n_rows if norm == "inf" else n_summed
            X, y = right_rows(trees, rows, few)
            exact_took = took = np.inf
            # The maximum norm takes fractions of a second: the fastest of five turns counts.
            for _ in range(5 if norm == "inf" else 1):
                begin = now()
                exact = hw.minimal_distance(trees, X, y, norm=norm, time_limit=10)
                middle = now()
                found = hw.find_adversarial(trees, X, y, norm=norm, method="descent")
                exact_took, took = min(exact_took, middle - begin), min(took, now() - middle)
            name = f"{model}, l{norm}"
            print(
                f"{name}: {len(X)} rows, {(exact.lower < exact.upper).sum()} not exact; exact "
                f"{exact_took / len(X) * 1e3:.2f} ms, ours {took / len(X) * 1e3:.3f} ms",
                flush=True,
            )
            excess = 100 * (found.distance.mean() / exact.upper.mean() - 1)
            target(f"{name}: excess in %", excess, at_most=2)
            speed = {} if faster is None else {"at_least": faster}
            target(f"{name}: times as fast", exact_took / took, **speed)
    measure_many(200 if options.quick else 10_000)


def measure_many(n_rows: int) -> None:
    model = MNIST
    (X, y), (X_test, y_test) = load_data(model.data)
    X, y = np.concatenate([X_test, X])[:n_rows], np.concatenate([y_test, y])[:n_rows]
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(f"{n_rows} rows, 1000 trees", total=len(X))
        found = hw.find_adversarial(
            model.trees(),
            X,
            y,
            method="descent",
            n_jobs=-1,
            progress=lambda done, _, rows: bar.update(task, completed=done, total=rows),
        )
    print(f"{n_rows} rows of a 1000-tree model in one call: {found.seconds:.1f} s, {found!r}")
    target("rows of them that survive", (found.status == "survived").sum(), at_most=0)


# --- Cheng's attack -------------------------------------------------------------------------------

# Mean l_inf by Cheng's attack and the exact one, in the paper's table of boosted models.
CHENG = (
    (Model("breast_cancer", 4, 6, 0.3, 0.0, 1), 200, (0.215, 0.201), 1.25),
    (Model("breast_cancer", 4, 8, 0.2, 0.3, 1), 200, (0.411, 0.406), 1.25),
    (Model("diabetes", 20, 5, 0.3, 0.0, 1), 200, (0.060, 0.047), 1.25),
    (Model("diabetes", 20, 5, 0.2, 0.2, 1), 200, (0.139, 0.114), 1.25),
    (MNIST, 20, (0.168, 0.064), None),
    (MNIST_ROBUST, 20, (0.406, 0.315), None),
)


def measure_cheng(options: argparse.Namespace) -> None:
    print("\nCheng's attack, l_inf")
    for model, n_rows, paper, within in CHENG[: 2 if options.quick else None]:
        trees = model.trees()
        (X_train, y_train), test = load_data(model.data)
        X, y = right_rows(trees, test, 10 if options.quick else n_rows)
        exact = hw.minimal_distance(trees, X, y, n_jobs=-1).upper
        can = np.isfinite(exact)
        found = hw.find_adversarial(
            trees,
            X[can],
            y[can],
            method="cheng",
            X_train=X_train[:5000],
            y_train=y_train[:5000],
            random_state=0,
            n_jobs=-1,
        )
        name = f"{model.data} eps={model.eps}"
        share = found.mean_distance / exact[can][found.success].mean()
        print(
            f"  {name:24} mean l_inf {found.mean_distance:.4f} (paper {paper[0]:.3f}), exact "
            f"{exact[can].mean():.4f} (paper {paper[1]:.3f}), ratio {share:.3f} (paper "
            f"{paper[0] / paper[1]:.3f}), {found.n_queries.mean():.0f} questions a row, "
            f"{len(found.success) / found.seconds:.2f} rows a second",
            flush=True,
        )
        below = found.distance < exact[can] * (1 - 1e-12)
        bad = np.count_nonzero(~found.success | below)
        target(f"{name}: rows not fooled, or below the truth", bad, at_most=0)
        if within is not None:
            target(f"{name}: mean distance over the exact one", share, at_most=within)
    measure_peer()


def measure_peer(model: Model = CHENG[2][0], n_rows: int = 3) -> None:
    """The peer asks one point of one row at a time."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from art.attacks.evasion import HopSkipJump
            from art.estimators.classification import BlackBoxClassifier
    except ImportError:
        print("\nART is not installed (the bench extra has it): no peer.")
        return
    trees = model.trees()
    (X_train, y_train), test = load_data(model.data)
    X, y = right_rows(trees, test, 100)
    asked = 0

    def predict(Z: Any) -> np.ndarray:
        nonlocal asked
        asked += len(Z)
        return np.eye(2)[trees.predict_class(Z)]

    peer = HopSkipJump(
        BlackBoxClassifier(predict, (X.shape[1],), 2, clip_values=(0.0, 1.0)),
        norm=np.inf,
        verbose=False,
    )
    begin = time.perf_counter()
    Z = peer.generate(X[:n_rows].astype(np.float32)).astype(np.float64)
    theirs = n_rows / (time.perf_counter() - begin)
    fooled = trees.predict_class(Z) != y[:n_rows]
    ours = hw.find_adversarial(
        trees, X, y, method="cheng", X_train=X_train, y_train=y_train, random_state=0
    )
    rate = len(X) / ours.seconds
    print(
        f"\nART's HopSkipJump on {model.data}: {theirs:.3f} rows a second, {asked / n_rows:.0f} "
        f"questions a row, fooled {fooled.sum()} of {n_rows}, mean l_inf "
        f"{np.abs(Z - X[:n_rows]).max(axis=1)[fooled].mean():.4f} (ours on these rows "
        f"{ours.distance[:n_rows].mean():.4f}); ours {rate:.1f} rows a second"
    )
    target("rows a second over ART's", rate / theirs, at_least=10)


# --- adversarial training -------------------------------------------------------------------------


def measure_training(options: argparse.Namespace) -> None:
    print("\nAdversarial training on MNIST 2 vs. 6, 60 trees of depth 6, 40 rows")
    train, test = load_data("mnist26")
    if options.quick:
        train = train[0][:1000], train[1][:1000]
    natural = Model("mnist26", 60, 6, 0.2)
    base = natural.new().set_params(n_jobs=-1)
    few = hw.Threat(784, norm=0, low=0, high=1)
    trained = hw.AdversarialBoostingClassifier(
        base, n_rounds=4, max_samples=2000, threat=few, n_jobs=-1
    )
    contestants = {
        "natural": natural.new(),
        "adversarial": trained.set_params(random_state=0),
        "robust .3": Model("mnist26", 60, 6, 0.2, eps=0.3).new(),
    }
    mean = {}
    print(f"  {'':12} accuracy   l0 (symbolic)   l_inf (exact)")
    for name, model in contestants.items():
        model.fit(*train)
        X, y = right_rows(hw.load_model(model), test, 40)
        changed = hw.find_adversarial(model, X, y, norm=0, method="symbolic", threat=few)
        moved = hw.find_adversarial(model, X, y, method="exact", threat=hw.Threat(1, low=0, high=1))
        mean[name] = changed.mean_distance, moved.mean_distance
        print(
            f"  {name:12} {model.score(*test):8.4f} {changed.mean_distance:15.2f} "
            f"{moved.mean_distance:15.4f}",
            flush=True,
        )
    natural_l0, adversarial_l0 = mean["natural"][0], mean["adversarial"][0]
    target("adversarial over natural training, l0", adversarial_l0 / natural_l0, at_least=1)
    robust, adversarial = mean["robust .3"][1], mean["adversarial"][1]
    target("robust over adversarial training, l_inf", robust / adversarial, at_least=2)


PARTS = {"quick": measure_quick, "cheng": measure_cheng, "training": measure_training}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"parts must be of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}.")
    if "HARDWOOD_DATA" not in os.environ:
        sys.exit(
            "Set HARDWOOD_DATA to the directory of the data sets (mnist.npz, ijcnn1.npz, ...)."
        )
    warnings.simplefilter("ignore", hw.UndecidedWarning)
    where = circumstances("scikit-learn", clock=options.clock, quick=options.quick)
    for part in options.parts or PARTS:
        PARTS[part](options)
    finish(REPORT, where, results)


if __name__ == "__main__":
    main()
