"""What all parts of a table agree on before anything is learned: columns, classes, weights, bins.

A table comes in pieces (partitions, batches, the rows of a worker). Every step asks each piece for
little, and puts the answers together in the order of the pieces, so that nothing depends on who
holds which piece.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from hardwood import _check, _sums
from hardwood._check import FloatArray
from hardwood.estimators._base import Columns, RobustEstimator
from hardwood.estimators._boosting import BoostingEstimator
from hardwood.estimators._columns import learn_categories, whole_columns
from hardwood.estimators.forest import RobustRandomForestClassifier
from hardwood.grow.sketch import CodedRows, Counts, Cuts, Sketch
from hardwood.threat import Reach

T = TypeVar("T")
Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Piece:
    """Some rows as the user has them, and what to call them."""

    X: Any
    y: Any
    weight: Any
    name: str


class Pieces(Protocol):
    """All pieces of a table, wherever they are."""

    def each(self, ask: Callable[[Piece], T]) -> list[T]:
        """Ask every piece; the answers are in the order of the pieces."""

    def together(self, ask: Callable[[Piece], T], merge: Callable[[list[T]], T]) -> T:
        """Ask every piece and put the answers together, neighbours first."""


@dataclass(frozen=True)
class Survey:
    """What one piece tells of itself."""

    name: str
    n_rows: int
    n_features: int
    columns: tuple[str, ...] | None
    whole: tuple[int, ...]  # columns of whole numbers
    has_weight: bool
    classes: npt.NDArray[Any] | None = None  # of a classifier, if there are rows
    class_counts: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Weighing:
    """What the weights of one piece tell."""

    n_kept: int
    all_ones: bool
    sums: npt.NDArray[np.int64]  # see `exact_parts`
    largest: float
    least: float


@dataclass(frozen=True)
class Coded:
    """A piece made ready for training; its raw rows are not needed any more."""

    rows: CodedRows
    y: Float32Array
    weight: FloatArray | None  # as the user gave them, times those of the classes


@dataclass(frozen=True)
class Held:
    """A piece of validation data."""

    X: Float32Array
    y: Float32Array


@dataclass(frozen=True)
class Plan:
    """What all pieces agree on."""

    estimator: RobustEstimator  # its parameters, and the fitted attributes about columns
    columns: Columns
    reach: Reach
    seeds: list[int]  # of the model, or of its trees
    classes: npt.NDArray[Any] | None = None
    class_weight: FloatArray | None = None  # of each class
    weighted: bool = False
    weight_scale: float | None = None  # weights are divided by it
    n_rows: list[int] = field(default_factory=list)  # of each piece, those with weight
    cuts: Cuts | None = None
    sketch_error: float = 0.0

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.columns.n_features

    @property
    def n_all(self) -> int:
        """Rows of all pieces."""
        return sum(self.n_rows)

    def stretches(self, pieces: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Where the rows of some pieces lie in the table."""
        start = np.concatenate([[0], np.cumsum(self.n_rows)])
        return tuple((int(start[i]), self.n_rows[i]) for i in pieces)

    def rows(self, piece: Piece) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray | None]:
        """The checked rows, labels and weights of a piece, without rows of no weight."""
        X, y, weight = checked(self.estimator, piece)
        if self.classes is None:
            y = _check.targets(y)
        else:
            label = np.searchsorted(self.classes, y) if len(y) else np.empty(0, np.int64)
            if self.class_weight is not None:
                by_class = self.class_weight[label]
                weight = by_class if weight is None else weight * by_class
            y = label.astype(np.float32)
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight > 0)
            X, y, weight = X[kept], y[kept], weight[kept]
        return X, y, weight if self.weighted else None

    def weights(self, weight: FloatArray | None) -> Float32Array | None:
        """Weights as trees count them."""
        if weight is None:
            return None
        scaled = weight if self.weight_scale is None else weight / self.weight_scale
        return scaled.astype(np.float32)


def checked(
    estimator: RobustEstimator, piece: Piece
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray | None]:
    """Check the rows of a piece; complaints name the piece."""
    probe = clone(estimator)
    n_rows = len(piece.X)
    if n_rows == 0:
        n_features = piece.X.shape[1] if np.ndim(piece.X) == 2 else 0
        return (
            np.empty((0, n_features)),
            np.asarray(piece.y).reshape(0),
            None if (piece.weight is None) else np.empty(0),
        )
    dtype = getattr(piece.X, "dtype", None)
    single = isinstance(dtype, np.dtype) and np.can_cast(dtype, np.float32)
    accepted = {"dtype": (np.float32, np.float64) if single else (np.float64, np.float32)}
    try:
        X, y, _ = probe._check_data(
            piece.X,
            piece.y,
            None,
            order="C",
            **accepted,
            **({} if is_classifier(estimator) else {"y_numeric": True}),
        )
        if is_classifier(estimator):
            check_classification_targets(y)
        weight = None if piece.weight is None else _checked_weight(piece.weight, len(X))
    except ValueError as error:
        raise ValueError(f"{piece.name}: {error}") from error
    return X, y, weight


