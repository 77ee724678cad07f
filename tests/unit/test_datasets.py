"""Data sets: where they are looked for, and what is said when they are nowhere."""

import functools
import http.server
import os
import threading

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import hardwood as hw
from hardwood.datasets import dataset, sources
from samples import paper_arrays

ARRAYS = {
    "X_train": np.array([[0, 0.25], [1, 0.5], [0.5, 0]], np.float32),
    "y_train": np.array([0, 1, 1], np.int32),
    "X_test": np.array([[0.75, 1]], np.float32),
    "y_test": np.array([1], np.int32),
}


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No data at hand: an empty cache, no directory, and no network."""
    monkeypatch.delenv("HARDWOOD_DATA", raising=False)
    monkeypatch.setattr(dataset, "_cache", lambda source: tmp_path / "cache" / f"{source.file}.npz")
    monkeypatch.setattr(dataset, "fetch", lambda *_: (_ for _ in ()).throw(OSError("no route")))
    return tmp_path


@pytest.fixture
def served(nowhere, monkeypatch):
    """A data set of the paper's kind, on a server of this machine."""
    web = nowhere / "web"
    web.mkdir()
    for kind in ("train", "test"):
        path = str(web / kind)
        dump_svmlight_file(ARRAYS[f"X_{kind}"], ARRAYS[f"y_{kind}"], path, zero_based=False)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=web)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    source = sources.Source(
        "tiny",
        "libsvm",
        "made here",
        train=f"{address}/train",
        test=f"{address}/test",
        shape=(3, 1, 2),
        sha256=dataset.checksum(ARRAYS),
    )
    monkeypatch.setattr(dataset, "fetch", sources.fetch)
    monkeypatch.setattr(sources, "find_progress_bar", lambda: False)
    yield lambda **changes: monkeypatch.setitem(
        sources.SOURCES, "tiny", sources.Source(**{**vars(source), **changes})
    )
    server.shutdown()
    server.server_close()


def test_downloads_check_themselves_and_stay_in_the_cache(served, nowhere, monkeypatch):
    served()
    first = hw.datasets.load("tiny")
    for key, values in ARRAYS.items():
        np.testing.assert_array_equal(getattr(first, key), values)
    assert repr(first) == "Dataset('tiny', 3 + 1 rows x 2 features, 2 classes)"
    served(train="http://127.0.0.1:9/gone")
    assert np.array_equal(hw.datasets.load("tiny").X_train, first.X_train)  # from the cache
    assert os.listdir(nowhere / "cache") == ["tiny.npz"]


def test_a_source_that_changed_is_refused(served, nowhere):
    served(sha256="0" * 64)
    with pytest.raises(
        ValueError, match=r"tiny was downloaded but has the checksum .*HARDWOOD_DATA"
    ):
        hw.datasets.load("tiny")
    served(shape=(4, 1, 2))
    with pytest.raises(OSError, match=r"could not be downloaded .*\(3, 1, 2\), not \(4, 1, 2\)"):
        hw.datasets.load("tiny")
    assert not (nowhere / "cache" / "tiny.npz").exists()


def test_the_directory_comes_first(nowhere, monkeypatch):
    monkeypatch.setenv("HARDWOOD_DATA", str(nowhere))
    images = {**ARRAYS, "X_train": np.array([[0, 51], [102, 255]] * 4, np.uint8)}
    images["y_train"] = np.array([2, 6, 3, 6, 2, 2, 9, 6])
    images |= {"X_test": images["X_train"][:3], "y_test": np.array([6, 6, 1])}
    np.savez(nowhere / "mnist.npz", **images)
    two = hw.datasets.load("mnist_2_vs_6")
    assert two.y_train.tolist() == [0, 1, 1, 0, 0, 1]
    assert two.y_test.tolist() == [1, 1]
    assert two.X_train.dtype == np.float32
    np.testing.assert_array_equal(two.X_train[0], np.float32([0, 51]) / np.float32(255))
    np.savez(nowhere / "ijcnn1.npz", X_train=images["X_train"])
    with pytest.raises(ValueError, match=r"ijcnn1\.npz has no array y_train; it needs X_train"):
        hw.datasets.load("ijcnn1")


def test_words_when_a_set_is_nowhere(nowhere, monkeypatch):
    with pytest.raises(ValueError, match=r"name must be one of breast_cancer, .*got name='iris'"):
        hw.datasets.load("iris")
    with pytest.raises(FileNotFoundError, match=r"higgs_subset is not for download; it needs"):
        hw.datasets.load("higgs_subset")
    with pytest.raises(OSError, match=r"cod_rna could not be downloaded \(no route\); check the"):
        hw.datasets.load("cod_rna")
    monkeypatch.setattr(dataset, "_cache", lambda source: None)
    with pytest.raises(ModuleNotFoundError, match=r'without pooch; pip install "hardwood\[data\]"'):
        hw.datasets.load("cod_rna")


@pytest.mark.parametrize("name", ["breast_cancer", "cod_rna", "ijcnn1", "mnist", "fashion_mnist"])
def test_the_data_at_hand_has_the_checksum_of_its_source(name):
    source = sources.SOURCES[name]
    arrays = paper_arrays(name)
    assert dataset.checksum(arrays) == source.sha256
    n_features = arrays["X_train"].reshape(len(arrays["X_train"]), -1).shape[1]
    assert (len(arrays["X_train"]), len(arrays["X_test"]), n_features) == source.shape
