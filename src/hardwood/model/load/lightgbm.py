"""LightGBM: boosters, scikit-learn wrappers, and its text files."""

import json
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.errors import ModelFileError, UnsupportedModelError
from hardwood.model.decision import Link, Task, cut_at
from hardwood.model.load.gate import Reference, positions
from hardwood.model.trees import LEAF, Trees

# LightGBM takes any x with |x| <= this for zero before it compares.
_ZERO = float(np.float32(1e-35))

_CATEGORY, _DEFAULT_LEFT = 1, 2
_MISSING_ZERO, _MISSING_NAN = 1, 2

_MAX_OUTPUTS = 100_000

# What an objective says of the model: its task and its link.
_OBJECTIVES: dict[str, tuple[Task, Link]] = {
    "binary": ("classification", "logistic"),
    "multiclass": ("classification", "softmax"),
    "multiclassova": ("classification", "one_vs_rest"),
    "regression": ("regression", "identity"),
    "regression_l1": ("regression", "identity"),
    "huber": ("regression", "identity"),
    "fair": ("regression", "identity"),
    "quantile": ("regression", "identity"),
    "mape": ("regression", "identity"),
    "poisson": ("regression", "exp"),
    "gamma": ("regression", "exp"),
    "tweedie": ("regression", "exp"),
    "cross_entropy": ("regression", "logistic"),  # of shares between 0 and 1
    "cross_entropy_lambda": ("regression", "softplus"),
    "lambdarank": ("raw", "identity"),
    "rank_xendcg": ("raw", "identity"),
    "custom": ("raw", "identity"),  # scores of a loss that only its author knows
}


def can_load(source: Any) -> bool:
    """Whether this file can read the object; lightgbm itself is not imported to find out."""
    return type(source).__module__.split(".")[0] == "lightgbm"


def can_load_text(data: bytes) -> bool:
    """Whether a file is LightGBM's."""
    return data[:5].rstrip() == b"tree"


def load(source: Any) -> tuple[Trees, Reference]:
    """Read a Booster or a wrapper, up to the best iteration, as its own predict does."""
    name = type(source).__name__
    booster = source if hasattr(source, "model_to_string") else getattr(source, "booster_", None)
    if booster is None:
        raise UnsupportedModelError(f"load_model cannot read lightgbm's {name}; pass the model.")
    _refuse_early_end(source, name)
    # The booster keeps the names of categories beside its text.
    text = booster.model_to_string()
    header, parts, _ = _split(text)
    names = getattr(booster, "pandas_categorical", None)
    classes = getattr(source, "classes_", None)
    # A classifier says labels with any objective but one of its user's.
    says_labels = classes is not None and not callable(source.objective_)
    task: Task | None = "classification" if says_labels else None
    trees, n_splits = _read(header, parts, names, classes, task)

    def ask(X: FloatArray, dtype: Any, **what: bool) -> npt.NDArray[Any]:
        given = booster.predict(X, num_threads=1, validate_features=False, **what)
        return np.asarray(given, dtype=dtype).reshape(len(X), -1)

    def leaf(X: FloatArray) -> npt.NDArray[np.int64]:
        return ask(X, np.int64, pred_leaf=True) + n_splits

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        if says_labels:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                given = source.predict(X, num_threads=1, validate_features=False)
            return positions(given, classes)
        mean = ask(X, np.float64)
        decided: npt.NDArray[np.int64] = (
            np.argmax(mean, axis=1) if trees.n_outputs > 1 else (mean[:, 0] > 0.5).astype(np.int64)
        )
        return decided

    return trees, Reference(
        name,
        lambda X: ask(X, np.float64, raw_score=True),
        leaf,
        infinite=True,
        label=label if trees.tells_labels else None,
        predict=lambda X: ask(X, np.float64),
    )


def _refuse_early_end(source: Any, name: str) -> None:
    """A wrapper hands its parameters to predict, where one of them leaves trees out."""
    parameters = source.get_params() if hasattr(source, "get_params") else {}
    if parameters.get("pred_early_stop"):
        raise UnsupportedModelError(
            f"This {name} has pred_early_stop=True: it leaves out trees, row by row, so no sum of "
            f"trees is its prediction. Set pred_early_stop=False."
        )


