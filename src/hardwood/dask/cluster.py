"""One fit on a cluster: pieces into bins, a job on all workers, another try if some are lost."""

import contextlib
import logging
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, TypeVar

from dask.delayed import Delayed
from distributed.utils import get_ip
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

import distributed
from distributed import Client, Future, Queue, Semaphore
from hardwood.dask.scheduler import telling_of_a_lost_scheduler
from hardwood.distributed.communicator import connect
from hardwood.distributed.fit import finished
from hardwood.distributed.plan import Call, Coded, Held, Piece, Plan, encode, hold, make_plan
from hardwood.distributed.train import Checkpoint, Outcome, Share, refuse, train
from hardwood.errors import CommunicationError
from hardwood.estimators._base import RobustEstimator

T = TypeVar("T")

_logger = logging.getLogger("hardwood")
_PULSE = 0.1  # seconds between two looks at a job
_PORT_WAITS = 90.0  # seconds: systems keep a port closed for 60
_PING = 5.0  # seconds a worker has to say that it is there


@dataclass(frozen=True)
class Cluster:
    """Where and how to fit.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        By default the current one.
    tracker_host : str or None, default=None
        The client's address as workers reach it; by default that of its way to the scheduler.
    tracker_port : int or sequence of int, default=0
        The port at which workers meet, on the client; 0: any; a sequence: the first that is free.
        The system keeps a port closed for a minute after its use, so several let fits and
        restarts follow each other at once. Workers also connect to each other.
    timeout : int, default=120
        Seconds after which a worker, or the scheduler, that does not answer is given up.
    checkpoint_every : int, default=10
        Rounds between two checkpoints, from which training goes on when a worker is lost.
    workers : sequence of str or None, default=None
        Addresses of the workers to use; by default all.
    """

    client: Client | None = None
    tracker_host: str | None = None
    tracker_port: int | Sequence[int] = 0
    timeout: int = 120
    checkpoint_every: int = 10
    workers: Sequence[str] | None = None

    @property
    def ports(self) -> list[int]:
        """Where a tracker may listen."""
        given = self.tracker_port
        return [given] if isinstance(given, int) else list(given)

    @property
    def where(self) -> dict[str, Any]:
        """Where tasks may run."""
        if self.workers is None:
            return {}
        return {"workers": list(self.workers), "allow_other_workers": False}


class _ClusterPieces:
    """Pieces on a cluster; what they are asked is asked where they are."""

    def __init__(self, client: Client, pieces: Sequence[Delayed], where: dict[str, Any]) -> None:
        self.client = client
        self.pieces = client.compute(list(pieces), optimize_graph=False, **where)
        self.where = where

    def each(self, ask: Callable[[Piece], T]) -> list[T]:
        answers: list[T] = self.client.gather(self.ask(ask))
        return answers

    def together(self, ask: Callable[[Piece], T], merge: Callable[[list[T]], T]) -> T:
        answers = self.ask(ask)
        while len(answers) > 1:
            pairs = [answers[i : i + 2] for i in range(0, len(answers), 2)]
            answers = [self.client.submit(merge, pair, pure=False, **self.where) for pair in pairs]
        answer: T = answers[0].result()
        return answer

    def ask(self, ask: Callable[[Piece], Any]) -> list[Future]:
        # Sent once, not with every piece; as a task, so that it comes back if its worker is lost.
        question = self.client.submit(_itself, ask, pure=False, **self.where)
        return [
            self.client.submit(_answer, question, piece, pure=False, **self.where)
            for piece in self.pieces
        ]


def _itself(ask: Callable[[Piece], T]) -> Callable[[Piece], T]:
    return ask


def _answer(ask: Callable[[Piece], T], piece: Piece) -> T:
    return ask(piece)


def fit_on(
    cluster: Cluster,
    estimator: RobustEstimator,
    pieces: Sequence[Delayed],
    held: Sequence[Delayed] | None,
) -> Any:
    """Fit; gives an ordinary estimator."""
    refuse(estimator, held is not None)
    client = cluster.client or distributed.default_client()
    with telling_of_a_lost_scheduler(client, cluster.timeout, "the fit", "fit"):
        plan, outcome = _train(client, cluster, estimator, pieces, held)
    return finished(plan, outcome)


def _train(
    client: Client,
    cluster: Cluster,
    estimator: RobustEstimator,
    pieces: Sequence[Delayed],
    held: Sequence[Delayed] | None,
) -> tuple[Plan, Outcome]:
    on_cluster = _ClusterPieces(client, pieces, cluster.where)
    plan = make_plan(estimator, on_cluster, estimator.max_bins, has_validation=held is not None)
    coded = on_cluster.ask(Call(encode, plan, 1))
    of_held = None
    if held is not None:
        of_held = _ClusterPieces(client, held, cluster.where).ask(Call(hold, plan))
    distributed.wait(coded + (of_held or []))
    for future in coded + (of_held or []):
        if future.status == "error":
            future.result()
    del on_cluster  # bins are all that is needed from here on
    with _in_line(client):
        return plan, _Job(client, cluster, plan, coded, of_held).run()


