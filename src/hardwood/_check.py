"""The only place where user arrays are checked and converted for the core."""

import math
import os
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _sums

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]

FLOAT32_MAX = float(np.finfo(np.float32).max)
MAX_VALUES = 2**31 - 1  # of a training table: rows x features
REAL = (bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)


THREADS_PER_CORE = 4  # more of them only take memory


def thread_count(n_jobs: Any) -> int:
    """Threads for `n_jobs`: -1 is all cores, -2 all but one, None what the environment says.

    That is OMP_NUM_THREADS, which joblib sets for its workers, or else all cores. Nobody gets more
    than four threads a core, whatever the number.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral)):
        raise ValueError(
            f"n_jobs must be a whole number of threads, -1 for all cores, or None, got "
            f"n_jobs={n_jobs!r}."
        )
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores.")
    cores = core_count()
    if n_jobs is None:
        first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        n_jobs = int(first) if first.isdecimal() and int(first) > 0 else cores
    n_threads = int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
    return min(n_threads, THREADS_PER_CORE * cores)


def core_count() -> int:
    """Cores that this process may use: by its affinity and by the quota of its container."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(cores, math.ceil(min(core_quota(), cores))))


@cache
def core_quota(root: Path = Path("/")) -> float:
    """Cores that the control groups of this process grant it; infinity if they set no limit."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return math.inf
    top = root / "sys/fs/cgroup"
    quota = math.inf
    for _, controllers, path in (line.split(":", 2) for line in groups):
        if controllers == "":  # version 2, alone or beside version 1
            mounts = {"", "unified"}
        elif "cpu" in controllers.split(","):
            mounts = {"cpu", controllers}
        else:
            continue
        for mount in mounts:
            own = top / mount / path.lstrip("/")
            # A limit of any group above holds, too; a container may only see the topmost one.
            for group in (own, *own.parents):
                quota = min(quota, _quota_of(group))
                if group == top:
                    break
    return quota


def _quota_of(group: Path) -> float:
    """The limit of one group: version 2 has it in one file, version 1 in two."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((group / name).read_text() for name in names).split()
        except OSError:
            continue
        if quota not in ("max", "-1"):
            return int(quota) / int(period)
    return math.inf


_INSTEAD = {
    "Table of pyarrow": "X.to_pandas()",
    "RecordBatch of pyarrow": "X.to_pandas()",
    "LazyFrame of polars": "X.collect()",
    "DataFrame of dask": "X.compute(), or ask hw.dask",
}


def need_values(X: Any) -> None:
    """Refuse tables with columns of another kind than those of pandas and polars."""
    name = f"{type(X).__name__} of {type(X).__module__.split('.')[0]}"
    if name in _INSTEAD:
        raise ValueError(
            f"X is a {name}; tables are read as arrays, sparse ones, or data frames of pandas or "
            f"polars. Pass {_INSTEAD[name]}."
        )


def column_names(X: Any) -> list[str] | None:
    """The column names of a data frame whose names are all strings, else None."""
    need_values(X)
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def named(name: str, names: Sequence[str]) -> int | None:
    """Where a name is among others; None if it is not there, or not clearly.

    LightGBM writes the spaces of names as underscores, so these count as equal where no name is.
    """
    if name in names:
        return list(names).index(name)
    plain = name.replace(" ", "_")
    alike = [at for at, other in enumerate(names) if other.replace(" ", "_") == plain]
    return alike[0] if len(alike) == 1 else None


