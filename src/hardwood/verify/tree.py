"""The truth about one tree: the nearest leaf of another label."""

import numpy as np

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.threat import Norm, Reach
from hardwood.verify.problem import Problem

_NORM = {"inf": "inf", 1: "one", 2: "two", 0: "zero"}


def nearest(problem: Problem, norm: Norm, reach: Reach) -> tuple[FloatArray, FloatArray]:
    """Distance to the nearest point of another label within reach, and that point.

    Infinity and a row of NaN where there is none.
    """
    distance, X_adv = problem.by_category(lambda part: _nearest(part, norm, reach))
    return distance, X_adv


def _nearest(problem: Problem, norm: Norm, reach: Reach) -> tuple[FloatArray, FloatArray]:
    distance, X_adv = _core.nearest_in_tree(
        problem.trees._core,
        problem.X,
        problem.y,
        norm=getattr(_core.Norm, _NORM[norm]),
        radius=reach.radius,
        reach=reach.limits,
        down_scale=reach.down_scale,
        up_scale=reach.up_scale,
        n_threads=problem.n_threads,
    )
    X_adv = np.asarray(X_adv)
    distance = np.asarray(distance)
    problem.replay(X_adv, np.isfinite(distance))
    return distance, X_adv
