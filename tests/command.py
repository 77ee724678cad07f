"""The hardwood command, run as a user runs it."""

import os
import subprocess
import sys


def run(*words, cwd=None):
    """Run `hardwood words...` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "hardwood", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "100", **{k: os.environ[k] for k in ("HOME", "PATH") if k in os.environ}},
    )
