"""Table 2 of the paper and its twin in the appendix: single information-gain trees.

The paper's numbers are those of benchmarks/paper/table2.py, which prints both. Ours are pinned
here. Everything that makes them is exact (whole counts, distances to leaf boxes), so they may only
move by the last bits of float32 thresholds and of the mean: 1e-6. The one wider tolerance is the
paper's: it averages over 100 test rows that it does not name. Why the others differ from the
paper's: docs/table2.md.
"""

import hashlib
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "paper" / "table2.py"
_spec = importlib.util.spec_from_file_location("table2", _SCRIPT)
table2 = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(table2)

ROWS = {row.name: row for row in table2.PAPER}
SHA256 = {
    "breast_cancer": "2524cc87cee3b15462dd3de8560bb9cf1f7b87f0b7265fb2c7b29de42c58cf85",
    "diabetes": "bc367e5d7a3133992d6f754177681a46690f5d4eec9677de54cd037e5813eae9",
    "ionosphere": "c4f206018bbd344ce7ec9f47ec86ca5a1a01b5b8672068a0cf44a7d8777ff967",
}
OURS = {
    ("breast_cancer", "robust", "exact"): (0.9489051, 0.4641027, 0.5384616, 0.5068610),
    ("breast_cancer", "robust", "paper"): (0.9489051, 0.4589745, 0.5367522, 0.5036161),
    ("breast_cancer", "natural", "exact"): (0.9416058, 0.1742919, 0.2756363, 0.2109730),
    ("diabetes", "robust", "exact"): (0.6428571, np.inf, np.inf, np.inf),
    ("diabetes", "robust", "paper"): (0.6948052, 0.2145062, 0.2159984, 0.2152564),
    ("diabetes", "natural", "exact"): (0.7467532, 0.0617249, 0.0736518, 0.0648499),
    ("ionosphere", "robust", "exact"): (1.0000000, 0.3571209, 0.3571209, 0.3571209),
    ("ionosphere", "robust", "paper"): (1.0000000, 0.3571209, 0.3571209, 0.3571209),
    ("ionosphere", "natural", "exact"): (0.8857143, 0.0714036, 0.0737462, 0.0722979),
}
# Where only the sample of rows can differ: half the width of the range in which 95 % of the
# averages over 100 random test rows lie, measured on our trees.
COMPARABLE = {
    ("breast_cancer", "robust"): 0.017,
    ("breast_cancer", "natural"): 0.017,
    ("diabetes", "natural"): 0.008,
}


@pytest.fixture(scope="module")
def directory():
    given = os.environ.get("HARDWOOD_DATA")
    if not given:
        pytest.skip("needs the paper's data: set HARDWOOD_DATA")
    for name, expected in SHA256.items():
        path = Path(given) / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"HARDWOOD_DATA has no {name}.npz")
        with np.load(path) as data:
            content = b"".join(np.ascontiguousarray(data[k]).tobytes() for k in sorted(data))
        assert hashlib.sha256(content).hexdigest() == expected, f"{name} is another data set"
    return Path(given)


@pytest.mark.parametrize(("name", "tree", "inner"), OURS)
def test_our_numbers_stay(directory, name, tree, inner):
    eps = ROWS[name].eps if tree == "robust" else 0.0
    measured = table2.measure(ROWS[name], eps, inner, directory)
    assert measured == pytest.approx(OURS[name, tree, inner], abs=1e-6)


@pytest.mark.parametrize(("name", "tree"), COMPARABLE)
def test_the_papers_numbers_come_out(directory, name, tree):
    row = ROWS[name]
    eps, inner = (row.eps, "paper") if tree == "robust" else (0.0, "exact")
    measured = table2.measure(row, eps, inner, directory)
    published = getattr(row, tree)
    assert measured[0] == pytest.approx(published[0], abs=0.001)  # one unit of its last digit
    assert measured[1:] == pytest.approx(published[1:], abs=COMPARABLE[name, tree])
