"""How much an audit may look at, for how long, and who is told."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hardwood.errors import UndecidedWarning

Stage = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Settings:
    """How much an audit may look at, and for how long."""

    name: str | None
    classes: Sequence[str] | None
    threshold: float | None
    max_rows: int
    n_distances: int
    n_fragile: int
    time_limit: float | None
    total_time_limit: float | None
    random_state: int
    n_jobs: int | None
    progress: Stage | None

    def __post_init__(self) -> None:
        for name, least in (("max_rows", 1), ("n_distances", 1), ("n_fragile", 0)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int) or given < least:
                raise ValueError(f"{name} must be a whole number >= {least}, got {name}={given!r}.")


class Clock:
    """What is left of the whole time, and who hears of progress."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.begin = time.monotonic()

    def options(self, stage: str) -> dict[str, Any]:
        """Options of a question to the engine."""
        settings = self.settings
        given: dict[str, Any] = {"time_limit": settings.time_limit, "n_jobs": settings.n_jobs}
        if settings.total_time_limit is not None:
            left = settings.total_time_limit - (time.monotonic() - self.begin)
            given["total_time_limit"] = max(left, 0.01)
        if settings.progress is not None:
            tell = settings.progress
            given["progress"] = lambda done, undecided, rows: tell(stage, done, rows)
        return given

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far a stage is."""
        if self.settings.progress is not None:
            self.settings.progress(stage, done, total)

    @property
    def seconds(self) -> float:
        """How long it took so far."""
        return round(time.monotonic() - self.begin, 2)

    @property
    def over(self) -> bool:
        """Whether the whole time is spent."""
        limit = self.settings.total_time_limit
        return limit is not None and time.monotonic() - self.begin > limit


@contextmanager
def undecided_is_told() -> Iterator[None]:
    """Rows that stay open are part of the answer here, with their counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndecidedWarning)
        yield
