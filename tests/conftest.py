"""Settings of the whole test suite."""

import os
import signal

from hypothesis import settings

# The machine's speed is not under test; in CI the same examples run every time.
settings.register_profile("local", deadline=None, max_examples=60)
settings.register_profile("ci", parent=settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# A run in the background of a shell is told to ignore Ctrl-C, but some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
