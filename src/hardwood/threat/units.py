"""One warning where a threat looks as if it were meant for other units."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardwood._check import FLOAT32_MAX, FloatArray
from hardwood.errors import UnitWarning
from hardwood.threat.reach import Reach
from hardwood.threat.steps import is_number
from hardwood.threat.threat import Threat

_FEW = 20  # rows that do not show how far a column spreads
_ROUNDING = 1e-9  # of the range: who scales to it may miss it by a float
_FAR = 100  # steps of this number do not cross a column: it is in another unit
_SCALERS = (
    "StandardScaler",
    "MinMaxScaler",
    "MaxAbsScaler",
    "RobustScaler",
    "PowerTransformer",
    "QuantileTransformer",
)


def warn_of_units(
    threat: Threat, reach: Reach, X: FloatArray, names: Sequence[str] | None, model: Any = None
) -> None:
    """Say so, once, if rows lie outside of the range, or steps do not fit the columns."""
    down, up, low, high = reach.limits.T
    step = np.maximum(down, up)
    movable = (step > 0) | reach.share.any(axis=1)
    least = np.fmin.reduce(X, axis=0, initial=np.inf)
    most = np.fmax.reduce(X, axis=0, initial=-np.inf)
    ends = np.abs(reach.limits[:, 2:])
    rounding = _ROUNDING * np.where(ends < FLOAT32_MAX, ends, 0.0).max(axis=1)
    outside = movable & ((least < low - rounding) | (most > high + rounding))
    known = movable & (np.count_nonzero(~np.isnan(X), axis=0) >= _FEW) & (threat.norm != 0)
    spread = np.where(known, most, 0.0) - np.where(known, least, 0.0)
    exceeds = (0 < spread) & (spread < step) & (step <= FLOAT32_MAX)
    if not isinstance(threat.eps, Mapping | list) and (movable & ~exceeds).any():
        # One number for all columns always exceeds a narrow one; it is doubtful if it exceeds all.
        exceeds[:] = False
    scaler = _scaler(model) if is_number(threat.eps) else None
    far = (0 < step) & (_FAR * step < spread) & (scaler is not None)
    doubtful = np.flatnonzero(outside | exceeds | far)
    if not len(doubtful):
        return
    f = doubtful[0]
    if outside[f]:
        column = X[~np.isnan(X[:, f]), f]
        beyond = (column < low[f] - rounding[f]) | (column > high[f] + rounding[f])
        value = column[np.argmax(beyond)]
        said = f"low={low[f]:g}" if value < low[f] else f"high={high[f]:g}"
        words = (
            f"{np.count_nonzero(beyond)} of {len(column)} rows lie outside of the threat's range "
            f"(such as {value:g}, with {said}); the adversary can only move them towards it. Give "
            f"low and high in the units of X."
        )
    elif exceeds[f]:
        words = (
            f"a step of {step[f]:g} is larger than the whole spread of its values ({least[f]:g} to "
            f"{most[f]:g}), so any of them can become any other. Give eps in the units of X."
        )
    else:
        words = (
            f"eps={threat.eps:g} is in its own unit, in which its values spread from {least[f]:g} "
            f"to {most[f]:g}, not in that of the {scaler} after it; the threat hardly moves it. "
            f"Give eps by column, for instance with Threat.from_frame(X)."
        )
    name = int(f) if names is None else names[f]
    warnings.warn(f"Column {name!r}: {words}", UnitWarning, stacklevel=3)


def _scaler(model: Any) -> str | None:
    """The name of a scaler inside a pipeline, if there is one."""
    steps = [step for _, step in getattr(model, "steps", ())]
    steps += [step for _, step, _ in getattr(model, "transformers_", ())]
    for step in steps:
        name = type(step).__name__
        found = name if name in _SCALERS else _scaler(step)
        if found:
            return found
    return None
