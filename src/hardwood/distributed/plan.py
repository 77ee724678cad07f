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
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from hardwood import _check, _core, _sums
from hardwood._check import Float32Array, FloatArray, IntArray
from hardwood.ensemble.ranked import CategorySums, Ranks
from hardwood.estimators._base import RobustEstimator, Schema, attacker
from hardwood.estimators._boosting import BoostingEstimator, as_thresholds, refuse_one_of_many
from hardwood.estimators._columns import (
    Categories,
    check_codes,
    in_order,
    known_codes,
    learn_categories,
    whole_columns,
)
from hardwood.estimators._columns import encode as as_numbers
from hardwood.estimators.forest import RobustRandomForestClassifier
from hardwood.grow.hist import bins_of_categories, count_codes, in_bins
from hardwood.grow.sketch import (
    CodedRows,
    Counts,
    Cuts,
    Drawn,
    EndCuts,
    EndRows,
    Sample,
    Sketch,
    values_kept,
)
from hardwood.threat import Reach

T = TypeVar("T")


@dataclass(frozen=True)
class Piece:
    """Some rows as the user has them, and what to call them."""

    X: Any
    y: Any
    weight: Any
    name: str
    number: int = 0  # its place among all pieces


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
    categories: Categories  # names of categories, by column
    codes: dict[int, IntArray]  # their numbers in this piece, where they have no names
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

    rows: CodedRows | EndRows
    y: Float32Array
    weight: FloatArray | None  # as the user gave them, times those of the classes
    plain: EndRows | None = None  # of certified training: at rest, if somebody looks at margins


@dataclass(frozen=True)
class Held:
    """A piece of validation data."""

    X: npt.NDArray[np.floating[Any]]
    y: Float32Array


@dataclass(frozen=True)
class Plan:
    """What all pieces agree on."""

    estimator: RobustEstimator  # its parameters, and the fitted attributes about columns
    columns: Schema
    reach: Reach
    seeds: list[int]  # of the model, or of its trees
    classes: npt.NDArray[Any] | None = None
    class_weight: FloatArray | None = None  # of each class
    weighted: bool = False
    weight_scale: float | None = None  # weights are divided by it
    n_rows: list[int] = field(default_factory=list)  # of each piece, those with weight
    cuts: Cuts | EndCuts | None = None
    sketch_error: float = 0.0
    watched: bool = False  # whether somebody looks at the rounds
    bins: dict[int, list[IntArray]] = field(default_factory=dict)  # categories of each bin
    ranks: Ranks | None = None  # the categories as certified training sees them

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.columns.n_features

    @property
    def n_all(self) -> int:
        """Rows of all pieces."""
        return sum(self.n_rows)

    @property
    def certified(self) -> bool:
        """Whether training learns from certified margins."""
        estimator = self.estimator
        return isinstance(estimator, BoostingEstimator) and estimator._certifies(self.reach)

    @property
    def only(self) -> int:
        """The position of the class whose rows alone attack; -1: all do."""
        return attacker(self.reach, self.classes)

    @property
    def at_rest(self) -> bool:
        """Whether rows come twice in certified training, the second time unmoved."""
        dial = getattr(self.estimator, "robustness", 1)
        return self.only >= 0 or bool(dial < 1)

    @property
    def threat(self) -> Reach:
        """The threat as training sees it."""
        return as_thresholds(np.empty((0, self.n_features)), self.ranks, self.reach)[1]

    def as_trained(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Checked rows as training sees them."""
        rows: npt.NDArray[Any] = (
            as_thresholds(X, self.ranks, self.reach)[0] if self.certified else in_bins(X, self.bins)
        )
        return rows

    def stretches(self, pieces: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Where the rows of some pieces lie in the table."""
        start = np.concatenate([[0], np.cumsum(self.n_rows)])
        return tuple((int(start[i]), self.n_rows[i]) for i in pieces)

    @property
    def held_dtype(self) -> type[np.floating[Any]]:
        """What validation rows are kept as: trees compare in float32, balls are cut in float64."""
        return np.float64 if self.certified else np.float32

    def rows(self, piece: Piece) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray | None]:
        """The checked rows, labels and weights of a piece, without rows of no weight."""
        X, y, weight = self._surveyed(piece) or checked(self.estimator, piece, self.columns)
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

    def _surveyed(
        self, piece: Piece
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray | None] | None:
        """A piece of plain numbers as it is: its survey has checked it, and that takes time."""
        X, y = piece.X, piece.y
        plain = (
            isinstance(X, np.ndarray)
            and X.dtype in (np.float32, np.float64)
            and X.flags.c_contiguous
            and isinstance(y, np.ndarray)
            and y.ndim == 1
            and y.dtype.kind in "fiub"
            and not self.columns.categories
        )
        if not plain:
            return None
        return X, y, None if piece.weight is None else _checked_weight(piece.weight, len(X))

    def weights(self, weight: FloatArray | None) -> Float32Array | None:
        """Weights as trees count them."""
        if weight is None:
            return None
        scaled = weight if self.weight_scale is None else weight / self.weight_scale
        return scaled.astype(np.float32)


