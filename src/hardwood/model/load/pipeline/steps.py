"""Where every column of a pipeline comes from: one raw column, and how it is mapped.

A step is looked through if each column that it gives depends on one column that it takes. For a
number the map is told in segments, from one raw value to the next: rising, falling or constant. How
far it rises does not matter; that is asked of the step itself, later.
"""

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hardwood._check import FloatArray, is_missing
from hardwood.errors import UnsupportedModelError
from hardwood.model.load.pipeline.bisect import (
    END,
    Ask,
    Query,
    dense,
    first_where,
    float_at,
    position_of,
)
from hardwood.model.trees import Trees

RISING, CONSTANT, FALLING = 1, 0, -1
REFUSED = 2  # the step raises an error


@dataclass(frozen=True)
class Segment:
    """From a raw value up to the next segment, the map rises, falls or is constant."""

    start: float
    sense: int


WHOLE = (Segment(-END, RISING),)
FLAT = (Segment(-END, CONSTANT),)


@dataclass(frozen=True)
class Column:
    """A column on its way: the raw column that it depends on, and how.

    ``plain``: present values are still the raw ones. ``steps``: it has few values, such as bins.
    ``encoded``: it tells categories apart, each of which is asked for. ``home`` gives it among the
    fewest others, at position ``place``.
    """

    raw: int
    segments: tuple[Segment, ...] = WHOLE
    plain: bool = False
    steps: bool = False
    encoded: bool = False
    home: Ask | None = None
    place: int = 0

    def query(self, value: float, start: float, end: float, sense: int) -> Query:
        """Ask where this column crosses a value."""
        assert self.home is not None
        return Query(self.home, self.place, self.raw, value, start, end, sense)


@dataclass(frozen=True)
class Stage:
    """Columns, how a table of raw rows becomes them, and how it becomes some of them."""

    columns: list[Column]
    ask: Ask
    some: Callable[[FloatArray, list[int]], Any] | None = None

    def part(self, at: list[int], one: bool) -> "Stage":
        """Some of the columns; `one` of them alone may have one dimension."""
        some = self.some or (lambda X, at: _select(self.ask(X), at))

        def ask(X: FloatArray) -> Any:
            given = some(X, at)
            return _select(given, 0) if one else given

        return Stage([self.columns[j] for j in at], ask)

    def settled(self) -> "Stage":
        """The same, where each column can be asked for."""
        told = [replace(column, home=self.ask, place=j) for j, column in enumerate(self.columns)]
        return replace(self, columns=told)


# Functions of one value that never fall, or never rise, and the numbers between which they are
# finite; at, below or above these they are infinite, or NaN.
_EXP_END = float(np.log(np.finfo(np.float64).max))
_FUNCTIONS: dict[str, tuple[int, float, float]] = {
    **dict.fromkeys(("log", "log2", "log10", "sqrt"), (RISING, 0.0, math.inf)),
    "log1p": (RISING, -1.0, math.inf),
    **dict.fromkeys(("exp", "expm1", "sinh"), (RISING, -math.inf, _EXP_END)),
    "exp2": (RISING, -math.inf, float(np.nextafter(1024.0, 0))),
    **dict.fromkeys(("cbrt", "tanh", "arctan", "arcsinh"), (RISING, -math.inf, math.inf)),
    **dict.fromkeys(("sign", "floor", "ceil", "trunc", "rint"), (RISING, -math.inf, math.inf)),
    **dict.fromkeys(("positive", "deg2rad", "radians"), (RISING, -math.inf, math.inf)),
    **dict.fromkeys(("rad2deg", "degrees", "ndtr", "expit"), (RISING, -math.inf, math.inf)),
    "negative": (FALLING, -math.inf, math.inf),
    "logit": (RISING, 0.0, 1.0),
    "arcsin": (RISING, -1.0, 1.0),
    "arccos": (FALLING, -1.0, 1.0),
}
_STEPS = ("sign", "floor", "ceil", "trunc", "rint")

