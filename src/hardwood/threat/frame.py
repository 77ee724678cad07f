"""What a data frame says about its columns: which hold whole numbers, and how far they spread."""

from typing import Any

import numpy as np

from hardwood import _check
from hardwood.threat.steps import is_number, plain

_PERCENTILES = (5, 95)


def _kind(column: Any) -> str:
    """NumPy's letter for the kind of a column's values; "O" for what NumPy does not know."""
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "is_integer") and hasattr(dtype, "is_float"):  # polars
        return "i" if dtype.is_integer() else "f" if dtype.is_float() else _bool_or_not(dtype)
    return str(getattr(dtype, "kind", "O"))


def _bool_or_not(dtype: Any) -> str:
    return "b" if str(dtype) == "Boolean" else "O"


def steps_of(X: Any, share: float) -> dict[str, Any]:
    """The arguments of a `Threat`: eps by column, and for a frame its columns of whole numbers."""
    share = plain(share)
    if not is_number(share) or not 0 <= share < np.inf:
        raise ValueError(f"share must be a finite number >= 0, got share={share!r}.")
    if getattr(X, "columns", None) is not None and len(X) == 0:
        raise ValueError("X has no rows, so its columns have no spread; pass at least two.")
    if getattr(X, "columns", None) is None:
        table = _check.as_table(X)
        return {"eps": [share * _spread(table[:, f]) for f in range(table.shape[1])]}
    eps: dict[str, float] = {}
    integer: list[str] = []
    for name in X.columns:
        kind = _kind(X[name])
        if kind not in "iuf":  # to turn a truth value is all of its spread, not a share
            continue
        spread = _spread(_check.as_table(X[[name]])[:, 0])
        if spread > 0:
            eps[name] = share * spread if kind == "f" else max(1, round(share * spread))
        if kind != "f":
            integer.append(name)
    return {"eps": eps, "integer": integer}


def _spread(column: Any) -> float:
    present = column[np.isfinite(column)]
    if len(present) == 0:
        return 0.0
    low, high = np.percentile(present, _PERCENTILES)
    return float(high - low) or float(present.std())
