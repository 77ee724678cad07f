"""Small tables on which mistakes show: ties, values exactly eps apart or one float off that."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

import hardwood as hw


@dataclass(frozen=True)
class Ball:
    """What a threat allows, spelled out per feature by the one who made the threat up."""

    down: np.ndarray
    up: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    threat: hw.Threat
    ball: Ball

    def fit(self, **params: Any) -> hw.RobustDecisionTreeClassifier:
        model = hw.RobustDecisionTreeClassifier(threat=self.threat, **params)
        return model.fit(self.X, self.y, self.weight)


def nudged(value: np.ndarray, nudge: np.ndarray) -> np.ndarray:
    """Values moved to the next float32 (nudge 1, -1) or the next float64 (2, -2)."""
    toward = np.where(nudge > 0, np.inf, -np.inf)
    single = np.nextafter(value.astype(np.float32), toward.astype(np.float32)).astype(np.float64)
    double = np.nextafter(value, toward)
    return np.where(nudge == 0, value, np.where(abs(nudge) == 1, single, double))


@st.composite
def threats(draw: st.DrawFn, n_features: int, step: float) -> tuple[hw.Threat, Ball]:
    """Threats in every form, with eps a multiple of step."""
    size = st.integers(0, 3).map(lambda k: k * step)
    down = np.zeros(n_features)
    up = np.zeros(n_features)
    low = np.full(n_features, -np.inf)
    high = np.full(n_features, np.inf)
    form = draw(st.sampled_from(["number", "pair", "per feature", "range", "fixed"]))
    if form == "pair":
        down[:], up[:] = draw(size), draw(size)
        threat = hw.Threat((down[0], up[0]))
    elif form == "per feature":
        for f in range(n_features):
            down[f], up[f] = draw(size), draw(size)
        threat = hw.Threat([(down[f], up[f]) for f in range(n_features)])
    else:
        down[:] = up[:] = draw(size)
        if form == "range":
            low[:], high[:] = 2 * step, 5 * step
            threat = hw.Threat(down[0], low=low[0], high=high[0])
        elif form == "fixed":
            threat = hw.Threat(down[0], fixed=[0])
            down[0] = up[0] = 0
        else:
            threat = hw.Threat(down[0])
    return threat, Ball(down, up, low, high)


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    max_rows: int = 9,
    max_features: int = 2,
    max_classes: int = 2,
    weights: bool = True,
    missing: bool = True,
) -> Problem:
    """Training sets on a coarse grid, with a threat whose eps is a multiple of the grid's step."""
    step = draw(st.sampled_from([0.25, 0.1, 1 / 3]))
    n_rows, n_features = draw(st.integers(2, max_rows)), draw(st.integers(1, max_features))
    shape = (n_rows, n_features)
    cell = draw(st_np.arrays(np.int64, shape, elements=st.integers(0, 7)))
    nudge = draw(st_np.arrays(np.int64, shape, elements=st.integers(-2, 2), fill=st.just(0)))
    X = nudged(cell * step, nudge)
    if missing and draw(st.booleans()):
        X[draw(st_np.arrays(bool, shape, elements=st.booleans()))] = np.nan
    y = draw(st_np.arrays(np.int64, n_rows, elements=st.integers(0, max_classes - 1)))
    y[:2] = 0, 1
    weight = None
    if weights and draw(st.booleans()):
        sizes = draw(st.sampled_from([(0.5, 1.0, 2.0, 3.0), (0.1, 0.3, 0.7)]))
        weight = draw(st_np.arrays(np.float64, n_rows, elements=st.sampled_from(sizes)))
    threat, ball = draw(threats(n_features, step))
    return Problem(X, y, weight, threat, ball)
