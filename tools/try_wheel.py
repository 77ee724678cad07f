"""Import an installed hardwood, train, certify, run the demo and the README: what a wheel must do.

The README's code needs xgboost; where it is not installed, that is said.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

import hardwood as hw

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from pages import run_page


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X)
    model = hw.RobustGradientBoostingClassifier(eps=0.1, n_estimators=20).fit(X[:400], y[:400])
    found = hw.certify(model, X[400:], y[400:], hw.Threat(0.05))
    assert 0.5 < found.certified_accuracy <= found.attacked_accuracy <= 1, found
    print(f"hardwood {hw.__version__}: {found.certified_accuracy:.3f} certified", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([sys.executable, "-m", "hardwood", "demo"], check=True)
        if importlib.util.find_spec("xgboost"):
            print(f"README.md: {run_page(ROOT / 'README.md')} blocks print what it says")
        else:
            print("README.md: left out, xgboost is not installed")
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
