"""XGBoost's JSON dump: a list of trees as nested nodes, the form in which models are published.

A dump holds the trees and nothing else. What it leaves out (the number of classes and of columns,
the base score, what the sum means) the caller says, and nobody can vouch for it.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardwood import _core
from hardwood._check import Float32Array
from hardwood.errors import ModelFileError, UnsupportedModelError
from hardwood.model.decision import Link, Task
from hardwood.model.trees import LEAF, Trees

_MAX_CLASSES = 100_000


@dataclass(frozen=True)
class Unsaid:
    """What a dump does not say."""

    n_classes: int | None = None
    base_score: float | None = None
    task: Task | None = None
    n_features: int | None = None

    def __post_init__(self) -> None:
        n = self.n_classes
        if n is not None and (type(n) is not int or not 2 <= n <= _MAX_CLASSES):
            raise ValueError(f"n_classes must be 2 to {_MAX_CLASSES}, got n_classes={n!r}.")
        if self.task not in (None, "classification", "regression", "raw"):
            raise ValueError(
                f'task must be "classification", "regression" or "raw" for a dump, got '
                f"task={self.task!r}."
            )
        if self.n_classes is not None and self.task not in (None, "classification"):
            raise ValueError(f"n_classes={n} belongs to task='classification', got {self.task!r}.")

    def __bool__(self) -> bool:
        return (self.n_classes, self.base_score, self.task, self.n_features) != (None,) * 4


def can_load_bytes(data: bytes) -> bool:
    """Whether a file is a dump: a list, where other models are one object."""
    return data.lstrip()[:1] == b"["


def load_bytes(data: bytes, unsaid: Unsaid) -> Trees:
    """Read a dump."""
    try:
        dump = json.loads(data)
    except RecursionError:
        raise ModelFileError("The file is not a model: its JSON is nested too deeply.") from None
    except ValueError as error:
        raise ModelFileError(f"The file is not JSON, or it is cut: {error}.") from None
    nodes = _Nodes()
    for k, tree in enumerate(dump):
        nodes.add(k, tree)
    task = unsaid.task or "classification"
    n_outputs = unsaid.n_classes or 1
    n_outputs = n_outputs if n_outputs > 2 else 1
    if len(dump) % n_outputs:
        raise ModelFileError(
            f"The dump has {len(dump)} trees, which is no multiple of n_classes={n_outputs}."
        )
    link: Link = "softmax" if n_outputs > 1 else "identity"
    if task == "classification" and n_outputs == 1:
        link = "logistic"
    return Trees(
        feature=np.array(nodes.feature, dtype=np.int64),
        threshold=np.array(nodes.threshold, dtype=np.float32),
        left=np.array(nodes.left, dtype=np.int64),
        right=np.array(nodes.right, dtype=np.int64),
        missing_left=np.array(nodes.missing_left, dtype=bool),
        value=np.array(nodes.value, dtype=np.float32),
        tree_start=nodes.tree_start,
        tree_output=np.arange(len(dump)) % n_outputs,
        base=_base(unsaid.base_score, link, n_outputs),
        link=link,
        task=task,
        n_features=unsaid.n_features,
        cover=np.array(nodes.cover) if nodes.has_cover else None,
        metadata={"source": "XGBoost JSON dump", "checked_against_source": False},
        sparse_missing=True,
    )


def _base(score: float | None, link: Link, n_outputs: int) -> Float32Array:
    """The base margin; XGBoost keeps the score in the space of the labels, one half by default."""
    given = 0.5 if score is None else score
    if not isinstance(given, int | float) or not np.isfinite(given):
        raise ValueError(f"base_score must be a finite number, got base_score={score!r}.")
    margin = np.float32(given)
    if link == "logistic":
        if not 0 < given < 1:
            raise ValueError(
                f"base_score of two classes is a probability between 0 and 1, got {score}."
            )
        one = np.float32(1)
        margin = np.float32(-_core.log_float32(float(one / margin - one)))
    return np.full(n_outputs, margin)


class _Nodes:
    """Nodes of all trees, one after the other; the root of each tree first."""

    def __init__(self) -> None:
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.missing_left: list[bool] = []
        self.value: list[float] = []
        self.cover: list[float] = []
        self.has_cover = True
        self.tree_start = [0]

    def add(self, k: int, tree: Any) -> None:
        start = len(self.feature)
        open_nodes: list[tuple[Any, list[int] | None, int]] = [(tree, None, 0)]
        while open_nodes:
            node, holder, parent = open_nodes.pop()
            if not isinstance(node, dict):
                raise ModelFileError(f"Tree {k} of the dump has a node that is no object.")
            if holder is not None:
                holder[parent] = len(self.feature) - start
            here = len(self.feature)
            cover = node.get("cover")
            self.has_cover = self.has_cover and isinstance(cover, int | float)
            self.cover.append(float(cover) if isinstance(cover, int | float) else 0.0)
            if "leaf" in node:
                self._append(LEAF, 0.0, False, _number(k, node, "leaf"))
                continue
            yes, no, missing = (_number(k, node, name) for name in ("yes", "no", "missing"))
            self._append(_feature(k, node), _number(k, node, "split_condition"), missing == yes, 0)
            if missing not in (yes, no):
                raise ModelFileError(
                    f"Tree {k} of the dump sends missing values to node {missing}."
                )
            children = node.get("children")
            if not isinstance(children, list) or len(children) != 2:
                raise ModelFileError(f"Tree {k} of the dump has a split without two children.")
            for child, end, side in zip(children, (yes, no), (self.left, self.right), strict=True):
                if not isinstance(child, dict) or child.get("nodeid") != end:
                    raise ModelFileError(
                        f"Tree {k} of the dump has other children than those it names, {yes:g} "
                        f"and {no:g}."
                    )
                open_nodes.append((child, side, here))
        self.tree_start.append(len(self.feature))

    def _append(self, feature: int, threshold: float, missing_left: bool, value: float) -> None:
        self.feature.append(feature)
        with np.errstate(over="ignore"):
            self.threshold.append(float(np.float32(threshold)))
        self.left.append(LEAF)
        self.right.append(LEAF)
        self.missing_left.append(missing_left)
        self.value.append(value)


def _number(k: int, node: dict[str, Any], name: str) -> float:
    value = node.get(name)
    if isinstance(value, list):
        raise UnsupportedModelError(
            f"Tree {k} of the dump splits on categories, which a dump does not tell apart from "
            f"numbers safely. Save the model with save_model instead."
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"{name} in tree {k} of the dump must be a number, got {value!r}.")
    return value


def _feature(k: int, node: dict[str, Any]) -> int:
    """The column of a split, written as a number or as f and a number."""
    split = node.get("split")
    if isinstance(split, str):
        found = re.fullmatch(r"f?(\d{1,9})", split)
        if found is None:
            raise UnsupportedModelError(
                f"Tree {k} of the dump splits on {split[:40]!r}; a dump does not say which column "
                f"a name is. Dump the model without names: set booster.feature_names = None first."
            )
        return int(found[1])
    if type(split) is not int or not 0 <= split < 2**31 - 1:
        raise ModelFileError(f"split in tree {k} of the dump must name a column, got {split!r}.")
    return split