def rows(
    X: Any,
    n_features: int,
    feature_names: list[str] | None = None,
    categories: Mapping[int, Sequence[Any] | None] | None = None,
    unknown: Collection[int] = (),
    unread: Collection[int] = (),
) -> FloatArray:
    """Rows for a model: float64, C order, the model's columns; NaN allowed, infinity not.

    `categories` names the features that hold categories and, where the model knows them, the names
    of the categories 0, 1, ...; an empty list: they are called by their own numbers. Features of
    `unknown` take names that are not listed, too; those of `unread` take anything, and become NaN.
    """
    names = column_names(X)
    if names is not None and feature_names is not None and names != feature_names:
        where = {name: at for at, name in enumerate(names)}
        position = [where[n] if n in where else named(n, names) for n in feature_names]
        gone = [f for f, at in enumerate(position) if at is None]
        missing = [feature_names[f] for f in gone if f not in unread]
        if missing:
            shown = ", ".join(repr(name) for name in missing[:5])
            others = [repr(name) for name in names if name not in feature_names][:5]
            raise ValueError(
                f"X has {len(names)} features but the model was trained on {n_features}; "
                f"missing: {shown}."
                + (f" The model does not know {', '.join(others)}." if others else "")
            )
        if gone:  # columns that nobody reads need not be there
            table = np.full((len(X), n_features), np.nan)
            for f, at in enumerate(position):
                if at is not None and f not in unread:
                    known = {0: (categories or {})[f]} if f in (categories or {}) else None
                    one = as_table(X[[names[at]]], known, [0] if f in unknown else ())
                    table[:, f] = one[:, 0]
            return rows(table, n_features, None, categories, unknown, unread)
        X = X[[names[at] for at in position if at is not None]]
    fits = categories and _width(X) == n_features
    table = as_table(X, categories if fits else None, unknown, unread)
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


def whole_columns(X: Any) -> list[int]:
    """Columns of a data frame that hold whole numbers or truth values."""
    return [at for at, dtype in enumerate(_dtypes(X)) if is_whole(dtype)]


def truth_columns(X: Any) -> list[int]:
    """Columns of a data frame that hold truth values."""
    kinds = [getattr(dtype, "kind", str(dtype)) for dtype in _dtypes(X)]
    return [at for at, kind in enumerate(kinds) if kind in ("b", "Boolean")]


def _dtypes(X: Any) -> list[Any]:
    """What the columns of a data frame hold, whatever they are called; none of an array."""
    return [] if getattr(X, "columns", None) is None else list(X.dtypes)


def is_whole(dtype: Any) -> bool:
    """Whether columns of this dtype hold whole numbers or truth values."""
    kind = getattr(dtype, "kind", None)  # of numpy and of pandas' own
    if kind is not None:
        return kind in "iub"
    return bool(getattr(dtype, "is_integer", bool)()) or str(dtype) == "Boolean"


def _width(X: Any) -> int | None:
    """How many columns a table has in which names of categories can stand."""
    has_names = getattr(X, "columns", None) is not None or _has_objects(X)
    return X.shape[1] if has_names else None


def _has_objects(X: Any) -> bool:
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    return kind in tuple("OUT") and len(getattr(X, "shape", ())) == 2


def _positions(
    column: Any, name: Any, known: Sequence[Any] | None, takes_unknown: bool
) -> FloatArray:
    if known is None:
        raise ValueError(
            f"Column {name!r} holds names of categories, but this model knows only their numbers; "
            f"replace them by the numbers that it was trained on."
        )
    if not known:
        return _numbers(np.asarray(column, dtype=object), f"column {name!r} of X")
    position_of = {category: float(position) for position, category in enumerate(known)}
    given = column.tolist() if isinstance(column, np.ndarray) else list(column)
    missing = [is_missing(value) for value in given]
    unseen = [
        value
        for value, gone in zip(given, missing, strict=True)
        if not gone and value not in position_of
    ]
    if unseen and not takes_unknown:
        shown = ", ".join(repr(category) for category in list(known)[:8])
        raise ValueError(
            f"Column {name!r} holds the category {unseen[0]!r}, which the model has not seen; it "
            f"knows {shown}{', ...' if len(known) > 8 else ''}."
        )
    other = float(len(known))
    return np.array(
        [
            np.nan if gone else position_of.get(value, other)
            for value, gone in zip(given, missing, strict=True)
        ]
    )


