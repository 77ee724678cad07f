"""Columns of categories: which they are, what their categories are called, and their numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hardwood._check import REAL, FloatArray, IntArray, is_missing, need_values

Categories = dict[int, list[Any]]  # by column: the names of 0, 1, ...; none: their own numbers

MOST_CATEGORIES = 2**24  # codes are below this: float32 tells them apart, and so does XGBoost


def is_frame(X: Any) -> bool:
    """Whether a table has columns of their own types, as those of pandas and polars."""
    return getattr(X, "columns", None) is not None and len(getattr(X, "shape", ())) == 2


def learn_categories(X: Any, given: Any) -> Categories:
    """Find the columns that `categorical_features` means, and the names of their categories."""
    frame = is_frame(X)
    if given is None or (isinstance(given, str) and given == "auto" and not frame):
        return {}
    if hasattr(X, "tocsr"):
        raise ValueError(
            f"categorical_features={given!r} cannot be kept with a sparse X, whose zeros are "
            f"numbers; pass a dense table."
        )
    if not frame:
        return {feature: [] for feature in _positions(given, np.shape(X)[1], None)}
    columns = _columns(X)
    if isinstance(given, str) and given == "auto":
        return {f: _names(column) for f, column in enumerate(columns) if _is_category(column)}
    positions = _positions(given, len(columns), list(X.columns))
    return {feature: _names(columns[feature]) for feature in positions}


def encode(
    X: Any,
    categories: Categories,
    feature_names: Sequence[str] | None,
    unseen: float | None = None,
) -> Any:
    """Replace the names of categories in a frame by their numbers; arrays hold numbers already.

    A name that training did not see becomes `unseen`, by default the number after the last one: no
    split lists it, so it goes where missing values go. Columns that are not there are left to who
    checks the names; those that hold neither numbers nor names are refused.
    """
    need_values(X)
    if not is_frame(X):
        return X
    names = list(X.columns)
    for feature, known in categories.items():
        at: int | None = feature
        if feature_names is not None:
            name = feature_names[feature]
            at = names.index(name) if name in names else None
        if at is None or at >= len(names) or not known:
            continue
        column = X[names[at]]
        codes = _codes(column, names[at], known, float(len(known)) if unseen is None else unseen)
        if hasattr(X, "isetitem"):  # pandas; a copy of the frame, not of its columns
            X = X.copy(deep=False)
            X.isetitem(at, codes)
        else:
            X = X.with_columns(type(column)(names[at], codes))
    if not all(map(_is_number, X.dtypes)):
        for name, column in zip(names, _columns(X), strict=True):
            if feature_names is None or name in feature_names:
                _refuse_no_numbers(column, name)
    return X


def _is_number(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)  # of numpy and of pandas
    return kind in tuple("buif") if kind is not None else bool(dtype.is_numeric())


def _refuse_no_numbers(column: Any, name: Any) -> None:
    """Refuse what would become a number by accident, such as a date, or none at all."""
    if _is_number(column.dtype) or _has_names(column):
        return
    for value in column.to_list():
        if isinstance(value, (*REAL, str)):
            continue
        if np.ndim(value) > 0 or not is_missing(value):
            raise ValueError(
                f"Column {name!r} of X holds {value!r}, which is no real number; encode it as one, "
                f"a date for instance as the days since another, or leave the column out."
            )


def check_codes(X: Any, categories: Categories) -> None:
    """Refuse what cannot be the number of a category."""
    for feature in categories:
        column = X[:, feature]
        odd = (column != np.trunc(column)) | (column < 0) | (column >= MOST_CATEGORIES)
        odd &= ~np.isnan(column)
        if odd.any():
            row = int(np.argmax(odd))
            raise ValueError(
                f"categorical_features names column {feature}, whose categories must be whole "
                f"numbers from 0 to {MOST_CATEGORIES - 1}, but X[{row}, {feature}] = "
                f"{column[row]:g}. Number them, or pass a data frame with their names."
            )


def known_codes(X: Any, categories: Categories) -> dict[int, IntArray]:
    """The numbers of the categories that training knows, by column, increasing."""
    return {
        feature: np.arange(len(names), dtype=np.int32)
        if names
        else np.unique(X[~np.isnan(X[:, feature]), feature]).astype(np.int32)
        for feature, names in categories.items()
    }


def whole_columns(X: Any, categories: Categories) -> list[int]:
    """Columns of a frame that hold whole numbers; an array does not say so."""
    if not is_frame(X):
        return []
    kinds = [_is_whole(column.dtype) for column in _columns(X)]
    return [feature for feature, whole in enumerate(kinds) if whole and feature not in categories]


def _is_whole(dtype: Any) -> bool:
    kind = getattr(dtype, "kind", None)  # of numpy and of pandas
    return kind in tuple("iu") if kind is not None else bool(dtype.is_integer())


def _columns(X: Any) -> list[Any]:
    columns = [X[name] for name in X.columns]
    for name, column in zip(X.columns, columns, strict=True):
        if getattr(column, "ndim", 1) != 1:
            raise ValueError(f"X has several columns named {name!r}; give each its own name.")
    return columns


def _is_category(column: Any) -> bool:
    """Categories, strings, truth values; objects only if there is such a thing among them."""
    if str(column.dtype) == "object":
        return any(isinstance(value, str | bool | np.bool_) for value in column)
    return _has_names(column)


def _has_names(column: Any) -> bool:
    """Whether the type of a column says that it holds names of categories, or truth values."""
    kind = str(column.dtype).lower()
    return kind.startswith(("categor", "enum", "bool", "str", "large_str"))


def _distinct(column: Any) -> list[Any]:
    """The values of a column, each once, without missing ones."""
    present = column.dropna() if hasattr(column, "dropna") else column.drop_nulls()
    values = present.unique()
    listed = values.to_list() if hasattr(values, "to_list") else values.tolist()
    return [value for value in listed if value == value]  # NaN is not, and missing too


def _names(column: Any) -> list[Any]:
    kind = str(column.dtype).lower()
    if kind.startswith("bool"):
        return [False, True]
    if kind == "category":
        declared: list[Any] = column.cat.categories.tolist()
        return declared
    if kind.startswith("enum"):
        listed: list[Any] = column.cat.get_categories().to_list()
        return listed
    names = _distinct(column)
    if all(isinstance(name, float) and name.is_integer() for name in names):
        names = [int(name) for name in names]  # numbers beside missing ones
    return in_order(names)


def in_order(names: Iterable[Any]) -> list[Any]:
    """Names of categories in the order of their numbers."""
    try:
        return sorted(names)
    except TypeError:  # of several types
        return sorted(names, key=lambda name: (type(name).__name__, str(name)))


def _codes(column: Any, called: Any, known: Sequence[Any], unseen: float) -> FloatArray:
    """The numbers of the names in a column."""
    if hasattr(column, "factorize"):  # pandas: -1 where missing
        code, values = column.factorize()
        own = values.tolist()
    else:
        given = column.to_list()
        own = list(dict.fromkeys(given))
        place = {value: at for at, value in enumerate(own)}
        code = np.fromiter((place[value] for value in given), np.intp, len(given))
    position = {name: float(at) for at, name in enumerate(known)}
    present = [value for value in own if value is not None and value == value]
    if present and all(isinstance(name, str) for name in known):
        if not any(isinstance(value, str) for value in present):
            raise ValueError(
                f"Column {called!r} holds {present[0]!r}, but it was trained on names of "
                f"categories such as {known[0]!r}; pass the names."
            )
    number = [
        position.get(value, unseen) if value is not None and value == value else np.nan
        for value in own
    ]
    codes: FloatArray = np.array([*number, np.nan])[code]
    return codes


def _positions(given: Any, n_features: int, names: list[Any] | None) -> list[int]:
    """Positions of columns given by name, by position or by a mask."""
    if isinstance(given, str | bytes) or isinstance(given, Mapping):
        raise ValueError(
            f'categorical_features must be "auto", a list of names or positions, a mask or None, '
            f"got categorical_features={given!r}."
        )
    listed = np.asarray(given, dtype=object)
    if listed.ndim != 1:
        raise ValueError(
            f"categorical_features must be a list, got an array of shape {listed.shape}."
        )
    entries = listed.tolist()
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != n_features:
            raise ValueError(
                f"categorical_features is a mask with {len(entries)} entries but X has "
                f"{n_features} features; pass one entry per feature."
            )
        return [feature for feature, marked in enumerate(entries) if marked]
    return sorted({_position(entry, n_features, names) for entry in entries})


def _position(entry: Any, n_features: int, names: list[Any] | None) -> int:
    if isinstance(entry, str):
        if names is None or entry not in names:
            shown = "have no names" if names is None else f"are {names!r}"
            raise ValueError(
                f"categorical_features names the column {entry!r}, but the columns {shown}."
            )
        return names.index(entry)
    if isinstance(entry, bool | np.bool_) or not isinstance(entry, int | np.integer):
        raise ValueError(
            f"categorical_features must hold names or positions of columns, got {entry!r}."
        )
    if not 0 <= entry < n_features:
        raise ValueError(
            f"categorical_features names column {entry}, but there are {n_features} columns "
            f"(0 to {n_features - 1})."
        )
    return int(entry)
