"""Workers of one job on threads: XGBoost's collective belongs to a thread."""

import threading

import numpy as np
from xgboost.tracker import RabitTracker

import hardwood as hw


def on_workers(n, work):
    """Call `work(communicator)` on `n` workers; what they raise comes back as an answer."""
    tracker = RabitTracker(n_workers=n, host_ip="127.0.0.1", sortby="task")
    tracker.start()
    where = tracker.worker_args()
    answers = [None] * n

    def run(i):
        try:
            with hw.distributed.connect(
                where["dmlc_tracker_uri"], where["dmlc_tracker_port"], name=f"{i:03d}", timeout=30
            ) as communicator:
                answers[communicator.rank] = work(communicator)
        except Exception as error:
            answers[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return answers


def assert_same_trees(trees, wanted):
    """Bit for bit."""
    names = "feature threshold left right missing_left value gain cover base category"
    for name in names.split():
        np.testing.assert_array_equal(getattr(trees, name), getattr(wanted, name), err_msg=name)
