"""Table 2 of the paper and its twin in the appendix: single information-gain trees.

`hardwood reproduce table2` prints the paper's numbers beside ours; here ours are pinned. Everything
that makes them is exact (whole counts, distances to leaf boxes), so they may only move by the last
bits of float32 thresholds and of the mean: 1e-6. The one wider tolerance is the paper's: it
averages over 100 test rows that it does not name. Why the others differ from the paper's:
docs/table2.md.
"""

import hashlib
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import hardwood as hw
from samples import paper_arrays


@dataclass(frozen=True)
class Row:
    """One data set of the table; numbers are accuracy and mean l_inf, l_1, l_2 distance."""

    eps: float
    max_depth: int
    robust: tuple[float, float, float, float]
    natural: tuple[float, float, float, float]


PAPER = {
    "breast_cancer": Row(0.3, 5, (0.948, 0.463, 0.534, 0.504), (0.942, 0.173, 0.270, 0.209)),
    "diabetes": Row(0.2, 5, (0.688, 0.203, 0.204, 0.204), (0.747, 0.060, 0.075, 0.065)),
    "ionosphere": Row(0.2, 4, (0.986, 0.358, 0.358, 0.358), (0.929, 0.096, 0.127, 0.106)),
}
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


def measure(name, eps, inner):
    """Accuracy and mean distances on the test rows of a tree of the training rows."""
    data = paper_arrays(name)
    content = b"".join(np.ascontiguousarray(data[key]).tobytes() for key in sorted(data))
    assert hashlib.sha256(content).hexdigest() == SHA256[name], f"{name} is another data set"
    model = hw.RobustDecisionTreeClassifier(
        eps=eps, criterion="entropy", inner=inner, max_depth=PAPER[name].max_depth
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hw.HardwoodWarning)  # a constant tree shows as inf
        model.fit(data["X_train"], data["y_train"])
    X, y = data["X_test"], data["y_test"]
    numbers = [model.score(X, y)]
    for norm in ("inf", 1, 2):
        found = hw.minimal_distance(model, X, y, norm=norm)
        numbers.append(found.upper[found.status == "exact"].mean())
    return tuple(numbers)


@pytest.mark.parametrize(("name", "tree", "inner"), OURS)
def test_our_numbers_stay(name, tree, inner):
    measured = measure(name, PAPER[name].eps if tree == "robust" else 0.0, inner)
    assert measured == pytest.approx(OURS[name, tree, inner], abs=1e-6)


@pytest.mark.parametrize(("name", "tree"), COMPARABLE)
def test_the_papers_numbers_come_out(name, tree):
    eps, inner = (PAPER[name].eps, "paper") if tree == "robust" else (0.0, "exact")
    measured = measure(name, eps, inner)
    published = getattr(PAPER[name], tree)
    assert measured[0] == pytest.approx(published[0], abs=0.001)  # one unit of its last digit
    assert measured[1:] == pytest.approx(published[1:], abs=COMPARABLE[name, tree])
