"""Our quick attack on ensembles: near examples in microseconds to milliseconds a row."""

import numpy as np

from hardwood import _core
from hardwood.attack import symbolic
from hardwood.attack.target import Attempt, Target
from hardwood.verify.ensemble import Effort, watched
from hardwood.verify.tree import _NORM


def attack(target: Target, effort: Effort) -> Attempt:
    """Ask the core; what it cannot fool, symbolic prediction tries."""
    if target.norm == 0:
        raise ValueError(
            'method="descent" measures in the norms "inf", 1 and 2, got norm=0; '
            'use method="symbolic".'
        )
    problem = target.white_box
    watch = _core.Watch()
    X_adv = np.asarray(
        watched(
            lambda: _core.descent(
                problem.trees._core,
                problem.X,
                problem.y,
                norm=getattr(_core.Norm, _NORM[target.norm]),
                reach=target.reach.limits,
                down_scale=target.reach.down_scale,
                up_scale=target.reach.up_scale,
                n_threads=target.n_threads,
                watch=watch,
            ),
            watch,
            effort,
            len(problem.X),
        )
    )
    missed = np.flatnonzero(~np.isfinite(target.lengths(X_adv)))
    if len(missed) and watch.n_done == len(problem.X):
        X_adv[missed] = symbolic.attack(target.rows(missed)).X_adv
    return Attempt(X_adv, "descent")
