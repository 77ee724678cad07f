"""What the benchmarks share: a ratio with its target, the circumstances, the report."""

import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Result:
    """One comparison: a ratio, what it has to be, and what made it."""

    name: str
    ratio: float
    at_most: float | None = None
    at_least: float | None = None
    seconds: dict[str, float] | None = None
    answer: dict[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """Whether the target is met; a NaN never is. Without a target it is only reported."""
        above = self.at_least is None or self.ratio >= self.at_least
        return above and (self.at_most is None or self.ratio <= self.at_most)

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"


def show(result: Result) -> None:
    """Print one comparison as a line."""
    verdict = ("pass" if result.passed else "MISS") if result.target else ""
    print(f"{result.name:<76} {result.ratio:7.3f}  {result.target:<7} {verdict}", flush=True)


def take_turns(
    calls: dict[str, Callable[[], Any]], n_turns: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Run the calls one after the other, n_turns times; the least time of each in seconds."""
    best = dict.fromkeys(calls, math.inf)
    for _ in range(n_turns):
        for name, call in calls.items():
            begin = clock()
            call()
            best[name] = min(best[name], clock() - begin)
    return best


def humps(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 28 continuous columns, each with two humps, and labels that depend on the humps.

    The humps lie further apart than the ball is wide, so robust trees find splits down to the
    last level and have as much work to do as natural ones; on columns without gaps they would stop
    early and look faster than they are.
    """
    bit = rng.random((n, 28)) < 0.5
    X = np.where(bit, 0.75, 0.25) + 0.08 * rng.normal(size=(n, 28))
    side = np.where(bit, 1.0, -1.0)
    signal = side @ (0.9 ** np.arange(28))
    signal += side[:, 0] * side[:, 1] - side[:, 2] * side[:, 3] * side[:, 4]
    return X.astype(np.float32), (signal + rng.normal(size=n) > 0).astype(np.int32)


def circumstances(*packages: str, **about: Any) -> dict[str, Any]:
    """What a reader needs to judge the numbers."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = names[0].split(":", 1)[1].strip() if names else cpu
    return {
        "commit": git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else ""),
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("hardwood", "numpy", *packages)},
        "cpu": cpu,
        "load": os.getloadavg(),
        **about,
    }


def finish(path: Path, where: dict[str, Any], results: list[Result]) -> None:
    """Write the report and end the program: with 1 when a target is missed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {**where, "results": [asdict(result) for result in results]}
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"\n{where['cpu']}, {where['date']}; details in {path}")
    sys.exit(0 if all(result.passed for result in results) else 1)
