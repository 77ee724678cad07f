"""One question about a model and its rows, checked; every method of this room takes it."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import BoolArray, FloatArray, IntArray
from hardwood.errors import HardwoodError, UnitWarning
from hardwood.model.decision import last_float
from hardwood.model.load import open_model
from hardwood.model.trees import LEAF, Trees, take_sets
from hardwood.threat import Reach, Threat

_BLOCK = 16_384  # rows that the model predicts at once


LabelsOf = Callable[[FloatArray], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Outputs:
    """Checked rows of a model with one output."""

    trees: Trees
    X: FloatArray
    n_threads: int
    whole: tuple[int, ...] = ()  # the integer columns of a frame
    truths: tuple[int, ...] = ()  # its columns of truth values

    @classmethod
    def of(cls, model: Any, X: Any, n_jobs: int | None) -> "Outputs":
        """Load the model and check its rows."""
        trees, _ = open_model(model, like=X)
        if trees.n_outputs != 1:
            raise ValueError(
                f"The model has {trees.n_outputs} outputs, one a class; this is about models with "
                f"one output. Ask for its labels with y instead."
            )
        whole, truths = kinds_of_columns(trees.feature_names, X)
        _warn_of_sparse(trees, X)
        return cls(trees, trees.rows(X), _check.thread_count(n_jobs), whole, truths)

    def reach(self, threat: Threat) -> Reach:
        """Spell the threat out for the model's features."""
        if threat.only is not None:
            raise ValueError(
                f"The threat has only={threat.only!r}, a class, but a question about the output of "
                f"a model is told none; leave it out of the threat, and ask about rows of your "
                f"choice."
            )
        return _reach(self, threat)

    def attackers(self, only: Any, y: Any) -> BoolArray:
        """Which rows attack: those with the label that the threat names, or all.

        Without y, labels are the model's own.
        """
        if only is None:
            return np.ones(len(self.X), dtype=bool)
        if not self.trees.tells_labels:
            raise ValueError(
                f"The threat has only={only!r}, a class, but this model has none "
                f"(task={self.trees.task!r}); leave it out of the threat, and ask about rows of "
                f"your choice."
            )
        position = label_position(self.trees, only, "only")
        if y is None:
            label = self.trees.predict_class(self.X, n_jobs=self.n_threads)
            return np.asarray(label == position, dtype=bool)
        labels = _check.labels(y, self.trees.classes, self.trees.n_classes, len(self.X))
        return np.asarray(labels == position, dtype=bool)

    def some(self, rows: npt.NDArray[np.intp]) -> "Outputs":
        """The same model and some of the rows."""
        return replace(self, X=self.X[rows])

    def output(self, X: FloatArray) -> FloatArray:
        """The margin of every row, in the model's own precision."""
        return self.trees.margin(X, n_jobs=self.n_threads)[:, 0]

    def seen(self, margin: FloatArray) -> FloatArray:
        """What users see: the prediction of a regression, else the margin itself."""
        if self.trees.task != "regression":
            return margin
        return self.trees.means(margin[:, None])[:, 0]

    def margins_between(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first and the last margin of each row whose prediction lies between two numbers."""
        dtype = self.trees.value.dtype
        before = last_float(lambda m: self.seen(m) < low, dtype, low.shape)
        last = last_float(lambda m: self.seen(m) <= high, dtype, high.shape)
        first = np.nextafter(before.astype(dtype), dtype.type(np.inf)).astype(np.float64)
        # No sum of leaves gets beyond the finite floats, and no bound needs to.
        most = float(np.finfo(dtype).max)
        return np.where(before == -np.inf, -np.inf, first), np.where(last >= most, np.inf, last)


@dataclass(frozen=True)
class Problem:
    """Checked rows and labels of a model; `source` says what a foreign model itself decides.

    A row is fooled when its label differs from y or, where there is a `target`, when it is that.
    """

    trees: Trees
    X: FloatArray
    y: IntArray
    n_threads: int
    source: LabelsOf | None = None
    target: int | None = None
    whole: tuple[int, ...] = ()  # the integer columns of a frame
    truths: tuple[int, ...] = ()  # its columns of truth values

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any,
        n_jobs: int | None,
        target: Any = None,
        threshold: float | None = None,
    ) -> "Problem":
        """Load the model and check its rows and labels; without y, labels are the model's own."""
        trees, reference = open_model(model, like=X, threshold=threshold)
        trees.need_labels()
        _warn_of_sparse(trees, X)
        table = trees.rows(X)
        n_threads = _check.thread_count(n_jobs)
        if y is None:
            label = trees.predict_class(table, n_jobs=n_threads).astype(np.int32)
        else:
            label = _check.labels(y, trees.classes, trees.n_classes, len(table))
        source = None if reference is None else reference.label
        wanted = None if target is None else label_position(trees, target, "target")
        return cls(
            trees,
            table,
            label,
            n_threads,
            source,
            wanted,
            *kinds_of_columns(trees.feature_names, X),
        )

    def reach(self, threat: Threat) -> Reach:
        """Spell the threat out for the model's features."""
        return _reach(self, threat)

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The labels."""
        named = self.trees.classes
        return np.arange(self.trees.n_classes) if named is None else named

    def labels_of(self, X_adv: FloatArray, there: BoolArray) -> IntArray:
        """The labels of examples where they are there, else -1."""
        label = np.full(len(X_adv), -1, dtype=np.int32)
        if there.any():
            label[there] = self._labels(X_adv[there])
        return label

    def some(self, rows: npt.NDArray[np.intp]) -> "Problem":
        """The same model and some of the rows."""
        return replace(self, X=self.X[rows], y=self.y[rows])

    def fooled(self, label: npt.NDArray[np.int64], row: Any = slice(None)) -> BoolArray:
        """Whether these labels of some rows are what the adversary wants."""
        wanted = label != self.y[row] if self.target is None else label == self.target
        return np.asarray(wanted, dtype=bool)

    def misclassified(self) -> BoolArray:
        """Rows that are as the adversary wants them before anybody attacks."""
        return self.fooled(self._labels(self.X))

    def replay(self, X_adv: FloatArray, found: BoolArray) -> None:
        """Send every example through the model's own prediction; all must change the label."""
        if not found.any():
            return
        fails = ~self.fooled(self._labels(X_adv[found]), found)
        if fails.any():
            row = np.flatnonzero(found)[np.argmax(fails)]
            raise HardwoodError(
                f"The example found for row {row} does not change the label when replayed; "
                f"this is a bug in hardwood, please report it with the model and the row."
            )

    def _labels(self, X: FloatArray) -> npt.NDArray[np.int64]:
        # Block by block: in between, Ctrl-C is heard.
        blocks = [
            self.trees.predict_class(X[begin : begin + _BLOCK], n_jobs=self.n_threads)
            for begin in range(0, len(X), _BLOCK)
        ]
        return np.concatenate(blocks)


def _reach(asked: Problem | Outputs, threat: Threat) -> Reach:
    trees = asked.trees
    categories = _categories(trees, asked.X)
    reach = threat.reach(
        trees.n_features, trees.feature_names, categories, asked.whole, asked.truths
    )
    _check_blanks(trees, reach)
    return reach.measured()


def _check_blanks(trees: Trees, reach: Reach) -> None:
    """Refuse to leave blank what the model takes no blanks in."""
    for feature in np.flatnonzero(reach.blank).tolist():
        needed = trees.columns is not None and feature in trees.columns.needs_value
        if needed or not trees.takes_missing:
            column = feature if trees.feature_names is None else trees.feature_names[feature]
            raise ValueError(
                f"The threat leaves column {column!r} blank, but the model takes no missing value "
                f"there; leave the column out of blank."
            )


def kinds_of_columns(
    names: Sequence[str] | None, X: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The features that are integer columns of a data frame, and those of truth values.

    `names` are what the model calls its features; columns are matched to them as rows are.
    """
    whole, truths = _check.whole_columns(X), _check.truth_columns(X)
    frame = _check.column_names(X)
    if names is None or frame is None:  # then rows are read in the frame's order
        return tuple(whole), tuple(truths)
    place = [_check.named(name, frame) for name in names]

    def features(columns: list[int]) -> tuple[int, ...]:
        return tuple(feature for feature, at in enumerate(place) if at in columns)

    return features(whole), features(truths)


def _warn_of_sparse(trees: Trees, X: Any) -> None:
    """Say that what a sparse table does not store stands still, where XGBoost takes it so."""
    if trees.sparse_missing and hasattr(X, "tocsr") and X.nnz < math.prod(X.shape):
        warnings.warn(
            "X is sparse. What it does not store is missing to XGBoost, not 0, and a missing value "
            "is never moved. If zeros are meant, train and ask the model with X.toarray().",
            UnitWarning,
            stacklevel=4,
        )


def _categories(trees: Trees, X: FloatArray) -> dict[int, dict[int, Any] | None]:
    """The categories that the model knows of each feature: their codes, and what it calls them.

    Where it only knows numbers, these are the ones that its splits or the rows name. None: it has
    no split on the feature.
    """
    unused = np.ones(trees.n_features, dtype=bool)
    unused[trees.feature[trees.feature != LEAF]] = False
    known: dict[int, dict[int, Any] | None] = dict.fromkeys(np.flatnonzero(unused).tolist())
    known |= {f: dict(enumerate(names)) for f, names in trees.category_names.items() if names}
    for f in trees.categorical_features.tolist():
        if f not in known:
            nodes = np.flatnonzero((trees.feature == f) & trees.categorical)
            listed = take_sets(trees.category_start, trees.category, nodes)[1]
            held = X[~np.isnan(X[:, f]), f].astype(np.int64)
            known[f] = {code: code for code in np.union1d(listed, held).tolist() if code >= 0}
    return known


def label_position(trees: Trees, label: Any, what: str) -> int:
    """Where a label is among the model's classes; `what` names the argument that says it."""
    known = list(range(trees.n_classes)) if trees.classes is None else trees.classes.tolist()
    if label not in known:
        shown = ", ".join(repr(one) for one in known[:8]) + (", ..." if len(known) > 8 else "")
        raise ValueError(f"{what}={label!r} is no label of this model; its labels are {shown}.")
    return known.index(label)