def checked(
    estimator: RobustEstimator, piece: Piece, columns: Schema | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray | None]:
    """Check the rows of a piece; complaints name the piece.

    Before all pieces agree on `columns`, each has its own categories.
    """
    probe = clone(estimator)
    X = _dense(piece.X)
    n_rows = len(X)
    if n_rows == 0:
        n_features = X.shape[1] if np.ndim(X) == 2 else 0
        return (
            np.empty((0, n_features)),
            np.asarray(piece.y).reshape(0),
            None if (piece.weight is None) else np.empty(0),
        )
    dtype = getattr(X, "dtype", None)
    single = isinstance(dtype, np.dtype) and np.can_cast(dtype, np.float32)
    accepted = {"dtype": (np.float32, np.float64) if single else (np.float64, np.float32)}
    try:
        if columns is not None:
            X = as_numbers(X, columns.categories, columns.names)
            probe.categorical_features = None
        X, y, _ = probe._check_data(
            X,
            piece.y,
            None,
            order="C",
            **accepted,
            **({} if is_classifier(estimator) else {"y_numeric": True}),
        )
        if columns is not None:
            check_codes(X, columns.categories)
        if is_classifier(estimator):
            check_classification_targets(y)
        weight = None if piece.weight is None else _checked_weight(piece.weight, len(X))
    except ValueError as error:
        raise ValueError(f"{piece.name}: {error}") from error
    return X, y, weight


def _dense(X: Any) -> Any:
    """Rows as a table; a piece of a sparse one is small enough to be written out."""
    return X.toarray() if issparse(X) else X


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
    n_rows = len(_dense(piece.X))
    categories = learn_categories(piece.X, estimator.categorical_features) if n_rows else {}
    X, y, _ = checked(estimator, piece)
    unnamed = {feature: names for feature, names in categories.items() if not names}
    columns = getattr(piece.X, "columns", None)
    names = tuple(columns) if columns is not None else None
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None
    seen = Survey(
        piece.name,
        len(X),
        X.shape[1],
        names,
        tuple(whole_columns(piece.X, categories)),
        piece.weight is not None,
        categories,
        known_codes(X, unnamed),
    )
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
    categories, codes = _all_categories(filled)
    fitted._categories, fitted._whole = categories, whole
    fitted.is_categorical_ = np.isin(np.arange(first.n_features), list(categories))
    columns = Schema(first.n_features, fitted._feature_names(), categories, codes, whole)
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
    if plan.certified:
        n_classes = 2 if plan.classes is None else len(plan.classes)
        refuse_one_of_many(plan.reach, 1 if n_classes == 2 else n_classes)
    plan.only  # noqa: B018 - refuses a class that is not there
    weighted = first.has_weight or plan.class_weight is not None
    return replace(plan, weighted=weighted, n_rows=[seen.n_rows for seen in surveys])


def _all_categories(surveys: Sequence[Survey]) -> tuple[Categories, dict[int, IntArray]]:
    """The categories of all pieces, and their numbers, by column.

    Where pieces declare the same list, that is it; otherwise all names they have, in order.
    """
    categories: Categories = {}
    codes: dict[int, IntArray] = {}
    for feature in sorted({feature for seen in surveys for feature in seen.categories}):
        lists = [seen.categories[feature] for seen in surveys if feature in seen.categories]
        names = lists[0]
        if any(other != names for other in lists):
            names = in_order({name for listed in lists for name in listed})
        categories[feature] = names
        if names:
            codes[feature] = np.arange(len(names), dtype=np.int32)
        else:
            seen_codes = [seen.codes[feature] for seen in surveys if feature in seen.codes]
            codes[feature] = np.unique(np.concatenate(seen_codes)).astype(np.int32)
    return categories, codes


