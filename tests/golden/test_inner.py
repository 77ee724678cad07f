"""Robust accuracy of boosted trees by kind of training, on the sets small enough for a test.

The settings are those of the paper's authors (rounds, learning rate, depth). Answers are exact, so
the accuracies are whole rows over whole rows; they are pinned with a row or two of room, for last
bits of float32 sums that settle ties between splits.
"""

from dataclasses import dataclass

import pytest

import hardwood as hw
from samples import paper_arrays


@dataclass(frozen=True)
class Settings:
    eps: float
    n_rounds: int
    depth: int  # of robust trees
    natural_depth: int


SETTINGS = {"breast_cancer": Settings(0.3, 4, 8, 6), "diabetes": Settings(0.05, 20, 5, 5)}
# clean and robust accuracy
OURS = {
    "breast_cancer": {"natural": (0.978, 0.182), "paper": (0.971, 0.854), "exact": (1.0, 0.927)},
    "diabetes": {"natural": (0.753, 0.357), "paper": (0.779, 0.565), "exact": (0.734, 0.669)},
}


def train(name, kind, X, y):
    """Boost: "natural", or robustly with inner "paper" or "exact"."""
    settings, natural = SETTINGS[name], kind == "natural"
    return hw.RobustGradientBoostingClassifier(
        eps=0 if natural else settings.eps,
        inner="exact" if kind == "exact" else "paper",
        method="exact",
        n_estimators=settings.n_rounds,
        learning_rate=0.3 if natural else 0.2,
        max_depth=settings.natural_depth if natural else settings.depth,
        min_split_gain=0.5,
        random_state=0,
    ).fit(X, y)


@pytest.mark.parametrize("name", OURS)
def test_robust_training_beats_natural_and_the_exact_rule_the_four_cases(name):
    data = paper_arrays(name)
    X, y = data["X_test"], data["y_test"]
    robust, distance = {}, {}
    for kind, (clean, expected) in OURS[name].items():
        model = train(name, kind, data["X_train"], data["y_train"])
        found = hw.certify(model, X, y, hw.Threat(SETTINGS[name].eps))
        assert found.certified_accuracy == found.attacked_accuracy  # no row undecided
        assert model.score(X, y) == pytest.approx(clean, abs=0.015)
        assert found.certified_accuracy == pytest.approx(expected, abs=0.015)
        far = hw.minimal_distance(model, X, y)
        robust[kind] = found.certified_accuracy
        distance[kind] = far.lower[far.status == "exact"].mean()
    assert robust["natural"] < robust["paper"] < robust["exact"]
    assert distance["natural"] < distance["paper"] < distance["exact"]
