"""What to do when the scheduler is lost, or hangs."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

from distributed import Client
from hardwood.errors import CommunicationError

_LISTEN = 1.0  # seconds between two questions to the scheduler


@contextlib.contextmanager
def telling_of_a_lost_scheduler(
    client: Client, timeout: int, what: str, again: str
) -> Iterator[None]:
    """End what is asked of a cluster with an error if its scheduler is lost with it.

    Parameters
    ----------
    client : distributed.Client
        Whose scheduler it is.
    timeout : int
        Seconds after which a scheduler that does not answer is given up.
    what, again : str
        What is lost with it, and what to do once more, in words.

    Yields
    ------
    None
        While somebody listens.
    """
    address = client.scheduler.address
    silent = threading.Event()
    listening = asyncio.run_coroutine_threadsafe(
        _listen(client, timeout, silent), client.loop.asyncio_loop
    )
    try:
        yield
    except (OSError, CancelledError) as error:
        if silent.is_set():
            raise CommunicationError(
                f"The scheduler at {address} has not answered for {timeout} s, and {what} is "
                f"lost with it; start the cluster again and {again} once more, or raise "
                f"timeout={timeout}."
            ) from error
        if client.status == "running":
            raise
        raise CommunicationError(
            f"The connection to the scheduler at {address} was lost, and with it {what}; start "
            f"the cluster again and {again} once more."
        ) from error
    finally:
        listening.cancel()


async def _listen(client: Client, timeout: int, silent: threading.Event) -> None:
    """Ask the scheduler again and again; one that hangs keeps its connections open.

    If it does not answer, break them: then whoever waits for it gets an error instead.
    """
    address = client.scheduler.address
    while client.status == "running":
        try:
            await asyncio.wait_for(client.scheduler.ncores(workers=[]), timeout)
        except TimeoutError:
            if client.status != "running":  # the client knows, and tries to reach it again
                return
            silent.set()
            client.scheduler_comm.abort()
            while client.status == "running":  # until the client has noticed
                await asyncio.sleep(0.01)
            for connection in list(client.rpc.occupied.get(address, ())):
                connection.abort()
            return
        except OSError:  # it is gone, which others notice, too
            return
        await asyncio.sleep(_LISTEN)
