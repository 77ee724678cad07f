"""Which rows of a table this process holds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _core, _sums
from hardwood._check import Float32Array


@dataclass(frozen=True)
class Part:
    """Rows of a table: some stretches of it, one after the other.

    Parameters
    ----------
    stretches : tuple of pairs (first row, number of rows)
        Where the rows of this process lie in the whole table.
    n_all : int
        Rows of the whole table.
    others : Communicator or None
        All who hold rows of it; None if this process has them all.
    """

    stretches: tuple[tuple[int, int], ...]
    n_all: int
    others: _core.Communicator | None = None

    @classmethod
    def whole(cls, n_rows: int) -> "Part":
        """All rows of a table."""
        return cls(((0, n_rows),), n_rows)

    @property
    def n_rows(self) -> int:
        """Rows of this process."""
        return sum(n for _, n in self.stretches)

    def number(self) -> npt.NDArray[np.uint32]:
        """Of each row its position in the whole table, modulo 2^32."""
        parts = [np.arange(start, start + n, dtype=np.int64) for start, n in self.stretches]
        return np.concatenate([*parts, np.empty(0, np.int64)]).astype(np.uint32)

    def some_of(self, positions: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Which rows of this process lie at these positions of the whole table."""
        found, before = [], 0
        for start, n in self.stretches:
            inside = positions[(positions >= start) & (positions < start + n)]
            found.append(inside - start + before)
            before += n
        return np.concatenate([*found, np.empty(0, np.int64)]).astype(np.int64)

    def draw(self, rng: np.random.Generator) -> Float32Array:
        """Draw a number for each row: those that `rng.random(n_all)` gives them.

        The generator is left as that call leaves it.
        """
        if self.others is None:
            return rng.random(self.n_all, dtype=np.float32)
        source = rng.bit_generator
        assert isinstance(source, np.random.PCG64)
        begin = source.state
        drawn = []
        for start, n in self.stretches:
            source.state = begin
            source.advance(start // 2)  # two numbers of 32 bits a step
            drawn.append(rng.random(start % 2 + n, dtype=np.float32)[start % 2 :])
        source.state = begin
        source.advance(self.n_all // 2)
        rng.random(self.n_all % 2, dtype=np.float32)
        return np.concatenate([*drawn, np.empty(0, np.float32)])

    def any(self, holds: bool) -> bool:
        """Whether it holds anywhere."""
        return _sums.any_of(holds, self.others)
