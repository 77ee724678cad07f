"""Out of core: rows that come batch by batch, several times, and are kept as bins only."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from hardwood import _core
from hardwood.distributed.fit import finished
from hardwood.distributed.plan import Call, Piece, encode, hold, make_plan
from hardwood.distributed.train import Share, refuse, train
from hardwood.estimators._base import RobustEstimator

T = TypeVar("T")
E = TypeVar("E", bound=RobustEstimator)


class ArrayBatches:
    """Batches of arrays that may lie on disk, as ``np.load(path, mmap_mode="r")`` gives them.

    Parameters
    ----------
    X, y, sample_weight : array-like
        Rows, labels and weights, as `fit` takes them; anything that can be sliced by rows.
    n_rows : int, default=65536
        Rows of a batch.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, n_rows: int = 1 << 16) -> None:
        self.X, self.y, self.sample_weight, self.n_rows = X, y, sample_weight, n_rows
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} rows but y has {len(y)}.")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Begin again with the first batch."""
        for begin in range(0, len(self.X), self.n_rows):
            some = slice(begin, begin + self.n_rows)
            weight = () if self.sample_weight is None else (self.sample_weight[some],)
            yield (self.X[some], self.y[some], *weight)


class ParquetBatches:
    """Batches of a Parquet or Arrow (Feather) file, or of a folder of them; needs pyarrow.

    Parameters
    ----------
    path : str, Path or list of them
        What ``pyarrow.dataset.dataset`` takes.
    label : str
        The column to predict.
    sample_weight : str or None, default=None
        The column of weights.
    n_rows : int, default=65536
        Rows of a batch, at most.
    format : str, default="parquet"
        ``"parquet"``, or ``"feather"`` for Arrow files.
    """

    def __init__(
        self,
        path: str | Path | list[str],
        label: str,
        sample_weight: str | None = None,
        n_rows: int = 1 << 16,
        format: str = "parquet",
    ) -> None:
        try:
            import pyarrow.dataset
        except ImportError:
            raise ImportError(
                "Parquet and Arrow files need pyarrow. Install it with: "
                'pip install "hardwood[data]"'
            ) from None
        self.table = pyarrow.dataset.dataset(path, format=format)
        self.label, self.sample_weight, self.n_rows = label, sample_weight, n_rows
        for name in filter(None, (label, sample_weight)):
            if name not in self.table.schema.names:
                raise ValueError(
                    f"There is no column {name!r} in {path}; it has {self.table.schema.names}."
                )

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Begin again with the first batch."""
        for batch in self.table.to_batches(batch_size=self.n_rows):
            frame = batch.to_pandas()
            aside = [name for name in (self.label, self.sample_weight) if name]
            yield (frame.drop(columns=aside), *(frame[name] for name in aside))


class _BatchPieces:
    def __init__(self, batches: Iterable[tuple[Any, ...]]) -> None:
        if iter(batches) is batches:
            raise ValueError(
                "batches must begin anew each time it is iterated; a generator runs once. Pass an "
                "object with __iter__, such as ArrayBatches, ParquetBatches or a list."
            )
        self.batches = batches

    def __iter__(self) -> Iterator[Piece]:
        for i, (X, y, *weight) in enumerate(self.batches):
            yield Piece(X, y, weight[0] if weight else None, f"batch {i}", i)

    def each(self, ask: Callable[[Piece], T]) -> list[T]:
        return [ask(piece) for piece in self]

    def together(self, ask: Callable[[Piece], T], merge: Callable[[list[T]], T]) -> T:
        """As a counter does: two answers of equal standing are merged at once.

        So neighbours are put together in the same order as on a cluster, with few that wait.
        """
        waiting: list[tuple[int, T]] = []
        for piece in self:
            level, answer = 0, ask(piece)
            while waiting and waiting[-1][0] == level:
                answer = merge([waiting.pop()[1], answer])
                level += 1
            waiting.append((level, answer))
        answer = merge([waiting.pop()[1]])
        while waiting:
            answer = merge([waiting.pop()[1], answer])
        return answer


def fit_batches(
    estimator: E,
    batches: Iterable[tuple[Any, ...]],
    *,
    X_val: Any = None,
    y_val: Any = None,
) -> E:
    """Fit an estimator on rows that come batch by batch, such as files larger than memory.

    The batches are read three times (three times more with weights, once more with categories).
    What stays in memory is the table in bins, 1 byte a value and 24 bytes a row (about 4 and 60
    with ``inner="certified"``), and one batch.

    Parameters
    ----------
    estimator : RobustGradientBoostingClassifier, RobustGradientBoostingRegressor or \
RobustRandomForestClassifier
        The parameters; it is not changed.
    batches : iterable of tuples (X, y) or (X, y, sample_weight)
        Begins anew each time it is iterated: `ArrayBatches`, `ParquetBatches`, or your own.
    X_val, y_val : array-like or None, default=None
        Validation data, for `early_stopping` and ``evals_result_``.

    Returns
    -------
    estimator
        A fitted one of the same class.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = hw.RobustGradientBoostingClassifier(eps=0.1, inner="exact", n_estimators=5)
    >>> fitted = hw.distributed.fit_batches(model, hw.distributed.ArrayBatches(X, y, n_rows=100))
    >>> fitted.score(X, y) == model.fit(X, y).score(X, y)
    True
    """
    refuse(estimator, X_val is not None)
    pieces = _BatchPieces(batches)
    plan = make_plan(estimator, pieces, estimator.max_bins, has_validation=X_val is not None)
    _core.return_freed_memory()  # of samples, which are small and many
    held = None
    if X_val is not None:
        held = [hold(plan, Piece(X_val, y_val, None, "rows"))]
    coded = pieces.each(Call(encode, plan, estimator.n_jobs or 1))
    share = Share(plan, coded, plan.stretches(range(len(coded))), held, n_threads=estimator.n_jobs)
    del coded
    fitted: E = finished(plan, train(share, None))
    return fitted
