"""Clean against certified accuracy over the dial `robustness`: the picture of the guide.

Two tables, two random halves each to train and to test; writes docs/guide/dial.svg and prints the
points. HARDWOOD_DATA names the directory of the data (for cod_rna).
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

import hardwood as hw

SHARES = (0.0, 0.05, 0.2, 0.5, 0.8, 1.0)
SEEDS = range(2)
PICTURE = Path("docs/guide/dial.svg")


def cod_rna():
    data = hw.datasets.load("cod_rna")
    kept = np.random.default_rng(0).permutation(len(data.X_train))[:6_000]
    return np.asarray(data.X_train)[kept], data.y_train[kept]


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return minmax_scale(X), y


TABLES = {
    "cod_rna, eps .025": (0.025, cod_rna),
    "breast_cancer of scikit-learn, eps .05": (0.05, breast_cancer),
}


def point(X, y, eps, share, seed):
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=seed)
    model = hw.RobustGradientBoostingClassifier(eps=eps, robustness=share).fit(X_train, y_train)
    proof = hw.certify(model, X_test, y_test, hw.Threat(eps), time_limit=300)
    return model.score(X_test, y_test), proof.certified_accuracy


def main() -> None:
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "hardwood"  # the same file each time
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axis, (name, (eps, load)) in zip(axes, TABLES.items(), strict=True):
        X, y = load()
        curve = [np.mean([point(X, y, eps, s, seed) for seed in SEEDS], axis=0) for s in SHARES]
        for share, (clean, certified) in zip(SHARES, curve, strict=True):
            print(f"{name}, robustness {share}: {clean:.3f} / {certified:.3f}", flush=True)
            axis.annotate(
                f"{share:g}", (clean, certified), textcoords="offset points", xytext=(4, 3)
            )
        axis.plot(*zip(*curve, strict=True), "o-", markersize=4)
        axis.set(title=name, xlabel="clean accuracy", ylabel="certified accuracy")
        axis.grid(alpha=0.3)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
