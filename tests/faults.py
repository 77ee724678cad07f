"""Callbacks that press Ctrl-C, or hurt a worker in the middle of a fit; workers import them."""

import _thread
import contextlib
import os
import signal
import threading
import time

import numpy as np


class Press:
    """Presses Ctrl-C once, when it is first told of progress.

    A second time could come when the call has ended, and end the tests.
    """

    def __init__(self):
        self.pressed = False

    def __call__(self, *counts):
        if not self.pressed:
            self.pressed = True
            _thread.interrupt_main()


class SignalAt:
    """Send a signal to a process after some round, at once or a few seconds later."""

    def __init__(self, n_rounds, pid, number=signal.SIGKILL, delay=0):
        self.n_rounds, self.pid, self.number, self.delay = n_rounds, pid, number, delay

    def __call__(self, now):
        if now.n_rounds != self.n_rounds:
            return
        if self.delay:
            threading.Timer(self.delay, self.send).start()
        else:
            self.send()

    def send(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, self.number)


class EatMemory:
    """Take more and more memory after some round, on the worker that calls; only the first time."""

    def __init__(self, n_rounds, flag):
        self.n_rounds, self.flag = n_rounds, flag

    def __call__(self, now):
        if now.n_rounds != self.n_rounds or self.flag.exists():
            return
        self.flag.touch()
        taken = []
        while len(taken) < 40:
            taken.append(np.ones(1 << 23))  # 64 MB
            time.sleep(0.1)
        raise AssertionError("2.5 GB were taken and nobody stopped it")


def rows_after_signal(rows, process, number):
    """Rows of a partition that cost some process its life, or its breath."""
    os.kill(process, number)
    return rows


def wait_for_ever(patience):
    """A task that hangs as XGBoost's collective can."""
    from hardwood.dask.cluster import run_aside  # others have no Dask

    run_aside(threading.Event().wait, patience)
