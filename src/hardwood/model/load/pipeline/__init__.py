"""A scikit-learn Pipeline that ends in a tree model, as trees over the columns that it takes."""

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FLOAT32_MAX, BoolArray, FloatArray, as_table
from hardwood.errors import UnsupportedModelError
from hardwood.model.columns import Columns
from hardwood.model.load.gate import Reference, positions
from hardwood.model.load.pipeline.bisect import END, Ask, dense
from hardwood.model.load.pipeline.pull import Raw, pull_back
from hardwood.model.load.pipeline.steps import (
    CONSTANT,
    REFUSED,
    RISING,
    Column,
    Segment,
    Stage,
    Tracer,
    held_by,
    spans,
)
from hardwood.model.trees import LEAF, Trees


def can_load(source: Any) -> bool:
    """Whether the object is a Pipeline; scikit-learn itself is not imported to find out."""
    return type(source).__module__ == "sklearn.pipeline" and type(source).__name__ == "Pipeline"


def load(
    source: Any, load_last: Callable[[Any], tuple[Trees, Reference]]
) -> tuple[Trees, Reference]:
    """Read the last step and bring its splits before the others."""
    steps = [step for _, step in source.steps[:-1] if step is not None and step != "passthrough"]
    last = source.steps[-1][1]
    if not steps:
        return load_last(last)
    first = next((step for step in steps if hasattr(step, "n_features_in_")), None)
    if first is None:
        raise ValueError(
            f"This Pipeline's {type(steps[0]).__name__} is not fitted yet; call fit first."
        )
    given = getattr(first, "feature_names_in_", None)
    names = None if given is None else [str(name) for name in given]
    tracer = Tracer(list(range(first.n_features_in_)) if names is None else names)
    table = RawTable(tracer, names)
    start = [Column(raw, plain=True) for raw in range(first.n_features_in_)]
    stage = Stage(start, table.decode, table.decode).settled()
    with _quiet():
        stage = tracer.through_all(steps, stage)
        _check_base(tracer, stage)
        trees, reference = load_last(last)
        if trees.n_features != len(stage.columns):
            raise UnsupportedModelError(
                f"The steps of this Pipeline give {len(stage.columns)} columns, but its "
                f"{type(last).__name__} takes {trees.n_features}."
            )
        stage = tracer.to_model(trees, stage)
        return _pulled(source, trees, reference, stage, table)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what asking about odd rows would warn of."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class RawTable:
    """Rows of numbers, categories as codes, as the kind of table that a pipeline takes."""

    tracer: Tracer
    names: list[str] | None

    def decode(self, table: FloatArray, at: Sequence[int] | None = None) -> Any:
        """A frame where the pipeline was fitted on one, else an array; `at`: these columns only."""
        at = range(table.shape[1]) if at is None else at
        columns = [
            self._categories(table[:, raw], raw) if raw in self.tracer.names else table[:, raw]
            for raw in at
        ]
        if self.names is None:
            plain = all(column.dtype == np.float64 for column in columns)
            mixed = np.empty((len(table), len(columns)), dtype=np.float64 if plain else object)
            for j, column in enumerate(columns):
                mixed[:, j] = column
            return mixed
        content = {self.names[raw]: column for raw, column in zip(at, columns, strict=True)}
        if importlib.util.find_spec("pandas"):
            import pandas

            for raw in self.tracer.native.intersection(at):
                name, known = self.names[raw], self.tracer.names[raw]
                odd = {unknown_name(known)}.intersection(content[name].tolist())
                content[name] = pandas.Categorical(content[name], categories=[*known, *odd])
            return pandas.DataFrame(content)
        import polars

        words = {name: c.tolist() for name, c in content.items() if c.dtype == object}
        present = {n: [None if v != v else v for v in values] for n, values in words.items()}
        return polars.DataFrame({**content, **present})

    def _categories(self, code: FloatArray, raw: int) -> npt.NDArray[Any]:
        known = self.tracer.names[raw]
        numbers = all(isinstance(name, int | float) and type(name) is not bool for name in known)
        blank = self.tracer.blank.get(raw, np.nan)
        listed = np.empty(len(known) + 2, dtype=object)
        listed[:] = [*known, unknown_name(known), blank]
        at = np.clip(np.nan_to_num(code, nan=len(known) + 1), -1, len(known) + 1).astype(np.int64)
        named = listed[np.where((at < 0) | ((at > len(known)) & ~np.isnan(code)), len(known), at)]
        if numbers or (listed[:-2].tolist() and not _blank_or_unknown(at, len(known)).any()):
            kind = np.asarray(known).dtype
            return named.astype(np.float64 if numbers else object if kind.kind == "U" else kind)
        return named