_MIXES = (
    "PCA IncrementalPCA KernelPCA SparsePCA MiniBatchSparsePCA TruncatedSVD FastICA NMF "
    "MiniBatchNMF FactorAnalysis LatentDirichletAllocation DictionaryLearning PolynomialFeatures "
    "Normalizer KNNImputer IterativeImputer LinearDiscriminantAnalysis CountVectorizer "
    "TfidfVectorizer TfidfTransformer HashingVectorizer DictVectorizer FeatureHasher Nystroem "
    "RBFSampler AdditiveChi2Sampler SkewedChi2Sampler PolynomialCountSketch RandomTreesEmbedding "
    "GaussianRandomProjection SparseRandomProjection FeatureAgglomeration KMeans Birch "
    "NeighborhoodComponentsAnalysis Isomap KernelCenterer StackingClassifier VotingClassifier"
).split()


@dataclass
class Tracer:
    """Follows columns through steps, and gathers the categories of the raw ones.

    ``native`` are raw columns whose categories reach the model by their names. ``taken`` are values
    of raw columns that the steps take where they may refuse a one.
    """

    raw_names: Sequence[Any]
    names: dict[int, list[Any]] = field(default_factory=dict)
    blank: dict[int, Any] = field(default_factory=dict)
    native: set[int] = field(default_factory=set)
    taken: dict[int, float] = field(default_factory=dict)

    def base(self) -> FloatArray:
        """A row that any step takes: ones, or values near them, and the first of the categories."""
        row = np.ones(len(self.raw_names))
        row[list(self.taken)] = list(self.taken.values())
        row[list(self.names)] = 0
        return row

    def through(self, step: Any, stage: Stage) -> Stage:
        """The columns that a step gives."""
        if step is None or step == "passthrough":
            return stage
        kind = type(step).__name__
        if kind == "Pipeline":
            return self.through_all([part for _, part in step.steps], stage)
        if not hasattr(step, "transform"):
            raise UnsupportedModelError(
                f"This Pipeline has the step {kind}, which has no transform."
            )
        if not _is_fitted(step):
            raise ValueError(f"This Pipeline's {kind} is not fitted yet; call fit first.")

        def ask(X: FloatArray) -> Any:
            return step.transform(stage.ask(X))

        if kind == "ColumnTransformer":
            return Stage(self._column_transformer(step, stage), ask)
        if kind == "FeatureUnion":
            return Stage(self._feature_union(step, stage), ask)
        self._need_width(step, stage)
        columns = self._columns(step, kind, stage)
        return Stage(columns, ask) if _selects(step) else Stage(columns, ask).settled()

    def through_all(self, steps: Sequence[Any], stage: Stage) -> Stage:
        """The columns after several steps."""
        for step in steps:
            stage = self.through(step, stage)
        return stage

    def to_model(self, trees: Trees, stage: Stage) -> Stage:
        """The columns as the model takes them: some, as they are, for categories of its own."""
        columns = list(stage.columns)
        for j, names in trees.category_names.items():
            column = columns[j]
            if names and column.plain and not column.encoded:
                self._know(column.raw, names)
                self.native.add(column.raw)
                columns[j] = replace(column, segments=FLAT, plain=False, encoded=True)
        return replace(stage, columns=columns)

    def _columns(self, step: Any, kind: str, stage: Stage) -> list[Column]:
        given = stage.columns
        known = type(step).__module__.startswith(("sklearn.", "hardwood."))
        trace = _TRACES.get(kind) if known else None
        if trace is not None:
            return trace(self, step, stage)
        if _selects(step):
            return [given[j] for j in step.get_support(indices=True)]
        if kind in _MIXES:
            why = "mixes columns, so that its splits are on no column of yours"
        else:
            why = f"load_model cannot look through; it knows {', '.join(_TRACES)}"
        raise UnsupportedModelError(
            f"This Pipeline has the step {kind}, which {why}. Pass the tree model itself, and rows "
            f"as it sees them; or attack the pipeline as a black box, which works on any model: "
            f'find_adversarial(..., method="cheng").'
        )

    def _need_width(self, step: Any, stage: Stage) -> None:
        n = getattr(step, "n_features_in_", len(stage.columns))
        if n != len(stage.columns):
            raise UnsupportedModelError(
                f"This Pipeline's {type(step).__name__} takes {n} columns, but there are "
                f"{len(stage.columns)} before it."
            )

    def _column_transformer(self, step: Any, stage: Stage) -> list[Column]:
        columns: list[Column] = []
        weight = step.transformer_weights or {}
        for name, part, chosen in step.transformers_:
            if isinstance(part, str) and part == "drop":
                continue
            at = list(step._transformer_to_input_indices[name])
            if not at:
                continue
            branch = self.through(part, stage.part(at, np.isscalar(chosen)))
            columns += _weighted(branch, weight.get(name))
        return columns

    def _feature_union(self, step: Any, stage: Stage) -> list[Column]:
        columns: list[Column] = []
        weight = step.transformer_weights or {}
        for name, part in step.transformer_list:
            if part not in (None, "drop"):
                columns += _weighted(self.through(part, stage), weight.get(name))
        return columns

    def scaled(self, step: Any, stage: Stage) -> list[Column]:
        """Subtract, divide, multiply, clip: in floats, too, none of these changes an order."""
        factor = getattr(step, "scale_", None)
        if factor is None:
            factor = np.ones(len(stage.columns))
        return [
            _mapped(column, np.sign(by)) for column, by in zip(stage.columns, factor, strict=True)
        ]

    def rising(self, step: Any, stage: Stage) -> list[Column]:
        """Every column rises."""
        return [_mapped(column, RISING) for column in stage.columns]

    def powers(self, step: Any, stage: Stage) -> list[Column]:
        """Powers of a value: some take only those above zero, and far out any overflows."""
        n = len(stage.columns)
        inner = 1.0 if step.method == "box-cox" else 0.0  # whatever the power, this becomes 0
        ends = [_taken(step, j, n, inner) for j in range(n)]
        if set(ends) == {(-END, math.inf)}:
            return self.rising(step, stage)
        self._start_from(stage, inner)
        segments = []
        for first, end in ends:
            mine = [Segment(-END, REFUSED)] if first > -END else []
            mine.append(Segment(first, RISING))
            segments.append(mine + ([Segment(end, REFUSED)] if end < math.inf else []))
        return self._cut_each(stage, segments)

    def _start_from(self, stage: Stage, value: float) -> None:
        """Choose raw values for the base that have become this value, or one beside it."""
        moving = [
            (column, column.query(value, start, end, sense))
            for column in stage.columns
            for start, end, sense in spans(column.segments)
            if sense in (RISING, FALLING)
        ]
        found = first_where([query for _, query in moving], self.base()).tolist()
        for (column, query), raw in zip(moving, found, strict=True):
            if raw < query.end:
                self.taken[column.raw] = raw

    def binary(self, step: Any, stage: Stage) -> list[Column]:
        """Every column rises, in steps."""
        return [replace(_mapped(column, RISING), steps=True) for column in stage.columns]

    def bins(self, step: Any, stage: Stage) -> list[Column]:
        """The number of a bin, or a column for each bin."""
        ordinal = copy.copy(step)
        ordinal.encode = "ordinal"
        ordinal.set_output(transform="default")
        plain = Stage(self.binary(step, stage), lambda X: ordinal.transform(stage.ask(X))).settled()
        if step.encode == "ordinal":
            return plain.columns
        flat = self._at_values(plain, [np.arange(n) for n in step.n_bins_])
        return [column for column, n in zip(flat, step.n_bins_, strict=True) for _ in range(n)]

    def function(self, step: Any, stage: Stage) -> list[Column]:
        """A function that is known, or that its author declares, to be monotone."""
        func = step.func
        if func is None:
            return stage.columns
        name = getattr(func, "__name__", repr(func))
        declared = getattr(func, "monotone", None)
        if declared in ("rising", "falling"):
            return [_mapped(c, RISING if declared == "rising" else FALLING) for c in stage.columns]
        if type(func).__name__ != "ufunc" or name not in _FUNCTIONS or step.kw_args:
            raise UnsupportedModelError(
                f"This Pipeline has a FunctionTransformer with {name!r}, of which load_model does "
                f"not know whether it is monotone. If it treats every value by itself and never "
                f'falls, declare it: {name}.monotone = "rising" (or "falling"); '
                f"otherwise attack the pipeline as a black box: find_adversarial(..., "
                f'method="cheng").'
            )
        sense, low, high = _FUNCTIONS[name]
        segments = [Segment(-END, sense)]
        if low > -math.inf:
            above = Segment(np.nextafter(low, math.inf), sense)
            segments = [Segment(-END, CONSTANT), Segment(low, CONSTANT), above]
        if high < math.inf:
            segments += [Segment(high, CONSTANT), Segment(np.nextafter(high, math.inf), CONSTANT)]
        return [replace(c, steps=name in _STEPS) for c in self.cut(stage, segments)]

    def imputed(self, step: Any, stage: Stage) -> list[Column]:
        """Missing values are replaced; present ones stay."""
        marker = step.missing_values
        filled = self._apart(stage, marker, RISING)
        empty = np.zeros(len(filled), dtype=bool)
        if not step.keep_empty_features and step.strategy != "constant":
            empty = np.array([is_missing(value) for value in step.statistics_], dtype=bool)
        columns = [column for column, gone in zip(filled, empty, strict=True) if not gone]
        if step.add_indicator:
            columns += self.indicated(step.indicator_, stage)
        return columns

    def indicated(self, step: Any, stage: Stage) -> list[Column]:
        """Whether a value is missing."""
        told = self._apart(stage, step.missing_values, CONSTANT)
        return [replace(told[j], plain=False) for j in step.features_]

    def _apart(self, stage: Stage, marker: Any, sense: int) -> list[Column]:
        """The columns, where one value is set apart if it stands for a missing one."""
        if is_missing(marker):
            whole = WHOLE if sense == RISING else FLAT
            return [_composed(column, whole) for column in stage.columns]
        if isinstance(marker, str):
            for column in stage.columns:
                self._know(column.raw, [marker])
            return stage.columns
        after = Segment(np.nextafter(marker, END), sense)
        cut = self.cut(stage, [Segment(-END, sense), Segment(marker, CONSTANT), after])
        return [replace(c, plain=old.plain) for c, old in zip(cut, stage.columns, strict=True)]

    def one_hot(self, step: Any, stage: Stage) -> list[Column]:
        """A column for each category, or nearly."""
        return _repeated(self._encoded(step, stage), step._n_features_outs)

    def ordinal(self, step: Any, stage: Stage) -> list[Column]:
        """The number of a category."""
        return self._encoded(step, stage)

    def target(self, step: Any, stage: Stage) -> list[Column]:
        """A mean of the target for each category."""
        several = getattr(step, "target_type_", "") == "multiclass"
        n = len(step.classes_) if several else 1
        return _repeated(self._encoded(step, stage), [n] * len(stage.columns))

    def _encoded(self, step: Any, stage: Stage) -> list[Column]:
        values = [
            np.array([c for c in known.tolist() if not is_missing(c)], dtype=known.dtype)
            for known in step.categories_
        ]
        columns = []
        flat = self._at_values(stage, values) if any(c.steps for c in stage.columns) else ()
        for j, (column, known) in enumerate(zip(stage.columns, step.categories_, strict=True)):
            if column.steps:
                columns.append(flat[j])
                continue
            columns.append(replace(column, segments=FLAT, plain=False, encoded=True))
            if not (column.plain or column.encoded):
                raise UnsupportedModelError(
                    f"This Pipeline encodes categories of column "
                    f"{self.raw_names[column.raw]!r} after changing its numbers. Encode the column "
                    f"as it is."
                )
            if not column.encoded:
                self._know(column.raw, values[j].tolist())
                self.blank.update((column.raw, c) for c in known.tolist() if is_missing(c))
        return columns

    def _know(self, raw: int, listed: Iterable[Any]) -> None:
        names = self.names.setdefault(raw, [])
        names += [name for name in listed if name not in names]

    def _at_values(self, stage: Stage, values: Sequence[Any]) -> list[Column]:
        """Columns of few values, cut into segments of one value each."""
        starts = [[-END, *map(float, some[1:])] for some in values]
        return self._cut_each(stage, [[Segment(start, CONSTANT) for start in of] for of in starts])

    def cut(self, stage: Stage, segments: list[Segment]) -> list[Column]:
        """All columns after a map that is told in segments of the values before it."""
        return self._cut_each(stage, [segments] * len(stage.columns))

    def _cut_each(self, stage: Stage, segments: Sequence[list[Segment]]) -> list[Column]:
        """Columns after a map that is told in segments of the values before it."""
        queries = []
        for column, mine in zip(stage.columns, segments, strict=True):
            for start, end, sense in spans(column.segments):
                if sense in (RISING, FALLING) and not column.plain:
                    queries += [column.query(p.start, start, end, sense) for p in mine[1:]]
        found = dict(zip(queries, first_where(queries, self.base()).tolist(), strict=True))
        cut = []
        for column, mine in zip(stage.columns, segments, strict=True):
            new: list[Segment] = []
            for start, end, sense in spans(column.segments):
                if sense not in (RISING, FALLING):
                    new.append(Segment(start, sense))
                    continue
                ends = [
                    min(max(segment.start, start), end)
                    if column.plain
                    else found[column.query(segment.start, start, end, sense)]
                    for segment in mine[1:]
                ]
                # A falling map meets the last segment first.
                order = mine if sense == RISING else mine[::-1]
                at = [start, *(ends if sense == RISING else ends[::-1])]
                new += [
                    Segment(float(a), _product(sense, segment.sense))
                    for a, segment, b in zip(at, order, [*at[1:], end], strict=True)
                    if a < b
                ]
            plain = column.plain and all(segment.sense == RISING for segment in mine)
            cut.append(replace(column, segments=tuple(new), plain=plain))
        return cut


