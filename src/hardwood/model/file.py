"""Model files: XGBoost's own format, with what only hardwood knows in a note beside the trees.

The trees are written as XGBoost's tables, so stock xgboost reads the file. The attribute
``hardwood`` holds a note (JSON) with everything the tables cannot say; ``docs/format`` describes
it. XGBoost's tables are the truth: a note that contradicts them is an error, and a note about other
trees (someone trained on) is not read.
"""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray, IntArray
from hardwood.errors import ModelFileError
from hardwood.model import ubjson
from hardwood.model.columns import Columns
from hardwood.model.decision import LINKS, TASKS
from hardwood.model.trees import LEAF, Trees, refuse_columns, take_sets
from hardwood.threat import Threat

FORMAT = 3
NOTE = "hardwood"
MAX_BYTES = 2**32

_NO_PARENT = 2**31 - 1
_XGBOOST_INT64 = 15
_CLASS_TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "str", "object"),
)


@dataclass(frozen=True)
class Tables:
    """Trees as XGBoost holds them: float32, one value a leaf, one output a tree.

    ``condition`` is the threshold of a split and the value of a leaf, 0 where a split has a set of
    categories.
    """

    feature: IntArray
    left: IntArray
    right: IntArray
    missing_left: npt.NDArray[np.bool_]
    condition: npt.NDArray[np.float32]
    gain: npt.NDArray[np.float32]
    cover: npt.NDArray[np.float32]
    tree_start: npt.NDArray[np.int64]
    tree_output: IntArray
    base: npt.NDArray[np.float32]
    category_start: npt.NDArray[np.int64]
    category: IntArray

    @property
    def leaf(self) -> npt.NDArray[np.bool_]:
        """Which nodes are leaves."""
        leaf: npt.NDArray[np.bool_] = self.feature == LEAF
        return leaf

    def digest(self) -> str:
        """A fingerprint of the trees, to tell whether a note is about them."""
        digest = hashlib.blake2b(digest_size=16)
        split = ~self.leaf
        digest.update(np.asarray(self.tree_start, "<i8").tobytes())
        digest.update(np.asarray(self.tree_output, "<i4").tobytes())
        digest.update(np.asarray(self.feature, "<i4").tobytes())
        for children in (self.left, self.right):
            digest.update(np.where(split, children, LEAF).astype("<i4").tobytes())
        digest.update((self.missing_left & split).astype("u1").tobytes())
        digest.update((self.condition + np.float32(0)).astype("<f4").tobytes())  # no -0.0
        if len(self.category):
            digest.update(np.asarray(self.category_start, "<i8").tobytes())
            digest.update(np.asarray(self.category, "<i4").tobytes())
        return digest.hexdigest()


def save(
    trees: Trees,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    n_parallel_trees: int = 1,
) -> None:
    """Write a model; the name ends in .json or .ubj."""
    path = Path(path)
    writers = {".json": _json, ".ubj": ubjson.encode}
    if path.suffix not in writers:
        raise ValueError(f'path must end in ".json" or ".ubj", got path={str(path)!r}.')
    path.write_bytes(
        writers[path.suffix](document(trees, metadata=metadata, n_parallel_trees=n_parallel_trees))
    )


