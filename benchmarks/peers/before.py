"""The exact engine of this build against an earlier build of hardwood, in one run.

The models, rows and norms are those of distance.py; lines that are known not to settle are left
out. Both builds answer in processes of their own, on one thread, taking turns; what counts is the
processor time of the least turn, and that the distances are the same to the last bit. The earlier
build is made with `pip install --no-deps --target DIRECTORY` in its checkout. Exits with 1 when a
line takes more than 1.03 times the time of before.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

AT_MOST = 1.03
PATIENCE = 40.0  # seconds for the turns of a line
FEWEST, MOST = 3, 15  # turns


def answer_questions(build: str | None) -> None:
    """Be one of the two: answer what comes on standard input."""
    if build:
        sys.path.insert(0, build)
    import numpy as np

    import hardwood as hw

    for line in sys.stdin:
        path, norm, n_rows = json.loads(line)
        trees = hw.load_model(path)
        with np.load(Path(path).with_suffix(".npz")) as rows:
            X, y = rows["X"][:n_rows], rows["y"][:n_rows]
        begin = time.process_time()
        found = hw.minimal_distance(trees, X, y, norm=norm, n_jobs=1, time_limit=60)
        seconds = time.process_time() - begin
        print(json.dumps([seconds, [float(d).hex() for d in found.upper]]), flush=True)


class Contestant:
    """A process that answers."""

    def __init__(self, build: str | None) -> None:
        words = [sys.executable, "-W", "ignore", __file__, "--answer", build or ""]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *question: Any) -> tuple[float, list[str]]:
        """Processor seconds, and the distances to the last bit."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        seconds, distances = json.loads(self.process.stdout.readline())
        return seconds, distances


def compare(line: Any, path: Path, before: Contestant, now: Contestant) -> Any:
    from measure import Result

    question = (str(path), line.norm, line.n_rows)
    (first, old), (_, new) = before.ask(*question), now.ask(*question)
    n_turns = int(min(max(PATIENCE / (2 * first), FEWEST), MOST))
    seconds: dict[str, list[float]] = {"before": [], "now": []}
    for turn in range(n_turns):
        pair = [("before", before), ("now", now)]
        for name, contestant in pair if turn % 2 else pair[::-1]:
            seconds[name].append(contestant.ask(*question)[0])
    least = {name: min(of) for name, of in seconds.items()}
    return Result(
        f"{line.name}, {n_turns} turns",
        least["now"] / least["before"],
        at_most=AT_MOST if old == new else -1.0,  # other distances are a miss, whatever the time
        seconds=least,
        answer={"same distances": old == new},
    )


def main() -> None:
    from distance import LINES, get_model
    from measure import circumstances, finish, show

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", help="directory of the earlier build")
    parser.add_argument("--lines", default="", help="only lines whose name contains this")
    parser.add_argument("--models", type=Path, default=Path("build/bench/distance/models"))
    options = parser.parse_args()
    before, now = Contestant(options.before), Contestant(None)
    results = []
    for line in LINES:
        if line.settled and options.lines in line.name:
            path, _ = get_model(line.model, options.models)
            results.append(compare(line, path.resolve(), before, now))
            show(results[-1])
    finish(Path("build/bench/before.json"), circumstances("xgboost-cpu"), results)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer_questions(sys.argv[2] or None)
    else:
        main()