@dataclass(frozen=True)
class Tally:
    """What a piece tells of its categories."""

    count: dict[int, npt.NDArray[np.int64]]
    sums: CategorySums | None  # for certified training

    @classmethod
    def of(cls, plan: Plan, piece: Piece) -> "Tally":
        """Count the categories of a piece."""
        X, y, weight = plan.rows(piece)
        codes = plan.columns.codes
        if len(X) == 0:
            X = np.empty((0, plan.n_features))
        count = {f: count_codes(X[:, f], known) for f, known in codes.items()}
        if not plan.certified:
            return cls(count, None)
        n_classes = 0 if plan.classes is None else len(plan.classes)
        y = np.asarray(y, dtype=np.float32)
        sums = CategorySums.learn(X, y, plan.weights(weight), n_classes, codes)
        return cls(count, sums)


def settle_categories(plan: Plan, tallies: Sequence[Tally], max_bins: int) -> Plan:
    """Decide how training sees the categories: as bins, or as ranks."""
    columns = plan.columns
    count = {f: np.sum([one.count[f] for one in tallies], axis=0) for f in columns.codes}
    # Categories without names are those of rows with weight.
    there = {f: (count[f] > 0) | bool(columns.categories[f]) for f in count}
    codes = {f: known[there[f]] for f, known in columns.codes.items()}
    columns = replace(columns, codes=codes)
    plan = replace(plan, columns=columns, reach=_reach(plan.estimator, columns))
    if not plan.certified:
        count = {f: count[f][there[f]] for f in codes}
        return replace(plan, bins=bins_of_categories(codes, count, max_bins))
    sums = CategorySums.merged([one.sums for one in tallies if one.sums is not None])
    return replace(plan, ranks=Ranks.learn(sums.only(there), codes, plan.reach.changes))


def _reach(estimator: RobustEstimator, columns: Schema) -> Reach:
    if isinstance(estimator, BoostingEstimator):
        return estimator._training_reach(columns)
    return estimator._reach(columns)


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
class Weights:
    """What the weights of one piece tell, as trees count them."""

    whole: bool  # all are whole numbers
    sums: npt.NDArray[np.int64]

    @classmethod
    def of(cls, plan: Plan, piece: Piece) -> "Weights":
        """Look at the weights of a piece."""
        weight = plan.weights(plan.rows(piece)[2])
        assert weight is not None
        return cls(bool(np.all(weight == np.floor(weight))), _sums.exact_parts(weight))


@dataclass(frozen=True)
class Steps:
    """How weights become counts of rows for the edges of bins; see `sample_rows` in the core."""

    whole: bool
    bits: int  # weights are counted in steps of 2^-bits

    @classmethod
    def settle(cls, weights: Sequence[Weights]) -> "Steps":
        """Choose steps so small that nothing is lost."""
        total = _sums.value_of(np.sum([one.sums for one in weights], axis=0))
        if total < 2.0**44 and all(one.whole for one in weights):
            return cls(True, 0)
        return cls(False, 43 - int(np.frexp(total * (1 + 2.0**-40))[1] - 1))

    def counts(self, plan: Plan, weight: FloatArray | None) -> Counts:
        """How often rows with these weights count."""
        steps = np.ldexp(np.asarray(plan.weights(weight), dtype=np.float64), self.bits)
        return np.maximum(np.rint(steps), 1).astype(np.uint64)

    def total(self, plan: Plan, piece: Piece) -> int:
        """How often all rows of a piece count together."""
        return int(self.counts(plan, plan.rows(piece)[2]).sum())


def choose_sample(plan: Plan, pieces: Pieces) -> tuple[Sample, Steps | None]:
    """Agree on the rows that stand for all."""
    if plan.certified or not plan.weighted:  # candidates do not depend on weights
        return Sample.of(plan.n_rows, plan.n_all), None
    steps = Steps.settle(pieces.each(Call(Weights.of, plan)))
    totals = pieces.each(Call(steps.total, plan))
    return Sample.of(totals, sum(totals) if steps.whole else plan.n_all), steps


