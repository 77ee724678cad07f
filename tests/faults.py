"""Callbacks that hurt a worker in the middle of a fit; workers import them from here."""

import contextlib
import os
import signal


class SignalAt:
    """Send a signal to a process after some round, the first time it comes to that."""

    def __init__(self, n_rounds, pid, number=signal.SIGKILL):
        self.n_rounds, self.pid, self.number = n_rounds, pid, number

    def __call__(self, now):
        if now.n_rounds == self.n_rounds:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, self.number)
