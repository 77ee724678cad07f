"""Sums that do not depend on the order of rows, nor on who holds them."""

import itertools
import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood import _sums
from hardwood.grow.part import Part


class Meeting:
    """Threads that hold rows of one table."""

    def __init__(self, n):
        self.barrier = threading.Barrier(n)
        self.given = [None] * n
        self.mine = threading.local()

    def _all(self, values):
        self.given[self.mine.rank] = values.copy()
        self.barrier.wait()
        everybody = np.array(self.given)
        self.barrier.wait()
        return everybody

    def sum(self, values):
        values[:] = self._all(values).sum(axis=0)

    def max(self, values):
        values[:] = self._all(values).max(axis=0)


def run_in_parts(parts, ask):
    """Ask on one thread a part; `ask(part, others)`."""
    meeting = Meeting(len(parts))
    answers = [None] * len(parts)

    def work(rank):
        meeting.mine.rank = rank
        answers[rank] = ask(parts[rank], meeting)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return answers


@given(st.lists(st.floats(-1e300, 1e300), max_size=40), st.integers(0, 40))
def test_total_is_the_exact_sum_in_any_parts(values, cut):
    values = np.array(values)
    exact = math.fsum(values)
    assert _sums.total(values) == exact
    assert _sums.total(values[::-1]) == exact
    parts = [_sums.exact_parts(values[:cut]), _sums.exact_parts(values[cut:])]
    assert _sums.value_of(parts[0] + parts[1]) == exact


def test_total_of_what_is_not_finite():
    assert np.isnan(_sums.total(np.array([1.0, np.inf])))
    assert np.isnan(_sums.mean(np.array([1.0, np.nan]), None))


def test_means_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=1000), rng.random(1000)
    cuts = [slice(0, 3), slice(3, 3), slice(3, 700), slice(700, 1000)]
    for w in (None, weight):
        alone = _sums.mean(values, w)
        assert alone == pytest.approx(np.average(values, weights=w), rel=1e-12)
        parts = [(values[cut], None if w is None else w[cut]) for cut in cuts]
        assert run_in_parts(parts, lambda part, others: _sums.mean(*part, others)) == [alone] * 4


@pytest.mark.parametrize("n", [1, 2, 7, 10, 101])
def test_draws_of_parts_are_those_of_the_whole_table(n):
    whole = np.random.default_rng([3, 4])
    drawn = whole.random(n, dtype=np.float32)
    after = (whole.integers(n), whole.random(2))
    cuts = sorted({0, n // 3, n // 2, n - 1, n})
    stretches = [(a, b - a) for a, b in itertools.pairwise(cuts)]
    held = [tuple(stretches[1:2] + stretches[:1]), (), tuple(stretches[2:])]

    def draw(mine, others):
        rng = np.random.default_rng([3, 4])
        return Part(mine, n, others).draw(rng), (rng.integers(n), rng.random(2))

    for mine, (here, then) in zip(held, run_in_parts(held, draw), strict=True):
        wanted = [drawn[start : start + m] for start, m in mine]
        np.testing.assert_array_equal(here, np.concatenate([*wanted, np.empty(0, np.float32)]))
        assert then[0] == after[0]
        np.testing.assert_array_equal(then[1], after[1])


def test_positions_of_a_part():
    part = Part(((10, 3), (2, 2)), 20)
    np.testing.assert_array_equal(part.number(), [10, 11, 12, 2, 3])
    np.testing.assert_array_equal(part.some_of(np.array([11, 3, 5])), [1, 4])
    assert part.n_rows == 5
