"""The first raw value at which a column of a pipeline crosses a number, found by asking it."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FLOAT32_MAX, BoolArray, FloatArray, stored

END = FLOAT32_MAX  # no row holds more, up or down
_FEW_ROWS = 256  # a call of the steps costs more than so many rows

Ask = Callable[[FloatArray], Any]


@dataclass(frozen=True)
class Query:
    """The question where a column that depends on `raw` crosses `value` between two raw values.

    A rising column is at or above the value from there on, a falling one below it.
    """

    ask: Ask  # rows of raw columns, as columns of which one is asked about
    column: int
    raw: int
    value: float
    start: float
    end: float
    sense: int


def first_where(queries: Sequence[Query], base: FloatArray) -> FloatArray:
    """Answer queries, all at once: a raw value from `start` on, or `end` where there is none.

    `base` is a row that the pipeline takes; one value of it is replaced.
    """
    found = np.empty(len(queries))
    by_ask: dict[Ask, list[int]] = defaultdict(list)
    for i, query in enumerate(queries):
        by_ask[query.ask].append(i)
    for ask, places in by_ask.items():
        found[places] = _first_where([queries[i] for i in places], ask, base)
    return found


def _first_where(queries: Sequence[Query], ask: Ask, base: FloatArray) -> FloatArray:
    by_raw: dict[int, list[int]] = defaultdict(list)
    for i, query in enumerate(queries):
        by_raw[query.raw].append(i)
    n_rows = max(map(len, by_raw.values()))
    # A call asks about one place of what is left of each column, or about seven.
    bits = 3 if n_rows <= _FEW_ROWS else 1
    part = np.arange(1, 2**bits)[:, None]
    rows = np.tile(base, (n_rows * len(part), 1))
    row = np.empty(len(queries), dtype=np.int64)
    for places in by_raw.values():
        row[places] = np.arange(len(places))
    raw = np.array([q.raw for q in queries])
    column = np.array([q.column for q in queries])
    value = np.array([q.value for q in queries])
    rising = np.array([q.sense > 0 for q in queries])

    at = row + n_rows * (part - 1)

    def crossed(position: npt.NDArray[np.int64]) -> BoolArray:
        rows[at, raw] = _float_at(position)
        given = dense(ask(rows))[at, column]
        return np.asarray(np.where(rising, given >= value, given < value), dtype=bool)

    low = position_of(np.array([q.start for q in queries]))  # the first that may have crossed
    last = position_of(np.minimum([np.nextafter(q.end, -np.inf) for q in queries], END))
    high = last + 1  # the first that is known to have, or the end
    while np.any(low < high):
        spread = np.maximum((high >> bits) - (low >> bits), 1)  # without overflow
        places = np.minimum(low + (spread * part - 1), np.maximum(high - 1, low))
        yes = crossed(np.minimum(places, last)) | (places >= high)
        # What does not cross does not cross before, either.
        low = np.where(yes, low, places + 1).max(axis=0)
        high = np.where(yes, np.minimum(places, high), high).min(axis=0)
    ends = np.array([q.end for q in queries])
    found: FloatArray = np.where(low > last, ends, _float_at(np.minimum(low, last)))
    return found


def dense(table: Any, *, missing_zeros: bool = False) -> FloatArray:
    """What a step gives, as numbers; a sparse table's zeros are missing where a model says so."""
    if hasattr(table, "tocsr"):
        return stored(table) if missing_zeros else np.asarray(table.toarray(), dtype=np.float64)
    if hasattr(table, "to_numpy"):
        table = table.to_numpy()
    return np.asarray(table, dtype=np.float64)


def position_of(value: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """How many floats lie between zero and a value, with its sign."""
    given = np.asarray(value, dtype=np.float64) + 0.0  # no negative zero
    bits = np.abs(given).view(np.int64)
    placed: npt.NDArray[np.int64] = np.where(given < 0, -bits, bits)
    return placed


def float_at(position: int) -> float:
    """The float at a position."""
    return float(_float_at(np.asarray(position, dtype=np.int64)))


def _float_at(position: npt.NDArray[np.int64]) -> FloatArray:
    size = np.abs(position).view(np.float64)
    floats: FloatArray = np.where(position < 0, -size, size)
    return floats
