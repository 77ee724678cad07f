"""Rows as their user gave them: a matrix of the model's numbers goes back into the same kind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import BoolArray, FloatArray
from hardwood.model.trees import Trees
from hardwood.model.words import number, pair


class Change(NamedTuple):
    """What an example changes in one column."""

    column: Any
    old: Any
    new: Any

    def __str__(self) -> str:
        if isinstance(self.old, float) and isinstance(self.new, float):
            old, new = pair(self.old, self.new)
        else:
            old, new = (_word(value) for value in (self.old, self.new))
        return f"{self.column} {old} -> {new}"


class Changes(tuple[Change, ...]):
    """What an example changes: a tuple of `Change`, and as text one line of words."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join(map(str, self))

    __repr__ = __str__


def _word(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Given:
    """A user's rows beside the same as numbers.

    Attributes
    ----------
    X : object
        The rows as given: an array, a sparse table, or a data frame in any order of columns.
    table : ndarray of shape (n_samples, n_features)
        The same as the model's numbers.
    trees : Trees or None
        The model, which knows its columns; None where nobody knows it.
    """

    X: Any
    table: FloatArray
    trees: Trees | None = None

    @property
    def names(self) -> list[Any]:
        """What the columns are called: as in the frame, by the model, or by their positions."""
        frame = _check.column_names(self.X)
        known = None if self.trees is None else self.trees.feature_names
        if frame is None and self.is_frame:  # called by numbers, and read in their order
            return list(self.X.columns)
        if known is None:
            return frame or list(range(self.table.shape[1]))
        if frame is None:
            return known
        place = [_check.named(name, frame) for name in known]
        return [name if at is None else frame[at] for name, at in zip(known, place, strict=True)]

    @property
    def index(self) -> Any:
        """The rows' own names, if the table has them."""
        return getattr(self.X, "index", None) if self.is_frame else None

    @property
    def is_frame(self) -> bool:
        """Whether the rows came as a data frame, each of whose columns has a name of its own."""
        columns = getattr(self.X, "columns", None)
        return columns is not None and len(set(columns)) == len(columns)

    def value(self, column: int, number: float, row: int | None = None) -> Any:
        """A number of a column as its user writes it; `row`: what this row holds, if it is that."""
        names = {} if self.trees is None else self.trees.category_names
        if np.isnan(number):
            return number
        if names.get(column):
            known = names[column]
            if number < len(known):
                return known[int(number)]
            return self._held(column, row)
        return float(number)

    def _held(self, column: int, row: int | None) -> Any:
        """What the user's own row holds, such as a category that the model does not know."""
        if row is None or not self.is_frame:
            return "unknown"
        held = self.X[self.names[column]]
        return (held.iloc if hasattr(held, "iloc") else held)[row]

    def moved(self, Z: FloatArray, there: BoolArray | None = None) -> BoolArray:
        """Which values of the rows are others in a matrix.

        `there` says which rows of it are examples; None: those that are not of NaN alone.
        """
        there = np.any(~np.isnan(Z), axis=1) if there is None else there
        differs: BoolArray = (Z != self.table) & ~(np.isnan(Z) & np.isnan(self.table))
        return np.asarray(differs & there[:, np.newaxis], dtype=np.bool_)

    def changes(self, Z: FloatArray, row: int) -> Changes:
        """What a row of a matrix changes."""
        # In a frame, rows that are no examples are as they were given.
        there = np.ones(len(Z), dtype=np.bool_) if self.is_frame else None
        names = self.names
        return Changes(
            Change(
                names[f],
                self._said(f, self.value(f, float(self.table[row, f]), row)),
                self._said(f, self.value(f, float(Z[row, f]))),
            )
            for f in np.flatnonzero(self.moved(Z, there)[row]).tolist()
        )

    def _said(self, column: int, value: Any) -> Any:
        """A truth value as such, which to a model may be a number."""
        if not self.is_frame or not isinstance(value, float) or value not in (0, 1):
            return value
        return bool(value) if _is_truth(self.X[self.names[column]].dtype) else value

    def back(self, Z: FloatArray, there: BoolArray | None = None) -> Any:
        """A matrix as the kind of table that was given.

        In a data frame columns, dtypes and index stay, but for numbers that a dtype cannot hold;
        rows that are no examples (see `moved`) stay as they were given.
        """
        if not self.is_frame:
            return Z
        moved, names = self.moved(Z, there), self.names
        changed = {
            names[f]: (rows, [self.value(f, float(z)) for z in Z[rows, f]])
            for f in np.flatnonzero(moved.any(axis=0)).tolist()
            for rows in [np.flatnonzero(moved[:, f])]
        }
        if hasattr(self.X, "with_columns"):
            return self.X.with_columns(
                [_polars_column(self.X[name], *new) for name, new in changed.items()]
            )
        frame = self.X.copy()
        for name, (rows, new) in changed.items():
            frame[name] = _pandas_column(frame[name], rows, new)
        return frame


def _pandas_column(column: Any, rows: npt.NDArray[np.intp], new: Sequence[Any]) -> Any:
    """A column with some other values; in its own dtype where that holds them."""
    values = column.astype(object)
    values.iloc[rows] = _plain(new, column.dtype)
    try:
        kept = values.astype(column.dtype)
    except (ValueError, TypeError, OverflowError):
        kept = None
    if kept is not None and _same(kept.iloc[rows].tolist(), new):
        return kept
    if not _are_numbers(new):
        return values
    # A nullable column keeps its <NA>, which NumPy's floats cannot hold.
    return values.astype(np.float64 if isinstance(column.dtype, np.dtype) else "Float64")


def _polars_column(column: Any, rows: npt.NDArray[np.intp], new: Sequence[Any]) -> Any:
    import polars

    values = column.to_list()
    for row, value in zip(rows, _plain(new, column.dtype), strict=True):
        values[row] = None if value != value else value
    try:
        kept = polars.Series(column.name, values, dtype=column.dtype)
    except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
        kept = None
    if kept is not None and _same([kept[int(row)] for row in rows], new):
        return kept
    return polars.Series(column.name, values, dtype=polars.Float64)


def _plain(new: Sequence[Any], dtype: Any) -> list[Any]:
    """Values ready for a column: whole numbers where it holds these."""
    if not _check.is_whole(dtype) or not _are_numbers(new):
        return list(new)
    truth = _is_truth(dtype)
    return [
        value if value != value or value != int(value) else bool(value) if truth else int(value)
        for value in new
    ]


def _is_truth(dtype: Any) -> bool:
    return "bool" in str(dtype).lower()


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, float) for value in values)


def _same(held: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return all(  # pandas' NA is neither equal to anything nor unequal
        _check.is_missing(b) if _check.is_missing(a) else a == b
        for a, b in zip(held, wanted, strict=True)
    )
