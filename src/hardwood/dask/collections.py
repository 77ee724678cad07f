"""Dask's collections as lists of partitions."""

from typing import Any

import dask
import dask.array as da
from dask.delayed import Delayed

from hardwood.distributed.plan import Piece


def is_frame(collection: Any) -> bool:
    """Whether it is a dask.dataframe, or a column of one."""
    return (
        hasattr(collection, "to_delayed")
        and hasattr(collection, "npartitions")
        and not (isinstance(collection, da.Array))
    )


def partitions(collection: Any, name: str) -> list[Delayed]:
    """The partitions of a collection, in order."""
    if isinstance(collection, da.Array):
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed(optimize_graph=True).ravel())
    if is_frame(collection):
        return list(collection.to_delayed())
    if isinstance(collection, list | tuple):
        return [part if isinstance(part, Delayed) else dask.delayed(part) for part in collection]
    raise TypeError(
        f"{name} must be a dask.array, a dask.dataframe or a list of delayed partitions, got "
        f"{type(collection).__name__}; arrays in memory are fitted without Dask."
    )


def pieces(X: Any, y: Any, weight: Any, word: str = "partition") -> list[Delayed]:
    """Pieces of a table: partition i of each collection, put together where they are."""
    if isinstance(X, da.Array):
        y, weight = (_chunked_as(X, part) for part in (y, weight))
    columns = [partitions(X, "X"), partitions(y, "y")]
    if weight is not None:
        columns.append(partitions(weight, "sample_weight"))
    for name, column in zip(("y", "sample_weight"), columns[1:], strict=False):
        if len(column) != len(columns[0]):
            raise ValueError(
                f"X has {len(columns[0])} partitions but {name} has {len(column)}; repartition "
                f"them alike."
            )
    weights = columns[2] if weight is not None else [None] * len(columns[0])
    make = dask.delayed(Piece, pure=False)
    return [
        make(x, labels, of_rows, f"{word} {i}", i)
        for i, (x, labels, of_rows) in enumerate(zip(columns[0], columns[1], weights, strict=True))
    ]


def _chunked_as(X: da.Array, part: Any) -> Any:
    """An array of one entry a row, cut as X is, if both know their sizes."""
    known = isinstance(part, da.Array) and part.ndim == 1
    if not known or X.chunks[0] == part.chunks[0]:
        return part
    if any(size != size for size in (*X.chunks[0], *part.chunks[0])):  # NaN: unknown
        return part
    return part.rechunk({0: X.chunks[0]})