def as_table(
    X: Any,
    categories: Mapping[int, Sequence[Any] | None] | None = None,
    unknown: Collection[int] = (),
    unread: Collection[int] = (),
) -> FloatArray:
    """Any table of real numbers as float64 in C order, missing values as NaN.

    A number that float64 cannot hold exactly is refused: the model might compare it exactly. In a
    data frame, names of `categories` become their positions.
    """
    need_values(X)
    if hasattr(X, "tocsr"):  # a sparse table, seen without importing scipy
        X = _dense(X)
    if getattr(X, "columns", None) is not None and len(X.shape) == 2:
        for name in X.columns:
            if getattr(X[name], "ndim", 1) != 1:
                raise ValueError(f"X has several columns named {name!r}; give each its own name.")
        named_columns = [(name, X[name]) for name in X.columns]
    elif categories and _has_objects(X):
        named_columns = [(feature, X[:, feature]) for feature in range(X.shape[1])]
    else:
        named_columns = None
    if named_columns is not None:
        table = np.empty(X.shape, order="C")
        for feature, (name, column) in enumerate(named_columns):
            if feature in unread:
                table[:, feature] = np.nan
            elif categories and feature in categories and _is_named(column, categories[feature]):
                listed, other = categories[feature], feature in unknown
                table[:, feature] = _positions(column, name, listed, other)
            else:
                table[:, feature] = _numbers(column, f"column {name!r} of X")
        return table
    table = np.ascontiguousarray(_numbers(X, "X"))
    if table.ndim != 2:
        raise ValueError(
            f"X must be a table of shape (n_samples, n_features), got shape {table.shape}; "
            f"for one row use X.reshape(1, -1)."
        )
    return table


def stored(X: Any) -> FloatArray:
    """A sparse table written out, with NaN for what it does not store."""
    if len(X.shape) != 2:
        return as_table(X)
    _check_size(X)
    held = X.tocsr().tocoo()  # CSR adds up what is stored twice
    full = np.full(X.shape, np.nan)
    full[held.row, held.col] = _numbers(held.data, "X")
    return full


def _dense(X: Any) -> npt.NDArray[Any]:
    _check_size(X)
    full: npt.NDArray[Any] = X.toarray()
    return full


def _check_size(X: Any) -> None:
    n_values = X.shape[0] * X.shape[1] if len(X.shape) == 2 else 0
    if n_values > MAX_VALUES:
        raise ValueError(
            f"X is sparse with {X.shape[0]} rows x {X.shape[1]} features = {n_values} values; it "
            f"is written out here, which takes at most {MAX_VALUES}. Pass fewer rows at a time."
        )


def _is_named(column: Any, known: Sequence[Any] | None) -> bool:
    """Whether a column of categories holds their names instead of numbers."""
    if known and not isinstance(known[0], str) and list(known) != list(range(len(known))):
        return True
    kind = str(column.dtype).lower()
    return kind.startswith(("categor", "enum")) or np.asarray(column).dtype.kind not in "buif"


def _numbers(given: Any, what: str) -> FloatArray:
    """Real numbers as float64; missing values of any kind become NaN."""
    gone: BoolArray | None = None
    if hasattr(getattr(given, "dtype", None), "numpy_dtype") and given.isna().any():
        # A nullable column of pandas: its whole numbers stay whole.
        gone = np.asarray(given.isna(), dtype=bool)
        given = given.fillna(given.dtype.type(0)).to_numpy(dtype=given.dtype.numpy_dtype)
    elif hasattr(given, "null_count") and given.null_count() and given.dtype.is_integer():
        gone = given.is_null().to_numpy()  # the same of polars
        given = given.fill_null(0)
    try:
        source = np.asarray(given)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{what} must be a table of numbers: {error}.") from None
    kind = source.dtype.kind
    if kind == "O":
        return _from_objects(source, what)
    if kind == "c":
        raise ValueError(
            f"{what} holds complex numbers, which have no order; pass real numbers, for instance "
            f"real and imaginary parts as two columns."
        )
    if kind not in "buif":
        raise ValueError(
            f"{what} holds {source.dtype}, not numbers, first {_first(source)!r}; encode it as "
            f"numbers in the way in which the model was trained."
        )
    numbers = _exactly(source, what)
    if gone is not None:
        numbers[gone] = np.nan
    return numbers


