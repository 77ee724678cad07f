"""How long a question may take, who is told, and what happens at Ctrl-C."""

import logging
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hardwood import _core
from hardwood.errors import UndecidedWarning
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
            if seconds is not None and not (isinstance(seconds, Real) and float(seconds) > 0):
                raise ValueError(f"{name} must be a number of seconds > 0, got {name}={seconds!r}.")
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
    search: Callable[[_core.Watch], Any], effort: Effort, n_rows: int, seconds: float = np.inf
) -> Any:
    """Let the core search, tell about its progress, and stop it at Ctrl-C."""
    watch, tell = _core.Watch(min(effort.left(), seconds)), effort.tell(n_rows)
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
