"""Papernot's attack: the leaf of another class that is nearest in a single tree."""

import numpy as np

from hardwood import _core
from hardwood.attack.target import Attempt, Target
from hardwood.verify.tree import _NORM


def attack(target: Target) -> Attempt:
    """Move to the leaf of another label that is the fewest branches away."""
    problem = target.white_box
    if problem.trees.n_trees != 1:
        raise ValueError(
            f'method="papernot" attacks single trees, but the model has {problem.trees.n_trees}; '
            f'use method="auto".'
        )
    X_adv = _core.papernot(
        problem.trees._core,
        problem.X,
        problem.y,
        norm=getattr(_core.Norm, _NORM[target.norm]),
        reach=target.reach.limits,
        down_scale=target.reach.down_scale,
        up_scale=target.reach.up_scale,
        n_threads=target.n_threads,
    )
    return Attempt(np.asarray(X_adv), "papernot")
