"""The smallest change to a wanted label."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import Trees, take_nodes
from hardwood.threat.reach import Reach
from hardwood.verify.asked import Ask
from hardwood.verify.found import Found
from hardwood.verify.problem import Problem


def towards(problem: Problem, reach: Reach, ask: Ask, ask_solver: Ask) -> Found:
    """Bounds on the smallest change to the label `problem.target`.

    With two classes a row of the other class is asked what fools it. With more, the target must
    beat every other label at once: the search says for each of them how far away that is, and the
    largest of these distances is a proof. Where its example has the wanted label, it is the answer;
    else a solver is asked to beat all of them together.
    """
    target = problem.target
    assert target is not None
    if problem.trees.n_classes == 2:
        return ask(of_two(problem), reach)
    found = _by_rival(problem, reach, ask)
    open_rows = np.flatnonzero(found.lower < found.upper)
    if len(open_rows):
        part = ask_solver(problem.some(open_rows), reach)
        _merge(found, open_rows, part)
    return found


def of_two(problem: Problem) -> Problem:
    """A model of two classes whose rows are all of the one that is not wanted."""
    assert problem.target is not None
    other = np.full_like(problem.y, 1 - problem.target)
    return replace(problem, y=other, target=None)


def _by_rival(problem: Problem, reach: Reach, ask: Ask) -> Found:
    target, n_rows = int(problem.target or 0), len(problem.X)
    lower, upper = np.zeros(n_rows), np.full(n_rows, np.inf)
    X_adv, reason = np.full_like(problem.X, np.nan), np.full(n_rows, "", dtype="<U50")
    there = problem.misclassified()
    upper[there], X_adv[there] = 0.0, problem.X[there]
    away = np.flatnonzero(~there)
    for rival in range(problem.trees.n_outputs) if len(away) else ():
        if rival == target:
            continue
        trees = two_outputs(problem.trees, *sorted((rival, target)))
        y = np.full(len(away), 0 if rival < target else 1, dtype=problem.y.dtype)
        one = replace(problem.some(away), trees=trees, y=y, target=None, source=None)
        part = ask(one, reach)
        lower[away] = np.maximum(lower[away], part.lower)
        # What beats this rival may beat all others, too.
        nearer = np.flatnonzero(part.upper < upper[away])
        nearer = nearer[_arrived(problem, part.X_adv[nearer])]
        upper[away[nearer]], X_adv[away[nearer]] = part.upper[nearer], part.X_adv[nearer]
    lower = np.minimum(lower, upper)
    return Found(lower, upper, reason, X_adv, np.full(n_rows, np.nan))


def _arrived(problem: Problem, Z: FloatArray) -> BoolArray:
    """Whether points have the wanted label, to the trees and to their source."""
    if len(Z) == 0:
        return np.zeros(0, dtype=bool)
    label = problem.trees.predict_class(Z, n_jobs=problem.n_threads)
    if problem.source is not None:
        label = np.where(problem.source(Z) == label, label, -1)
    return problem.fooled(label)


def _merge(found: Found, rows: npt.NDArray[np.intp], part: Found) -> None:
    """Take what a second search knows better of some rows."""
    nearer = part.upper < found.upper[rows]
    found.upper[rows[nearer]] = part.upper[nearer]
    found.X_adv[rows[nearer]] = part.X_adv[nearer]
    lower = np.maximum(found.lower[rows], part.lower)
    found.lower[rows] = np.minimum(lower, found.upper[rows])
    decided = found.lower[rows] == found.upper[rows]
    found.reason[rows] = np.where(decided, "", part.reason)


def two_outputs(trees: Trees, first: int, second: int) -> Trees:
    """The model of two of the outputs: the same leaves, added in the same order."""
    both = [first, second]
    classes = None if trees.classes is None else trees.classes[both]
    if trees.value.shape[1] > 1:  # every leaf has a value for each output
        return trees.replace(base=trees.base[both], classes=classes, value=trees.value[:, both])
    kept = np.flatnonzero(np.isin(trees.tree_output, both))
    size = np.diff(trees.tree_start)[kept]
    nodes = np.flatnonzero(np.repeat(np.isin(trees.tree_output, both), np.diff(trees.tree_start)))
    return trees.replace(
        **take_nodes(trees, nodes),
        base=trees.base[both],
        classes=classes,
        tree_start=np.concatenate([[0], np.cumsum(size)]),
        tree_output=np.searchsorted(both, trees.tree_output[kept]),
    )
