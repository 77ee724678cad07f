"""Hunt for wrong answers: random small models of every kind against enumeration.

Each model is trained by its own library, asked through its own `predict` in every cell between its
thresholds, and then every public answer about it is compared with the truth that follows. Prints a
table of kinds and ends with status 1 if any answer was wrong, with what repeats it.
"""

import argparse
import re
import sys
import time
import warnings
import zlib
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from threadpoolctl import ThreadpoolController

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hunt.kinds  # noqa: F401 - enters all kinds
from hunt.questions import Tally, examine, made
from hunt.source import KINDS


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def hunt_one(name: str, seed: int, number: int, tally: Tally) -> None:
    """Make the model of a kind that `seed` and `number` say, and ask everything."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    before = len(tally.wrong)
    # Threads that wait for each other cost more than such models do.
    with _threads().limit(limits=1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        source = made(KINDS[name], rng, tally)
        if source is not None:
            examine(source, rng, tally)
    repeat = f"--kinds {name!r} --seed {seed} --number {number}"
    tally.wrong[before:] = [f"{what}  [{repeat}]" for what in tally.wrong[before:]]


def chosen(pattern: str | None) -> list[str]:
    """Kinds of that name, or those that have the words in it."""
    if pattern is None:
        return list(KINDS)
    if pattern in KINDS:
        return [pattern]
    found = [name for name in KINDS if pattern.lower() in name.lower()]
    if not found:
        raise SystemExit(f"no kind is called {pattern!r}; --list shows all {len(KINDS)}")
    return found


def table(tallies: dict[str, Tally]) -> str:
    """One line a kind, and their sum."""
    lines = [("kind", "models", "rows", "asked", "refused", "unknown", "wrong")]
    for name, t in tallies.items():
        refused = sum(t.refused.values())
        lines.append((name, t.models, t.rows, t.asked, refused, t.unknown, len(t.wrong)))
    total = np.array([line[1:] for line in lines[1:]]).sum(axis=0)
    lines.append((f"{len(tallies)} kinds", *total))
    return "\n".join(
        f"{line[0]:52}" + "".join(f"{number:>9}" for number in line[1:]) for line in lines
    )


def refusals(tallies: dict[str, Tally]) -> str:
    """Every reason once, whatever numbers it names, with the kinds that it concerns."""
    kinds: dict[str, set[str]] = {}
    times: Counter[str] = Counter()
    for name, t in tallies.items():
        for text, n in t.refused.items():
            reason = re.sub(r"\d[\d.e+-]*", "#", re.sub(r"\[.*?\]|\(.*?\)|\{.*?\}", "..", text))
            kinds.setdefault(reason, set()).add(name)
            times[reason] += n
    lines = ["", "refused" if kinds else "nothing refused"]
    for reason, names in sorted(kinds.items()):
        shown = ", ".join(sorted(names)[:4]) + (f" and {len(names) - 4} more" * (len(names) > 4))
        lines.append(f"{times[reason]:>7}  {reason}\n         {shown}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rows", type=int, default=10**9, help="stop after so many rows")
    parser.add_argument("--kinds", help="only the kinds with these words in their names")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, help="only this model of each kind")
    parser.add_argument("--shown", type=int, default=1, help="wrong answers shown of each sort")
    parser.add_argument("--list", action="store_true", help="only list the kinds")
    options = parser.parse_args()
    names = chosen(options.kinds)
    if options.list:
        print("\n".join(names))
        return 0
    tallies = {name: Tally() for name in names}
    end = time.monotonic() + options.seconds
    numbers = iter(range(10**9)) if options.number is None else iter([options.number])
    with suppress(KeyboardInterrupt):  # what was found until then is told
        for number in numbers:
            for name in names:
                if time.monotonic() < end:
                    hunt_one(name, options.seed, number, tallies[name])
            rows = sum(t.rows for t in tallies.values())
            if time.monotonic() >= end or rows >= options.rows:
                break
    print(table(tallies))
    print(refusals(tallies))
    wrong = {name: t.wrong for name, t in tallies.items() if t.wrong}
    for name, found in wrong.items():
        questions = Counter(what.split(":")[0].split()[0] for what in found)
        counts = ", ".join(f"{question} {n}" for question, n in questions.items())
        print(f"\nwrong: {name}: {counts}")
        for question in questions:
            first = [what for what in found if what.startswith(question)][: options.shown]
            print("".join(f"    {what}\n" for what in first), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
