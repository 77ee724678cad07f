"""The history of benchmarks: a slow commit is seen, a slow machine is not."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def keep(folder, *results, name="tree"):
    """Note a run whose results are (name, ratio, at_most, at_least), and what is said of it."""
    entries = [
        {"name": one, "ratio": ratio, "at_most": most, "at_least": least, "seconds": {"a": 1.0}}
        for one, ratio, most, least in results
    ]
    run = {"commit": "c", "date": "d", "cpu": "p", "quick": False, "results": entries}
    (folder / f"{name}.json").write_text(json.dumps(run))
    return history(folder, name)


def history(folder, *names):
    script = ROOT / "benchmarks" / "history.py"
    return subprocess.run(
        [sys.executable, script, *names, "--reports", folder],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_ratio_that_leaves_its_usual_value_is_told(tmp_path):
    for ratio in (0.50, 0.60, 0.52):
        done = keep(tmp_path, ("fit", ratio, 1.0, None), ("speed-up", 4 * ratio, None, 1.0))
        assert done.returncode == 0, done.stdout
    done = keep(tmp_path, ("fit", 0.66, 1.0, None), ("speed-up", 1.6, None, 1.0))
    assert done.returncode == 1
    assert "WORSE tree: fit: 0.660, usually 0.520" in done.stdout
    assert "WORSE tree: speed-up: 1.600, usually 2.080" in done.stdout
    better = keep(tmp_path, ("fit", 0.1, 1.0, None), ("speed-up", 9.0, None, 1.0))
    assert better.returncode == 0


def test_the_history_is_short_and_names_each_run(tmp_path):
    for _ in range(12):
        keep(tmp_path, ("fit", 0.5, 1.0, None))
    kept = json.loads((tmp_path / "history.json").read_text())
    assert len(kept["tree: fit"]) == 8
    assert kept["tree: fit"][0] == {
        "ratio": 0.5, "small_is_good": True, "commit": "c", "date": "d", "cpu": "p"
    }  # fmt: skip


def test_a_benchmark_that_did_not_end_is_told(tmp_path):
    keep(tmp_path, ("fit", 0.5, 1.0, None))
    done = history(tmp_path, "tree", "forest")
    assert done.returncode == 1
    assert "MISSING" in done.stdout
    assert "forest.json: the benchmark did not come to its end" in done.stdout


def test_a_quick_run_is_refused(tmp_path):
    keep(tmp_path, ("fit", 0.5, 1.0, None))
    report = json.loads((tmp_path / "tree.json").read_text())
    (tmp_path / "tree.json").write_text(json.dumps({**report, "quick": True}))
    done = history(tmp_path, "tree")
    assert done.returncode == 1
    assert "of a quick run" in done.stderr
