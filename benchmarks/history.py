"""Keep the ratios of benchmarks over time, and say which of them became worse.

Run by ``make bench-history`` after benchmarks wrote their reports to build/bench. Every report
compares with peers in one run, so ratios of different machines can stand side by side. A ratio is
worse when it leaves the median of the last runs by more than a quarter, in the wrong direction.
Exits with 1 when one is, or when a benchmark wrote no report.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

REPORTS = Path("build/bench")
LOOK_BACK = 8
TOLERANCE = 1.25


def ratios(path: Path) -> dict[str, dict[str, Any]]:
    """The ratios of times in a report, with the side on which each is good."""
    content = json.loads(path.read_text())
    if content.get("quick"):
        sys.exit(f"{path} is of a quick run, whose sizes are others; run the benchmark in full.")
    return {
        f"{path.stem}: {result['name']}": {
            "ratio": result["ratio"],
            "small_is_good": result["at_most"] is not None,
            **{name: content[name] for name in ("commit", "date", "cpu")},
        }
        for result in content["results"]
        if result["seconds"] and (result["at_most"] or result["at_least"])
    }


def worse(entry: dict[str, Any], before: list[float]) -> str | None:
    """What is to be said of a ratio beside those of earlier runs."""
    if not before:
        return None
    usual, ratio = statistics.median(before), entry["ratio"]
    good = ratio <= usual * TOLERANCE if entry["small_is_good"] else ratio >= usual / TOLERANCE
    return None if good else f"{ratio:.3f}, usually {usual:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("benchmarks", nargs="+", help="names of their reports, such as tree")
    parser.add_argument("--reports", type=Path, default=REPORTS)
    options = parser.parse_args()
    path = options.reports / "history.json"
    history: dict[str, list[dict[str, Any]]] = json.loads(path.read_text()) if path.exists() else {}
    said = []
    for name in options.benchmarks:
        report = options.reports / f"{name}.json"
        if not report.exists():
            said.append(f"MISSING {report}: the benchmark did not come to its end")
            continue
        for ratio, entry in ratios(report).items():
            before = history.setdefault(ratio, [])
            change = worse(entry, [one["ratio"] for one in before])
            said += [] if change is None else [f"WORSE {ratio}: {change}"]
            history[ratio] = [*before, entry][-LOOK_BACK:]
    path.write_text(json.dumps(history, indent=1) + "\n")
    print(*said, f"{len(history)} ratios in {path}, {len(said)} to look at", sep="\n")
    sys.exit(1 if said else 0)


if __name__ == "__main__":
    main()
