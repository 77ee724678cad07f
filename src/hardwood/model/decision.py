"""From margins to what people see: means, labels, and the margins at which a label changes.

What a source does after its sum (a sigmoid, a cut, an argmax) is done in floats, and rounds. So the
margin at which its label changes is not computed but found: by bisection over the floats, through
those last steps themselves.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import BoolArray, FloatArray

Task = Literal["classification", "regression", "anomaly", "raw"]
TASKS: tuple[Task, ...] = get_args(Task)

Link = Literal[
    "identity",
    "logistic",
    "softmax",
    "share",
    "exp",
    "square",
    "softplus",
    "one_vs_rest",
    "hinge",
]
LINKS: tuple[Link, ...] = get_args(Link)


# Margins further apart than this differ after a softmax, too: an exponential next to 1, divided by
# a sum, is off by a few units in its last place.
SOFTMAX_TIE = {"float32": 2.0**-20, "float64": 2.0**-49}
MOST_TIE = 1e-3


def last_float(
    holds: Callable[[FloatArray], BoolArray],
    dtype: Any,
    shape: tuple[int, ...] = (),
    most: float | None = None,
) -> FloatArray:
    """Find the largest float for which something holds that never holds again once it fails.

    Parameters
    ----------
    holds : callable
        Takes doubles that are floats of `dtype`, of the given shape, and says where it holds.
    dtype : dtype
        float32 or float64.
    shape : tuple of int, default=()
        How many searches to do at once.
    most : float or None, default=None
        No float beyond this, up or down, is tried; None means any finite one.

    Returns
    -------
    ndarray
        The floats, as doubles; minus infinity where it never holds.
    """
    bits = np.int32 if np.dtype(dtype) == np.float32 else np.int64
    top = int(np.array(most or np.finfo(dtype).max, dtype=dtype).view(bits))
    low = np.full(shape, -top, dtype=np.int64)
    high = np.full(shape, top, dtype=np.int64)
    never = ~holds(_floats(low, dtype))
    always = holds(_floats(high, dtype))
    while np.any(high - 1 > low):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        yes = holds(_floats(middle, dtype))
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    last = np.where(always, _floats(np.full(shape, top), dtype), _floats(low, dtype))
    found: FloatArray = np.where(never, -np.inf, last)
    return found


def _floats(position: npt.NDArray[np.int64], dtype: Any) -> FloatArray:
    """The floats that lie so many places from zero, as doubles."""
    bits = np.int32 if np.dtype(dtype) == np.float32 else np.int64
    size = np.abs(position).astype(bits).view(dtype).astype(np.float64)
    floats: FloatArray = np.where(position < 0, -size, size)
    return floats


def means(
    margin: npt.ArrayLike, link: Link, dtype: Any, divisor: float = 1.0, slope: float = 1.0
) -> FloatArray:
    """Apply a link to margins of shape (n_samples, n_outputs), in the precision of a model."""
    table = np.ascontiguousarray(margin, dtype=np.float64)
    float32 = np.dtype(dtype) == np.float32
    return np.asarray(_core.means(table, getattr(_core.Link, link), divisor, slope, float32))


def cut_of(is_first: Callable[[FloatArray], Any], dtype: Any) -> float:
    """Find the largest margin of one output that still gives the first class.

    `is_first` takes margins of shape (n,) through the last steps of a source.
    """

    def holds(margin: FloatArray) -> BoolArray:
        return np.asarray(is_first(margin.reshape(-1)), dtype=bool).reshape(margin.shape)

    # A finite stand-in keeps infinity out of the arithmetic; no sum of leaves gets there.
    most = float(np.finfo(dtype).max)
    return float(np.clip(last_float(holds, dtype), -most, most))


@lru_cache
def cut_at(
    threshold: float, link: Link, dtype: Any, divisor: float = 1.0, slope: float = 1.0
) -> float:
    """The cut of a source that says the second class where its prediction exceeds a threshold."""
    return cut_of(
        lambda margin: means(margin[:, None], link, dtype, divisor, slope)[:, 0] <= threshold, dtype
    )


def tie_of(
    link: Link, dtype: Any, divisor: float, slope: float, lowest: float, highest: float
) -> float:
    """How far two margins can be apart and yet have the same mean, within a range of margins.

    Infinity where the link gives up telling them apart.
    """
    if link == "softmax":
        return SOFTMAX_TIE[np.dtype(dtype).name] * divisor / slope
    size = max(abs(lowest), abs(highest))
    rounding = 8 * size * float(np.finfo(dtype).eps)
    if link != "one_vs_rest":
        return rounding
    # Towards both ends the logistic function grows flat.
    at = np.array([lowest, highest])
    mean = means(at[:, None], link, dtype, divisor, slope)[:, 0]
    if mean[0] <= 0 or mean[1] >= 1:
        return float("inf")
    below = last_float(
        lambda m: means(m[:, None], link, dtype, divisor, slope)[:, 0] < mean, dtype, (2,)
    )
    return float(np.max(at - below)) + rounding
