"""What the columns of a model's own users may hold: categories, blanks, what nobody reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood import _check
from hardwood._check import FloatArray


@dataclass(frozen=True)
class Columns:
    """Beside their names, what is special about the columns of a pipeline; all by position.

    Attributes
    ----------
    takes_unknown : frozenset of int
        Columns of categories in which the model takes names that it has not seen; all of these are
        one category, the one after the last name.
    needs_value : frozenset of int
        Columns in which the model takes no missing value.
    unread : frozenset of int
        Columns that nothing depends on; they may hold anything, and count as missing.
    refused : tuple of (int, float, float)
        Ranges of numbers that the model does not take, such as those without a logarithm: column,
        first number, and the first one after the range.
    """

    takes_unknown: frozenset[int] = frozenset()
    needs_value: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    refused: tuple[tuple[int, float, float], ...] = ()

    @property
    def own(self) -> bool:
        """Whether there is nothing but what our own estimators have: unknown categories."""
        return self == Columns(takes_unknown=self.takes_unknown)

    def possible(
        self, rows: FloatArray, names: Mapping[int, Sequence[Any]], rng: np.random.Generator
    ) -> FloatArray:
        """Replace what the columns cannot hold: impossible categories by some that are known."""
        rows = rows.copy()
        for column, known in names.items():
            value = rows[:, column]
            n = len(known) + (column in self.takes_unknown)
            bad = (value != np.trunc(value)) | (value < 0) | (value >= n)
            bad &= ~np.isnan(value)
            value[bad] = rng.integers(0, n, int(bad.sum()))
        for column in self.needs_value:
            value, gone = rows[:, column], np.isnan(rows[:, column])
            n = len(names.get(column, ())) or 2
            value[gone] = rng.integers(0, n, int(gone.sum()))
        rows[:, sorted(self.unread)] = np.nan
        return rows

    def check(
        self,
        table: FloatArray,
        feature_names: Sequence[str] | None,
        names: Mapping[int, Sequence[Any]],
    ) -> None:
        """Refuse rows that the model itself refuses: blanks and categories by their column."""
        held = np.where(np.isin(np.arange(table.shape[1]), sorted(self.needs_value)), table, 0)
        _check.nothing_missing(held, feature_names)
        for column, known in names.items():
            most = len(known) + (column in self.takes_unknown)
            value = table[:, column]
            odd = np.flatnonzero((value < 0) | (value >= most))
            if len(odd):
                name = column if feature_names is None else feature_names[column]
                raise ValueError(
                    f"Column {name!r} holds the category {value[odd[0]]:g} in row {odd[0]}, which "
                    f"the model has not seen; it knows 0 to {most - 1}."
                )
        for column, low, high in self.refused:
            value = table[:, column]
            odd = np.flatnonzero((value >= low) & (value < high))
            if len(odd):
                name = column if feature_names is None else feature_names[column]
                raise ValueError(
                    f"Column {name!r} holds {value[odd[0]]:g} in row {odd[0]}, which the model "
                    f"does not take: its own steps refuse it. Leave the row out."
                )