def _blank_or_unknown(at: npt.NDArray[np.int64], n: int) -> BoolArray:
    odd: BoolArray = (at < 0) | (at >= n)
    return odd


def unknown_name(known: list[Any]) -> Any:
    """A category that is not among those known."""
    texts = [name for name in known if isinstance(name, str)]
    if texts:
        return "?" * (1 + max(map(len, texts)))
    return max(known, default=0) + 1


def after_steps(source: Any, X: Any) -> Any:
    """A table as the last step takes it."""
    return None if X is None else source[:-1].transform(X)


def _pulled(
    source: Any, trees: Trees, reference: Reference, stage: Stage, table: RawTable
) -> tuple[Trees, Reference]:
    tracer = table.tracer
    missing_zeros = reference.sparse_missing and hasattr(stage.ask(tracer.base()[None]), "tocsr")
    if missing_zeros:  # a zero after all steps has a side of its own
        zero = [Segment(-END, RISING), Segment(0.0, CONSTANT), Segment(np.nextafter(0, 1), RISING)]
        stage = Stage(tracer.cut(stage, zero), stage.ask)

    named = {j: names for j, names in trees.category_names.items() if names}
    unknown = () if trees.columns is None else trees.columns.takes_unknown

    def ask(X: FloatArray) -> FloatArray:
        with _quiet():
            given = stage.ask(X)
            if named:
                return as_table(given, named, unknown)
            return np.ascontiguousarray(dense(given, missing_zeros=missing_zeros))

    about = _about(tracer, stage, ask, reference)
    columns = [_without_refused(column, about) for column in stage.columns]
    raw = Raw(tracer.raw_names, tracer.names, columns, ask, tracer.base(), about)
    _check_unknown(trees, raw)
    _check_arrays(table)
    changes, same_nodes = pull_back(trees, raw)
    read = set(range(len(tracer.raw_names))) - about.unread
    some_need_values = about.needs_value and about.needs_value < read
    special = tracer.names or about.unread or about.refused or some_need_values
    pulled = trees.replace(
        **changes,
        n_features=len(tracer.raw_names),
        feature_names=table.names,
        category_names=tracer.names,
        columns=about if special else None,
        takes_missing=not read <= about.needs_value,
        sparse_missing=False,
    )

    def accepts(X: FloatArray) -> BoolArray:
        good = np.ones(len(X), dtype=bool)
        for r, low, high in about.refused:
            good &= ~((X[:, r] >= low) & (X[:, r] < high))
        good &= ~np.isnan(X[:, sorted(about.needs_value)]).any(axis=1)
        for r, known in tracer.names.items():
            if r not in about.takes_unknown:
                good &= ~((X[:, r] < 0) | (X[:, r] >= len(known)))
        good[good] = _taken(X[good], ask, reference)
        return good

    classes = np.arange(trees.n_classes) if trees.classes is None else trees.classes

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        with _quiet():
            return _labels(X, lambda Z: positions(source.predict(table.decode(Z)), classes))

    def own_label(X: Any) -> npt.NDArray[np.int64]:
        with _quiet():
            return positions(source.predict(X), classes)

    leaf, predict = reference.leaf, reference.predict
    return pulled, replace(
        reference,
        name=f"Pipeline with {reference.name}",
        margin=lambda X: reference.margin(ask(X)),
        leaf=None if leaf is None or not same_nodes else lambda X: leaf(ask(X)),
        label=label if trees.tells_labels else None,
        predict=None if predict is None else lambda X: predict(ask(X)),
        accepts=accepts,
        missing=True,
        infinite=False,
        decode=table.decode,
        own_label=own_label if trees.tells_labels else None,
        sparse_missing=False,
    )


def _labels(
    X: FloatArray, predict: Callable[[FloatArray], npt.NDArray[np.int64]]
) -> npt.NDArray[np.int64]:
    """What the source says of each row, -1 where that is an error, which is one for all rows."""
    if len(X) == 0:
        return np.zeros(0, dtype=np.int64)
    try:
        return predict(X)
    except Exception:  # of whatever library the last step is from
        if len(X) == 1:
            return np.full(1, -1)
        return np.concatenate([_labels(half, predict) for half in np.array_split(X, 2)])