def document(
    trees: Trees,
    *,
    metadata: Mapping[str, Any] | None = None,
    n_parallel_trees: int = 1,
    without_note: bool = False,
) -> dict[str, Any]:
    """Spell a model out as XGBoost's document; its arrays are numpy arrays.

    XGBoost can state the base of a regression exactly, but that of a classifier only as a
    probability, whose logit need not hit it. There, the base is a tree with a single leaf, first in
    the sum, and so the margin is the same to the last bit. `without_note`: only for xgboost, which
    then finds the base in the leaves of the first trees: it is what their sums begin with anyway.
    """
    refuse_columns(trees, "A model file")
    place = _beside_siblings(trees)
    if place is not None:
        trees = _renumbered(trees, place)
    tables = _tables(trees)
    n_outputs = trees.n_outputs
    many = n_outputs > 1
    objective = _objective(trees)
    # The base score whose margin is exactly zero, where XGBoost takes it for a mean.
    neutral = "0E0" if many else {"logistic": "5E-1", "exp": "1E0"}.get(trees.link)
    n_base_trees = 0
    if neutral is not None and tables.base.any():
        if without_note and set(range(n_outputs)) <= set(tables.tree_output.tolist()):
            tables = _with_base_in_leaves(tables)
        else:
            tables, n_base_trees = _with_base_trees(tables), n_outputs
    base_score = neutral or f"{tables.base[0]:.9g}"
    note = _note(trees, tables, n_base_trees, metadata)
    if place is not None:
        start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
        back = np.empty(trees.n_nodes, dtype="<i4")
        back[start + place] = np.arange(trees.n_nodes) - start
        note["node"] = base64.b64encode(back.tobytes()).decode()
    names = trees.feature_names
    n_round = n_outputs * n_parallel_trees
    n_trees = len(tables.tree_output)
    # The base belongs to the first round, so that xgboost cuts the model where we do.
    rounds = np.arange(n_base_trees + n_round, n_trees, n_round).tolist()
    return {
        "learner": {
            "attributes": {} if without_note else {NOTE: json.dumps(note)},
            "feature_names": names if names is not None and _xgboost_takes(names) else [],
            "feature_types": _feature_types(trees),
            "gradient_booster": {
                "model": {
                    "cats": _cats(trees),
                    "gbtree_model_param": {
                        "num_parallel_tree": str(n_parallel_trees),
                        "num_trees": str(n_trees),
                    },
                    "iteration_indptr": [0, *rounds, n_trees] if n_trees else [0],
                    "tree_info": tables.tree_output.tolist(),
                    "trees": _tree_documents(tables, trees.n_features),
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": base_score,
                "boost_from_average": "1",
                "num_class": str(n_outputs if many else 0),
                "num_feature": str(trees.n_features),
                "num_target": "1",
            },
            "objective": objective,
        },
        "version": [3, 0, 0],
    }


def _feature_types(trees: Trees) -> list[str]:
    """XGBoost's words for numbers and categories, where there are some of these."""
    held = {*trees.categorical_features.tolist(), *trees.category_names}
    return ["c" if f in held else "float" for f in range(trees.n_features)] if held else []


def _cats(trees: Trees) -> dict[str, Any]:
    """The names of categories as XGBoost keeps them, so that it takes data frames.

    It has a place for ASCII strings and for whole numbers; a model with other names is written
    without any, and takes numbers there.
    """
    listed = [trees.category_names.get(f, []) for f in range(trees.n_features)]
    entries = [_names_entry(names) for names in listed]
    if None in entries or not any(listed):
        empty = np.empty(0, np.int32)
        return {"enc": [], "feature_segments": empty, "sorted_idx": empty}
    order = [np.argsort(np.asarray(names), kind="stable") for names in listed if names]
    return {
        "enc": entries,
        "feature_segments": np.cumsum([0, *map(len, listed)]).astype(np.int32),
        "sorted_idx": np.concatenate(order).astype(np.int32),
    }


def _names_entry(names: list[Any]) -> dict[str, Any] | None:
    if all(isinstance(name, str) and name.isascii() for name in names):
        ends = np.cumsum([0, *map(len, names)]) if names else np.empty(0)
        text = "".join(names).encode()
        return {"offsets": ends.astype(np.int32), "values": np.frombuffer(text, np.int8)}
    if all(isinstance(name, int | np.integer) for name in names):
        return {"type": _XGBOOST_INT64, "values": np.array(names, dtype=np.int64)}
    return None


def _objective(trees: Trees) -> dict[str, Any]:
    """The objective with which xgboost predicts what we do."""
    if trees.n_outputs > 1:
        # "share" votes: xgboost then gives the label, the first of the largest, as we do.
        own = trees.value.dtype == np.float32 and trees.compare == "margin"
        name = "multi:softprob" if trees.link == "softmax" and not own else "multi:softmax"
        return {"name": name, "softmax_multiclass_param": {"num_class": str(trees.n_outputs)}}
    if trees.link == "exp":
        return {"name": "count:poisson", "poisson_regression_param": {"max_delta_step": "0.7"}}
    labels = trees.task == "classification"
    if trees.link == "logistic":
        name = "binary:logistic" if labels else "reg:logistic"
    elif labels and (trees.link == "hinge" or trees.cut == 0):
        return {"name": "binary:hinge"}
    else:
        name = "reg:squarederror"
    return {"name": name, "reg_loss_param": {"scale_pos_weight": "1"}}


def _factor(trees: Trees) -> float:
    """What stock xgboost must find in the leaves already: it knows no divisor and no slope."""
    return 1.0 if trees.link == "share" else trees.slope / trees.divisor


def _beside_siblings(trees: Trees) -> npt.NDArray[np.int64] | None:
    """New positions in which every right child follows its left one: xgboost relies on it.

    None if they are so already.
    """
    split = trees.feature != LEAF
    if np.array_equal(trees.right[split], trees.left[split] + 1):
        return None
    size = np.diff(trees.tree_start)
    start = np.repeat(trees.tree_start[:-1], size)
    level, levels = trees.tree_start[:-1], []
    while len(level):
        levels.append(level)
        parent = level[split[level]]
        children = np.column_stack([trees.left[parent], trees.right[parent]])
        level = (start[parent][:, None] + children).ravel()
    order = np.concatenate(levels)
    order = order[np.argsort(start[order], kind="stable")]  # tree by tree, level by level
    place = np.empty(trees.n_nodes, dtype=np.int64)
    place[order] = np.arange(trees.n_nodes)
    return place - start


def _renumbered(trees: Trees, place: npt.NDArray[np.int64]) -> Trees:
    """The same trees; node i of a tree goes to the position ``place[i]`` in it."""
    start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
    order = np.argsort(start + place)
    split = trees.feature != LEAF
    state = trees.__getstate__()
    for name in ("left", "right"):
        moved = np.full(trees.n_nodes, LEAF, dtype=np.int64)
        moved[split] = place[start[split] + state[name][split]]
        state[name] = moved
    for name in ("feature", "threshold", "left", "right", "missing_left", "value", "gain", "cover"):
        state[name] = None if state[name] is None else state[name][order]
    state["category_start"], state["category"] = take_sets(
        trees.category_start, trees.category, order
    )
    return Trees(**state)


def _tables(trees: Trees) -> Tables:
    """Cut leaves with k values into k trees, bring everything to float32."""
    k = trees.value.shape[1]
    size = np.diff(trees.tree_start)
    start = np.repeat(trees.tree_start[:-1], k)
    tree_start = np.concatenate([[0], np.cumsum(np.repeat(size, k))]).astype(np.int64)
    tree_of = np.repeat(np.arange(len(start)), np.repeat(size, k))
    node = np.arange(tree_start[-1]) - tree_start[tree_of] + start[tree_of]
    leaf = trees.feature == LEAF
    cover = cover_of(trees)
    gain = np.zeros(trees.n_nodes) if trees.gain is None else trees.gain
    value = _scaled(trees.value, _factor(trees))[node, tree_of % k]
    threshold = np.where(trees.categorical, np.float32(0), float32_above(trees.threshold))
    category_start, category = take_sets(trees.category_start, trees.category, node)
    return Tables(
        feature=trees.feature[node],
        left=np.where(leaf, LEAF, trees.left)[node].astype(np.int32),
        right=np.where(leaf, LEAF, trees.right)[node].astype(np.int32),
        missing_left=(trees.missing_left & ~leaf)[node],
        condition=np.where(leaf[node], value, threshold[node]),
        gain=_float32(gain)[node],
        cover=_float32(cover)[node],
        tree_start=tree_start,
        tree_output=(np.repeat(trees.tree_output, k) + np.arange(len(start)) % k).astype(np.int32),
        base=_scaled(trees.base, _factor(trees)),
        category_start=category_start,
        category=category,
    )


def _float32(given: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return given.astype(np.float32)


def _scaled(given: npt.NDArray[Any], factor: float) -> npt.NDArray[np.float32]:
    return _float32(given if factor == 1 else given * factor)


def float32_above(threshold: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The smallest float32 that is no smaller: it cuts the float32 numbers at the same place."""
    nearest = _float32(threshold)
    return np.where(nearest < threshold, np.nextafter(nearest, np.float32(np.inf)), nearest)


def cover_of(trees: Trees) -> FloatArray:
    """The cover; for a model that knows none, the leaves below each node, as weights for SHAP."""
    if trees.cover is not None:
        return trees.cover
    count: FloatArray = (trees.feature == LEAF).astype(np.float64)
    split = np.flatnonzero(trees.feature != LEAF)
    start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))[split]
    below = (start + trees.left[split], start + trees.right[split])
    open_nodes = np.ones(len(split), dtype=bool)
    while open_nodes.any():  # as often as the deepest tree is deep
        ready = open_nodes & (count[below[0]] > 0) & (count[below[1]] > 0)
        count[split[ready]] = count[below[0][ready]] + count[below[1][ready]]
        open_nodes &= ~ready
    return count


def _with_base_trees(tables: Tables) -> Tables:
    n = len(tables.base)
    root_cover = tables.cover[0] if len(tables.cover) else np.float32(1)

    def put(array: npt.NDArray[Any], head: Any) -> npt.NDArray[Any]:
        return np.concatenate([np.broadcast_to(head, n).astype(array.dtype), array])

    return Tables(
        feature=put(tables.feature, LEAF),
        left=put(tables.left, LEAF),
        right=put(tables.right, LEAF),
        missing_left=put(tables.missing_left, False),
        condition=put(tables.condition, tables.base),
        gain=put(tables.gain, 0),
        cover=put(tables.cover, root_cover),
        tree_start=np.concatenate([np.arange(n), tables.tree_start + n]),
        tree_output=put(tables.tree_output, np.arange(n)),
        base=np.zeros_like(tables.base),
        category_start=put(tables.category_start, 0),
        category=tables.category,
    )


def _with_base_in_leaves(tables: Tables) -> Tables:
    """Base and first value of every output already added, in float32, as xgboost would."""
    condition = tables.condition.copy()
    for output, base in enumerate(tables.base):
        first = int(np.flatnonzero(tables.tree_output == output)[0])
        at = slice(tables.tree_start[first], tables.tree_start[first + 1])
        condition[at] = np.where(tables.leaf[at], base + condition[at], condition[at])
    return replace(tables, condition=condition, base=np.zeros_like(tables.base))


def _tree_documents(tables: Tables, n_features: int) -> list[dict[str, Any]]:
    documents = []
    for k in range(len(tables.tree_output)):
        at = slice(tables.tree_start[k], tables.tree_start[k + 1])
        size = int(at.stop - at.start)
        left, right, condition = tables.left[at], tables.right[at], tables.condition[at]
        leaf = tables.leaf[at]
        set_start = tables.category_start[at.start : at.stop + 1]
        set_size = np.diff(set_start)
        with_set = np.flatnonzero(set_size)
        parents = np.full(size, _NO_PARENT, np.int32)
        for children in (left, right):
            parents[children[~leaf]] = np.flatnonzero(~leaf)
        documents.append(
            {
                "base_weights": np.where(leaf, condition, np.float32(0)),
                "categories": tables.category[set_start[0] : set_start[-1]],
                "categories_nodes": with_set.astype(np.int32),
                "categories_segments": set_start[with_set] - set_start[0],
                "categories_sizes": set_size[with_set],
                "default_left": tables.missing_left[at].astype(np.uint8),
                "id": k,
                "left_children": left,
                "loss_changes": tables.gain[at],
                "parents": parents,
                "right_children": right,
                "split_conditions": condition,
                "split_indices": np.where(leaf, 0, tables.feature[at]).astype(np.int32),
                "split_type": (set_size > 0).astype(np.uint8),
                "sum_hessian": tables.cover[at],
                "tree_param": {
                    "num_deleted": "0",
                    "num_feature": str(n_features),
                    "num_nodes": str(size),
                    "size_leaf_vector": "1",
                },
            }
        )
    return documents


def _xgboost_takes(names: list[str]) -> bool:
    """Whether xgboost would accept these column names itself."""
    return len(set(names)) == len(names) and not any(set(name) & set("[]<") for name in names)


def _json(value: Any) -> bytes:
    parts: list[str] = []
    _write_json(value, parts)
    return "".join(parts).encode()


def _write_json(value: Any, parts: list[str]) -> None:
    if isinstance(value, dict):
        for i, (key, item) in enumerate(value.items()):
            parts.append(f'{"," if i else "{"}"{key}":')
            _write_json(item, parts)
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            parts.append("," if i else "[")
            _write_json(item, parts)
        parts.append("]" if value else "[]")
    elif isinstance(value, np.ndarray):
        # Nine digits tell all float32 apart; xgboost wants to see that a number is no integer.
        form = "%.8e" if value.dtype == np.float32 else "%d"
        text = ",".join([form] * len(value)) % tuple(value.tolist())
        parts.append("[" + text.replace("inf", "Infinity") + "]")
    else:
        parts.append(json.dumps(value, ensure_ascii=False))


def _note(
    trees: Trees, tables: Tables, n_base_trees: int, metadata: Mapping[str, Any] | None
) -> dict[str, Any]:
    note: dict[str, Any] = {
        # The smallest one whose readers understand the file.
        "format": _format_of(trees),
        "hardwood": version("hardwood"),
        "trees": tables.digest(),
        "link": trees.link,
        "task": trees.task,
        "divisor": trees.divisor,
        "slope": trees.slope,
        "cut": trees.cut,
        "compare": trees.compare,
        "x_dtype": trees.x_dtype.name,
        "value_dtype": trees.value.dtype.name,
        "n_values": trees.value.shape[1],
        "n_base_trees": n_base_trees,
        "base": trees.base.tolist(),
        "classes": None if trees.classes is None else _plain_classes(trees.classes),
        "feature_names": trees.feature_names,
        "metadata": _plain_metadata(trees, trees.metadata if metadata is None else metadata),
    }
    if not trees.takes_missing:
        note["takes_missing"] = False
    if trees.columns is not None:
        note["takes_unknown"] = sorted(trees.columns.takes_unknown)
    if trees.category_names:
        note["category_names"] = {
            str(feature): _plain(names) for feature, names in trees.category_names.items()
        }
    for name in ("threshold", "value", "gain", "cover"):
        array = getattr(trees, name)
        if array is None:
            note[name] = None
        elif not np.array_equal(_float32(array), array) or (
            name == "value" and _factor(trees) != 1
        ):
            note[name] = base64.b64encode(array.astype("<f8").tobytes()).decode()
    return note


def _format_of(trees: Trees) -> int:
    # Readers of the first formats decide at zero, but for what rounds to it.
    plain = trees.link in ("identity", "logistic", "softmax", "share", "exp")
    if not plain or trees.divisor != 1 or trees.slope != 1 or abs(trees.cut) > 1e-6:
        return 3
    return 2 if len(trees.category) or trees.category_names else 1


def _plain_classes(classes: npt.NDArray[Any]) -> dict[str, Any]:
    values = classes.tolist()
    name = {"U": "str", "O": "object"}.get(classes.dtype.kind, classes.dtype.name)
    if name not in _CLASS_TYPES or (name == "object" and not all(type(v) is str for v in values)):
        raise ValueError(
            f"A model file holds labels that are numbers, strings or booleans; these are of type "
            f"{type(values[0]).__name__}."
        )
    return {"dtype": name, "values": values}


def _plain_metadata(trees: Trees, metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if metadata is None:
        return None
    plain: dict[str, Any] = _plain({k: v for k, v in metadata.items() if k != "threat"})
    threat = metadata.get("threat")
    if threat is not None:
        plain["threat"] = _plain_threat(threat, trees)
    return plain


def _plain(value: Any) -> Any:
    """What JSON can hold; anything else is written as it prints."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return repr(value)


def _plain_threat(threat: Threat, trees: Trees) -> dict[str, Any]:
    """A threat as numbers: eps for all features, or down and up for each; else as TOML."""
    if not threat.is_plain:
        return {"toml": threat.to_toml()}
    limits = threat.reach(trees.n_features, trees.feature_names).limits
    plain: dict[str, Any] = {"norm": threat.norm, "fixed": _plain(threat.fixed)}
    if np.ndim(threat.eps) == 0 and not isinstance(threat.eps, Mapping):
        plain["eps"] = float(threat.eps)
    else:
        plain["eps"] = limits[:, :2].tolist()
    for name, column in (("low", 2), ("high", 3)):
        if getattr(threat, name) is not None:
            plain[name] = limits[:, column].tolist()
    return plain


def _threat(plain: Any) -> Threat:
    given = _typed("threat", plain, dict)
    eps = given.get("eps")
    if isinstance(eps, list):
        eps = [tuple(pair) if isinstance(pair, list) else pair for pair in eps]
    try:
        if "toml" in given:
            return Threat.from_toml(_typed("toml", given["toml"], str))
        return Threat(
            eps,
            norm=given.get("norm"),
            low=given.get("low"),
            high=given.get("high"),
            fixed=given.get("fixed", ()),
        )
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"The threat in the file's note cannot be read: {error}") from None


def read(path: str | Path) -> bytes:
    """Give the bytes of a model file."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")
    if not path.is_file():
        raise ModelFileError(f"{str(path)!r} is not a file.")
    if path.stat().st_size > MAX_BYTES:
        raise ModelFileError(
            f"{str(path)!r} has {path.stat().st_size} bytes; a model file may have {MAX_BYTES}."
        )
    return path.read_bytes()


def parse(data: bytes) -> dict[str, Any]:
    """Read JSON or UBJSON, whichever it is, into a document."""
    if data[:1] != b"{":
        raise ModelFileError(
            f"A model file begins with '{{' (JSON, UBJSON), 'tree' (LightGBM's text) or byte 8 "
            f"(ONNX), a dump with '['; this one begins with {data[:8]!r}. XGBoost's old binary "
            f"format must be converted: load it with xgboost before 3.1 and call "
            f"save_model('model.json')."
        )
    try:
        text = data[1:2] in b' \t\r\n"}'
        document: dict[str, Any] = json.loads(data) if text else ubjson.decode(data)
    except ModelFileError:
        raise
    except RecursionError:
        raise ModelFileError("The file is not a model: its JSON is nested too deeply.") from None
    except ValueError as error:
        raise ModelFileError(f"The file is not JSON, or it is cut: {error}.") from None
    return document


def _typed(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        expected = " or ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise ModelFileError(
            f"{name} in the model file must be {expected}, got {type(value).__name__}."
        )
    return value


def restore(tables: Tables, text: str, n_features: int) -> Trees | None:
    """Put the note and the tables together again; None if the note is about other trees."""
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFileError("hardwood's note in the file is not JSON, or it is cut.") from None
    found = _typed("format", _typed("note", note, dict).get("format"), int)
    if found > FORMAT:
        raise ModelFileError(
            f"The file has format {found}, this hardwood reads up to {FORMAT}; update hardwood."
        )
    if note.get("trees") != tables.digest():
        return None
    trees = _restore(tables, note, n_features)
    return trees if "node" not in note else _renumbered(trees, _places(note["node"], trees))


def _places(given: Any, trees: Trees) -> npt.NDArray[np.int64]:
    """Positions that the nodes had before they were put beside their siblings."""
    place = np.frombuffer(_bytes("node", given, 4 * trees.n_nodes), "<i4").astype(np.int64)
    start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
    size = np.repeat(np.diff(trees.tree_start), np.diff(trees.tree_start))
    inside = np.all((place >= 0) & (place < size)) and np.all(place[trees.tree_start[:-1]] == 0)
    if not inside or len(np.unique(start + place)) != trees.n_nodes:
        raise ModelFileError("node in the file's note is no order of the nodes of each tree.")
    return place


def _restore(tables: Tables, note: dict[str, Any], n_features: int) -> Trees:
    base = _floats("base", note.get("base"))
    n_base_trees = _typed("n_base_trees", note.get("n_base_trees"), int)
    if n_base_trees:
        tables = _without_base_trees(tables, n_base_trees)
    about = _about(note, len(base))
    factor = 1.0 if note.get("link") == "share" else about["slope"] / about["divisor"]
    if not np.array_equal(_scaled(base, factor), tables.base):
        raise ModelFileError("base in the file's note is not the base of the trees.")
    k = _typed("n_values", note.get("n_values"), int)
    if not 1 <= k <= max(len(base), 1) or len(tables.tree_output) % k:
        raise ModelFileError(f"n_values must be 1 to {len(base)}, and divide the trees, got {k}.")
    first = _one_of_each(tables, k)
    leaf = tables.leaf[first]
    n = len(first)
    size = np.diff(tables.tree_start)[::k]
    tree_start = np.concatenate([[0], np.cumsum(size)])
    # Node i of the j-th of k sister trees lies j tree sizes further on.
    sister = first[:, None] + np.repeat(size, size)[:, None] * np.arange(k)
    value = np.where(leaf[:, None], tables.condition[sister], np.float32(0))
    threshold = np.where(leaf, np.float32(0), tables.condition[first])
    category_start, category = take_sets(tables.category_start, tables.category, first)
    exact_threshold = _exact(note, "threshold", n, note.get("x_dtype"))
    exact_value = _exact(note, "value", n * k, note.get("value_dtype"))
    if exact_threshold is not None:
        exact_threshold = np.where(leaf | (np.diff(category_start) > 0), 0, exact_threshold)
        if not np.array_equal(float32_above(exact_threshold), threshold):
            raise ModelFileError("threshold in the file's note is not that of the trees.")
    if exact_value is not None:
        exact_value = np.where(leaf[:, None], exact_value.reshape(n, k), 0)
        if not np.array_equal(_scaled(exact_value, factor), value):
            raise ModelFileError("value in the file's note is not that of the trees.")
    metadata = note.get("metadata")
    if metadata is not None:
        metadata = dict(_typed("metadata", metadata, dict))
        if metadata.get("threat") is not None:
            metadata["threat"] = _threat(metadata["threat"])
    names = note.get("feature_names")
    if names is not None:
        names = [
            _typed("feature_names", name, str) for name in _typed("feature_names", names, list)
        ]
    return Trees(
        feature=tables.feature[first],
        threshold=_as(note.get("x_dtype"), threshold, exact_threshold),
        left=tables.left[first],
        right=tables.right[first],
        missing_left=tables.missing_left[first],
        value=_as(note.get("value_dtype"), value, exact_value),
        tree_start=tree_start,
        tree_output=tables.tree_output[::k],
        base=base,
        **about,
        n_features=n_features,
        classes=_classes(note.get("classes")),
        feature_names=names,
        gain=_known(note, "gain", tables.gain[first]),
        cover=_known(note, "cover", tables.cover[first]),
        metadata=metadata,
        category_start=category_start,
        category=category,
        category_names=_category_names(note.get("category_names")),
        columns=_columns(note.get("takes_unknown"), n_features),
        takes_missing=_typed("takes_missing", note.get("takes_missing", True), bool),
    )


def _about(note: dict[str, Any], n_outputs: int) -> dict[str, Any]:
    """Task, link and decision; files of the first formats name only the link."""
    link = note.get("link")
    if link not in LINKS:
        raise ModelFileError(f"link must be one of {LINKS}, got {link!r}.")
    numbers = link == "identity" and n_outputs == 1 and note.get("classes") is None
    task = note.get("task", "regression" if numbers else None)
    if task is not None and task not in TASKS:
        raise ModelFileError(f"task must be one of {TASKS}, got {task!r}.")
    about = {"link": link, "task": task, "cut": note.get("cut"), "compare": note.get("compare")}
    if about["cut"] is not None:
        if type(about["cut"]) not in (int, float) or abs(about["cut"]) > np.finfo(np.float64).max:
            raise ModelFileError(f"cut in the file's note must be a number, got {about['cut']!r}.")
        about["cut"] = float(about["cut"])  # a long whole number is none to NumPy
    for name in ("divisor", "slope"):
        about[name] = note.get(name, 1.0)
        if type(about[name]) not in (int, float) or not 0 < about[name] < math.inf:
            raise ModelFileError(f"{name} in the file's note must be a number > 0.")
    return about


def _columns(takes_unknown: Any, n_features: int) -> Columns | None:
    if takes_unknown is None:
        return None
    listed = [_typed("takes_unknown", f, int) for f in _typed("takes_unknown", takes_unknown, list)]
    if not all(0 <= feature < n_features for feature in listed):
        raise ModelFileError("takes_unknown in the file's note names features that are not there.")
    return Columns(takes_unknown=frozenset(listed))


def _category_names(plain: Any) -> dict[int, list[Any]]:
    names = {}
    for feature, listed in _typed("category_names", {} if plain is None else plain, dict).items():
        if not feature.isascii() or not feature.isdigit() or len(feature) > 9:
            raise ModelFileError(
                f"category_names in the file's note names feature {feature[:40]!r}."
            )
        for name in _typed("category_names", listed, list):
            _typed("category_names", name, (str, int, float))
        names[int(feature)] = listed
    return names


def _without_base_trees(tables: Tables, n: int) -> Tables:
    if n != len(tables.base) or len(tables.tree_start) <= n or tables.tree_start[n] != n:
        raise ModelFileError(f"The file's note speaks of {n} trees for the base; they are missing.")
    return Tables(
        tables.feature[n:],
        tables.left[n:],
        tables.right[n:],
        tables.missing_left[n:],
        tables.condition[n:],
        tables.gain[n:],
        tables.cover[n:],
        tables.tree_start[n:] - n,
        tables.tree_output[n:],
        tables.condition[:n],
        tables.category_start[n:],
        tables.category,
    )


def _one_of_each(tables: Tables, k: int) -> npt.NDArray[np.int64]:
    """Nodes of the first of every k trees, which must be alike but for their leaves."""
    size = np.diff(tables.tree_start)
    tree_of = np.repeat(np.arange(len(size)), size)
    first = np.flatnonzero(tree_of % k == 0)
    sister_of = np.arange(len(tree_of)) - tables.tree_start[tree_of]
    sister_of += tables.tree_start[tree_of - tree_of % k]
    alike = np.array_equal(size, np.repeat(size[::k], k)) and all(
        np.array_equal(array, array[sister_of])
        for array in (tables.feature, tables.left, tables.right, tables.missing_left)
    )
    sets = take_sets(tables.category_start, tables.category, sister_of)
    alike = alike and np.array_equal(sets[0], tables.category_start)
    alike = alike and np.array_equal(sets[1], tables.category)
    split = ~tables.leaf
    if not alike or not np.array_equal(tables.condition[split], tables.condition[sister_of[split]]):
        raise ModelFileError(f"The file's note joins every {k} trees, but they differ in splits.")
    if not np.array_equal(
        tables.tree_output, np.repeat(tables.tree_output[::k], k) + np.arange(len(size)) % k
    ):
        raise ModelFileError(f"The file's note joins every {k} trees, but not in output order.")
    return first


def _floats(name: str, given: Any) -> FloatArray:
    numbers = _typed(name, given, list)
    if not all(type(number) in (int, float) for number in numbers):
        raise ModelFileError(f"{name} in the file's note must hold numbers.")
    return np.array(numbers, dtype=np.float64)


def _exact(note: dict[str, Any], name: str, n: int, dtype: Any) -> FloatArray | None:
    """The doubles that float32 tables could not hold, where there are any."""
    if dtype not in ("float32", "float64"):
        raise ModelFileError(f"dtypes in the file's note are float32 or float64, got {dtype!r}.")
    given = note.get(name)
    if given is None:
        return None
    return np.frombuffer(_bytes(name, given, 8 * n), "<f8").astype(np.float64)


def _bytes(name: str, given: Any, n: int) -> bytes:
    try:
        data = base64.b64decode(_typed(name, given, str), validate=True)
    except (binascii.Error, ValueError):
        raise ModelFileError(f"{name} in the file's note is not base64.") from None
    if len(data) != n:
        raise ModelFileError(f"{name} in the file's note has {len(data)} bytes, not {n}.")
    return data


def _as(dtype: Any, tables: npt.NDArray[np.float32], exact: FloatArray | None) -> npt.NDArray[Any]:
    return (tables if exact is None else exact).astype(dtype)


def _known(
    note: dict[str, Any], name: str, tables: npt.NDArray[np.float32]
) -> npt.NDArray[Any] | None:
    if name in note and note[name] is None:
        return None
    exact = _exact(note, name, len(tables), "float64")
    return tables if exact is None else exact


def _classes(plain: Any) -> npt.NDArray[Any] | None:
    if plain is None:
        return None
    dtype = _typed("classes", plain, dict).get("dtype")
    values = _typed("classes", plain.get("values"), list)
    kinds = {"bool": bool, "str": str, "object": str, "float32": float, "float64": float}
    if dtype not in _CLASS_TYPES or not all(type(v) is kinds.get(dtype, int) for v in values):
        raise ModelFileError(f"classes in the file's note cannot be read as {dtype!r}.")
    try:
        return np.array(values, dtype=dtype)
    except OverflowError as error:
        raise ModelFileError(f"classes in the file's note do not fit {dtype}: {error}.") from None
