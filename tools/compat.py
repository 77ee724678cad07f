"""Run the tests of compatibility with the oldest and the newest libraries. Run by ``make compat``.

Each column of the table in docs/compatibility.md is an environment of its own, made from the
package index and the wheels in dist/; ``--only NAME`` runs one. Prints what was installed and what
came out; an interpreter that is not there is replaced by the next older one, and that is said.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "compat"
LIBRARIES = ["numpy", "scipy", "scikit-learn", "pandas", "xgboost-cpu", "lightgbm", "catboost"]
TESTS = [
    "tests/compat",
    "tests/unit/estimators/test_sklearn_protocol.py",
    "tests/unit/estimators/test_persistence.py",
    "tests/oracle/test_fooled_sources.py",
]
ENVIRONMENTS = {
    "oldest": (
        11,
        {
            "numpy": "==1.26.*",
            "scipy": "==1.11.*",
            "scikit-learn": "==1.6.*",
            "pandas": "==2.1.*",
            "xgboost-cpu": "==2.1.*",
            "lightgbm": "==4.5.*",
            "catboost": "==1.2.5",
        },
    ),
    "middle": (
        12,
        {
            "numpy": "==2.0.*",
            "scikit-learn": "==1.7.*",
            "pandas": "==2.3.*",
            "xgboost-cpu": "==3.0.*",
        },
    ),
    "newest": (14, {}),
}


def run(*words, **more):
    return subprocess.run([str(word) for word in words], check=True, **more)


def interpreter(wanted):
    """The interpreter of that minor version, or the nearest older one that runs."""
    for minor in range(wanted, 10, -1):
        python = shutil.which(f"python3.{minor}")
        if python and not subprocess.run([python, "-c", "import venv"], check=False).returncode:
            return python
    return sys.executable


def prepare(name):
    """An environment with the libraries and hardwood's wheel."""
    wanted, pins = ENVIRONMENTS[name]
    folder = BUILD / name
    run(interpreter(wanted), "-m", "venv", "--clear", folder)
    python = folder / "bin" / "python"
    minor = run(
        python, "-c", "import sys; print(sys.version_info[1])", capture_output=True, text=True
    )
    if int(minor.stdout) != wanted:
        print(f"{name}: Python 3.{int(minor.stdout)} in place of 3.{wanted}", flush=True)
    libraries = [f"{library}{pins.get(library, '')}" for library in LIBRARIES]
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-compile"]
    found = ["--only-binary=:all:", "--no-index", "--find-links", ROOT / "dist", "--no-deps"]
    run(*pip, *libraries, "pytest", "hypothesis", "skops", "typer", "rich", "matplotlib")
    run(*pip, *found, "--pre", "hardwood")
    return python


def test(python):
    """What pytest counted, and whether all is well: tests that are all left out are not."""
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    lines = []
    with subprocess.Popen(words, cwd=ROOT, text=True, stdout=subprocess.PIPE) as done:
        for line in done.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    counts = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", lines[-1] if lines else "")
    return ", ".join(counts), done.returncode == 0 and " passed" in "".join(counts)


def versions(python):
    code = (
        "import sys, importlib.metadata as m; print(sys.version.split()[0], "
        f"*(m.version(name) for name in {LIBRARIES!r}))"
    )
    return run(python, "-c", code, capture_output=True, text=True).stdout.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=ENVIRONMENTS, help="one environment")
    only = parser.parse_args().only
    columns, failed = {}, []
    for name in [only] if only else ENVIRONMENTS:
        python = prepare(name)
        result, passed = test(python)
        columns[name] = [*versions(python), result]
        failed += [] if passed else [name]
    print("| | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for i, row in enumerate(["Python", *LIBRARIES, "tests"]):
        print(f"| {row} | " + " | ".join(column[i] for column in columns.values()) + " |")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
