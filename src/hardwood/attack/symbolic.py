"""Kantchelian's symbolic prediction: few changed features, quickly."""

import numpy as np

from hardwood import _core
from hardwood.attack.target import Attempt, Target
from hardwood.verify.tree import _NORM


def attack(target: Target) -> Attempt:
    """Change one feature after the other, each time the one that helps most."""
    problem = target.white_box
    X_adv = _core.symbolic(
        problem.trees._core,
        problem.X,
        problem.y,
        norm=getattr(_core.Norm, _NORM[target.norm]),
        reach=target.reach.limits,
        down_scale=target.reach.down_scale,
        up_scale=target.reach.up_scale,
        n_threads=target.n_threads,
    )
    return Attempt(np.asarray(X_adv), "symbolic")
