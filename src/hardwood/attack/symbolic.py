"""Kantchelian's symbolic prediction: few changed features, quickly."""

import numpy as np

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.attack.victim import Attempt, Victim
from hardwood.verify.choices import Layout, columns_of
from hardwood.verify.effort import Effort
from hardwood.verify.problem import Problem


def attack(victim: Victim, effort: Effort) -> Attempt:
    """Change one feature after the other, each time the one that helps most."""
    if victim.on_numbers:
        return Attempt(victim.ask(_core.symbolic, effort), "symbolic")
    return Attempt(_by_choices(victim, effort), "symbolic")


def _by_choices(victim: Victim, effort: Effort) -> FloatArray:
    """The same over the values that the threat lets each column take, of whatever kind."""
    problem = victim.white_box
    layout = Layout.of(problem.trees)
    X_adv = np.full_like(victim.X, np.nan)
    for i, x in enumerate(victim.X):
        if effort.over:
            break
        columns = columns_of(layout, x, victim.norm, victim.ball)
        values = [column.choices()[0][1:] for column in columns]
        found = _climb(victim, problem, i, values)
        if found is not None:
            X_adv[i] = _pull_back(victim, i, found)
    return X_adv


def _climb(victim: Victim, problem: Problem, i: int, values: list[FloatArray]) -> FloatArray | None:
    """Take the single change that helps most, again and again, while the threat holds it."""
    x = victim.X[i]
    z, lead = x.copy(), -np.inf
    closed = np.zeros(len(x), dtype=bool)
    while not closed.all():
        tried = [
            (f, value) for f in np.flatnonzero(~closed).tolist() for value in values[f].tolist()
        ]
        if not tried:
            return None
        Z = np.repeat(z[None], len(tried), axis=0)
        for k, (f, value) in enumerate(tried):
            Z[k, f] = value
        held = victim.ball.holds(np.repeat(x[None], len(Z), axis=0), Z, victim.norm)
        if not held.any():
            return None
        leads = np.where(held, _leads(problem, i, Z), -np.inf)
        best = int(np.argmax(leads))
        if leads[best] <= lead:
            return None
        z, lead = np.array(Z[best]), float(leads[best])
        closed[tried[best][0]] = True
        if victim.fooled(z[None], np.array([i]))[0]:
            return z
    return None


def _leads(problem: Problem, i: int, Z: FloatArray) -> FloatArray:
    """By how much a label that the adversary wants is ahead."""
    trees = problem.trees
    margin = trees.margin(Z, n_jobs=problem.n_threads)
    if trees.n_outputs == 1:
        up = problem.target == 1 if problem.target is not None else problem.y[i] == 0
        ahead = margin[:, 0] - trees.cut
        return np.asarray(ahead if up else -ahead, dtype=np.float64)
    if problem.target is not None:
        others = np.delete(margin, problem.target, axis=1).max(axis=1)
        return np.asarray(margin[:, problem.target] - others, dtype=np.float64)
    rivals = np.delete(margin, problem.y[i], axis=1).max(axis=1)
    return np.asarray(rivals - margin[:, problem.y[i]], dtype=np.float64)


def _pull_back(victim: Victim, i: int, z: FloatArray) -> FloatArray:
    """Take back what is not needed."""
    x, row = victim.X[i], np.array([i])
    for f in np.flatnonzero(~((z == x) | (np.isnan(z) & np.isnan(x)))):
        back = z.copy()
        back[f] = x[f]
        if victim.fooled(back[None], row)[0]:
            z = back
    return z
