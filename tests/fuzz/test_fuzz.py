"""The fuzzer in short: every format, and the fuzzer itself held against a planted error."""

import random

import pytest

from fuzz import fuzz_model_files as fuzz


@pytest.mark.parametrize("name", fuzz.formats())
def test_broken_files_are_refused_or_predict(name):
    seeds, change = fuzz.formats()[name]
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