_TRACES: dict[str, Callable[[Tracer, Any, Stage], list[Column]]] = {
    **dict.fromkeys(
        ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), Tracer.scaled
    ),
    "PowerTransformer": Tracer.powers,
    "QuantileTransformer": Tracer.rising,
    "KBinsDiscretizer": Tracer.bins,
    "Binarizer": Tracer.binary,
    "FunctionTransformer": Tracer.function,
    "SimpleImputer": Tracer.imputed,
    "MissingIndicator": Tracer.indicated,
    "OneHotEncoder": Tracer.one_hot,
    "OrdinalEncoder": Tracer.ordinal,
    "TargetEncoder": Tracer.target,
}


def _taken(step: Any, j: int, n: int, inner: float) -> tuple[float, float]:
    """The first value that a step takes in column j of n, and the first one after the last.

    It takes `inner` in every column.
    """

    def takes(value: float) -> bool:
        row = np.full((1, n), inner)
        row[0, j] = value
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about names of columns
            try:
                step.transform(row)
            except ValueError:
                return False
        return True

    def last_towards(end: float) -> float:
        if takes(end):
            return end
        good, bad = (int(position_of(value)) for value in (inner, end))
        while abs(bad - good) > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if takes(float_at(middle)) else (good, middle)
        return float_at(good)

    first, last = last_towards(-END), last_towards(END)
    return first, math.inf if last == END else float(np.nextafter(last, math.inf))


