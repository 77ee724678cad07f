"""Threads: how many, that they end, that nobody waits for them."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import hardwood as hw
from hardwood import _check


def make_data(n=6000, d=5):
    rng = np.random.default_rng(0)
    X = rng.random((n, d))
    return X, (X[:, 0] + X[:, 1] > 1).astype(int)


def boosted(n_jobs):
    return hw.RobustGradientBoostingClassifier(eps=0.01, n_estimators=3, n_jobs=n_jobs)


@pytest.mark.parametrize("n_jobs", [1.5, "2", True, np.float64(2), [1]])
def test_a_number_of_threads_is_a_whole_number(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs must be a whole number of threads.*got n_jobs="):
        _check.thread_count(n_jobs)
    X, y = make_data(50)
    with pytest.raises(ValueError, match="n_jobs"):
        boosted(n_jobs).fit(X, y)
    trees = boosted(1).fit(X, y).trees_
    with pytest.raises(ValueError, match=r"got n_jobs="):
        trees.predict(X, n_jobs=n_jobs)


def test_none_follows_the_environment_and_then_the_cores(monkeypatch):
    monkeypatch.setattr(_check, "core_count", lambda: 3)
    for given, expected in (("2", 2), ("2,4", 2), (" 5 ", 5), ("1000000", 12)):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        assert _check.thread_count(None) == expected
    for useless in ("", "0", "-1", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", useless)
        assert _check.thread_count(None) == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert _check.thread_count(None) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    given = [_check.thread_count(n) for n in (1, np.int64(2), -1, -2, -9, 10**6)]
    assert given == [1, 2, 3, 2, 1, 12]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs affinity")
def test_cores_are_those_of_the_affinity():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert _check.core_count() == 1
    finally:
        os.sched_setaffinity(0, before)


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, np.inf),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, np.inf),
        (  # the tightest group above counts
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n",
            },
            2.0,
        ),
        (  # version 1; inside a container the path leads nowhere, and the top is the own group
            {
                "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/docker/y\n0::/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/y\n",
                "sys/fs/cgroup/cpu/y/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/y/cpu.cfs_period_us": "100000\n",
            },
            np.inf,
        ),
    ],
)
def test_the_quota_of_a_container_counts(tmp_path, monkeypatch, files, expected):
    write(tmp_path, files)
    assert _check.core_quota(tmp_path) == expected
    monkeypatch.setattr(_check, "core_quota", lambda: expected)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert _check.core_count() == (64 if expected == np.inf else int(np.ceil(expected)))


@pytest.mark.parametrize("n_jobs", [10**6, 2**40])
def test_a_million_threads_are_not_started(n_jobs):
    X, y = make_data()
    one, many = boosted(1).fit(X, y), boosted(n_jobs).fit(X, y)
    assert np.array_equal(one.trees_.threshold, many.trees_.threshold)
    assert np.array_equal(one.predict(X), many.predict(X))
    tree = hw.RobustDecisionTreeClassifier(eps=0.01, max_depth=3, n_jobs=n_jobs).fit(X, y)
    assert hw.certify(tree, X[:20], y[:20], hw.Threat(0.01), n_jobs=n_jobs).status.shape == (20,)


def fit_and_predict(X, y, answers):
    model = boosted(2).fit(X, y)
    tree = hw.RobustDecisionTreeClassifier(eps=0.01, max_depth=3, n_jobs=2).fit(X, y)
    answers.put((model.predict_proba(X), tree.predict(X)))


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(
            "fork",
            marks=[
                pytest.mark.skipif(sys.platform == "win32", reason="needs fork"),
                pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
            ],
        ),
        "spawn",
    ],
)
def test_a_child_has_threads_of_its_own(how):
    X, y = make_data()
    expected = boosted(2).fit(X, y).predict_proba(X)  # with threads that a child does not have
    context = multiprocessing.get_context(how)
    answers = context.Queue()
    child = context.Process(target=fit_and_predict, args=(X, y, answers), daemon=True)
    child.start()
    try:
        probability, label = answers.get(timeout=120)
    finally:
        child.kill()
    assert np.array_equal(probability, expected)
    assert np.array_equal(
        label, hw.RobustDecisionTreeClassifier(eps=0.01, max_depth=3).fit(X, y).predict(X)
    )


def test_eight_threads_of_the_caller_fit_predict_and_certify_at_once():
    X, y = make_data()
    model = boosted(1).fit(X, y)
    threat = hw.Threat(0.02)
    jobs = {
        "fit": lambda n_jobs: boosted(n_jobs).fit(X, y).predict_proba(X),
        "predict": lambda n_jobs: model.trees_.margin(X, n_jobs=n_jobs),
        "certify": lambda n_jobs: hw.certify(model, X[:60], y[:60], threat, n_jobs=n_jobs).status,
        "attack": lambda n_jobs: hw.minimal_distance(model, X[:40], y[:40], n_jobs=n_jobs).upper,
    }
    expected = {name: job(1) for name, job in jobs.items()}
    found, start = {}, threading.Barrier(8)

    def work(i, name):
        start.wait()
        found[i, name] = [jobs[name](n_jobs) for n_jobs in (1, 2)]

    threads = [threading.Thread(target=work, args=(i, name)) for i in range(2) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert len(found) == 8
    for (_, name), answers in found.items():
        for answer in answers:
            np.testing.assert_array_equal(answer, expected[name], err_msg=name)


@pytest.mark.parametrize("locked", [True, False])
def test_a_free_threaded_python_is_refused_in_words(locked):
    code = f"import sys; sys._is_gil_enabled = lambda: {locked}; import hardwood"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == locked
    assert ("Start this free-threaded Python with PYTHON_GIL=1" in done.stderr) != locked
