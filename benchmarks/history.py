"""Keep the ratios of the benchmarks over time, and say which of them became worse.

Run by ``make bench-history`` after benchmarks wrote their reports to build/bench. Every report
compares with peers in one run, so ratios of different machines can stand side by side. A ratio is
worse when it leaves the median of the last runs by more than a quarter, in the wrong direction.
Exits with 1 when one is.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

REPORTS = Path("build/bench")
HISTORY = REPORTS / "history.json"
LOOK_BACK = 8
TOLERANCE = 1.25


def ratios(reports: Path) -> dict[str, dict[str, Any]]:
    """The ratios of every report, with the side on which each is good."""
    found = {}
    for path in sorted(reports.glob("*.json")):
        content = json.loads(path.read_text())
        if not isinstance(content, dict) or "results" not in content or content.get("quick"):
            continue
        for result in content["results"]:
            if result.get("seconds") and (result["at_most"] or result["at_least"]):
                found[f"{path.stem}: {result['name']}"] = {
                    "ratio": result["ratio"],
                    "small_is_good": result["at_most"] is not None,
                    "commit": content["commit"],
                    "date": content["date"],
                    "cpu": content["cpu"],
                }
    return found


def worse(entry: dict[str, Any], before: list[float]) -> str | None:
    """What is to be said of a ratio beside those of earlier runs."""
    if not before:
        return None
    usual = statistics.median(before[-LOOK_BACK:])
    ratio = entry["ratio"]
    if entry["small_is_good"]:
        bad = ratio > usual * TOLERANCE
    else:
        bad = ratio < usual / TOLERANCE
    return f"{ratio:.3f}, usually {usual:.3f}" if bad else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reports", type=Path, default=REPORTS)
    parser.add_argument("--history", type=Path, default=HISTORY)
    options = parser.parse_args()
    history: dict[str, list[dict[str, Any]]] = {}
    if options.history.exists():
        history = json.loads(options.history.read_text())
    n_worse = 0
    for name, entry in ratios(options.reports).items():
        before = [one["ratio"] for one in history.get(name, [])]
        said = worse(entry, before)
        if said:
            n_worse += 1
            print(f"WORSE {name}: {said}")
        history.setdefault(name, []).append(entry)
    options.history.write_text(json.dumps(history, indent=1) + "\n")
    print(f"{len(history)} ratios in {options.history}, {n_worse} worse than usual")
    sys.exit(1 if n_worse else 0)


if __name__ == "__main__":
    main()
