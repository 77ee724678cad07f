"""The truth about one tree: the nearest leaf of another label."""

from typing import Any

import numpy as np

from hardwood import _core
from hardwood.model.trees import core_of
from hardwood.threat import Norm, Reach
from hardwood.verify.budget import budget
from hardwood.verify.effort import Effort, watched
from hardwood.verify.found import Found
from hardwood.verify.problem import Problem


def nearest(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Distance to the nearest point of another label within reach, and that point.

    Infinity and a row of NaN where there is none. Only rows whose turn never comes are open.
    """

    def search(watch: _core.Watch) -> Any:
        return _core.nearest_in_tree(
            core_of(problem.trees),
            problem.X,
            problem.y,
            budget(reach, norm),
            n_threads=problem.n_threads,
            watch=watch,
        )

    distance, X_adv, answered = map(np.asarray, watched(search, effort, len(problem.X)))
    problem.replay(X_adv, np.isfinite(distance))
    answered = answered.astype(bool)
    found = Found(
        lower=np.where(answered, distance, 0.0),
        upper=distance,
        reason=np.where(answered, "", effort.why).astype("<U50"),
        X_adv=X_adv,
        seconds=np.full(len(distance), np.nan),
    )
    return found.confirmed(problem)
