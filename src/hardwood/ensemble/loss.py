"""What boosting minimises: derivatives in, and what a margin means out.

Every loss speaks of float32 margins of shape (n_samples, n_outputs) and float32 labels: positions
of classes, or the target itself. The formulas are XGBoost's, so that a natural model is its model.
"""

# ruff: noqa: D102 - `Loss` says what the methods of all losses do

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _core, _sums
from hardwood._check import BoolArray, Float32Array, FloatArray, IntArray
from hardwood.model.decision import Link

CustomLoss = Callable[[npt.NDArray[Any], npt.NDArray[Any]], tuple[npt.ArrayLike, npt.ArrayLike]]

Derivatives = tuple[Float32Array, Float32Array]
Weight = npt.NDArray[np.floating[Any]] | None

_LEAST_HESSIAN = np.float32(1e-16)


class Loss(ABC):
    """A twice differentiable loss of labels and margins."""

    link: Link = "identity"
    n_outputs: int = 1
    max_delta_step: float = 0.0
    """Largest value of a leaf before shrinkage; 0 means no limit."""

    def check(self, y: Float32Array) -> None:  # noqa: B027 - most losses take any label
        """Refuse labels outside the loss's domain."""

    @abstractmethod
    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        """The margin that minimises the loss without any tree, over the rows of all parts."""

    def base_of(self, base_score: Any) -> FloatArray:
        """The margin of a prediction that the user wants to start from."""
        given = np.asarray(base_score, dtype=np.float32)
        if given.shape not in ((), (self.n_outputs,)) or not np.isfinite(given).all():
            raise ValueError(
                f"base_score must be a finite number, or {self.n_outputs} of them, one per output; "
                f"got base_score={base_score!r}."
            )
        return np.broadcast_to(given, self.n_outputs).astype(np.float64)

    @abstractmethod
    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        """First and second derivative by the margin, of its shape; the second one is positive."""

    def derivatives_at(self, base: FloatArray, y: Float32Array) -> Derivatives:
        """The derivatives before any tree."""
        return self.derivatives(y, np.tile(base.astype(np.float32), (len(y), 1)))

    def unit(
        self,
        y: Float32Array,
        weight: Weight,
        base: FloatArray,
        others: _sums.Others | None = None,
    ) -> float:
        """What the gain of one row amounts to, in the unit of the loss: 1 where y has no unit."""
        return 1.0


class KnownLoss(Loss):
    """A loss that can be computed itself, not only its derivatives."""

    @abstractmethod
    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        """The loss of every row."""

    def mean(
        self,
        y: Float32Array,
        margin: Float32Array,
        weight: Weight,
        others: _sums.Others | None = None,
    ) -> float:
        """The mean loss over the rows of all parts."""
        return _sums.mean(self.per_row(y, margin), weight, others)


class RefittedLoss(KnownLoss):
    """A loss whose leaves are refitted, because Newton's step is no guide."""

    @abstractmethod
    def leaf_value(self, residual: Float32Array, weight: Weight) -> float:
        """The best value of a leaf from the residuals of its rows."""

    @abstractmethod
    def leaf_values(
        self,
        residual: Float32Array,
        leaf: IntArray,
        n_nodes: int,
        weight: Weight,
        others: _sums.Others,
    ) -> Float32Array:
        """The best values of all leaves, with rows that others have; NaN where there are none."""


