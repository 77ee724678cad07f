"""Exact answers about any number of trees, asked of the core's search."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.errors import HardwoodError
from hardwood.model.trees import core_of
from hardwood.threat import Norm, Reach
from hardwood.verify.budget import budget, check_whole
from hardwood.verify.effort import REASON, Effort, watched
from hardwood.verify.found import Found
from hardwood.verify.problem import Outputs, Problem
from hardwood.verify.result import StatusArray

_REPLAY_FAILED = (
    "An example does not give the output that was found for it when replayed; this is a bug in "
    "hardwood, please report it with the model and the row."
)


def nearest(
    problem: Problem, norm: Norm, reach: Reach, effort: Effort, seconds: float = np.inf
) -> Found:
    """Bounds on the smallest change within reach that fools the model."""
    return _ask(_core.nearest_in_ensemble, problem, norm, reach, effort, seconds)


def decide(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Whether any change within reach fools the model: lower is infinity where none does."""
    return _ask(_core.decide_in_ensemble, problem, norm, reach, effort)


def leaving(
    outputs: Outputs, low: FloatArray, high: FloatArray, norm: Norm, reach: Reach, effort: Effort
) -> Found:
    """Bounds on the smallest change that brings the output below low or above high."""
    ranges = np.column_stack([low, high]).astype(np.float64, order="C")
    found = _found(_search(_core.leaving_in_ensemble, outputs, ranges, norm, reach, effort))
    there = np.isfinite(found.upper)
    if there.any():
        output = outputs.output(found.X_adv[there])
        if not ((output < low[there]) | (output > high[there])).all():
            raise HardwoodError(_REPLAY_FAILED)
    return found


@dataclass(frozen=True)
class Extreme:
    """How far outputs can be pushed to one side, row by row."""

    proven: FloatArray
    found: FloatArray
    reason: StatusArray
    X_adv: FloatArray


def farthest(
    outputs: Outputs, up: bool, norm: Norm, reach: Reach, effort: Effort, seconds: float = np.inf
) -> Extreme:
    """The largest output within reach, or the least."""
    proven, found, reason, X_adv, _ = _search(
        _core.farthest_in_ensemble, outputs, up, norm, reach, effort, seconds
    )
    if not np.array_equal(outputs.output(X_adv), found):
        raise HardwoodError(_REPLAY_FAILED)
    return Extreme(proven, found, reason, X_adv)


def _ask(
    function: Callable[..., Any],
    problem: Problem,
    norm: Norm,
    reach: Reach,
    effort: Effort,
    seconds: float = np.inf,
) -> Found:
    """Ask about labels, and replay every example."""
    found = _found(_search(function, problem, problem.y, norm, reach, effort, seconds))
    problem.replay(found.X_adv, np.isfinite(found.upper))
    return found.confirmed(problem)


def _found(
    answer: tuple[FloatArray, FloatArray, StatusArray, FloatArray, FloatArray],
) -> Found:
    lower, upper, reason, X_adv, seconds = answer
    return Found(lower=lower, upper=upper, reason=reason, X_adv=X_adv, seconds=seconds)


def _search(
    function: Callable[..., Any],
    problem: Problem | Outputs,
    about: Any,
    norm: Norm,
    reach: Reach,
    effort: Effort,
    seconds: float = np.inf,
) -> tuple[FloatArray, FloatArray, StatusArray, FloatArray, FloatArray]:
    """Let the core search; `about` is what it is asked of each row.

    What it proves and finds, why a row is open, examples, and the seconds of each row.
    """
    check_whole(problem.X, reach, problem.trees.feature_names)
    limits = budget(reach, norm)

    def search(watch: _core.Watch) -> Any:
        return function(
            core_of(problem.trees),
            problem.X,
            about,
            limits,
            row_seconds=np.inf if effort.time_limit is None else float(effort.time_limit),
            n_threads=problem.n_threads,
            watch=watch,
        )

    answer = watched(search, effort, len(problem.X), seconds)
    proven, found, ending, X_adv, spent = map(np.asarray, answer)
    reason = np.array([REASON[_core.Ending(int(e))] for e in ending], dtype="<U50")
    return proven, found, reason, X_adv, spent
