"""CatBoost: models and their JSON export.

CatBoost keeps no names of categories, only their hashes, and splits on statistics of them. So a
split on a category is asked, not read: the leaves of a row of each category tell on which side of
it the category is.
"""

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _check
from hardwood._check import BoolArray, FloatArray
from hardwood.errors import ModelFileError, UnsupportedModelError
from hardwood.model.columns import Columns
from hardwood.model.decision import Link, Task
from hardwood.model.load.gate import Reference, positions
from hardwood.model.trees import LEAF, Trees

_MAX_DEPTH = 24  # of symmetric trees, which name every leaf; CatBoost itself allows 16

# What a loss says of the model: its task and its link.
_LOSSES: tuple[tuple[tuple[str, ...], Task, Link], ...] = (
    (("Logloss", "CrossEntropy", "Focal"), "classification", "logistic"),
    (("MultiClass",), "classification", "softmax"),
    (("MultiClassOneVsAll",), "classification", "one_vs_rest"),
    (("RMSE", "MAE", "Quantile", "LogLinQuantile", "Expectile"), "regression", "identity"),
    (("Huber", "LogCosh", "Lq", "MAPE", "SurvivalAft"), "regression", "identity"),
    (("Poisson", "Tweedie"), "regression", "exp"),
    (("QueryRMSE", "QuerySoftMax", "QueryCrossEntropy", "PairLogit"), "raw", "identity"),
    (("PairLogitPairwise", "YetiRank", "YetiRankPairwise"), "raw", "identity"),
    (("StochasticFilter", "StochasticRank", "LambdaMart"), "raw", "identity"),
)


def can_load(source: Any) -> bool:
    """Whether this file can read the object; catboost itself is not imported to find out."""
    return type(source).__module__.split(".")[0] == "catboost"


def can_load_document(document: dict[str, Any]) -> bool:
    """Whether a document is CatBoost's."""
    return "features_info" in document and "scale_and_bias" in document


def load(source: Any, like: Any = None) -> tuple[Trees, Reference]:
    """Read a fitted model through its JSON export; `like` holds the categories, if it has some."""
    name = type(source).__name__
    if not hasattr(source, "save_model"):
        raise UnsupportedModelError(f"load_model cannot read catboost's {name}; pass the model.")
    if not source.is_fitted():
        raise ValueError(f"This {name} is not fitted yet; call fit first.")
    with tempfile.TemporaryDirectory() as folder:
        source.save_model(str(Path(folder) / "m.json"), format="json")
        document = json.loads((Path(folder) / "m.json").read_bytes())
    classes = getattr(source, "classes_", None)
    classes = None if classes is None or not len(classes) else classes
    categories = _Categories.of(source, document, like)
    trees = load_document(document, name, classes, categories)

    def decode(X: FloatArray) -> Any:
        return X if categories is None else categories.decode(X)

    def margin(X: FloatArray) -> FloatArray:
        what = {} if name == "CatBoostRanker" else {"prediction_type": "RawFormulaVal"}
        given = source.predict(decode(X), thread_count=1, **what)
        return np.asarray(given, dtype=np.float64).reshape(len(X), -1)

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        return own_label(decode(X))

    def own_label(X: Any) -> npt.NDArray[np.int64]:
        given = source.predict(X, prediction_type="Class", thread_count=1)
        classes = np.arange(trees.n_classes) if trees.classes is None else trees.classes
        return positions(np.asarray(given).ravel(), classes)

    def predict(X: FloatArray) -> FloatArray:
        if trees.link == "identity":
            return margin(X)
        kind = "Exponent" if trees.link == "exp" else "Probability"
        given = np.asarray(source.predict(decode(X), prediction_type=kind, thread_count=1))
        given = given.astype(np.float64).reshape(len(X), -1)
        return given[:, 1:] if trees.link == "logistic" else given

    def accepts(X: FloatArray) -> BoolArray:
        words = [] if categories is None else sorted(categories.names)
        return np.asarray(~np.isnan(X[:, words]).any(axis=1), dtype=bool)

    missing = all(f.get("has_nans") for f in _columns(document)) or categories is not None
    # CatBoost adds the leaves of several trees at once, in an order of its own.
    return trees, Reference(
        name,
        margin,
        exact=False,
        missing=missing,
        accepts=accepts,
        label=label if trees.tells_labels else None,
        predict=predict,
        decode=decode,
        own_label=own_label if trees.tells_labels and categories is not None else None,
    )


