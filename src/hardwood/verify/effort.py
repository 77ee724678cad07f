"""How long a question may take, who is told, and what happens at Ctrl-C."""

import logging
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.errors import UndecidedWarning
from hardwood.verify.problem import Problem
from hardwood.verify.result import StatusArray

Progress = Callable[[int, int, int], object]
Tell = Callable[[int, int], None]  # rows that are done, and how many of these are undecided

_PULSE = 0.05  # seconds between two looks at the search
_GRACE = 0.3  # seconds, for work that keeps the time by itself, roughly
REASON = {
    _core.Ending.exact: "",
    _core.Ending.time: "time limit",
    _core.Ending.rounding: "within the rounding of the model's own sum",
    _core.Ending.stopped: "interrupted",
}


@dataclass(frozen=True)
class Found:
    """What a search says, row by row."""

    lower: FloatArray
    upper: FloatArray
    reason: StatusArray
    X_adv: FloatArray
    seconds: FloatArray

    def verdict(self) -> StatusArray:
        """Read the answer to a decision."""
        proven = np.where(np.isinf(self.lower), "certified", "unknown")
        return np.where(np.isfinite(self.upper), "broken", proven)


def bar() -> Progress:
    """A bar that shows the progress of rows: tqdm's, or a line of logging for each tenth."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return logged()
    shown: list[Any] = []

    def show(done: int, undecided: int, n_rows: int) -> None:
        if not shown or shown[0].n > done or shown[0].total != n_rows:
            shown[:] = [tqdm(total=n_rows, unit="row")]
        shown[0].set_postfix(undecided=undecided, refresh=False)
        shown[0].update(done - shown[0].n)
        if done == n_rows:
            shown[0].close()

    return show


def logged() -> Progress:
    """A line of logging for each tenth of the rows."""
    log = logging.getLogger("hardwood")
    last = -1

    def show(done: int, undecided: int, n_rows: int) -> None:
        nonlocal last
        tenth = 10 * done // max(n_rows, 1)
        if tenth != last:
            last = tenth
            log.info("%d of %d rows done, %d of them undecided", done, n_rows, undecided)

    return show


@dataclass
class Effort:
    """How long a call may take, from its start, and who is told.

    All questions of a call share one. When its time is over, or after Ctrl-C, what is open stays
    open, and the call returns what is proven and found by then.
    """

    time_limit: float | None = None
    total_time_limit: float | None = None
    progress: Progress | bool | None = None

    def __post_init__(self) -> None:
        for name in ("time_limit", "total_time_limit"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be a number of seconds > 0, got {name}={seconds}.")
        if isinstance(self.progress, bool):
            self.progress = bar() if self.progress else None
        limit = np.inf if self.total_time_limit is None else self.total_time_limit
        self.end = time.monotonic() + limit
        self.interrupted = False

    def left(self) -> float:
        """Seconds until the call has to end."""
        return 0.0 if self.interrupted else max(self.end - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether the call has to end."""
        return self.left() == 0

    @property
    def why(self) -> str:
        """The reason of rows whose turn does not come."""
        return REASON[_core.Ending.stopped if self.interrupted else _core.Ending.time]

    def tell(self, n_rows: int) -> Tell:
        """How to tell of the progress of some rows."""

        def told(done: int, undecided: int) -> None:
            if callable(self.progress):
                self.progress(done, undecided, n_rows)

        return told

    def ask(self, problem: Problem, search: Callable[[Problem, Tell], Found]) -> Found:
        """Let a search answer; its examples count if the model's source agrees."""
        found = search(problem, self.tell(len(problem.X)))
        lower, upper, reason, X_adv = found.lower, found.upper, found.reason, found.X_adv
        never = np.flatnonzero((reason != "") & np.isinf(upper) & (lower == 0))
        # No search is needed to see that a row is wrong already.
        wrong = never[problem.some(never).misclassified()] if len(never) else never
        upper[wrong], X_adv[wrong], reason[wrong] = 0.0, problem.X[wrong], ""
        return _confirmed(problem, found)


def _confirmed(problem: Problem, found: Found) -> Found:
    """Leave rows open whose example does not change the label at the source itself.

    Some sources add leaves in an order or on threads of their own: where a margin is within the
    rounding of its sum, they may decide otherwise than the same sum in tree order.
    """
    claimed = np.flatnonzero(np.isfinite(found.upper))
    if problem.source is None or len(claimed) == 0:
        return found
    label = problem.source(found.X_adv[claimed])
    doubt = claimed[~problem.fooled(label, claimed) | (label < 0)]  # or it refuses the row
    found.upper[doubt], found.X_adv[doubt] = np.inf, np.nan
    found.reason[doubt] = "within the rounding of the source's own sum"
    return found


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


def _start(work: Callable[[], Any]) -> tuple[threading.Event, Callable[[], Any]]:
    """Run work beside, so that this thread hears Ctrl-C: when it is done, and what comes of it.

    (Wait for the event: an interrupted join takes the thread for finished in Python 3.11.)
    """
    answer: list[Any] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            answer.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    def result() -> Any:
        if failure:
            raise failure[0]
        return answer[0]

    threading.Thread(target=run, daemon=True).start()
    return done, result


def watched(
    search: Callable[[_core.Watch], Any], effort: Effort, tell: Tell, seconds: float = np.inf
) -> Any:
    """Let the core search, tell about its progress, and stop it at Ctrl-C."""
    watch = _core.Watch(min(effort.left(), seconds))
    if effort.interrupted:
        watch.stop()
    done, result = _start(lambda: search(watch))
    try:
        while not done.wait(_PULSE):
            tell(watch.n_done, watch.n_open)
        tell(watch.n_done, watch.n_open)
    except KeyboardInterrupt:
        effort.interrupted = True  # what is proven by now counts
        watch.stop()
    except BaseException:
        watch.stop()
        done.wait()
        raise
    done.wait()
    return result()


def unwatched(work: Callable[[], Any], effort: Effort) -> Any:
    """Do what cannot be stopped; None, and it is left to itself, when the call has to end."""
    done, result = _start(work)
    try:
        while not done.wait(_PULSE):
            if time.monotonic() > effort.end + _GRACE:
                return None
    except KeyboardInterrupt:
        effort.interrupted = True
        return None
    return result()