def is_missing(value: Any) -> bool:
    """None, NaN, and the NA and NaT of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _first(source: npt.NDArray[Any]) -> Any:
    return source.ravel()[:1].tolist()[0] if source.size else None


def _from_objects(source: npt.NDArray[Any], what: str) -> FloatArray:
    """Numbers among Python objects, such as those of columns with pandas' NA."""
    numbers = np.full(source.shape, np.nan)
    for at, value in np.ndenumerate(source):
        if is_missing(value):
            continue
        if not isinstance(value, REAL):
            raise ValueError(
                f"{what} holds {value!r} at {list(at)}, which is no real number; encode it as "
                f"numbers in the way in which the model was trained."
            )
        try:
            numbers[at] = value
        except OverflowError:
            numbers[at] = np.inf  # refused with its place, like other values too large
        if isinstance(value, int | np.integer) and np.isfinite(numbers[at]):
            _refuse_rounded(int(value), float(numbers[at]), list(at), what)
    return numbers


def _exactly(source: npt.NDArray[Any], what: str) -> FloatArray:
    """As float64, which must hold whole numbers to the last digit."""
    with np.errstate(over="ignore"):
        numbers = source.astype(np.float64, copy=False)
    if source.dtype.kind in "iu" and source.dtype.itemsize == 8:
        for place in np.argwhere(np.abs(numbers) >= 2.0**53).tolist():
            at = tuple(place)
            _refuse_rounded(int(source[at]), float(numbers[at]), place, what)
    return numbers


def _refuse_rounded(value: int, number: float, place: list[int], what: str) -> None:
    if int(number) != value:
        raise ValueError(
            f"{what} holds {value} at {place}, which float64 rounds to {int(number)}: whole "
            f"numbers beyond 2**53 cannot all be told apart. Use smaller numbers."
        )


def nothing_missing(table: FloatArray, feature_names: Sequence[str] | None) -> None:
    """Refuse missing values, for models whose source does."""
    gone = np.isnan(table)
    if gone.any():
        row, feature = (int(i) for i in np.argwhere(gone)[0])
        column = feature if feature_names is None else feature_names[feature]
        raise ValueError(
            f"X has a missing value (NaN) in row {row}, column {column!r}, but the model was "
            f"loaded from one that takes none. Fill it in as for training, or leave the row out."
        )


def countable(X: Any) -> None:
    """Refuse tables with more values than the core is made for, before they are copied."""
    need_values(X)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[0] * shape[1] > MAX_VALUES:
        raise ValueError(
            f"X has {shape[0]} rows x {shape[1]} features = {shape[0] * shape[1]} values; at most "
            f"{MAX_VALUES} can be trained on. Use a sample of the rows, or fewer features."
        )


def targets(y: Any) -> Float32Array:
    """Numbers to predict, in the precision of the margin."""
    try:
        given = np.asarray(y, dtype=np.float64)
    except ValueError:
        words = [value for value in np.asarray(y).ravel().tolist() if isinstance(value, str)]
        if not words:
            raise
        raise ValueError(
            f"y must be numbers for a model that predicts numbers, got {words[0]!r}; labels are "
            f"for classifiers."
        ) from None
    bad = ~(np.abs(given) <= FLOAT32_MAX)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"y contains NaN, infinity or a value too large for dtype('float32'): "
            f"y[{i}] = {given[i]}. Rescale y, or leave the row out."
        )
    return given.astype(np.float32)