def load_text(data: bytes) -> Trees:
    """Read a file's bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ModelFileError("The LightGBM file is not text.") from None
    return _read(*_split(text))[0]


def _split(text: str) -> tuple[dict[str, str], list[dict[str, str]], Any]:
    """The header and the trees, each as the pairs of their lines; the names of categories."""
    body, end, tail = text.partition("\nend of trees")
    if not end:
        raise ModelFileError('The LightGBM file has no line "end of trees"; it may be cut.')
    header, *parts = body.split("\nTree=")
    _, _, names = tail.rpartition("\npandas_categorical:")
    try:
        known = json.loads(names) if names.startswith("[") else None
    except (ValueError, RecursionError):
        raise ModelFileError("pandas_categorical in the LightGBM file is not JSON.") from None
    return _pairs(header), [_pairs("Tree=" + part) for part in parts], known


def _pairs(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.split("\n"))
    return {key: value for key, _, value in pairs}


def _read(
    header: dict[str, str],
    parts: list[dict[str, str]],
    category_names: Any,
    classes: Any = None,
    task: Task | None = None,
) -> tuple[Trees, npt.NDArray[np.int64]]:
    """Trees, and the number of splits of each: leaf i of LightGBM is node n_splits + i of ours."""
    n_features = _count(header, "max_feature_idx") + 1
    n_outputs = _count(header, "num_tree_per_iteration")
    if not 1 <= n_outputs <= _MAX_OUTPUTS:
        raise ModelFileError(
            f"num_tree_per_iteration in the LightGBM file must be 1 to {_MAX_OUTPUTS}, "
            f"got {n_outputs}."
        )
    names = _names(header, n_features)
    trees = [_tree(part, k) for k, part in enumerate(parts)]
    flat: dict[str, Any] = {
        name: np.concatenate([tree[name] for tree in trees]) if trees else np.empty(0)
        for name in (
            *("feature", "threshold", "left", "right", "missing_left", "value", "cover"),
            *("category", "n_listed"),
        )
    }
    flat["category_start"] = np.concatenate([[0], np.cumsum(flat.pop("n_listed"))])
    size = [len(tree["feature"]) for tree in trees]
    own_task, link, slope = _about(header.get("objective", "custom").split() or ["custom"])
    task = task or own_task
    # A forest (boosting=rf) predicts from the mean of its trees.
    n_averaged = max(len(parts) // n_outputs, 1) if "average_output" in header else 1
    if n_outputs > 1 and link not in ("softmax", "one_vs_rest"):
        task, classes = "raw", None
    decides = n_outputs == 1 and task == "classification"
    return Trees(
        **flat,
        tree_start=np.concatenate([[0], np.cumsum(size)]),
        tree_output=np.arange(len(parts)) % n_outputs,
        base=np.zeros(n_outputs),
        link=link,
        task=task,
        divisor=n_averaged,
        slope=slope,
        # The second class is said where the prediction is above one half, whatever it means.
        cut=cut_at(0.5, link, np.float64, n_averaged, slope) if decides else None,
        n_features=n_features,
        classes=classes if task == "classification" else None,
        feature_names=names,
        category_names=_category_names(header, category_names, n_features),
    ), np.array([len(tree["feature"]) // 2 for tree in trees], dtype=np.int64)


def _about(objective: list[str]) -> tuple[Task, Link, float]:
    """Task, link and the factor before it, from the words of an objective."""
    name, *more = objective
    if name not in _OBJECTIVES:
        raise UnsupportedModelError(
            f'This LightGBM model has objective="{name[:80]}", which load_model does not know; it '
            f"knows {', '.join(_OBJECTIVES)}."
        )
    task, link = _OBJECTIVES[name]
    slope = 1.0
    for word in more:
        key, _, number = word.partition(":")
        if key == "sigmoid":
            slope = float(_numbers({key: number}, key, 1)[0])
        elif word == "sqrt":
            link = "square"
    return task, link, slope


def _names(header: dict[str, str], n_features: int) -> list[str] | None:
    names = header.get("feature_names", "").split(" ")
    invented = [f"Column_{f}" for f in range(len(names))]
    return names if len(names) == n_features and names != invented else None


def _category_names(
    header: dict[str, str], given: Any, n_features: int
) -> dict[int, list[Any]] | None:
    """Names by feature, if the categories of all columns with categories came from data frames."""
    infos = header.get("feature_infos", "").split(" ")
    columns = [f for f, info in enumerate(infos) if info[:1] != "[" and ":" in info]
    if not given or len(infos) != n_features or len(columns) != len(given):
        return None
    for names in given:
        if not isinstance(names, list) or not all(isinstance(n, str | int | float) for n in names):
            raise ModelFileError("pandas_categorical in the LightGBM file must be lists of names.")
    return dict(zip(columns, given, strict=True))


def _tree(part: dict[str, str], k: int) -> dict[str, npt.NDArray[Any]]:
    n_leaves = _count(part, "num_leaves")
    value = _numbers(part, "leaf_value", n_leaves)
    if part.get("is_linear", "0").strip() != "0":
        raise UnsupportedModelError(
            f"Tree {k} of this LightGBM model has linear leaves, which are no single value. "
            f"Retrain with linear_tree=False."
        )
    n = n_leaves - 1
    if n < 0:
        raise ModelFileError(f"Tree {k} of the LightGBM file has no leaves.")
    feature, left, right, kind = (
        _integers(part, name, n)
        for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    threshold = _numbers(part, "threshold", n)
    _refuse_zeros(kind, k)
    listed, n_listed = _sets(part, kind, threshold, k)
    category = kind & _CATEGORY != 0
    # Members of a set go right here, and nothing does if there are none.
    left, right = np.where(category, right, left), np.where(category, left, right)
    missing_nan = (kind >> 2) & 3 == _MISSING_NAN
    missing_left = np.where(missing_nan, kind & _DEFAULT_LEFT != 0, threshold >= 0) | category
    threshold = np.where(category, np.inf, _strictly_below(threshold))
    threshold[n_listed > 0] = 0.0
    leaves = np.full(n_leaves, LEAF)
    nothing = np.zeros(n_leaves)
    cover = [
        _numbers(part, name, size, optional=True)
        for name, size in (("internal_count", n), ("leaf_count", n_leaves))
    ]
    return {
        "feature": np.concatenate([feature, leaves]),
        "threshold": np.concatenate([threshold, nothing]),
        "left": np.concatenate([np.where(left < 0, n + ~left, left), leaves]),
        "right": np.concatenate([np.where(right < 0, n + ~right, right), leaves]),
        "missing_left": np.concatenate([missing_left, leaves == 0]),
        "value": np.concatenate([np.zeros(n), value]),
        "cover": np.concatenate(cover),
        "category": listed,
        "n_listed": np.concatenate([n_listed, np.zeros(n_leaves, dtype=np.int64)]),
    }


def _strictly_below(threshold: FloatArray) -> FloatArray:
    """Thresholds t' with ``x < t'`` where LightGBM's ``x <= t`` holds, x near zero being zero."""
    strict = np.nextafter(threshold, np.inf)
    strict = np.where((threshold >= 0) & (threshold <= _ZERO), np.nextafter(_ZERO, np.inf), strict)
    return np.where((threshold < 0) & (threshold >= -_ZERO), -_ZERO, strict)