def load_document(
    document: dict[str, Any],
    wrapper: str = "",
    classes: Any = None,
    categories: "_Categories | None" = None,
) -> Trees:
    """Read a document; a wrapper's name tells what its predict makes of the margin."""
    columns = _columns(document)
    if categories is None:
        _refuse_features(document, "categorical_features", "text_features", "embedding_features")
    scale, base = _scale_and_bias(document)
    nodes = _Nodes(columns, len(base), scale, categories)
    if "oblivious_trees" in document:
        for tree in _typed("oblivious_trees", document["oblivious_trees"], list):
            nodes.add_symmetric(_typed("a tree", tree, dict))
    else:
        for tree in _typed("trees", document.get("trees"), list):
            nodes.add(_typed("a tree", tree, dict))
    every = columns if categories is None else _in_order([*columns, *categories.features])
    n_features = 1 + max((f["flat_feature_index"] for f in every), default=0)
    names: list[Any] = [f.get("feature_id") for f in every]
    named = len(names) == n_features and all(
        isinstance(name, str) and name and name != str(f) for f, name in enumerate(names)
    )
    info = document.get("model_info")
    info = info if isinstance(info, dict) else {}
    task, link = _about(info, len(base))
    if wrapper == "CatBoost" and link == "exp":
        link = "identity"  # its predict gives the margin
    if task != "classification":
        classes = None
    elif classes is None:
        classes = _classes(info)
    return Trees(
        feature=np.array(nodes.feature, dtype=np.int64),
        threshold=np.array(nodes.threshold, dtype=np.float32),
        left=np.array(nodes.left, dtype=np.int64),
        right=np.array(nodes.right, dtype=np.int64),
        missing_left=np.array(nodes.missing_left, dtype=bool),
        value=np.array(nodes.value, dtype=np.float64).reshape(len(nodes.feature), len(base)),
        tree_start=nodes.tree_start,
        base=base,
        link=link,
        task=task,
        cut=_cut(info) if link == "logistic" else None,
        compare="margin",
        n_features=n_features,
        classes=classes if classes is not None and len(classes) == max(len(base), 2) else None,
        feature_names=names if named else None,
        **({} if categories is None else categories.of_nodes(nodes.right_codes, columns)),
    )


def _about(info: dict[str, Any], n_outputs: int) -> tuple[Task, Link]:
    """Task and link, from the loss; a sum of models names none and gives scores."""
    loss = info.get("params")
    loss = loss.get("loss_function") if isinstance(loss, dict) else None
    kind = loss.get("type") if isinstance(loss, dict) else None
    if kind is None:
        return "raw", "identity"
    for names, task, link in _LOSSES:
        if kind in names and (n_outputs == 1 or link in ("softmax", "one_vs_rest")):
            return task, link
    known = ", ".join(name for names, _, _ in _LOSSES for name in names)
    raise UnsupportedModelError(
        f"This CatBoost model has {n_outputs} output(s) and loss_function={str(kind)[:80]!r}, "
        f"which load_model does not know; it knows {known}."
    )


def _cut(info: dict[str, Any]) -> float:
    """The margin of the probability threshold, as CatBoost computes it."""
    given = info.get("binclass_probability_threshold", "0.5")
    try:
        threshold = float(given)
    except (TypeError, ValueError):
        threshold = math.nan
    if not 0 <= threshold <= 1:
        raise ModelFileError(
            f"binclass_probability_threshold in the CatBoost file must be 0 to 1, got {given!r}."
        )
    most = float(np.finfo(np.float64).max)
    with np.errstate(divide="ignore"):
        return float(np.clip(-np.log(np.float64(1) / threshold - 1), -most, most))


