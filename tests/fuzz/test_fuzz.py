"""The fuzzer in short: every format, and the fuzzer itself held against a planted error."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz import fuzz_model_files as fuzz


@pytest.mark.parametrize("name", fuzz.formats())
def test_broken_files_are_refused_or_predict(name):
    seeds, change = fuzz.formats()[name]
    assert all(fuzz.try_one(name, seed) for seed in seeds)
    rng, tally = random.Random(0), fuzz.Tally(name)
    n = 10 if name in fuzz.audited() else 60  # a report is proven again each time
    for _ in range(n):
        for how in (fuzz.change_bytes, change or fuzz.change_bytes):
            tally.add(how(rng, rng.choice(seeds)))
    assert tally.n == 2 * n
    assert tally.n_loaded < tally.n


def test_the_fuzzer_sees_what_is_slow_large_or_raises(monkeypatch):
    with monkeypatch.context() as change:
        change.setattr(fuzz, "load_bytes", lambda *_, **__: {}["no refusal"])
        with pytest.raises(KeyError, match="no refusal"):
            fuzz.Tally("catboost").add(b"{}")
    with monkeypatch.context() as change:
        change.setattr(fuzz, "try_one", lambda *_: bytes(100 << 20) and True)
        with pytest.raises(MemoryError, match="bytes for a file of 2"):
            fuzz.Tally("catboost").add(b"{}")
    with monkeypatch.context() as change:
        change.setattr(fuzz, "SLOW", -1.0)
        tally = fuzz.Tally("catboost")
        tally.add(b"{}")  # the first one has its memory measured, not its time
        with pytest.raises(TimeoutError, match="for a file of 2 bytes"):
            tally.add(b"{}")


def crash(desk, _answers):
    desk.put(b"crashes")
    os.kill(os.getpid(), signal.SIGKILL)


def hang(desk, _answers):
    desk.put(b"longer than what follows")
    desk.put(b"hangs")
    time.sleep(60)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_crashes_and_hangs_leave_their_input(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="ended with code -9: see fuzz-failure"):
        fuzz.watch(crash)
    assert (tmp_path / "fuzz-failure.bin").read_bytes() == b"crashes"
    monkeypatch.setattr(fuzz, "HANGS", 0.5)
    with pytest.raises(RuntimeError, match=r"no answer for 0\.5 s: see fuzz-failure"):
        fuzz.watch(hang)
    assert (tmp_path / "fuzz-failure.bin").read_bytes() == b"hangs"


# In a process of its own: a fork would begin with the peak of the tests that ran before, and what
# grows below that peak is not seen.
TAKES_MEMORY = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from fuzz import fuzz_model_files as fuzz
fuzz.try_one = lambda _, data: np.ones(len(data) ** 2 << 17, np.uint8).any()
tally = fuzz.Tally("catboost")
tally.add(b"{}")  # its memory is measured by Python; that of the next one by the process alone
tally.add(b"{" * 50)
"""


def test_the_memory_of_every_input_counts():
    tests = str(Path(__file__).parents[1])
    ended = subprocess.run(
        [sys.executable, "-c", TAKES_MEMORY, tests], capture_output=True, text=True, check=False
    )
    assert re.search(r"MemoryError: \d+ bytes for a file of 50\n", ended.stderr), ended.stderr
