"""Whether a second thread hurts when the machine is busy with something else.

A fit of 20,000 x 30 in 100 rounds, which has thousands of short parallel loops, with one and with
two threads in turn: alone, and beside one busy process a core, which this program starts and ends.
The worst turn of two threads may take at most 1.2 times the median turn of one. Writes
build/bench/threads.json; exits with 1 when the target is missed.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from measure import Result, circumstances, finish, show

import hardwood as hw
from hardwood._check import core_count

SEED = 20190613
AT_MOST = 1.2
REPORT = Path("build/bench/threads.json")
# Ends by itself if nobody ends it.
BUSY = "import time\nend = time.monotonic() + 600\nwhile time.monotonic() < end: pass"


def make_rows(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform columns, and labels that depend on some of them."""
    rng = np.random.default_rng(SEED)
    X = rng.random((n, n_features), dtype=np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] + 0.2 * rng.normal(size=n)
    return X, (signal > np.median(signal)).astype(np.int32)


@contextmanager
def busy_cores(n: int) -> Iterator[None]:
    """Keep n processes busy."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(n)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def compare(name: str, X: np.ndarray, y: np.ndarray, n_rounds: int, n_turns: int) -> Result:
    """Fit with one and with two threads in turn."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(n_turns + 1):
        for n_jobs, times in seconds.items():
            model = hw.RobustGradientBoostingClassifier(
                eps=0.01, n_estimators=n_rounds, n_jobs=n_jobs
            )
            begin = time.perf_counter()
            model.fit(X, y)
            if turn > 0:  # the first one starts the threads
                times.append(time.perf_counter() - begin)
    one, two = statistics.median(seconds[1]), max(seconds[2])
    times_of = {
        "one thread, median": one,
        "one thread, worst": max(seconds[1]),
        "two threads, median": statistics.median(seconds[2]),
        "two threads, worst": two,
    }
    return Result(f"two threads against one, {name}", two / one, AT_MOST, seconds=times_of)


def main() -> None:
    """Measure, print, write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    X, y = make_rows(given.rows, given.features)
    results = []
    for name, n_busy in (("alone", 0), ("beside one busy process a core", core_count())):
        with busy_cores(n_busy):
            results.append(compare(name, X, y, given.rounds, given.turns))
        show(results[-1])
    finish(REPORT, circumstances(**vars(given)), results)


if __name__ == "__main__":
    main()