def draw(plan: Plan, sample: Sample, steps: Steps | None, piece: Piece) -> Drawn:
    """Take the rows of a piece that are in the sample."""
    X, _, weight = plan.rows(piece)
    X = plan.as_trained(X if len(X) else np.empty((0, plan.n_features)))
    counts = None if steps is None else steps.counts(plan, weight)
    rows, counts = sample.rows(piece.number, counts)
    blank = np.isnan(X)
    missing = blank.any(axis=0) if blank.any() else np.zeros(X.shape[1], bool)  # mostly none
    return Drawn(X[rows].astype(np.float32, copy=False), counts, missing)


def sketch(plan: Plan, sample: Sample, steps: Steps | None, piece: Piece) -> Sketch:
    """Sketch the values of a piece."""
    return Sketch.of(draw(plan, sample, steps, piece))


def sketch_all(plan: Plan, pieces: Pieces) -> Sketch:
    """Sketch the values of all pieces."""
    sample, steps = choose_sample(plan, pieces)
    if min(plan.n_all, _core.SAMPLED_ROWS) > values_kept(plan.n_features):
        whole: Sketch = pieces.together(Call(sketch, plan, sample, steps), Sketch.merged)
        return whole
    # Nothing would be put together, and sketches take three times as many bytes as the rows.
    return Sketch.of(Drawn.together(pieces.each(Call(draw, plan, sample, steps))))


def encode(plan: Plan, n_threads: int, piece: Piece) -> Coded:
    """Put a piece into bins."""
    assert plan.cuts is not None
    X, y, weight = plan.rows(piece)
    if len(X) == 0:
        X = np.empty((0, plan.n_features))
    y = np.asarray(y, dtype=np.float32)
    X = np.ascontiguousarray(plan.as_trained(X))
    if isinstance(plan.cuts, Cuts):
        return Coded(plan.cuts.encode(X, n_threads), y, weight)
    plain = None
    if plan.watched and not plan.at_rest:
        plain = plan.cuts.encode(X, plan.threat.still(), n_threads, at_rest=False)
    return Coded(plan.cuts.encode(X, plan.threat, n_threads), y, weight, plain)


def hold(plan: Plan, piece: Piece) -> Held:
    """Check a piece of validation data."""
    if len(_dense(piece.X)) == 0:
        return Held(np.empty((0, plan.n_features), plan.held_dtype), np.empty(0, np.float32))
    try:
        X = plan.estimator._check_rows(_dense(piece.X))
        if plan.classes is None:
            y = _check.targets(piece.y)
        else:
            y = _check.labels(piece.y, plan.classes, 0, len(X)).astype(np.float32)
    except ValueError as error:
        raise ValueError(f"validation {piece.name}: {error}") from error
    if len(y) != len(X):
        raise ValueError(f"validation {piece.name}: X has {len(X)} rows but y has {len(y)}.")
    rows = plan.as_trained(X) if plan.certified else X  # trees that are not certified know names
    return Held(rows.astype(plan.held_dtype), y)


def make_plan(
    estimator: RobustEstimator, pieces: Pieces, max_bins: int, *, has_validation: bool
) -> Plan:
    """Ask all pieces what is needed to train on them."""
    estimator._validate_params()
    plan = agree(estimator, pieces.each(Call(survey, estimator)))
    if isinstance(estimator, BoostingEstimator):
        looks = has_validation or estimator.callbacks or estimator.verbose
        plan = replace(plan, watched=bool(looks))
    if plan.weighted:
        plan = settle_weights(plan, pieces.each(Call(weigh, plan)))
    if plan.columns.codes:
        plan = settle_categories(plan, pieces.each(Call(Tally.of, plan)), max_bins)
    whole = sketch_all(plan, pieces)
    cuts: Cuts | EndCuts
    if plan.certified:
        cuts = whole.end_cuts(plan.threat, max_bins, plan.at_rest)
    else:
        cuts = whole.cuts(plan.reach, max_bins, plan.bins)
    return replace(plan, cuts=cuts, sketch_error=whole.error)


class Call:
    """A function with its first arguments; travels to where the pieces are."""

    def __init__(self, function: Callable[..., Any], *first: Any) -> None:
        self.function = function
        self.first = first

    def __call__(self, piece: Piece) -> Any:
        """Call it for a piece."""
        return self.function(*self.first, piece)