def _classes(info: dict[str, Any]) -> npt.NDArray[Any] | None:
    """The labels, if the document names them."""
    names = info.get("class_params")
    names = names.get("class_names") if isinstance(names, dict) else None
    if not isinstance(names, list) or not names:
        return None
    if not all(isinstance(name, str | int | float) for name in names):
        raise ModelFileError("class_names in the CatBoost file must be numbers or strings.")
    return np.array(names)


class _Nodes:
    """Nodes of all trees, one after the other."""

    def __init__(
        self,
        columns: list[dict[str, Any]],
        n_outputs: int,
        scale: float,
        categories: "_Categories | None",
    ) -> None:
        self.columns, self.n_outputs, self.scale = columns, n_outputs, scale
        self.categories = categories
        self.right_codes: list[Sequence[int]] = []  # of splits on categories, else none
        self.feature: list[int] = []
        self.threshold: list[np.float32] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.missing_left: list[bool] = []
        self.value: list[FloatArray] = []
        self.tree_start = [0]

    def add_symmetric(self, tree: dict[str, Any]) -> None:
        """One split a level; the first split is the lowest bit of a leaf's number."""
        given = tree.get("splits")  # null in a tree of one leaf
        given = [] if given is None else given
        splits = [self.split(split, at) for at, split in enumerate(_typed("splits", given, list))]
        if len(splits) > _MAX_DEPTH:
            raise ModelFileError(f"A tree of the CatBoost file has {len(splits)} levels.")
        n_leaves = 2 ** len(splits)
        value = self.values(tree.get("leaf_values"), n_leaves)
        for level, (feature, threshold, missing_left, codes) in enumerate(reversed(splits)):
            first = 2**level - 1
            for node in range(first, 2 * first + 1):
                self.node(feature, threshold, 2 * node + 1, 2 * node + 2, missing_left, codes)
        for leaf in range(n_leaves):
            self.leaf(value[leaf])
        self.tree_start.append(len(self.feature))

    def add(self, tree: dict[str, Any]) -> None:
        """A tree of any shape, written as nested nodes."""
        start = len(self.feature)
        open_nodes: list[tuple[dict[str, Any], list[int], int]] = [(tree, [0], 0)]
        while open_nodes:
            node, holder, at = open_nodes.pop()
            holder[at] = len(self.feature) - start
            if "split" not in node:
                self.leaf(self.values(node.get("value"), 1)[0])
                continue
            here = len(self.feature)
            feature, threshold, missing_left, _ = self.split(node["split"])
            self.node(feature, threshold, 0, 0, missing_left)
            open_nodes.append((_typed("right", node.get("right"), dict), self.right, here))
            open_nodes.append((_typed("left", node.get("left"), dict), self.left, here))
        self.tree_start.append(len(self.feature))

    def node(
        self,
        feature: int,
        threshold: Any,
        left: int,
        right: int,
        missing_left: bool,
        codes: Sequence[int] = (),
    ) -> None:
        self.right_codes.append(codes)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.left.append(left)
        self.right.append(right)
        self.missing_left.append(missing_left)
        self.value.append(np.zeros(self.n_outputs))

    def leaf(self, value: FloatArray) -> None:
        self.node(LEAF, np.float32(0), LEAF, LEAF, False)
        self.value[-1] = value * self.scale

    def values(self, given: Any, n_leaves: int) -> FloatArray:
        numbers = np.atleast_1d(_floats("leaf_values", given))
        if numbers.shape != (n_leaves * self.n_outputs,):
            raise ModelFileError(
                f"A tree of the CatBoost file has {numbers.size} leaf values, not "
                f"{n_leaves * self.n_outputs}."
            )
        return numbers.reshape(n_leaves, self.n_outputs)

    def split(
        self, given: Any, level: int | None = None
    ) -> tuple[int, np.float32, bool, Sequence[int]]:
        """Feature, threshold, missing side, and the categories that go right.

        CatBoost goes right when x > border, in float32. `level` is that of a symmetric tree.
        """
        split = _typed("a split", given, dict)
        if split.get("split_type", "FloatFeature") != "FloatFeature":
            tree = len(self.tree_start) - 1
            feature = None if self.categories is None else self.categories.feature_of(split)
            if self.categories is None or feature is None or level is None:
                raise UnsupportedModelError(
                    f"Tree {tree} of this CatBoost model has a split of type "
                    f"{split['split_type']!r}, which load_model cannot read here: it reads splits "
                    f"on one category column at a time, of symmetric trees, from the model itself. "
                    f'Retrain with max_ctr_complexity=1 and grow_policy="SymmetricTree", or with '
                    f"numeric columns."
                )
            return feature, np.float32(0), False, self.categories.going_right(feature, tree, level)
        position = _typed("float_feature_index", split.get("float_feature_index"), int)
        if not 0 <= position < len(self.columns):
            raise ModelFileError(f"A split of the CatBoost file names column {position}.")
        column = self.columns[position]
        border = _floats("border", split.get("border"))
        if border.ndim:
            raise ModelFileError("A border in the CatBoost file must be a number.")
        with np.errstate(over="ignore"):
            threshold = np.nextafter(np.float32(border), np.float32(np.inf))
        return (
            column["flat_feature_index"],
            threshold,
            column.get("nan_value_treatment") != "AsTrue",
            (),
        )


