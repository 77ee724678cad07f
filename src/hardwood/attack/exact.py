"""The exact engines as attacks: nobody finds anything nearer."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hardwood.attack import descent
from hardwood.attack.victim import Attempt, Victim
from hardwood.threat import Reach
from hardwood.verify import milp, search
from hardwood.verify.effort import Effort
from hardwood.verify.found import Found
from hardwood.verify.problem import Problem
from hardwood.verify.towards import towards

_SEARCH = 0.8  # of the time; the rest is for the quick attack where the search is stopped


def attack(victim: Victim, effort: Effort) -> Attempt:
    """Take the nearest leaf of one tree, or the nearest example of an ensemble."""
    problem = victim.white_box
    if problem.target is not None:
        found = towards(
            problem,
            victim.reach,
            lambda one, reach: search.nearest(one, victim.norm, reach, effort),
            lambda one, reach: milp.nearest(one, victim.norm, reach, effort),
        )
        return Attempt(found.X_adv, "exact", found.lower)
    helped = victim.norm != 0 and victim.leaves_a_label  # which the quick attack knows
    seconds = _SEARCH * effort.left() if helped else np.inf
    found = search.nearest(problem, victim.norm, victim.reach, effort, seconds)
    undecided = np.flatnonzero(found.lower < found.upper)
    if len(undecided) and helped and not effort.over:
        _replace_farther(found, undecided, victim, effort)
    _ask_inside(
        found, victim, lambda one, ball: search.nearest(one, victim.norm, ball, effort, seconds)
    )
    return Attempt(found.X_adv, "tree" if problem.trees.n_trees == 1 else "exact", found.lower)


def _replace_farther(
    found: Found, row: npt.NDArray[np.int64], victim: Victim, effort: Effort
) -> None:
    """Where the search was stopped, the quick attack may have something nearer."""
    some = victim.rows(row)
    X_adv = descent.attack(some, effort).X_adv
    nearer = np.flatnonzero(some.lengths(X_adv) < found.upper[row])
    # A row of NaN may be an example, if all values can be left blank, or none.
    nearer = nearer[some.fooled(X_adv[nearer], nearer)]
    found.X_adv[row[nearer]] = X_adv[nearer]


def _ask_inside(found: Found, victim: Victim, ask: Callable[[Problem, Reach], Found]) -> None:
    """Ask again where the nearest example is as far as the threat goes, and rounding takes it out.

    A step is rounded to the threat's own size there, though the value lies beyond the ball's end;
    another example may be as far and inside.
    """
    near = np.isfinite(found.upper) & (found.upper <= victim.ball.radius)
    row = np.flatnonzero(near & ~victim.contains(found.X_adv, found.upper))
    if len(row):
        some = victim.rows(row)
        found.X_adv[row] = ask(some.white_box, some.ball).X_adv


def kantchelian(victim: Victim, effort: Effort) -> Attempt:
    """Ask a solver of mixed-integer programs, as Kantchelian et al. (2016) did."""
    found = milp.nearest(victim.white_box, victim.norm, victim.reach, effort)
    _ask_inside(found, victim, lambda one, ball: milp.nearest(one, victim.norm, ball, effort))
    return Attempt(found.X_adv, "kantchelian", found.lower)