@contextlib.contextmanager
def _in_line(client: Client) -> Iterator[None]:
    """One job at a time: two whose workers wait for each other would wait for ever."""
    turn = Semaphore(max_leases=1, name="hardwood-fit", loop=client.loop)
    turn.acquire()
    try:
        yield
    finally:
        if client.status == "running":  # a lost scheduler has forgotten who was first in line
            turn.release()


class _Job:
    """Attempts to train until one of them comes to an end."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
        plan: Plan,
        coded: list[Future],
        held: list[Future] | None,
    ) -> None:
        self.client = client
        self.cluster = cluster
        self.plan = plan
        self.coded = coded
        self.held = held
        self.name = f"hardwood-{uuid.uuid4().hex}"
        self.news = Queue(self.name, client=client)
        self.checkpoint: Checkpoint | None = None

    def run(self) -> Outcome:
        n_attempts = len(self._alive()) + 1
        try:
            for attempt in range(n_attempts):
                outcome = self._attempt(attempt)
                if outcome is not None:
                    return outcome
                _logger.warning(
                    "A worker was lost; fit goes on with %d workers from round %d.",
                    len(self._alive()),
                    self.checkpoint.n_rounds if self.checkpoint else 0,
                )
        finally:
            self.news.close()
        raise CommunicationError(
            f"fit gave up after {n_attempts} attempts: each time a worker was lost. Look at the "
            f"workers' logs (memory, time-outs), or raise timeout={self.cluster.timeout}."
        )

    def _alive(self) -> set[str]:
        return set(self.client.nthreads())

    def _attempt(self, attempt: int) -> Outcome | None:
        """The outcome, or None if a worker was lost."""
        holders = self._holders()
        addresses = sorted(holders)
        n_held = len(self.held or ())
        with self._tracker(len(addresses)) as where:
            tasks = []
            for k, address in enumerate(addresses):
                some = slice(k * n_held // len(addresses), (k + 1) * n_held // len(addresses))
                tasks.append(
                    self.client.submit(
                        work,
                        self.plan,
                        holders[address],
                        [self.coded[i] for i in holders[address]],
                        None if self.held is None else self.held[some],
                        self.checkpoint,
                        Meeting(*where, f"{k:05d}", self.cluster.timeout),
                        self.name,
                        self.cluster.checkpoint_every,
                        key=f"{self.name}-{attempt}-{k}",
                        workers=[address],
                        allow_other_workers=False,
                        pure=False,
                    )
                )
            try:
                return self._watch(dict(zip(addresses, tasks, strict=True)))
            finally:
                self.client.cancel(tasks, force=True)

    def _holders(self) -> dict[str, list[int]]:
        """Which pieces each worker shall train on, of those it has."""
        deadline = time.monotonic() + self.cluster.timeout
        needed = self.coded + (self.held or [])
        try:
            with contextlib.suppress(TimeoutError):
                distributed.wait(needed, timeout=self.cluster.timeout)
        except CancelledError as error:
            raise CommunicationError(
                "Partitions that a lost worker had cannot be computed again: the data was put on "
                "the cluster by hand (scatter). Keep it where it can be read again."
            ) from error
        for future in needed:
            if future.status == "error":
                future.result()  # raises
        while True:
            where = self.client.who_has(self.coded)
            alive = self._alive()
            homes = [[a for a in where[future.key] if a in alive] for future in self.coded]
            if alive and all(homes):
                break
            if time.monotonic() > deadline:
                raise CommunicationError(
                    f"Partitions that a lost worker had did not come back within "
                    f"{self.cluster.timeout} s; {len(alive)} workers are left. Keep the data where "
                    f"it can be read again."
                )
            time.sleep(_PULSE)
        holders: dict[str, list[int]] = {}
        n_rows: dict[str, int] = {}
        for i, home in enumerate(homes):
            address = min(home, key=lambda a: (n_rows.get(a, 0), a))
            holders.setdefault(address, []).append(i)
            n_rows[address] = n_rows.get(address, 0) + self.plan.n_rows[i]
        return holders

    @contextlib.contextmanager
    def _tracker(self, n_workers: int) -> Iterator[tuple[str, int]]:
        scheduler = distributed.comm.get_address_host(self.client.scheduler.address)
        host = self.cluster.tracker_host or get_ip(scheduler)
        tracker = _started(n_workers, host, self.cluster.ports)
        try:
            yield host, int(tracker.worker_args()["dmlc_tracker_port"])
        finally:
            with contextlib.suppress(XGBoostError):  # it was still waiting for a lost worker
                tracker.free()

    def _watch(self, tasks: dict[str, Future]) -> Outcome | None:
        """Wait for news: the outcome, or None as soon as it is sure that there is none to come."""
        failed_at = None
        while True:
            outcome = self._hear()
            if outcome is not None:
                # The model is here; who is lost from now on costs nothing.
                with contextlib.suppress(TimeoutError, CancelledError):
                    distributed.wait(list(tasks.values()), timeout=_PING)
                return outcome
            for task in tasks.values():
                if task.status == "error":
                    error = task.exception()
                    if not isinstance(error, CommunicationError | distributed.KilledWorker):
                        raise error
            gone = set(tasks) - self._alive()
            ended = {a for a, task in tasks.items() if task.status != "pending"}
            if not gone and not ended:
                time.sleep(_PULSE)
                continue
            # Whoever is left fails, too, as soon as it asks the lost one for something.
            failed_at = failed_at or time.monotonic()
            left = set(tasks) - gone - ended
            silent = {address for address in left if not self._answers(address)}
            if left - silent and time.monotonic() - failed_at < 2 * self.cluster.timeout:
                time.sleep(_PULSE)
                continue
            outcome = self._hear()
            if outcome is None:
                for address in left:
                    self.client.run_on_scheduler(_drop, address=address)
            return outcome

    def _hear(self) -> Outcome | None:
        """Take what the workers have sent: checkpoints, in the end the outcome."""
        # To wait on the scheduler would end in an error in its log each time that nothing comes.
        for news in map(pickle.loads, self.news.get(batch=True)):
            if isinstance(news, Outcome):
                return news
            self.checkpoint = news
        return None

    def _answers(self, address: str) -> bool:
        try:
            self.client.sync(self.client._run, _hello, workers=[address], callback_timeout=_PING)
        except Exception as error:
            _logger.debug("%s does not answer: %r", address, error)
            return False
        return True


def _started(n_workers: int, host: str, ports: list[int]) -> RabitTracker:
    """A tracker at the first port that is free, or as soon as one is."""
    deadline = time.monotonic() + _PORT_WAITS
    while True:
        for port in ports:
            try:
                tracker = RabitTracker(n_workers=n_workers, host_ip=host, port=port, sortby="task")
                tracker.start()
            except XGBoostError as error:
                failure = error
            else:
                return tracker
        if time.monotonic() > deadline:
            raise CommunicationError(
                f"No tracker could listen at {host} on tracker_port={ports} within "
                f"{_PORT_WAITS:.0f} s; choose other ports."
            ) from failure
        time.sleep(1)


def _hello() -> bool:
    return True


async def _drop(dask_scheduler: Any, address: str) -> None:
    """Let the scheduler forget a worker that does not answer; its data is computed elsewhere."""
    await dask_scheduler.remove_worker(address=address, stimulus_id="hardwood-lost")


@dataclass(frozen=True)
class Meeting:
    """Where the workers of an attempt meet."""

    host: str
    port: int
    name: str
    timeout: int


def work(
    plan: Plan,
    which: list[int],
    coded: list[Coded],
    held: list[Held] | None,
    start: Checkpoint | None,
    meeting: Meeting,
    news: str,
    every: int,
) -> None:
    """Train on one worker; the first one tells the client."""
    worker = distributed.get_worker()
    queue = Queue(news, client=distributed.get_client())

    def tell(what: Checkpoint | Outcome) -> None:
        queue.put(pickle.dumps(what))

    n_threads = plan.estimator.n_jobs or worker.state.nthreads

    def take_part() -> None:
        with connect(
            meeting.host, meeting.port, name=meeting.name, timeout=meeting.timeout
        ) as communicator:
            first = communicator.rank == 0
            share = Share(
                plan,
                coded,
                plan.stretches(which),
                held,
                start,
                every,
                tell if first else None,
                n_threads,
                asks=first,
            )
            outcome = train(share, communicator)
            if first:
                tell(outcome)
            communicator.meet()  # nobody leaves before the model is on its way

    run_aside(take_part, 2 * meeting.timeout)


def run_aside(call: Callable[[], None], patience: float) -> None:
    """Run a call of a task on a thread of its own, and leave it there if it does not end.

    XGBoost's collective has been seen to wait for ever when a worker is lost while all of them take
    leave. On the task's own thread that would keep the worker from all that comes after; so a call
    is waited for no longer than `patience` seconds after its task was cancelled.
    """
    worker = distributed.get_worker()
    task = worker.state.tasks[worker.get_current_task()]
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="hardwood-fit", daemon=True)
    thread.start()
    since: float | None = None
    while thread.is_alive():
        thread.join(_PULSE)
        if task.state == "executing":
            continue
        since = since or time.monotonic()
        if time.monotonic() - since > patience:
            raise CommunicationError(
                f"This worker's part of a fit did not end within {patience} s after the fit."
            )
    if failures:
        raise failures[0]
