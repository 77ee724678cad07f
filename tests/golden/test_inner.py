"""Robust accuracy of boosted trees by kind of training, on the sets small enough for a test.

The settings are those of benchmarks/paper/inner.py. Answers are exact, so the accuracies are whole
rows over whole rows; they are pinned with a row or two of room, for last bits of float32 sums that
settle ties between splits.
"""

import importlib.util
import os
from pathlib import Path

import pytest

import hardwood as hw

_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper" / "inner.py"
_spec = importlib.util.spec_from_file_location("inner", _SCRIPT)
inner = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(inner)

# clean and robust accuracy
OURS = {
    "breast_cancer": {"natural": (0.978, 0.182), "paper": (0.971, 0.854), "exact": (1.0, 0.927)},
    "diabetes": {"natural": (0.753, 0.357), "paper": (0.779, 0.565), "exact": (0.734, 0.669)},
}


@pytest.mark.parametrize("name", OURS)
def test_robust_training_beats_natural_and_the_exact_rule_the_four_cases(name):
    given = os.environ.get("HARDWOOD_DATA")
    if not given or not (Path(given) / f"{name}.npz").exists():
        pytest.skip(f"needs {name}.npz in the directory that HARDWOOD_DATA names")
    [row] = [row for row in inner.ROWS if row.name == name]
    X_train, y_train, X, y = inner.load(name, Path(given))
    robust, distance = {}, {}
    for kind, (clean, expected) in OURS[name].items():
        model = inner.train(row, kind, X_train, y_train)
        found = hw.certify(model, X, y, hw.Threat(row.eps))
        assert found.certified_accuracy == found.attacked_accuracy  # no row undecided
        assert model.score(X, y) == pytest.approx(clean, abs=0.015)
        assert found.certified_accuracy == pytest.approx(expected, abs=0.015)
        far = hw.minimal_distance(model, X, y)
        robust[kind] = found.certified_accuracy
        distance[kind] = far.lower[far.status == "exact"].mean()
    assert robust["natural"] < robust["paper"] < robust["exact"]
    assert distance["natural"] < distance["paper"] < distance["exact"]
