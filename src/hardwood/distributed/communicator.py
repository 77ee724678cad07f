"""The workers of one job, as XGBoost's collective connects them."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np

from hardwood import _core
from hardwood.errors import CommunicationError

T = TypeVar("T")


def _xgboost() -> Any:
    try:
        import xgboost.collective
    except ImportError:
        raise ImportError(
            "Training on several machines adds up sums through XGBoost's collective. Install it "
            'with: pip install "hardwood[dask]"'
        ) from None
    return xgboost


class Communicator:
    """All workers of one job, on the thread that joined it.

    XGBoost's collective belongs to a thread: whoever has called ``xgboost.collective.init`` (as
    Ray Train and XGBoost's Spark do for their workers) makes one of these on the same thread;
    others use `connect`.

    Attributes
    ----------
    rank : int
        Which worker this is, from 0 on.
    size : int
        Number of workers.
    """

    def __init__(self) -> None:
        collective = _xgboost().collective
        self._collective = collective
        self.rank: int = collective.get_rank()
        self.size: int = collective.get_world_size()
        library = collective._LIB

        def address(function: Any) -> int:
            return ctypes.cast(function, ctypes.c_void_p).value or 0

        self.core: _core.Communicator = _core.collective(
            address(library.XGCommunicatorAllreduce), address(library.XGBGetLastError)
        )

    def meet(self) -> None:
        """Wait until everybody has come here."""
        try:
            self.core.sum(np.zeros(1, dtype=np.int64))
        except RuntimeError as error:
            raise lost(error) from error

    def gather(self, value: T) -> list[T]:
        """Give everybody the values of all, by rank."""
        try:
            return [
                self._collective.broadcast(value if rank == self.rank else None, rank)
                for rank in range(self.size)
            ]
        except _xgboost().core.XGBoostError as error:
            raise lost(error) from error


def lost(error: Exception) -> CommunicationError:
    """What is said when another worker does not answer."""
    said = str(error).strip().splitlines()
    return CommunicationError(
        f"Another worker of this job has died or does not answer: {said[-1] if said else error!r}. "
        f"Start the job again, from the last checkpoint."
    )


@contextmanager
def connect(
    host: str, port: int, *, name: str = "", timeout: int = 300, retry: int = 3
) -> Iterator[Communicator]:
    """Join the workers that meet at a tracker.

    Parameters
    ----------
    host, port : str, int
        Where the ``xgboost.tracker.RabitTracker`` listens.
    name : str, default=""
        Name of this worker; a tracker with ``sortby="task"`` ranks workers by it.
    timeout : int, default=300
        Seconds after which a worker that does not answer counts as lost.
    retry : int, default=3
        Attempts to connect.

    Yields
    ------
    Communicator
        Of all workers, on this thread.
    """
    xgboost = _xgboost()
    failure = xgboost.core.XGBoostError
    try:
        xgboost.collective.init(
            dmlc_tracker_uri=host,
            dmlc_tracker_port=port,
            dmlc_task_id=name,
            dmlc_timeout=timeout,
            dmlc_retry=retry,
        )
    except failure as error:
        raise lost(error) from error
    try:
        yield Communicator()
    finally:
        # The tracker may be gone already; then there is nobody to say goodbye to.
        with suppress(failure):
            xgboost.collective.finalize()