def _taken(X: FloatArray, ask: Ask, reference: Reference) -> BoolArray:
    """Which rows the steps and the model take; they say so by an error, for all rows at once."""
    if len(X) == 0:
        return np.zeros(0, dtype=bool)
    try:
        inner = ask(X)
    except (ValueError, TypeError):
        if len(X) == 1:
            return np.zeros(1, dtype=bool)
        return np.concatenate([_taken(half, ask, reference) for half in np.array_split(X, 2)])
    good: BoolArray = reference.accepts(inner) & ~(np.abs(inner) > FLOAT32_MAX).any(axis=1)
    if not reference.missing:
        good &= ~np.isnan(inner).any(axis=1)
    return good


def _about(tracer: Tracer, stage: Stage, ask: Ask, reference: Reference) -> Columns:
    """What the columns may hold: that for which the steps and the model raise no error."""
    base = tracer.base()
    read = sorted({column.raw for column in stage.columns})

    def taken(raw: Sequence[int], value: Sequence[float]) -> BoolArray:
        rows = np.tile(base, (len(raw), 1))
        rows[np.arange(len(raw)), list(raw)] = value
        return _taken(rows, ask, reference)

    blank = taken(read, [np.nan] * len(read))
    named = [raw for raw, known in tracer.names.items() if not set(known) <= {False, True}]
    unknown = taken(named, [len(tracer.names[raw]) for raw in named])
    flat = sorted(
        {
            (column.raw, start, end)
            for column in stage.columns
            for start, end, sense in spans(column.segments)
            if sense == CONSTANT and column.raw not in tracer.names
        }
    )
    bad = ~taken([raw for raw, _, _ in flat], [held_by(start, end) for _, start, end in flat])
    refused = [segment for segment, no in zip(flat, bad, strict=True) if no]
    return Columns(
        takes_unknown=frozenset(np.array(named, dtype=int)[unknown].tolist()),
        needs_value=frozenset(np.array(read, dtype=int)[~blank].tolist()),
        unread=frozenset(range(len(base))) - set(read),
        refused=tuple(refused + _refused_ranges(stage)),
    )


def _check_base(tracer: Tracer, stage: Stage) -> None:
    """All other rows are variants of one that the steps must take."""
    base = tracer.base()
    try:
        stage.ask(base[None])
    except ValueError as error:
        row = dict(zip(tracer.raw_names, base.tolist(), strict=True))
        raise UnsupportedModelError(
            f"load_model asks the steps of a Pipeline about rows that differ in one column from "
            f"{row}, which this one refuses ({error}). Let the steps take such a row; or attack "
            f"the pipeline as a black box, which works on any model: "
            f'find_adversarial(..., method="cheng").'
        ) from error


def _check_unknown(trees: Trees, raw: Raw) -> None:
    """A name that nobody has seen must mean one thing."""
    for j in np.unique(trees.feature[trees.feature != LEAF]):
        column = raw.columns[j]
        if column.raw in raw.about.takes_unknown and not column.encoded:
            if any(sense != CONSTANT for _, _, sense in spans(column.segments)):
                raise UnsupportedModelError(
                    f"Column {raw.names[column.raw]!r} is both a number and a category in this "
                    f"Pipeline, whose encoder takes categories that it has not seen. Set "
                    f'handle_unknown="error", or use the column as one of the two.'
                )


def _check_arrays(table: RawTable) -> None:
    """In an array of numbers, categories are their own codes."""
    for raw, known in table.tracer.names.items():
        texts = any(isinstance(name, str) for name in known)
        if table.names is None and not texts and known != list(range(len(known))):
            raise UnsupportedModelError(
                f"Column {raw} of this Pipeline holds the categories {known[:5]}, which an array "
                f"does not tell apart from their positions. Fit it on a data frame."
            )


def _without_refused(column: Column, about: Columns) -> Column:
    refused = {(raw, start) for raw, start, _ in about.refused}
    segments = (
        replace(segment, sense=REFUSED) if (column.raw, segment.start) in refused else segment
        for segment in column.segments
    )
    return replace(column, segments=tuple(segments))


def _refused_ranges(stage: Stage) -> list[tuple[int, float, float]]:
    return [
        (column.raw, start, end)
        for column in stage.columns
        for start, end, sense in spans(column.segments)
        if sense == REFUSED
    ]