def weights(weight: FloatArray | None, others: _sums.Others | None = None) -> Float32Array | None:
    """Positive weights of rows, in the precision of the gradients.

    A weight counts how often a row is there. Weights that are less than 1 on average would make a
    table lighter than its rows: these are in some other unit, and are scaled to an average of 1.
    """
    if weight is None:
        return None
    mean = _sums.mean(weight, None, others)
    in_rows = mean > 1 - 1e-9  # balanced weights have an average of 1, but for rounding
    if not in_rows and _all_equal(weight, others):
        return None
    with np.errstate(over="ignore", under="ignore"):
        single = (weight if in_rows else weight / mean).astype(np.float32)
    bad = ~((single > 0) & np.isfinite(single))
    if bad.any():
        raise ValueError(
            f"Weights must be numbers that dtype('float32') can hold, got {weight[bad][0]}; "
            f"rescale sample_weight or class_weight."
        )
    return single


def _all_equal(weight: FloatArray, others: _sums.Others | None) -> bool:
    ends = np.array([weight.max(initial=-np.inf), -weight.min(initial=np.inf)])
    if others is not None:
        others.max(ends)
    return bool(ends[0] == -ends[1])


def in_rows(table: Any) -> Any:
    """The same array in C order; a sparse table as it is."""
    if hasattr(table, "tocsr") or table.flags.c_contiguous:
        return table
    return _in_rows([table], table.dtype)


def frame_in_rows(X: Any) -> FloatArray | None:
    """Write a frame of pandas as an array in C order, if its numbers are those of float64."""
    if not hasattr(X, "isetitem") or len(set(X.columns)) < X.shape[1]:
        return None
    types = list(X.dtypes)
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in types):
        return None
    if not types or np.result_type(*types) != np.float64:
        return None
    columns = [X[name].to_numpy()[:, None] for name in X.columns]
    table: FloatArray = _in_rows(columns, np.dtype(np.float64))
    return table


def _in_rows(parts: Sequence[npt.NDArray[Any]], dtype: np.dtype[Any]) -> Any:
    """Parts side by side in C order; few rows at a time, while these are in the cache."""
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    table = np.empty((len(parts[0]), ends[-1]), dtype)
    for begin in range(0, len(table), _ROWS_TOGETHER):
        rows = slice(begin, begin + _ROWS_TOGETHER)
        for part, first, last in zip(parts, ends[:-1], ends[1:], strict=True):
            table[rows, first:last] = part[rows]
    return table


_ROWS_TOGETHER = 2048


def finite_float32(table: Any) -> None:
    """Refuse infinite values and values that float32 would turn into infinity."""
    sparse = hasattr(table, "tocsr")  # asked without importing scipy
    at = _first_infinite(table.data if sparse else table)
    if at is None:
        return
    if sparse:
        stored = table.tocoo()
        at = (int(stored.row[at]), int(stored.col[at]))
    raise ValueError(
        f"X contains infinity or a value too large for dtype('float32'): "
        f"X[{at[0]}, {at[1]}] = {table[at]}. Use NaN for missing values, and rescale large ones."
    )


def _first_infinite(values: npt.NDArray[Any]) -> tuple[int, ...] | None:
    """Where the first value is that float32 cannot hold; piece by piece, to need no memory."""
    step = max(1, 2**17 // max(1, values[:1].size))
    for begin in range(0, len(values), step):
        with np.errstate(invalid="ignore"):
            bad = np.abs(values[begin : begin + step]) > FLOAT32_MAX
        if bad.any():
            first, *rest = (int(i) for i in np.argwhere(bad)[0])
            return (begin + first, *rest)
    return None


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
            f"y contains {unseen!r}, which the model has not seen; its labels are {known!r}. Give "
            f"y as the model was given it."
        )
    return position
