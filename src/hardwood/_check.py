"""The only place where user arrays are checked and converted for the core."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]

FLOAT32_MAX = float(np.finfo(np.float32).max)
MAX_VALUES = 2**31 - 1  # of a training table: rows x features


def thread_count(n_jobs: int | None) -> int:
    """Threads for `n_jobs`, as joblib counts: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores.")
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def column_names(X: Any) -> list[str] | None:
    """The column names of a data frame whose names are all strings, else None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def rows(
    X: Any,
    n_features: int,
    feature_names: list[str] | None = None,
    categories: Mapping[int, Sequence[Any] | None] | None = None,
) -> FloatArray:
    """Rows for a model: float64, C order, the model's columns; NaN allowed, infinity not.

    `categories` names the features that hold categories and, where the model knows them, the names
    of the categories 0, 1, ...; an empty list: they are called by their own numbers.
    """
    names = column_names(X)
    if names is not None and feature_names is not None and names != feature_names:
        missing = [name for name in feature_names if name not in names]
        if missing:
            shown = ", ".join(repr(name) for name in missing[:5])
            raise ValueError(
                f"X has {len(names)} features but the model was trained on {n_features}; "
                f"missing: {shown}."
            )
        X = X[feature_names]
    if categories and getattr(X, "columns", None) is not None and X.shape[1] == n_features:
        X = _numbers(X, categories)
    table = as_table(X)
    if table.shape[1] != n_features:
        raise ValueError(
            f"X has {table.shape[1]} features but the model was trained on {n_features}."
        )
    if len(table) == 0:
        raise ValueError("X has no rows; pass at least one.")
    finite_float32(table)
    for feature in categories or ():
        column = table[:, feature]
        broken = np.flatnonzero((column != np.trunc(column)) & ~np.isnan(column))
        if len(broken):
            raise ValueError(
                f"Feature {feature} of this model holds categories, which are whole numbers, but "
                f"X[{broken[0]}, {feature}] = {column[broken[0]]}."
            )
    return table


def _numbers(X: Any, categories: Mapping[int, Sequence[Any] | None]) -> FloatArray:
    """A data frame as numbers: names of categories become their positions."""
    columns = []
    for feature, name in enumerate(X.columns):
        column = X[name]
        kind = str(column.dtype).lower()
        if feature in categories and (
            kind.startswith(("categor", "enum")) or np.asarray(column).dtype.kind not in "buif"
        ):
            columns.append(_positions(column, name, categories[feature]))
        else:
            columns.append(np.asarray(column, dtype=np.float64))
    return np.column_stack(columns)


def _positions(column: Any, name: Any, known: Sequence[Any] | None) -> FloatArray:
    if known is None:
        raise ValueError(
            f"Column {name!r} holds names of categories, but this model knows only their numbers; "
            f"replace them by the numbers that it was trained on."
        )
    if not known:
        return np.asarray(column, dtype=np.float64)
    position_of = {category: float(position) for position, category in enumerate(known)}
    given = np.asarray(column, dtype=object).tolist()
    missing = [value is None or value != value for value in given]
    unseen = [
        value
        for value, gone in zip(given, missing, strict=True)
        if not gone and value not in position_of
    ]
    if unseen:
        shown = ", ".join(repr(category) for category in list(known)[:8])
        raise ValueError(
            f"Column {name!r} holds the category {unseen[0]!r}, which the model has not seen; it "
            f"knows {shown}{', ...' if len(known) > 8 else ''}."
        )
    return np.array(
        [np.nan if gone else position_of[value] for value, gone in zip(given, missing, strict=True)]
    )


def as_table(X: Any) -> FloatArray:
    """Any table as float64 in C order."""
    table = np.ascontiguousarray(X, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (n_samples, n_features), got shape {table.shape}; "
            f"for one row use X.reshape(1, -1)."
        )
    return table


def countable(X: Any) -> None:
    """Refuse tables with more values than the core is made for, before they are copied."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[0] * shape[1] > MAX_VALUES:
        raise ValueError(
            f"X has {shape[0]} rows x {shape[1]} features = {shape[0] * shape[1]} values; at most "
            f"{MAX_VALUES} can be trained on. Use a sample of the rows, or fewer features."
        )


def targets(y: Any) -> npt.NDArray[np.float32]:
    """Numbers to predict, in the precision of the margin."""
    given = np.asarray(y, dtype=np.float64)
    bad = ~(np.abs(given) <= FLOAT32_MAX)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"y contains NaN, infinity or a value too large for dtype('float32'): "
            f"y[{i}] = {given[i]}. Rescale y, or leave the row out."
        )
    return given.astype(np.float32)


def weights(weight: FloatArray) -> npt.NDArray[np.float32]:
    """Positive weights of rows, in the precision of the gradients."""
    with np.errstate(over="ignore", under="ignore"):
        single = weight.astype(np.float32)
    bad = ~((single > 0) & np.isfinite(single))
    if bad.any():
        raise ValueError(
            f"Weights must be numbers that dtype('float32') can hold, got {weight[bad][0]}; "
            f"rescale sample_weight or class_weight."
        )
    return single


def finite_float32(table: Any) -> None:
    """Refuse infinite values and values that float32 would turn into infinity."""
    if hasattr(table, "tocsr"):  # sparse; asked without importing scipy
        finite_float32(table.data[None, :])
        return
    if table.size == 0:
        return
    # Reduced first: a table of comparisons would be as large as the table.
    largest, smallest = np.fmax.reduce(table, axis=None), np.fmin.reduce(table, axis=None)
    if largest > FLOAT32_MAX or smallest < -FLOAT32_MAX:
        bad = np.abs(table) > FLOAT32_MAX
        i, j = np.argwhere(bad)[0]
        raise ValueError(
            f"X contains infinity or a value too large for dtype('float32'): "
            f"X[{i}, {j}] = {table[i, j]}. Use NaN for missing values, and rescale large ones."
        )


def labels(y: Any, classes: npt.NDArray[Any] | None, n_classes: int, n_rows: int) -> IntArray:
    """Labels as positions in `classes` (or as they are, 0 to n_classes - 1, without classes)."""
    given = np.asarray(y)
    if given.ndim != 1 or len(given) != n_rows:
        raise ValueError(
            f"y has shape {given.shape} but X has {n_rows} rows; pass one label per row."
        )
    known = list(range(n_classes)) if classes is None else classes.tolist()
    # A look-up, not a search: labels of different types have no order.
    position_of = {label: position for position, label in enumerate(known)}
    position = np.array([position_of.get(label, -1) for label in given.tolist()], dtype=np.int32)
    if np.any(position < 0):
        unseen = given.tolist()[np.argmax(position < 0)]
        raise ValueError(
            f"y contains {unseen!r}, which the model has not seen; its labels are {known!r}."
        )
    return position