def _sets(
    part: dict[str, str], kind: npt.NDArray[np.int64], threshold: FloatArray, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Categories of all sets of a tree, node by node, and how many each node has."""
    n_listed = np.zeros(len(kind), dtype=np.int64)
    node = np.flatnonzero(kind & _CATEGORY)
    if len(node) == 0:
        return np.empty(0, dtype=np.int64), n_listed
    n_sets = _count(part, "num_cat")
    ends = _integers(part, "cat_boundaries", n_sets + 1)
    if ends[0] != 0 or np.any(np.diff(ends) < 0):
        raise ModelFileError(f"cat_boundaries of tree {k} in the LightGBM file must rise from 0.")
    words = _integers(part, "cat_threshold", int(ends[-1]))
    # A node's threshold is the number of its set; each set has one node.
    if not np.array_equal(np.sort(threshold[node]), np.arange(n_sets)):
        raise ModelFileError(f"Tree {k} of the LightGBM file does not have one set for each node.")
    bits = (words[:, None] >> np.arange(32)) & 1 != 0
    listed = []
    for at in node:
        which = int(threshold[at])
        listed.append(np.flatnonzero(bits[ends[which] : ends[which + 1]]))
        n_listed[at] = len(listed[-1])
    return np.concatenate(listed), n_listed


def _refuse_zeros(kind: npt.NDArray[np.int64], k: int) -> None:
    zero = np.flatnonzero((kind >> 2) & 3 == _MISSING_ZERO)
    if len(zero):
        raise UnsupportedModelError(
            f"Tree {k}, node {zero[0]} of this LightGBM model takes zeros for missing values "
            f"(zero_as_missing=True). Retrain with zero_as_missing=False and NaN for missing "
            f"values."
        )


def _count(pairs: dict[str, str], name: str) -> int:
    given = pairs.get(name, "").strip()
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise ModelFileError(f"{name} in the LightGBM file must be a count, got {given[:40]!r}.")
    return int(given)


def _numbers(pairs: dict[str, str], name: str, size: int, *, optional: bool = False) -> FloatArray:
    given = pairs.get(name, "").split()
    if optional and len(given) != size:
        return np.zeros(size)
    try:
        numbers = np.array(given, dtype=np.float64)
    except ValueError:
        raise ModelFileError(f"{name} in the LightGBM file must hold numbers.") from None
    if len(numbers) != size:
        raise ModelFileError(f"{name} in the LightGBM file has {len(numbers)} entries, not {size}.")
    return numbers


def _integers(pairs: dict[str, str], name: str, size: int) -> npt.NDArray[np.int64]:
    numbers = _numbers(pairs, name, size)
    if not np.all(np.abs(numbers) < 2**32) or np.any(numbers != np.trunc(numbers)):
        raise ModelFileError(f"{name} in the LightGBM file must hold whole numbers.")
    return numbers.astype(np.int64)
