"""Exact answers about any number of trees: the core's search, its clock and its progress."""

import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.errors import HardwoodError, UndecidedWarning
from hardwood.threat import Norm, Reach
from hardwood.verify.problem import Outputs, Problem
from hardwood.verify.result import StatusArray
from hardwood.verify.tree import _NORM

Progress = Callable[[int, int, int], object]

_MOMENT = 1e-9  # seconds for rows whose turn comes when the time is over
_PULSE = 0.05  # seconds between two looks at the search
_REPLAY_FAILED = (
    "An example does not give the output that was found for it when replayed; this is a bug in "
    "hardwood, please report it with the model and the row."
)
_REASON = {
    _core.Ending.exact: "",
    _core.Ending.time: "time limit",
    _core.Ending.rounding: "within the rounding of the model's own sum",
    _core.Ending.stopped: "interrupted",
}


@dataclass(frozen=True)
class Effort:
    """How long a search may take and who is told."""

    time_limit: float | None = None
    total_time_limit: float | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name in ("time_limit", "total_time_limit"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be a number of seconds > 0, got {name}={seconds}.")


@dataclass(frozen=True)
class Found:
    """What the core says, row by row."""

    lower: FloatArray
    upper: FloatArray
    reason: StatusArray
    X_adv: FloatArray
    seconds: FloatArray

    def verdict(self) -> StatusArray:
        """Read the answer to a decision."""
        proven = np.where(np.isinf(self.lower), "certified", "unknown")
        return np.where(np.isfinite(self.upper), "broken", proven)


def warn_undecided(status: StatusArray, effort: Effort) -> None:
    """Say so if rows are left open."""
    n_open = int(np.count_nonzero(status == "unknown"))
    if n_open == 0:
        return
    limits = [
        f"{name}={seconds} s"
        for name, seconds in (
            ("time_limit", effort.time_limit),
            ("total_time_limit", effort.total_time_limit),
        )
        if seconds is not None
    ]
    after = f" after {' and '.join(limits)}" if limits else ""
    advice = "Raise the limit" if limits else "See their reason"
    warnings.warn(
        f'{n_open} of {len(status)} samples are still open{after}; they are reported as "unknown", '
        f"not as certified. {advice}, or read their lower and upper bounds.",
        UndecidedWarning,
        stacklevel=3,
    )


def nearest(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Bounds on the smallest change within reach that fools the model."""
    return _ask(_core.nearest_in_ensemble, problem, norm, reach, effort)


def decide(problem: Problem, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """Whether any change within reach fools the model: lower is infinity where none does."""
    return _ask(_core.any_in_ensemble, problem, norm, reach, effort)


def leaving(
    outputs: Outputs, low: FloatArray, high: FloatArray, norm: Norm, reach: Reach, effort: Effort
) -> Found:
    """Bounds on the smallest change that brings the output below low or above high."""
    ranges = np.column_stack([low, high]).astype(np.float64, order="C")
    found = _search(_core.leaving_in_ensemble, outputs, ranges, norm, reach, effort)
    there = np.isfinite(found.upper)
    if there.any():
        output = outputs.output(found.X_adv[there])
        if not ((output < low[there]) | (output > high[there])).all():
            raise HardwoodError(_REPLAY_FAILED)
    return found


def farthest(outputs: Outputs, up: bool, norm: Norm, reach: Reach, effort: Effort) -> Found:
    """The largest output within reach, or the least: ``upper`` is found, ``lower`` proven."""
    found = _search(_core.farthest_in_ensemble, outputs, up, norm, reach, effort)
    if not np.array_equal(outputs.output(found.X_adv), found.upper):
        raise HardwoodError(_REPLAY_FAILED)
    return found


def _ask(
    function: Callable[..., Any], problem: Problem, norm: Norm, reach: Reach, effort: Effort
) -> Found:
    """Ask about labels, and replay every example."""
    end = time.monotonic() + _seconds(effort.total_time_limit)
    n_done = n_open = 0

    def tell(done: int, undecided: int, _: int) -> None:
        if effort.progress is not None:
            effort.progress(n_done + done, n_open + undecided, len(problem.X))

    def part(one: Problem) -> tuple[npt.NDArray[Any], ...]:
        nonlocal end, n_done, n_open
        left = max(end - time.monotonic(), _MOMENT)
        rest = replace(effort, total_time_limit=left, progress=tell)
        found = _search(function, one, one.y, norm, reach, rest)
        one.replay(found.X_adv, np.isfinite(found.upper))
        n_done, n_open = n_done + len(one.X), n_open + int(np.count_nonzero(found.reason != ""))
        if np.any(found.reason == _REASON[_core.Ending.stopped]):
            end = time.monotonic()  # Ctrl-C ends the other parts, too
        return found.upper, found.X_adv, found.lower, found.reason, found.seconds

    upper, X_adv, lower, reason, seconds = problem.by_category(part)
    return Found(lower, upper, reason, X_adv, seconds)


def _search(
    function: Callable[..., Any],
    problem: Problem | Outputs,
    about: Any,
    norm: Norm,
    reach: Reach,
    effort: Effort,
) -> Found:
    """Let the core search; `about` is what it is asked of each row."""
    watch = _core.Watch()
    answer = watched(
        lambda: function(
            problem.trees._core,
            problem.X,
            about,
            norm=getattr(_core.Norm, _NORM[norm]),
            radius=reach.radius,
            reach=reach.limits,
            down_scale=reach.down_scale,
            up_scale=reach.up_scale,
            row_seconds=_seconds(effort.time_limit),
            total_seconds=_seconds(effort.total_time_limit),
            n_threads=problem.n_threads,
            watch=watch,
        ),
        watch,
        effort,
        len(problem.X),
    )
    lower, upper, ending, X_adv, seconds = map(np.asarray, answer)
    reason = np.array([_REASON[_core.Ending(int(e))] for e in ending])
    return Found(lower, upper, reason, X_adv, seconds)


def watched(ask: Callable[[], Any], watch: _core.Watch, effort: Effort, n_rows: int) -> Any:
    """Run a search of the core beside, tell about its progress, and stop it at Ctrl-C."""
    answer: list[Any] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        try:
            answer.append(ask())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    # The search runs beside, so that this thread can hear Ctrl-C: what is proven by then counts.
    # (It waits for the event: an interrupted join takes the thread for finished in Python 3.11.)
    threading.Thread(target=search, daemon=True).start()
    try:
        while not done.wait(_PULSE):
            if effort.progress is not None:
                effort.progress(watch.n_done, watch.n_open, n_rows)
        if effort.progress is not None:
            effort.progress(watch.n_done, watch.n_open, n_rows)
    except KeyboardInterrupt:
        watch.stop()
    except BaseException:
        watch.stop()
        done.wait()
        raise
    done.wait()
    if failure:
        raise failure[0]
    return answer[0]


def _seconds(limit: float | None) -> float:
    return np.inf if limit is None else float(limit)
