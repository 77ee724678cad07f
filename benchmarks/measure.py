"""What the benchmarks share: a ratio with its target, the circumstances, the report."""

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any


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
