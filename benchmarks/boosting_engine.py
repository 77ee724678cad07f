"""Time the histogram engine beside natural XGBoost and LightGBM on the same arrays.

    python benchmarks/boosting_engine.py higgs --rounds 10 --eps 0 0.1
    python benchmarks/boosting_engine.py fashion --rounds 4 --eps 0.1

The loss around the engine is a few lines of numpy here, so that only the engine is judged; binning
is included. In brackets the ratios of CPU time, which a busy machine disturbs less (then with one
thread, and OMP_WAIT_POLICY=passive so that waiting does not count). `fashion` reads
fashion_mnist.npz in the directory named by HARDWOOD_DATA.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

LEARNING_RATE = 0.3


def higgs_like(n_rows):
    """28 columns as in HIGGS: skewed and bell-shaped floats, four with three values; in [0, 1]."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n_rows, 28)).astype(np.float32)
    label = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) - 0.7 * X[:, 3] ** 2 + X[:, 4] * X[:, 5] * X[:, 6]
    label += 0.5 * X[:, 7:14].sum(axis=1) + rng.normal(size=n_rows) * 1.5
    X[:, 14:21] = np.exp(0.6 * X[:, 14:21])
    X[:, 24:] = np.clip(np.round(X[:, 24:]), -1, 1)
    X -= X.min(axis=0)
    X /= X.max(axis=0)
    return X, (label > 0).astype(np.float32), 1


def fashion(n_rows):
    with np.load(Path(os.environ["HARDWOOD_DATA"]) / "fashion_mnist.npz") as data:
        X = data["X_train"].reshape(len(data["X_train"]), -1).astype(np.float32) / 255
        return X[:n_rows], data["y_train"][:n_rows].astype(np.float32), 10


DATA = {"higgs": (higgs_like, 1_000_000), "fashion": (fashion, 60_000)}


def train_hardwood(X, y, n_classes, eps, inner, args):
    from hardwood.grow.hist import HistTable
    from hardwood.grow.newton import NewtonRules
    from hardwood.threat import Threat

    reach = Threat(eps).reach(X.shape[1])
    start = time.process_time()
    table = HistTable(X, reach, max_bins=args.bins, n_threads=args.threads)
    print(f"binning {time.process_time() - start:.2f} s", file=sys.stderr)
    margin = np.zeros((len(X), n_classes), np.float32)
    onehot = y[:, None] == np.arange(n_classes) if n_classes > 1 else y[:, None]
    spent = 0.0
    for seed in range(args.rounds):
        if n_classes > 1:
            p = np.exp(margin - margin.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
        else:
            p = 1 / (1 + np.exp(-margin))
        gradient = p - onehot
        hessian = np.maximum(p * (1 - p), 1e-16) * (2 if n_classes > 1 else 1)
        rules = NewtonRules(inner=inner, max_depth=args.depth, n_threads=args.threads, seed=seed)
        start = time.process_time()
        trees, leaf = table.grow(gradient, hessian, rules=rules)
        spent += time.process_time() - start
        for k, tree in enumerate(trees):
            margin[:, k] += (LEARNING_RATE * tree.value[:, 0])[leaf[:, k]]
    print(f"  growing {spent:.2f} s, nodes {len(trees[0].feature)}", file=sys.stderr)
    return margin


def train_xgboost(X, y, n_classes, args):
    import xgboost

    data = xgboost.QuantileDMatrix(X, y, max_bin=args.bins, nthread=args.threads)
    objective = {"objective": "binary:logistic", "base_score": 0.5}
    if n_classes > 1:
        objective = {"objective": "multi:softprob", "num_class": n_classes}
    parameters = {
        **objective,
        "tree_method": "hist",
        "max_depth": args.depth,
        "max_bin": args.bins,
        "eta": LEARNING_RATE,
        "nthread": args.threads,
    }
    booster = xgboost.train(parameters, data, args.rounds)
    return lambda: booster.inplace_predict(X, predict_type="margin")


def train_lightgbm(X, y, n_classes, args):
    import lightgbm

    parameters = {
        "objective": "binary" if n_classes == 1 else "multiclass",
        "num_class": n_classes,
        "max_depth": args.depth,
        "num_leaves": 2**args.depth,
        "max_bin": args.bins - 1,
        "learning_rate": LEARNING_RATE,
        "lambda_l2": 1.0,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 1.0,
        "num_threads": args.threads,
        "verbose": -1,
    }
    booster = lightgbm.train(parameters, lightgbm.Dataset(X, y), args.rounds)
    return lambda: booster.predict(X, raw_score=True)


def peak_memory():
    """The most memory this process has held, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def forget_peak():
    """Start counting the peak anew (Linux), so that making the data does not count."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def run(args):
    load, n_rows = DATA[args.data]
    X, y, n_classes = load(args.rows or n_rows)
    before = forget_peak()
    start, cpu = time.perf_counter(), time.process_time()
    if args.who == "xgboost":
        margin = train_xgboost(X, y, n_classes, args)
    elif args.who == "lightgbm":
        margin = train_lightgbm(X, y, n_classes, args)
    else:
        inner, eps = args.who.split(":")
        margin = train_hardwood(X, y, n_classes, float(eps), inner, args)
    seconds = time.perf_counter() - start
    cpu = time.process_time() - cpu
    peak = peak_memory() - before
    margin = margin() if callable(margin) else margin
    margin = margin.reshape(len(X), -1)
    label = margin.argmax(axis=1) if n_classes > 1 else margin[:, 0] > 0
    print(f"{seconds} {cpu} {peak} {np.mean(label == y)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=DATA)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--bins", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--eps", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--inner", nargs="+", default=["paper", "exact"])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--peers", nargs="*", default=["xgboost", "lightgbm"])
    parser.add_argument("--who", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.who:
        run(args)
        return
    # A process for each, so that peak memory is its own.
    mine = [f"{inner}:{eps}" for eps in args.eps for inner in args.inner]
    seconds = {}
    for _ in range(args.repeat):
        for who in [*args.peers, *mine]:
            command = [sys.executable, __file__, *sys.argv[1:], "--who", who]
            out = subprocess.run(command, capture_output=True, text=True, check=True)
            took, cpu, peak, accuracy = map(float, out.stdout.split())
            for count, spent in (("wall", took), ("cpu", cpu)):
                seconds[who, count] = min(seconds.get((who, count), np.inf), spent)
            ratios = ", ".join(
                f"{seconds[who, 'wall'] / seconds[peer, 'wall']:.3f} "
                f"({seconds[who, 'cpu'] / seconds[peer, 'cpu']:.3f}) of {peer}"
                for peer in args.peers
                if (peer, "cpu") in seconds
            )
            print(
                f"{who:>12}: {took:6.2f} s, cpu {cpu:6.2f} s, {peak:5.0f} MB, "
                f"accuracy {accuracy:.4f}; {ratios} {out.stderr.strip()}"
            )


if __name__ == "__main__":
    main()
