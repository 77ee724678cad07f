"""Where a data set is looked for, and what it is when it is found."""

import hashlib
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood.datasets.sources import SOURCES, Source, fetch

_ARRAYS = ("X_train", "y_train", "X_test", "y_test")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test rows, features in [0, 1], labels counted from 0.

    Attributes
    ----------
    name : str
        As it was asked for.
    X_train, X_test : ndarray of shape (n_samples, n_features), float32
        Rows.
    y_train, y_test : ndarray of shape (n_samples,), int32
        Labels.
    note : str
        What is known about where the split comes from.
    """

    name: str
    X_train: npt.NDArray[np.float32]
    y_train: npt.NDArray[np.int32]
    X_test: npt.NDArray[np.float32]
    y_test: npt.NDArray[np.int32]
    note: str

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return int(self.y_train.max()) + 1

    def __repr__(self) -> str:
        shape = f"{len(self.X_train)} + {len(self.X_test)} rows x {self.X_train.shape[1]} features"
        return f"Dataset({self.name!r}, {shape}, {self.n_classes} classes)"


def names() -> list[str]:
    """List the names that `load` knows."""
    return sorted(SOURCES)


def load(name: str) -> Dataset:
    """Load one of the paper's data sets.

    Looks for ``<file>.npz`` in the directory that the environment variable ``HARDWOOD_DATA`` names,
    then in the user's cache, and downloads it otherwise (which needs ``pip install
    "hardwood[data]"``). What was downloaded is compared with a checksum and kept in the cache.

    Parameters
    ----------
    name : str
        One of `names`. Those that end in ``_subset`` are small parts of sets that are too large to
        share; they are not for download.

    Returns
    -------
    Dataset
        The paper's split, scaled to [0, 1].

    Examples
    --------
    >>> import hardwood as hw
    >>> "mnist_2_vs_6" in hw.datasets.names()
    True
    """
    source, place = _source(name), find(name)
    arrays = _download(name, source) if place is None else _read(place)
    return _prepared(name, source, arrays)


def find(name: str) -> Path | None:
    """Say where `load` would read a data set from, without reading it.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    Path or None
        Its file; None if it would have to be downloaded.
    """
    source = _source(name)
    given = os.environ.get("HARDWOOD_DATA")
    places = [Path(given) / f"{source.file}.npz" if given else None, _cache(source)]
    return next((place for place in places if place is not None and place.exists()), None)


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(names())}, got name={name!r}.")
    return SOURCES[name]


def _cache(source: Source) -> Path | None:
    if find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("hardwood")) / f"{source.file}.npz"


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path, allow_pickle=False) as file:
        missing = [key for key in _ARRAYS if key not in file]
        if missing:
            raise ValueError(f"{path} has no array {missing[0]}; it needs {', '.join(_ARRAYS)}.")
        return {key: file[key] for key in _ARRAYS}


def _download(name: str, source: Source) -> dict[str, npt.NDArray[Any]]:
    place = f"{source.file}.npz in the directory that HARDWOOD_DATA names"
    if source.kind == "none":
        raise FileNotFoundError(f"{name} is not for download; it needs {place}.")
    cache = _cache(source)
    if cache is None:
        raise ModuleNotFoundError(
            f"{name} is neither in the directory that HARDWOOD_DATA names nor can it be downloaded "
            f'without pooch; pip install "hardwood[data]", or put {place}.',
            name="pooch",
        )
    try:
        arrays = fetch(source, cache.parent)
    except Exception as error:  # whatever the network says
        raise OSError(
            f"{name} could not be downloaded ({error}); check the network, or put {place}."
        ) from error
    found = checksum(arrays)
    if source.sha256 is not None and found != source.sha256:
        raise ValueError(
            f"{name} was downloaded but has the checksum {found}, not {source.sha256}: the source "
            f"has changed. Put a {place} to use it all the same."
        )
    cache.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(cache, **arrays)  # type: ignore[arg-type]
    return arrays


def checksum(arrays: dict[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of the values, as bytes or float32 and int32, however they are stored."""
    digest = hashlib.sha256()
    for key in _ARRAYS:
        values = arrays[key]
        kind = values.dtype if values.dtype == np.uint8 else ("<f4" if key[0] == "X" else "<i4")
        digest.update(np.ascontiguousarray(values, dtype=kind).tobytes())
    return digest.hexdigest()


def _prepared(name: str, source: Source, arrays: dict[str, npt.NDArray[Any]]) -> Dataset:
    parts = dict(arrays)
    for kind in ("train", "test"):
        X, y = parts[f"X_{kind}"], parts[f"y_{kind}"]
        X = X.reshape(len(X), -1)
        if source.classes is not None:
            rows = np.isin(y, source.classes)
            X, y = X[rows], np.searchsorted(source.classes, y[rows])
        scaled = X.astype(np.float32)
        parts[f"X_{kind}"] = scaled / np.float32(255) if X.dtype == np.uint8 else scaled
        parts[f"y_{kind}"] = y.astype(np.int32)
    return Dataset(name=name, note=source.note, **parts)