@dataclass(frozen=True)
class _Categories:
    """The categories of a model, as the rows of its user name them, and where each of them goes.

    ``leaf`` holds the leaf of one row for each category of each feature, and at last of one that
    the model has not seen; ``start`` says where the rows of a feature begin. ``ctrs`` are the
    features of the statistics that splits ask for, by ``split_index``; None: of several.
    """

    features: list[dict[str, Any]]
    names: dict[int, list[Any]]
    columns: list[Any]
    leaf: npt.NDArray[np.int64]
    start: dict[int, int]
    ctrs: dict[int, int | None]

    @classmethod
    def of(cls, source: Any, document: dict[str, Any], like: Any) -> "_Categories | None":
        info = document["features_info"]
        _refuse_features(document, "text_features", "embedding_features")
        features = info.get("categorical_features")
        if not features:
            return None
        every = _in_order([*features, *info.get("float_features", [])])
        columns = [f.get("feature_id") for f in every]
        frame = _check.column_names(like)
        flat = [f["flat_feature_index"] for f in features]
        if frame is None or any(columns[f] not in frame for f in flat):
            raise UnsupportedModelError(
                f"CatBoost models do not keep the names of their categories; pass rows that hold "
                f"them as a data frame with the columns {[columns[f] for f in flat]!r} "
                f"(load_model(model, X=frame))."
            )
        names = {f: _names_in(like[columns[f]]) for f in flat}
        start: dict[int, int] = {}
        rows: list[tuple[int, int]] = []
        for f in flat:
            start[f] = len(rows)
            rows += [(f, code) for code in range(len(names[f]) + 1)]
        table = np.zeros((len(rows), len(columns)))
        for row, (f, code) in enumerate(rows):
            table[row, f] = code
        empty = np.empty((0, 0), dtype=np.int64)
        found = cls(features, names, columns, empty, start, _ctr_features(info, flat))
        leaf = np.asarray(source.calc_leaf_indexes(found.decode(table), thread_count=1))
        return cls(features, names, columns, leaf, start, found.ctrs)

    def decode(self, X: FloatArray) -> Any:
        """Rows of codes as the frames that CatBoost takes."""
        import pandas

        content: dict[Any, Any] = {}
        for f, column in enumerate(self.columns):
            content[column] = X[:, f]
            if f in self.names:
                known = [*self.names[f], _unseen(self.names[f])]
                content[column] = [known[min(int(code), len(known) - 1)] for code in X[:, f]]
        return pandas.DataFrame(content)

    def feature_of(self, split: dict[str, Any]) -> int | None:
        """The one feature that a split on categories asks about; None: there are several."""
        if split.get("split_type") == "OneHotFeature":
            feature: int = self.features[split["cat_feature_index"]]["flat_feature_index"]
            return feature
        return self.ctrs.get(split.get("split_index", -1))

    def going_right(self, feature: int, tree: int, level: int) -> Sequence[int]:
        """The codes for which a split of a symmetric tree sets its bit of the leaf's number."""
        n = len(self.names[feature]) + 1
        leaf = self.leaf[self.start[feature] : self.start[feature] + n, tree]
        codes: list[int] = np.flatnonzero(leaf >> level & 1).tolist()
        return codes or [n]  # a set must hold something: n is nobody's code

    def of_nodes(
        self, right_codes: list[Sequence[int]], columns: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """What `Trees` have to know of the categories."""
        full = {f["flat_feature_index"] for f in columns if not f.get("has_nans")}
        needs = full | set(self.names)
        return {
            "category_start": np.cumsum([0, *map(len, right_codes)]),
            "category": np.array([c for codes in right_codes for c in codes], dtype=np.int32),
            "category_names": self.names,
            "columns": Columns(takes_unknown=frozenset(self.names), needs_value=frozenset(needs)),
            "takes_missing": len(needs) < len(self.columns),
        }


def _in_order(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(features, key=lambda one: int(one["flat_feature_index"]))


def _names_in(column: Any) -> list[Any]:
    """The categories of a column of a frame: those of its dtype, or else all that it holds."""
    held = getattr(column.dtype, "categories", None)
    held = column.unique() if held is None else held
    held = held.to_list() if hasattr(held, "to_list") else held.tolist()
    known = {name for name in held if not _check.is_missing(name)}
    return sorted(known, key=lambda name: (str(type(name)), name))


def _unseen(names: list[Any]) -> str:
    """A name that is none of these."""
    return "?" * (1 + max((len(str(name)) for name in names), default=0))


def _ctr_features(info: dict[str, Any], flat: list[int]) -> dict[int, int | None]:
    """The feature that each split on a statistic asks about, by the number of the split.

    Splits are numbered through: borders of numbers, categories by themselves, then statistics.
    """
    features = [*info.get("float_features", []), *info.get("categorical_features", [])]
    at = sum(len(f.get("borders") or ()) + len(f.get("values") or ()) for f in features)
    asked: dict[int, int | None] = {}
    for ctr in info.get("ctrs") or ():
        elements = ctr["elements"]
        kinds = {element["combination_element"] for element in elements}
        alone = len(elements) == 1 and kinds == {"cat_feature_value"}
        feature = flat[elements[0]["cat_feature_index"]] if alone else None
        for _ in ctr["borders"]:
            asked[at] = feature
            at += 1
    return asked


def _refuse_features(document: dict[str, Any], *kinds: str) -> None:
    info = _typed("features_info", document.get("features_info"), dict)
    for kind in kinds:
        if info.get(kind):
            pass_it = "; pass the model itself" if kind == "categorical_features" else ""
            raise UnsupportedModelError(
                f"This CatBoost model has {kind.replace('_', ' ')}, which load_model cannot read"
                f"{pass_it}. Otherwise retrain with numeric columns, or one-hot encode them first."
            )


def _columns(document: dict[str, Any]) -> list[dict[str, Any]]:
    info = _typed("features_info", document.get("features_info"), dict)
    columns = [
        _typed("a feature", f, dict)
        for f in _typed("float_features", info.get("float_features", []), list)
    ]
    for f in columns:
        index = _typed("flat_feature_index", f.get("flat_feature_index"), int)
        if not 0 <= index < 2**31 - 1:
            raise ModelFileError(f"A feature of the CatBoost file has the index {index}.")
    return columns


def _scale_and_bias(document: dict[str, Any]) -> tuple[float, FloatArray]:
    given = _typed("scale_and_bias", document.get("scale_and_bias"), list)
    if len(given) != 2:
        raise ModelFileError("scale_and_bias in the CatBoost file must be two entries.")
    scale, bias = _floats("scale", given[0]), np.atleast_1d(_floats("bias", given[1]))
    if scale.ndim or bias.ndim != 1:
        raise ModelFileError("scale_and_bias in the CatBoost file must be [number, list].")
    return float(scale), bias


def _typed(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelFileError(
            f"{name} in the CatBoost file must be {kind.__name__}, got {type(value).__name__}."
        )
    return value


def _floats(name: str, given: Any) -> FloatArray:
    try:
        array = np.asarray(given)
    except ValueError:
        array = np.asarray("")
    if array.size and array.dtype.kind not in "iuf":
        raise ModelFileError(f"{name} in the CatBoost file must hold numbers.")
    return array.astype(np.float64)
