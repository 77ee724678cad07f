"""Questions about a model, asked where the rows are; the model is sent once."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import get_scheduler

import hardwood as hw
from distributed import Client
from hardwood.dask.collections import is_frame, partitions
from hardwood.dask.scheduler import telling_of_a_lost_scheduler
from hardwood.model.given import Given
from hardwood.report.checks import drawn_check
from hardwood.threat import Threat


def predict(model: Any, X: Any, *, method: str = "predict") -> Any:
    """Predict the partitions of a collection, lazily.

    Whoever computes the answer waits for the scheduler, however long it hangs: pass a deadline to
    ``distributed.wait`` or to a future's ``result``.

    Parameters
    ----------
    model : estimator
        A fitted one.
    X : dask.array, dask.dataframe or list of delayed partitions
        Rows.
    method : str, default="predict"
        What is asked of the model: ``"predict"``, ``"predict_proba"`` or ``"decision_function"``.

    Returns
    -------
    dask.array or list of delayed arrays
        An array for arrays and frames, otherwise a list.
    """
    sent = dask.delayed(model, pure=True)
    parts = [dask.delayed(_predicted)(sent, method, part) for part in partitions(X, "X")]
    if not isinstance(X, da.Array) and not is_frame(X):
        return parts
    sample = _predicted(model, method, np.zeros((1, model.n_features_in_)), named=False)
    n_rows = X.chunks[0] if isinstance(X, da.Array) else [np.nan] * len(parts)
    return da.concatenate(
        [
            da.from_delayed(part, shape=(n, *sample.shape[1:]), dtype=sample.dtype)
            for part, n in zip(parts, n_rows, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )


def _predicted(model: Any, method: str, rows: Any, named: bool = True) -> Any:
    if len(rows) == 0:
        none = np.zeros((1, model.n_features_in_))
        return _predicted(model, method, none, named=False)[:0]
    if named or not hasattr(model, "feature_names_in_"):
        return getattr(model, method)(rows)
    import pandas as pd

    return getattr(model, method)(pd.DataFrame(rows, columns=model.feature_names_in_))


def certify(
    model: Any, X: Any, y: Any, threat: Threat, *, timeout: int = 120, **options: Any
) -> "hw.Certificate":
    """Certify the rows of a collection; see `hardwood.certify`.

    Parameters
    ----------
    model : estimator or Trees
        Anything that `load_model` takes.
    X, y : dask.array, dask.dataframe or list of delayed partitions
        Rows and labels.
    threat : Threat
        What the adversary may do.
    timeout : int, default=120
        Seconds after which a scheduler that does not answer is given up.
    **options : Any
        Of `hardwood.certify`; a `time_limit` is one for each partition.

    Returns
    -------
    Certificate
        Of all rows, in order.
    """
    result: hw.Certificate = _asked(hw.certify, model, X, y, (threat,), options, timeout)
    return result


def minimal_distance(
    model: Any, X: Any, y: Any, *, timeout: int = 120, **options: Any
) -> "hw.DistanceResult":
    """Find the smallest change that fools the model, row by row; see `hardwood.minimal_distance`.

    Parameters
    ----------
    model : estimator or Trees
        Anything that `load_model` takes.
    X, y : dask.array, dask.dataframe or list of delayed partitions
        Rows and labels.
    timeout : int, default=120
        Seconds after which a scheduler that does not answer is given up.
    **options : Any
        Of `hardwood.minimal_distance`; a `time_limit` is one for each partition.

    Returns
    -------
    DistanceResult
        Of all rows, in order.
    """
    result: hw.DistanceResult = _asked(hw.minimal_distance, model, X, y, (), options, timeout)
    return result


def find_adversarial(
    model: Any, X: Any, y: Any, *, timeout: int = 120, **options: Any
) -> "hw.AttackResult":
    """Attack the rows of a collection; see `hardwood.find_adversarial`.

    Parameters
    ----------
    model : estimator or Trees
        Anything that `load_model` takes.
    X, y : dask.array, dask.dataframe or list of delayed partitions
        Rows and labels.
    timeout : int, default=120
        Seconds after which a scheduler that does not answer is given up.
    **options : Any
        Of `hardwood.find_adversarial`.

    Returns
    -------
    AttackResult
        Of all rows, in order.
    """
    result: hw.AttackResult = _asked(hw.find_adversarial, model, X, y, (), options, timeout)
    return result


def sample(
    X: Any, y: Any, n_rows: int = 10_000, *, random_state: int = 0, timeout: int = 120
) -> tuple[Any, npt.NDArray[Any]]:
    """Draw rows of a collection, each as likely as any other, and bring them here.

    Parameters
    ----------
    X, y : dask.array, dask.dataframe or list of delayed partitions
        Rows and labels.
    n_rows : int, default=10_000
        How many to draw; all, if there are no more.
    random_state : int, default=0
        Seed of the draw.
    timeout : int, default=120
        Seconds after which a scheduler that does not answer is given up.

    Returns
    -------
    X, y : array or data frame, array
        In the order of the collection.
    """
    rows, labels, _ = _drawn(X, y, n_rows, random_state, timeout)
    return rows, labels


def audit(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat | float,
    *,
    max_rows: int = 10_000,
    timeout: int = 120,
    **options: Any,
) -> "hw.Audit":
    """Audit a model on rows of a collection; see `hardwood.audit`.

    A report tells of single rows and measures some of them exactly, so it is made here, of a sample
    of `max_rows` rows that are drawn over all partitions: `sample` with the same seed gives them,
    for ``Audit.check``. Its last check says of how many rows they were drawn. To certify every row,
    call `certify`.

    Parameters
    ----------
    model : object
        Anything that `load_model` reads.
    X, y : dask.array, dask.dataframe or list of delayed partitions
        Rows and labels.
    threat : Threat or number
        What the adversary may do.
    max_rows : int, default=10_000
        Rows to draw; all of them are certified.
    timeout : int, default=120
        Seconds after which a scheduler that does not answer is given up.
    **options : Any
        Of `hardwood.audit`; its `random_state` is the seed of this sample, too.

    Returns
    -------
    Audit
        The findings.
    """
    seed = options.get("random_state", 0)
    rows, labels, n_all = _drawn(X, y, max_rows, seed, timeout)
    report = hw.audit(model, rows, labels, threat, max_rows=max_rows, **options)
    if n_all > len(labels):
        report.content["checks"].append(drawn_check(len(labels), n_all, seed))
    return report


def _drawn(
    X: Any, y: Any, n_rows: int, random_state: int, timeout: int
) -> tuple[Any, npt.NDArray[Any], int]:
    """Some rows and labels, and how many there are of all."""
    of_rows, of_labels = _alike(X, y)
    sizes = _computed([dask.delayed(np.shape)(labels) for labels in of_labels], timeout)
    start = np.concatenate([[0], np.cumsum([size[0] for size in sizes])])
    n_all = int(start[-1])
    if n_all == 0:
        raise ValueError("There are no rows: all partitions are empty.")
    rng = np.random.default_rng(random_state)
    chosen = np.sort(rng.choice(n_all, min(n_rows, n_all), replace=False))
    at = np.searchsorted(start, chosen, side="right") - 1
    parts = _computed(
        [
            dask.delayed(_some)(of_rows[i], of_labels[i], chosen[at == i] - start[i])
            for i in np.unique(at)
        ],
        timeout,
    )
    labels = np.concatenate([part[1] for part in parts])
    return _rows_of([part[0] for part in parts]), labels, n_all


def _some(rows: Any, labels: Any, chosen: npt.NDArray[np.int64]) -> tuple[Any, npt.NDArray[Any]]:
    return (rows.iloc if hasattr(rows, "iloc") else rows)[chosen], np.asarray(labels)[chosen]


def _alike(X: Any, y: Any) -> tuple[list[Any], list[Any]]:
    """The partitions of rows and labels."""
    of_rows, of_labels = partitions(X, "X"), partitions(y, "y")
    if len(of_rows) != len(of_labels):
        raise ValueError(
            f"X has {len(of_rows)} partitions but y has {len(of_labels)}; repartition them alike."
        )
    return of_rows, of_labels


def _computed(tasks: list[Any], timeout: int) -> Any:
    """What the tasks give; a scheduler that is lost, or hangs, ends in an error."""
    client = getattr(get_scheduler(), "__self__", None)
    if not isinstance(client, Client):  # threads or processes of this machine
        return dask.compute(*tasks)
    with telling_of_a_lost_scheduler(client, timeout, "the answer", "ask"):
        return dask.compute(*tasks)


def _asked(
    question: Callable[..., Any],
    model: Any,
    X: Any,
    y: Any,
    more: tuple[Any, ...],
    options: Any,
    timeout: int,
) -> Any:
    sent = dask.delayed(model, pure=True)
    of_rows, of_labels = _alike(X, y)
    answers = _computed(
        [
            dask.delayed(_answered)(question, sent, rows, labels, more, options)
            for rows, labels in zip(of_rows, of_labels, strict=True)
        ],
        timeout,
    )
    filled = [answer for answer in answers if answer is not None]
    if not filled:
        raise ValueError("There are no rows: all partitions are empty.")
    return _together(filled)


def _answered(
    question: Callable[..., Any],
    model: Any,
    rows: Any,
    labels: Any,
    more: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    return question(model, rows, np.asarray(labels), *more, **options) if len(rows) else None


def _together(answers: list[Any]) -> Any:
    """One result of those of parts: what is told row by row, and the rest as in the first."""
    joined: dict[str, Any] = {}
    for field in fields(answers[0]):
        values = [getattr(answer, field.name) for answer in answers]
        if isinstance(values[0], Given):
            joined[field.name] = Given(
                _rows_of([value.X for value in values]),
                _rows_of([value.table for value in values]),
                values[0].trees,
            )
        elif hasattr(values[0], "shape") and field.name != "classes":
            joined[field.name] = _rows_of(values)
        else:
            joined[field.name] = max(values) if field.name == "seconds" else values[0]
    return type(answers[0])(**joined)


def _rows_of(tables: list[Any]) -> Any:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    import pandas as pd

    return pd.concat(tables)
