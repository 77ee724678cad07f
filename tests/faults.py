"""Callbacks that hurt a worker in the middle of a fit; workers import them from here."""

import contextlib
import os
import signal
import threading


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