def _checked_weight(given: Any, n_rows: int) -> FloatArray:
    """The weights of a piece, all of which may be 0 as long as others are not."""
    weight = np.asarray(given, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weight.shape} but X has {n_rows} rows; pass one per row."
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        raise ValueError(f"sample_weight must be finite and >= 0, got {weight[bad][0]}.")
    return weight


def survey(estimator: RobustEstimator, piece: Piece) -> Survey:
    """Look at a piece."""
    categories = learn_categories(piece.X, estimator.categorical_features) if len(piece.X) else {}
    for feature in categories:
        name = list(piece.X.columns)[feature] if hasattr(piece.X, "columns") else feature
        raise ValueError(
            f"{piece.name}: column {name!r} holds categories, and rows in parts are numbers for "
            f"now; encode it, or fit on one machine."
        )
    X, y, _ = checked(estimator, piece)
    columns = getattr(piece.X, "columns", None)
    names = tuple(columns) if columns is not None else None
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None
    whole = tuple(whole_columns(piece.X, {}))
    seen = Survey(piece.name, len(X), X.shape[1], names, whole, piece.weight is not None)
    if not is_classifier(estimator) or len(X) == 0:
        return seen
    classes, counts = np.unique(y, return_counts=True)
    return replace(seen, classes=classes, class_counts=counts.astype(np.int64))


def agree(estimator: RobustEstimator, surveys: Sequence[Survey]) -> Plan:
    """Put the surveys together, or say which piece does not fit."""
    filled = [seen for seen in surveys if seen.n_rows > 0]
    if not filled:
        raise ValueError(f"There are no rows: all {len(surveys)} partitions are empty.")
    first = filled[0]
    for other in filled[1:]:
        if other.n_features != first.n_features:
            raise ValueError(
                f"{other.name} has {other.n_features} features but {first.name} has "
                f"{first.n_features}; all partitions need the same columns."
            )
        if other.columns != first.columns:
            raise ValueError(
                f"{other.name} has the columns {_shown(other.columns)} but {first.name} has "
                f"{_shown(first.columns)}; all partitions need the same columns in the same order."
            )
        if other.has_weight != first.has_weight:
            raise ValueError(f"{other.name} and {first.name}: only one of them has weights.")
    fitted = clone(estimator)
    fitted.n_features_in_ = first.n_features
    if first.columns is not None:
        fitted.feature_names_in_ = np.array(first.columns, dtype=object)
    whole = [f for f in first.whole if all(f in seen.whole for seen in filled)]
    fitted._categories, fitted._whole = {}, whole
    fitted.is_categorical_ = np.zeros(first.n_features, dtype=bool)
    columns = Columns(first.n_features, fitted._feature_names(), {}, {}, whole)
    plan = Plan(fitted, columns, _reach(fitted, columns), _seeds(estimator))
    if is_classifier(estimator):
        classes = np.unique(np.concatenate([seen.classes for seen in filled]))
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes.tolist()[0]!r}, in all {len(surveys)} partitions; "
                f"a classifier needs rows of two or more classes."
            )
        counts = np.zeros(len(classes), dtype=np.int64)
        for seen in filled:
            assert seen.classes is not None
            assert seen.class_counts is not None
            counts[np.searchsorted(classes, seen.classes)] += seen.class_counts
        plan = replace(
            plan, classes=classes, class_weight=_class_weight(estimator, classes, counts)
        )
    weighted = first.has_weight or plan.class_weight is not None
    return replace(plan, weighted=weighted, n_rows=[seen.n_rows for seen in surveys])


def _reach(estimator: RobustEstimator, columns: Columns) -> Reach:
    boosts = isinstance(estimator, BoostingEstimator)
    reach = estimator._training_reach(columns) if boosts else estimator._reach(columns)
    for word, there in (("only=", reach.only is not None), ("blank=", reach.blank.any())):
        if there:
            raise ValueError(
                f"The threat has {word}, which training on rows in parts does not know yet; fit on "
                f"one machine, or leave it out."
            )
    return reach


def _seeds(estimator: RobustEstimator) -> list[int]:
    if isinstance(estimator, RobustRandomForestClassifier):
        return estimator._tree_seeds()
    return [estimator._seed()]


def _shown(columns: tuple[str, ...] | None) -> str:
    return "without names" if columns is None else repr(list(columns))


def _class_weight(
    estimator: RobustEstimator, classes: npt.NDArray[Any], counts: npt.NDArray[np.int64]
) -> FloatArray | None:
    given = getattr(estimator, "class_weight", None)
    if given is None:
        return None
    if isinstance(given, str):  # "balanced"
        return np.asarray(counts.sum() / (len(classes) * counts), dtype=np.float64)
    weight: FloatArray = compute_class_weight(given, classes=classes, y=classes)
    return weight


