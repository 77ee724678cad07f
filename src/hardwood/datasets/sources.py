"""Where the data sets come from, and how to read what comes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

_AUTHORS = "the authors' own split and scaling"


@dataclass(frozen=True)
class Source:
    """One data set: its file, where to fetch it, what must have come."""

    file: str
    kind: Literal["libsvm", "openml", "none"]
    note: str
    train: str = ""  # libsvm: address of the training rows
    test: str = ""
    openml: str = ""  # name there
    n_train: int = 0  # openml: the first rows train
    shape: tuple[int, int, int] = (0, 0, 0)  # training rows, test rows, features
    sha256: str | None = None  # of the arrays; None where nobody has pinned it yet
    classes: tuple[int, ...] | None = None  # of which the set is made; None means all


def _authors(
    file: str, name: str, shape: tuple[int, int, int], sha256: str | None = None
) -> Source:
    """A set as the paper's authors share it: two LIBSVM files, scaled, labels from 0."""
    train, test = (f"https://www.dropbox.com/s/{path}?dl=1" for path in _FILES[name])
    return Source(file, "libsvm", _AUTHORS, train=train, test=test, shape=shape, sha256=sha256)


_FILES = {
    "breast_cancer": (
        "m6jtg9m062l9st7/breast_cancer_scale0.train",
        "15nu7r9v2cg6n6j/breast_cancer_scale0.test",
    ),
    "diabetes": ("zk24xw1qlw8ukr4/diabetes_scale0.train", "zupoutq46x9u0f6/diabetes_scale0.test"),
    "cod_rna": ("mqyzyi0mrcz5pr6/cod-rna_s0", "pjzo7izntpesoig/cod-rna_s.t0"),
    "covtype": ("li7191stc9ecdxn/covtype.scale01.train0", "g5vfln8jr72cku8/covtype.scale01.test0"),
    "higgs": ("74x7e3bwsge8cxg/HIGGS_s.train0", "g60upbzjm7vwgzu/HIGGS_s.test0"),
    "ijcnn1": ("fmw4flrfe1bd1gf/ijcnn1s0", "yn054bjmyt0fzpt/ijcnn1s0.t"),
    "sensorless": ("u7h9z2h56e1k0ka/Sensorless.scale.tr0", "1v8d4rvo3xlup9d/Sensorless.scale.val0"),
    "webspam": (
        "yy30zp3k7j5ucbq/webspam_wc_normalized_unigram.svm0.train",
        "6gwuvty0120panv/webspam_wc_normalized_unigram.svm0.test",
    ),
}


def _images(file: str, openml: str, sha256: str, classes: tuple[int, ...] | None = None) -> Source:
    note = "the usual 60,000 / 10,000 images"
    return Source(
        file,
        "openml",
        note if classes is None else f"{note}, those of the classes {classes}",
        openml=openml,
        n_train=60_000,
        shape=(60_000, 10_000, 784),
        sha256=sha256,
        classes=classes,
    )


_MNIST = "bab833be44432887b8367c256dc3f6f37f73632c1eabcb1cbc894e04f779a312"
_FASHION = "09627107dde20800f249b90a3b80609822fbaf088555476bb02aea854423a846"

SOURCES = {
    "breast_cancer": _authors(
        "breast_cancer",
        "breast_cancer",
        (546, 137, 10),
        "6d46633ab1b29620211cabb500404450740b5137a1054040a19cf24244f3ff02",
    ),
    "diabetes": _authors("diabetes", "diabetes", (614, 154, 8)),
    "ionosphere": Source(
        "ionosphere",
        "openml",
        "file order, the first 281 rows train; the paper's split is not known",
        openml="ionosphere",
        n_train=281,
        shape=(281, 70, 34),
    ),
    "cod_rna": _authors(
        "cod_rna",
        "cod_rna",
        (59_535, 271_617, 8),
        "3672a1f0c9e847be6b18771447c5b1b097f6238e96710ccebc2531941ff8cab7",
    ),
    "covtype": _authors("covtype", "covtype", (400_000, 181_012, 54)),
    "fashion_mnist": _images("fashion_mnist", "Fashion-MNIST", _FASHION),
    "fashion_sandal_vs_sneaker": _images("fashion_mnist", "Fashion-MNIST", _FASHION, (5, 7)),
    "higgs": _authors("higgs", "higgs", (10_500_000, 500_000, 28)),
    "higgs_subset": Source("higgs_subset", "none", "18,571 + 5,000 of the 11 million rows"),
    "ijcnn1": _authors(
        "ijcnn1",
        "ijcnn1",
        (49_990, 91_701, 22),
        "3feda4210335d912393face3a5e743f8716e1569b55d0589741bc663ce914840",
    ),
    "mnist": _images("mnist", "mnist_784", _MNIST),
    "mnist_2_vs_6": _images("mnist", "mnist_784", _MNIST, (2, 6)),
    "sensorless": _authors("sensorless", "sensorless", (48_509, 10_000, 48)),
    "sensorless_subset": Source("sensorless_subset", "none", "200 rows a class"),
    "webspam": _authors("webspam", "webspam", (300_000, 50_000, 254)),
    "webspam_subset": Source("webspam_subset", "none", "400 + 100 rows"),
}


def fetch(source: Source, directory: Path) -> dict[str, npt.NDArray[Any]]:
    """Download a data set; shapes must be those of the source."""
    arrays = _fetch_libsvm(source, directory) if source.kind == "libsvm" else _fetch_openml(source)
    found = (*(len(arrays[f"X_{kind}"]) for kind in ("train", "test")), arrays["X_train"].shape[1])
    if found != source.shape:
        raise ValueError(f"it has (training rows, test rows, features) {found}, not {source.shape}")
    return arrays


def _fetch_libsvm(source: Source, directory: Path) -> dict[str, npt.NDArray[Any]]:
    import pooch
    from sklearn.datasets import load_svmlight_file

    arrays = {}
    for kind, address in (("train", source.train), ("test", source.test)):
        path = pooch.retrieve(
            address,
            known_hash=None,  # the arrays have a checksum of their own
            fname=f"{source.file}.{kind}.libsvm",
            path=directory,
            progressbar=find_progress_bar(),
        )
        X, y = load_svmlight_file(path, n_features=source.shape[2], dtype=np.float32)
        arrays[f"X_{kind}"], arrays[f"y_{kind}"] = X.toarray(), y.astype(np.int32)
        Path(path).unlink()  # the arrays are kept instead
    return arrays


def find_progress_bar() -> bool:
    """Whether pooch can show one: it needs tqdm."""
    from importlib.util import find_spec

    return find_spec("tqdm") is not None


def _fetch_openml(source: Source) -> dict[str, npt.NDArray[Any]]:
    from sklearn.datasets import fetch_openml

    table = fetch_openml(source.openml, version=1, as_frame=False, parser="liac-arff")
    X, (_, y) = np.asarray(table.data), np.unique(table.target, return_inverse=True)
    if X.shape[1] == 784:  # images
        X = X.astype(np.uint8)
    else:
        low, high = X.min(axis=0), X.max(axis=0)
        X = ((X - low) / np.where(high > low, high - low, 1)).astype(np.float32)
    y = y.astype(np.int32)
    n = source.n_train
    return {"X_train": X[:n], "y_train": y[:n], "X_test": X[n:], "y_test": y[n:]}