def softmax(margin: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Probabilities of the classes, in the precision of the margin."""
    probability: npt.NDArray[Any] = margin - margin.max(axis=1, keepdims=True)
    np.exp(probability, out=probability)
    probability /= probability.sum(axis=1, keepdims=True)
    return probability


class _CoreLoss(KnownLoss):
    """A loss whose derivatives the core writes down."""

    _write: Callable[..., None]

    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        gradient, hessian = np.empty_like(margin), np.empty_like(margin)
        self._write(y, margin, gradient, hessian, n_threads=n_threads)
        return gradient, hessian


class BinaryLogistic(_CoreLoss):
    """Log loss of two classes."""

    link: Link = "logistic"
    _write = staticmethod(_core.logistic_derivatives)

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        return self.base_of(_sums.mean(y, weight, others))

    def base_of(self, base_score: Any) -> FloatArray:
        probability = super().base_of(base_score).astype(np.float32)
        if not np.all((probability > 0) & (probability < 1)):
            raise ValueError(
                f"base_score is the probability of the second class and must lie between 0 and 1, "
                f"got base_score={base_score!r}."
            )
        # Float32 throughout, as XGBoost reads a saved model.
        one = np.float32(1)
        base: FloatArray = -np.log(one / probability - one).astype(np.float64)
        return base + 0.0  # not -0.0

    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        return np.logaddexp(np.float32(0), np.where(y > 0, -margin[:, 0], margin[:, 0]))


class Softmax(_CoreLoss):
    """Log loss of many classes."""

    link: Link = "softmax"
    _write = staticmethod(_core.softmax_derivatives)

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = n_classes

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        logs = np.log(self.class_weights(y, weight, others))
        return self.base_of(logs - logs.mean())

    def class_weights(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None
    ) -> FloatArray:
        """The weight of each class, over all parts."""
        weight = np.ones(len(y)) if weight is None else weight
        return np.array([_sums.total(weight[y == k], others) for k in range(self.n_outputs)])

    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        own = margin[np.arange(len(y)), y.astype(np.intp)]
        total: npt.NDArray[Any] = np.logaddexp.reduce(margin, axis=1)
        return total - own


class SquaredError(KnownLoss):
    """Half the squared error."""

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        return self.base_of(_sums.mean(y, weight, others))

    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        return margin - y[:, None], np.ones_like(margin)

    def unit(
        self,
        y: Float32Array,
        weight: Weight,
        base: FloatArray,
        others: _sums.Others | None = None,
    ) -> float:
        return _gain_of_a_row(self, y, weight, base, others)

    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        return (margin[:, 0] - y) ** 2 / 2


class Huber(KnownLoss):
    """Quadratic near 0, linear far away, smooth between: XGBoost's pseudo-Huber loss."""

    def __init__(self, slope: float) -> None:
        self.slope: np.float32 = np.float32(slope)

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        return self.base_of(_weighted_quantile(y, weight, 0.5, others))

    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        error: Float32Array = margin - y[:, None]
        square = self.slope * self.slope
        root = np.sqrt(np.float32(1) + error * error / square)
        hessian: Float32Array = square / ((square + error * error) * root)
        gradient: Float32Array = error / root
        return gradient, np.maximum(hessian, _LEAST_HESSIAN)

    def unit(
        self,
        y: Float32Array,
        weight: Weight,
        base: FloatArray,
        others: _sums.Others | None = None,
    ) -> float:
        return min(1.0, _gain_of_a_row(self, y, weight, base, others))

    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        error = (margin[:, 0] - y) / self.slope
        loss: Float32Array = self.slope**2 * (np.sqrt(1 + error * error) - 1)
        return loss


class Poisson(KnownLoss):
    """Negative log likelihood of counts with the mean exp(margin)."""

    link: Link = "exp"
    # The curvature a step ahead, and a limit on the step: exp would leave Newton's parabola.
    max_delta_step = 0.7

    def check(self, y: Float32Array) -> None:
        if np.any(y < 0):
            raise ValueError(
                f'y contains {y[np.argmax(y < 0)]:g}, but loss="poisson" needs counts: y >= 0, '
                f"with a positive sum."
            )

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        if not _sums.any_of(bool(y.any()), others):
            raise ValueError(
                'y is zero for all rows, but loss="poisson" needs a positive sum of y.'
            )
        return self.base_of(_sums.mean(y, weight, others))

    def base_of(self, base_score: Any) -> FloatArray:
        mean = super().base_of(base_score).astype(np.float32)
        if not np.all(mean > 0):
            raise ValueError(
                f"base_score is a mean count and must be positive, got base_score={base_score!r}."
            )
        return np.log(mean).astype(np.float64)

    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        gradient = np.exp(margin)
        gradient -= y[:, None]
        return gradient, np.exp(margin + np.float32(0.7))

    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        loss: Float32Array = np.exp(margin[:, 0]) - y * margin[:, 0]
        return loss


class Quantile(RefittedLoss):
    """Pinball loss; its leaves hold the quantile of the residuals of their rows."""

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        return self.base_of(_weighted_quantile(y, weight, self.quantile, others))

    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        above = margin >= y[:, None]
        gradient = np.where(above, np.float32(1 - self.quantile), np.float32(-self.quantile))
        return gradient, np.ones_like(margin)

    def per_row(self, y: Float32Array, margin: Float32Array) -> npt.NDArray[Any]:
        residual = y - margin[:, 0]
        loss: Float32Array = np.maximum(self.quantile * residual, (self.quantile - 1) * residual)
        return loss

    def leaf_value(self, residual: Float32Array, weight: Weight) -> float:
        return _weighted_quantile(residual, weight, self.quantile)

    def leaf_values(
        self,
        residual: Float32Array,
        leaf: IntArray,
        n_nodes: int,
        weight: Weight,
        others: _sums.Others,
    ) -> Float32Array:
        return _quantiles_of_parts(residual, leaf, n_nodes, weight, self.quantile, others)


class Custom(Loss):
    """Derivatives that the user computes."""

    def __init__(self, function: CustomLoss, n_outputs: int, link: Link) -> None:
        self.function = function
        self.n_outputs = n_outputs
        self.link = link

    def base(
        self, y: Float32Array, weight: Weight, others: _sums.Others | None = None
    ) -> FloatArray:
        return np.zeros(self.n_outputs)

    def derivatives(self, y: Float32Array, margin: Float32Array, n_threads: int = 1) -> Derivatives:
        shown = margin[:, 0] if self.n_outputs == 1 else margin
        given = self.function(y, shown.copy())
        if not isinstance(given, tuple) or len(given) != 2:
            raise ValueError(
                f"loss must return a pair (gradient, hessian), got {type(given).__name__}."
            )
        gradient, hessian = (np.asarray(part, dtype=np.float32) for part in given)
        for name, part in (("gradient", gradient), ("hessian", hessian)):
            if part.shape != shown.shape:
                raise ValueError(
                    f"loss returned a {name} of shape {part.shape}; expected {shown.shape}, the "
                    f"shape of the margin."
                )
            if not np.isfinite(part).all():
                wrong = part[~np.isfinite(part)][0]
                raise ValueError(f"loss returned a {name} of {wrong}; it must be finite.")
        if not np.all(hessian > 0):
            raise ValueError(
                f"loss returned a hessian of {hessian[~(hessian > 0)][0]:g}; it must be positive. "
                f"Where the loss is not convex, return a small positive number."
            )
        shape = margin.shape
        return gradient.reshape(shape).copy(), hessian.reshape(shape).copy()

    def unit(
        self,
        y: Float32Array,
        weight: Weight,
        base: FloatArray,
        others: _sums.Others | None = None,
    ) -> float:
        return min(1.0, _gain_of_a_row(self, y, weight, base, others))


def _gain_of_a_row(
    loss: Loss,
    y: Float32Array,
    weight: Weight,
    base: FloatArray,
    others: _sums.Others | None,
) -> float:
    """The mean of g^2 over that of h where nothing is learned yet: for squares the variance."""
    gradient, hessian = loss.derivatives_at(base, y)
    return max(
        _sums.mean(gradient[:, k].astype(np.float64) ** 2, weight, others)
        / _sums.mean(hessian[:, k], weight, others)
        for k in range(loss.n_outputs)
    )


def _weighted_quantile(
    y: Float32Array, weight: Weight, quantile: float, others: _sums.Others | None = None
) -> float:
    """The smallest value with at least a share `quantile` of the weight at or below it."""
    if others is not None:
        together = np.zeros(len(y), dtype=np.int64)
        return float(_quantiles_of_parts(y, together, 1, weight, quantile, others)[0])
    order = np.argsort(y, kind="stable")
    below = np.cumsum(np.ones(len(y)) if weight is None else weight[order], dtype=np.float64)
    return float(y[order[np.searchsorted(below, quantile * below[-1] * (1 - 1e-12))]])


def _quantiles_of_parts(
    y: Float32Array,
    group: npt.NDArray[np.integer[Any]],
    n_groups: int,
    weight: Weight,
    quantile: float,
    others: _sums.Others,
) -> Float32Array:
    """The same for each group of rows; NaN where there are none.

    By bisection over the floats, which are as integers in the same order, with weights in whole
    steps, so fine that nothing is lost.
    """
    weight = np.ones(len(y)) if weight is None else weight.astype(np.float64)
    exponent = int(np.frexp(_sums.total(weight, others))[1])
    steps = np.rint(np.ldexp(weight, 51 - exponent))
    bits = (y + np.float32(0)).view(np.int32).astype(np.int64)
    key = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)

    def weigh(chosen: BoolArray) -> npt.NDArray[np.int64]:
        sums = np.bincount(group[chosen], steps[chosen], n_groups).astype(np.int64)
        others.sum(sums)
        return sums

    all_of_group = weigh(np.ones(len(y), dtype=bool))
    wanted = quantile * all_of_group * (1 - 1e-12)
    low = np.full(n_groups, -0x7F7FFFFF)  # of the largest float
    high = -low
    while (low < high).any():
        middle = (low + high) // 2
        enough = weigh(key <= middle[group]) >= wanted
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle + 1)
    size = np.abs(high).astype(np.int32).view(np.float32)
    found = np.where(high < 0, -size, size)
    return np.asarray(np.where(all_of_group > 0, found, np.nan), dtype=np.float32)