def spans(segments: Sequence[Segment]) -> list[tuple[float, float, int]]:
    """Segments as start, end and sense."""
    ends = [segment.start for segment in segments[1:]] + [math.inf]
    return [
        (segment.start, end, segment.sense) for segment, end in zip(segments, ends, strict=True)
    ]


def held_by(start: float, end: float) -> float:
    """A value between two ends, the nearest to 1: at the far ends other steps may overflow."""
    return float(np.clip(1.0, start, np.nextafter(end, -math.inf)))


def _is_fitted(step: Any) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(step)
    except NotFittedError:
        return False
    return True


def _selects(step: Any) -> bool:
    """Whether a step only chooses columns."""
    return hasattr(step, "get_support") and type(step).__module__.startswith("sklearn.feature_")


def _select(table: Any, at: Any) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(table, at, axis=1)


def _product(first: int, second: int) -> int:
    return REFUSED if REFUSED in (first, second) else first * second


def _mapped(column: Column, sense: float) -> Column:
    return replace(_composed(column, (Segment(-END, int(sense)),)), plain=False)


def _composed(column: Column, whole: tuple[Segment]) -> Column:
    """A column after a map that is the same everywhere."""
    segments = [Segment(p.start, _product(p.sense, whole[0].sense)) for p in column.segments]
    return replace(column, segments=tuple(segments))


def _weighted(stage: Stage, weight: float | None) -> list[Column]:
    if weight is None:
        return stage.columns
    columns = [_mapped(column, np.sign(weight)) for column in stage.columns]
    return Stage(columns, lambda X: dense(stage.ask(X)) * weight).settled().columns


def _repeated(columns: Sequence[Column], times: Sequence[int]) -> list[Column]:
    return [column for column, n in zip(columns, times, strict=True) for _ in range(n)]
