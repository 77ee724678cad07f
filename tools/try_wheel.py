"""Import an installed hardwood, train, certify, run the demo and the README: what a wheel must do.

The README's code needs xgboost; where it is not installed, that is said.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

import hardwood as hw

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from pages import BLOCK, run_page


def run_demo():
    """The command that users type, from the scripts of this environment; it writes two files."""
    command = shutil.which("hardwood", path=sysconfig.get_path("scripts"))
    assert command, "the wheel installed no command hardwood"
    subprocess.run([command, "demo"], check=True)
    for name, begin in (("audit.html", b"<!"), ("boundaries.png", b"\x89PNG")):
        assert (Path("hardwood-demo") / name).read_bytes().startswith(begin), name


def run_readme():
    """All code of the README; a README that shows no output would prove nothing."""
    page = ROOT / "README.md"
    outputs = sum(bool(shown) for _, shown in BLOCK.findall(page.read_text(encoding="utf-8")))
    blocks = run_page(page)
    assert outputs, f"{page} shows no output"
    assert Path("report.html").stat().st_size, "the README writes a page"
    return f"{blocks} blocks run, and {outputs} print what it says"


def main():
    home = Path(hw.__file__).resolve()
    assert home.is_relative_to(Path(sys.prefix).resolve()), f"{home} is not the installed one"
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X)
    model = hw.RobustGradientBoostingClassifier(eps=0.1, n_estimators=20).fit(X[:400], y[:400])
    found = hw.certify(model, X[400:], y[400:], hw.Threat(0.05))
    assert 0.5 < found.certified_accuracy <= found.attacked_accuracy <= 1, found
    print(f"hardwood {hw.__version__}: {found.certified_accuracy:.3f} certified", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run_demo()
        if importlib.util.find_spec("xgboost"):
            print(f"README.md: {run_readme()}")
        else:
            print("README.md: left out, xgboost is not installed")
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
