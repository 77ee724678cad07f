"""One warning where a threat looks as if it were meant for other units."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
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
    movable = np.flatnonzero(reach.limits[:, :2].any(axis=1) | reach.share.any(axis=1)).tolist()
    # One number for all columns always exceeds a narrow one; it is doubtful if it exceeds them all.
    step = reach.limits[:, :2].max(axis=1)
    wide = [f for f in movable if not _exceeds(step[f], X[:, f])]
    by_column = isinstance(threat.eps, Mapping | list)
    for column in movable:
        present = X[~np.isnan(X[:, column]), column]
        name = column if names is None else names[column]
        exceeds = column not in wide and (by_column or not wide)
        for words in _doubts(threat, reach, column, present, exceeds, _scaler(model)):
            warnings.warn(f"Column {name!r}: {words}", UnitWarning, stacklevel=3)
            return


def _exceeds(step: float, values: FloatArray) -> bool:
    """Whether a step is larger than the whole spread of some values."""
    present = values[~np.isnan(values)]
    spread = float(np.ptp(present)) if len(present) >= _FEW else 0.0
    return 0 < spread < step <= FLOAT32_MAX


def _doubts(
    threat: Threat,
    reach: Reach,
    column: int,
    present: FloatArray,
    exceeds: bool,
    scaler: str | None,
) -> Iterator[str]:
    down, up, low, high = reach.limits[column].tolist()
    sizes = [abs(end) for end in (low, high) if abs(end) < FLOAT32_MAX]
    rounding = _ROUNDING * max(sizes, default=0.0)
    outside = (present < low - rounding) | (present > high + rounding)
    if outside.any():
        value = present[np.argmax(outside)]
        said = f"low={low:g}" if value < low else f"high={high:g}"
        yield (
            f"{np.count_nonzero(outside)} of {len(present)} rows lie outside of the threat's range "
            f"(such as {value:g}, with {said}); the adversary can only move them towards it. Give "
            f"low and high in the units of X."
        )
    if len(present) < _FEW or threat.norm == 0:
        return
    least, most = float(present.min()), float(present.max())
    step = max(down, up)
    if exceeds:
        yield (
            f"a step of {step:g} is larger than the whole spread of its values ({least:g} to "
            f"{most:g}), so any of them can become any other. Give eps in the units of X."
        )
    if scaler and is_number(threat.eps) and 0 < _FAR * step < most - least:
        yield (
            f"eps={threat.eps:g} is in its own unit, in which its values spread from {least:g} to "
            f"{most:g}, not in that of the {scaler} after it; the threat hardly moves it. Give eps "
            f"by column, for instance with Threat.from_frame(X)."
        )


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
