"""What the exact inner minimum is worth: clean and robust accuracy of boosted trees, in one table.

Natural training, the paper's four cases and the exact rule, at the settings of the authors' code
(rounds, learning rate, depth) and the eps at which robustness is possible at all. Robust accuracy
is exact: `certified` and `attacked` differ only by rows that the clock left undecided. Needs the
data: HARDWOOD_DATA names a directory with the files of the sets. Exits with 1 when a robust model
is not more robust than the natural one.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hardwood as hw

SECONDS_A_ROW = 20.0


@dataclass(frozen=True)
class Row:
    """One data set; `prototype` are the robust accuracies that a prototype of the rules had."""

    name: str
    eps: float
    n_rounds: int
    learning_rate: tuple[float, float]  # robust, natural
    max_depth: tuple[int, int]
    min_split_gain: float
    method: str
    prototype: tuple[float, float]  # inner "paper" and "exact"


ROWS = (
    Row("breast_cancer", 0.3, 4, (0.2, 0.3), (8, 6), 0.5, "exact", (0.854, 0.927)),
    Row("diabetes", 0.05, 20, (0.2, 0.3), (5, 5), 0.5, "exact", (0.506, 0.656)),
    Row("cod_rna", 0.025, 80, (0.1, 0.2), (5, 4), 0.5, "exact", (0.746, 0.778)),
    Row("mnist_2_vs_6", 0.3, 1000, (0.01, 0.02), (6, 4), 0.0, "hist", (0.953, 0.963)),
)


def load(name: str, directory: Path) -> tuple[np.ndarray, ...]:
    file = "mnist" if name == "mnist_2_vs_6" else name
    with np.load(directory / f"{file}.npz") as data:
        parts = [data[k] for k in ("X_train", "y_train", "X_test", "y_test")]
    if name == "mnist_2_vs_6":
        for k in (0, 2):
            rows = np.isin(parts[k + 1], (2, 6))
            parts[k] = parts[k][rows].reshape(rows.sum(), -1) / 255
            parts[k + 1] = (parts[k + 1][rows] == 6).astype(int)
    return tuple(parts)


def train(row: Row, kind: str, X: np.ndarray, y: np.ndarray) -> Any:
    """Boost as the row says: "natural", or robustly with inner "paper" or "exact"."""
    natural = kind == "natural"
    return hw.RobustGradientBoostingClassifier(
        eps=0 if natural else row.eps,
        inner="exact" if kind == "exact" else "paper",
        method=row.method,
        n_estimators=row.n_rounds,
        learning_rate=row.learning_rate[natural],
        max_depth=row.max_depth[natural],
        min_split_gain=row.min_split_gain,
        random_state=0,
    ).fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="data sets; all by default")
    parser.add_argument("--rows", type=int, default=2000, help="test rows at most, evenly spaced")
    args = parser.parse_args()
    given = os.environ.get("HARDWOOD_DATA")
    if not given:
        sys.exit("HARDWOOD_DATA must name a directory with the data; it is not set.")
    better = True
    line = "{:<14} {:>5} {:<8} {:>6} {:>6} {:>9} {:>8} {:>8} {:>9} {:>9} {:>8}"
    heads = "data eps inner rows clean certified attacked distance prototype train/s proof/s"
    print(line.format(*heads.split()))
    for row in ROWS:
        if args.names and row.name not in args.names:
            continue
        X_train, y_train, X, y = load(row.name, Path(given))
        some = np.unique(np.linspace(0, len(X) - 1, min(args.rows, len(X))).astype(int))
        robust = {}
        for kind in ("natural", "paper", "exact"):
            begin = time.perf_counter()
            model = train(row, kind, X_train, y_train)
            trained = time.perf_counter()
            threat = hw.Threat(row.eps)
            found = hw.certify(model, X[some], y[some], threat, time_limit=SECONDS_A_ROW, n_jobs=-1)
            proven = time.perf_counter()
            hundred = some[:: max(1, len(some) // 100)]
            far = hw.minimal_distance(
                model, X[hundred], y[hundred], time_limit=SECONDS_A_ROW, n_jobs=-1
            )
            robust[kind] = found.certified_accuracy
            figures = (
                model.score(X, y),
                found.certified_accuracy,
                found.attacked_accuracy,
                far.lower[far.status != "misclassified"].mean(),
            )
            said = "" if kind == "natural" else f"{row.prototype[kind == 'exact']:.3f}"
            times = (f"{trained - begin:.1f}", f"{proven - trained:.1f}")
            shown = [f"{figure:.3f}" for figure in figures]
            print(line.format(row.name, row.eps, kind, len(some), *shown, said, *times), flush=True)
        better &= min(robust["paper"], robust["exact"]) > robust["natural"]
    sys.exit(0 if better else 1)


if __name__ == "__main__":
    main()
