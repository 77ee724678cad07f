"""What a release says of itself, and what the workflows run, are there."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERBS = set(re.findall(r"^([\w-]+):", MAKEFILE, flags=re.M))


def jobs_of(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def calls_of_make(job):
    """What the steps of a job ask make for, each way of the matrix on its own."""
    ways = job.get("strategy", {}).get("matrix", {}).get("verb", [""])
    commands = [step["run"] for step in job["steps"] if "run" in step]
    lines = [line for command in commands for line in command.split("\n")]
    called = [line.removeprefix("make ") for line in lines if line.startswith("make ")]
    return {call.replace("${{ matrix.verb }}", way) for call in called for way in ways}


def test_there_are_workflows_for_all_that_runs_elsewhere():
    assert [path.stem for path in WORKFLOWS] == ["test", "weekly", "wheels"]
    called = {
        call.split()[0]
        for path in WORKFLOWS
        for job in jobs_of(path).values()
        for call in calls_of_make(job)
    }
    wanted = "lint docs sanitize fuzz test test-portable hunt compat bench-history sdist"
    assert called == set(wanted.split())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_there_is(path):
    for job in jobs_of(path).values():
        assert job["runs-on"]
        for call in calls_of_make(job):
            verb, *settings = call.split()
            assert verb in VERBS, call
            for setting in settings:  # a misspelled one would be ignored by make
                assert re.search(rf"^{setting.split('=')[0]} \?=", MAKEFILE, flags=re.M), call


def test_every_job_ends():
    for path in WORKFLOWS:
        for name, job in jobs_of(path).items():
            limit = job.get("timeout-minutes")
            assert limit, f"{path.name}: {name} may run for six hours"
            seconds = [int(s) for call in calls_of_make(job) for s in re.findall(r"=(\d+)$", call)]
            assert all(60 * limit > one for one in seconds), f"{path.name}: {name}"


def test_wheels_are_for_the_oldest_python_and_the_stable_abi():
    oldest = re.fullmatch(r">=3\.(\d+)", PROJECT["project"]["requires-python"])[1]
    stable = PROJECT["tool"]["scikit-build"]["wheel"]["py-api"]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp3{oldest}-*", f"{stable}-*"]


def test_wheels_are_made_on_all_systems_and_on_arm():
    machines = jobs_of(ROOT / ".github" / "workflows" / "wheels.yml")["wheels"]["strategy"]
    names = machines["matrix"]["os"]
    assert {name.partition("-")[0] for name in names} == {"ubuntu", "macos", "windows"}
    assert any(name.endswith("-arm") for name in names)


def test_xgboost_without_cuda_is_asked_for_where_there_is_one():
    """There is no xgboost-cpu for macOS: an extra that asks for it cannot be installed there."""
    for name, needs in PROJECT["project"]["optional-dependencies"].items():
        for need in needs:
            if need.startswith("xgboost-cpu"):
                assert need.endswith("sys_platform != 'darwin'"), name
                assert any(re.match(r"xgboost\b(?!-)", other) for other in needs), name


def test_the_version_is_the_same_on_all_pages():
    change_log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d+\.\d+\.\d+), (\d+ \w+ \d+)$", change_log, flags=re.M)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == newest[1]
    day, month, year = newest[2].split()
    date = citation["date-released"]
    assert (str(date.day), f"{date:%B}", str(date.year)) == (day, month, year)
    notes = (ROOT / "docs" / "release-notes.md").read_text(encoding="utf-8")
    assert notes.startswith(f"# Release notes: {newest[1]}\n")
