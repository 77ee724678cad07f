"""Import an installed hardwood, train, certify and run the demo: what a wheel must do anywhere."""

import subprocess
import sys
import tempfile

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

import hardwood as hw


def main():
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X)
    model = hw.RobustGradientBoostingClassifier(eps=0.1, n_estimators=20).fit(X[:400], y[:400])
    found = hw.certify(model, X[400:], y[400:], hw.Threat(0.05))
    assert 0.5 < found.certified_accuracy <= found.attacked_accuracy <= 1, found
    print(f"hardwood {hw.__version__}: {found.certified_accuracy:.3f} certified", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "hardwood", "demo"], cwd=folder, check=True)


if __name__ == "__main__":
    main()