def weigh(plan: Plan, piece: Piece) -> Weighing:
    """Look at the weights of a piece."""
    _, _, weight = plan.rows(piece)
    assert weight is not None
    return Weighing(
        len(weight),
        bool(np.all(weight == 1)),
        _sums.exact_parts(weight),
        float(weight.max(initial=0)),
        float(weight.min(initial=np.inf)),
    )


def settle_weights(plan: Plan, weighings: Sequence[Weighing]) -> Plan:
    """Decide the unit of the weights, as `_check.weights` does for one table."""
    n_rows = [one.n_kept for one in weighings]
    if sum(n_rows) == 0:
        raise ValueError(
            "All weights are zero (sample_weight times class_weight); give some row a positive one."
        )
    plan = replace(plan, n_rows=n_rows)
    total = _sums.value_of(np.sum([one.sums for one in weighings], axis=0))
    if not np.isfinite(total):
        raise ValueError(f"Weights must have a finite sum, got {total}; rescale them.")
    mean = total / sum(n_rows)
    equal = max(one.largest for one in weighings) == min(one.least for one in weighings)
    in_rows = mean > 1 - 1e-9
    if all(one.all_ones for one in weighings) or (not in_rows and equal):
        return replace(plan, weighted=False)
    return plan if in_rows else replace(plan, weight_scale=mean)


@dataclass(frozen=True)
class Counting:
    """How weights become counts of rows for the edges of bins; see `sample_rows` in the core."""

    whole: bool
    sums: npt.NDArray[np.int64]

    @classmethod
    def of(cls, plan: Plan, piece: Piece) -> "Counting":
        """Look at the weights of a piece."""
        weight = plan.weights(plan.rows(piece)[2])
        assert weight is not None
        return cls(bool(np.all(weight == np.floor(weight))), _sums.exact_parts(weight))

    @classmethod
    def bits(cls, countings: Sequence["Counting"]) -> int:
        """Steps of weights are 2^-bits."""
        total = _sums.value_of(np.sum([one.sums for one in countings], axis=0))
        if total < 2.0**44 and all(one.whole for one in countings):
            return 0
        return 43 - int(np.frexp(total * (1 + 2.0**-40))[1] - 1)


def sketch(plan: Plan, bits: int, piece: Piece) -> Sketch:
    """Sketch the values of a piece."""
    X, _, weight = plan.rows(piece)
    if len(X) == 0:
        X = np.empty((0, plan.n_features))
    return Sketch.of(X, _counts(plan.weights(weight), bits))


def _counts(weight: Float32Array | None, bits: int) -> Counts | None:
    if weight is None:
        return None
    return np.maximum(np.rint(np.ldexp(weight.astype(np.float64), bits)), 1).astype(np.uint64)


def encode(plan: Plan, n_threads: int, piece: Piece) -> Coded:
    """Put a piece into bins."""
    assert plan.cuts is not None
    X, y, weight = plan.rows(piece)
    if len(X) == 0:
        X = np.empty((0, plan.n_features))
    rows = plan.cuts.encode(np.ascontiguousarray(X), n_threads)
    return Coded(rows, np.asarray(y, dtype=np.float32), weight)


def hold(plan: Plan, piece: Piece) -> Held:
    """Check a piece of validation data."""
    if len(piece.X) == 0:
        return Held(np.empty((0, plan.n_features), np.float32), np.empty(0, np.float32))
    try:
        X = plan.estimator._check_rows(piece.X)
        if plan.classes is None:
            y = _check.targets(piece.y)
        else:
            y = _check.labels(piece.y, plan.classes, 0, len(X)).astype(np.float32)
    except ValueError as error:
        raise ValueError(f"validation {piece.name}: {error}") from error
    if len(y) != len(X):
        raise ValueError(f"validation {piece.name}: X has {len(X)} rows but y has {len(y)}.")
    return Held(X.astype(np.float32), y)


def make_plan(estimator: RobustEstimator, pieces: Pieces, max_bins: int) -> Plan:
    """Ask all pieces what is needed to train on them."""
    estimator._validate_params()
    plan = agree(estimator, pieces.each(Call(survey, estimator)))
    bits = 0
    if plan.weighted:
        plan = settle_weights(plan, pieces.each(Call(weigh, plan)))
    if plan.weighted:
        bits = Counting.bits(pieces.each(Call(Counting.of, plan)))
    whole = pieces.together(Call(sketch, plan, bits), Sketch.merged)
    return replace(plan, cuts=whole.cuts(plan.reach, max_bins), sketch_error=whole.error)


class Call:
    """A function with its first arguments; travels to where the pieces are."""

    def __init__(self, function: Callable[..., Any], *first: Any) -> None:
        self.function = function
        self.first = first

    def __call__(self, piece: Piece) -> Any:
        """Call it for a piece."""
        return self.function(*self.first, piece)
