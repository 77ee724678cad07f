"""A threat as the core's searches know it."""

import numpy as np

from hardwood import _core
from hardwood._check import FloatArray
from hardwood.threat import Norm, Reach

_NORMS = {
    "inf": _core.Norm.inf,
    1: _core.Norm.one,
    2: _core.Norm.two,
    0: _core.Norm.zero,
}


def core_norm(norm: Norm) -> _core.Norm:
    """The norm as the core calls it."""
    return _NORMS[norm]


def budget(reach: Reach, norm: Norm) -> _core.Budget:
    """How moves are measured and what bounds them."""
    n_features = len(reach.limits)
    n_codes = [len(reach.changes.get(f, ())) for f in range(n_features)]
    becomes = [one for f in range(n_features) for one in reach.changes.get(f, ())]
    return _core.Budget(
        norm=core_norm(norm),
        radius=reach.radius,
        reach=reach.ends,
        down_scale=reach.down_scale,
        up_scale=reach.up_scale,
        code_start=np.concatenate([[0], np.cumsum(n_codes)]).astype(np.int64),
        becomes_start=np.concatenate([[0], np.cumsum([len(t) for t in becomes])]).astype(np.int64),
        becomes=np.concatenate([*becomes, np.empty(0, dtype=np.int32)]).astype(np.int32),
        blank=reach.blank.astype(np.uint8),
        unit=reach.unit,
        max_changes=reach.max_changes,
    )


def check_whole(X: FloatArray, reach: Reach, names: list[str] | None) -> None:
    """Refuse rows with a fraction where the threat says that all values are whole numbers."""
    if not reach.whole.any():
        return
    part = X[:, reach.whole]
    wrong = np.argwhere((part != np.floor(part)) & ~np.isnan(part))
    if len(wrong) == 0:
        return
    row, position = wrong[0]
    feature = int(np.flatnonzero(reach.whole)[position])
    column = feature if names is None else names[feature]
    raise ValueError(
        f"Column {column!r} holds whole numbers only, as the threat says, but row {row} has "
        f"{float(X[row, feature])!r}; leave the column out of integer, or round its values."
    )
