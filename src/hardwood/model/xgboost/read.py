"""XGBoost's document, as its library writes it, into `Trees`."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood import _core
from hardwood._check import Float32Array
from hardwood.errors import ModelFileError, UnsupportedModelError
from hardwood.model.decision import Link, Task, cut_at
from hardwood.model.trees import LEAF, Trees
from hardwood.model.xgboost.note import NOTE, restore
from hardwood.model.xgboost.tables import Tables

_MAX_OUTPUTS = 100_000
# What an objective says of the model: its task, its link, and the link whose inverse brings the
# base score, which XGBoost keeps in the space of the labels, to the margin.
_OBJECTIVES: dict[str, tuple[Task, Link, Link]] = {
    "binary:logistic": ("classification", "logistic", "logistic"),
    "binary:logitraw": ("classification", "identity", "identity"),
    "binary:hinge": ("classification", "hinge", "identity"),
    "multi:softprob": ("classification", "softmax", "identity"),
    "multi:softmax": ("classification", "softmax", "identity"),
    "reg:logistic": ("regression", "logistic", "logistic"),
    "reg:squarederror": ("regression", "identity", "identity"),
    "reg:linear": ("regression", "identity", "identity"),
    "reg:squaredlogerror": ("regression", "identity", "identity"),
    "reg:pseudohubererror": ("regression", "identity", "identity"),
    "reg:absoluteerror": ("regression", "identity", "identity"),
    "reg:quantileerror": ("regression", "identity", "identity"),
    "count:poisson": ("regression", "exp", "exp"),
    "reg:gamma": ("regression", "exp", "exp"),
    "reg:tweedie": ("regression", "exp", "exp"),
    "survival:cox": ("regression", "exp", "exp"),
    "survival:aft": ("regression", "exp", "exp"),
    "rank:pairwise": ("raw", "identity", "identity"),
    "rank:ndcg": ("raw", "identity", "identity"),
    "rank:map": ("raw", "identity", "identity"),
}


def read(
    document: dict[str, Any], n_rounds: int, classes: Any = None, task: Task | None = None
) -> tuple[Trees, list[npt.NDArray[np.int64] | None]]:
    """Trees, and for each tree with deleted nodes the ids that xgboost gives the other ones.

    There are no ids where our own note says which nodes there were.
    """
    learner = get(document, "learner", dict)
    booster = get(learner, "gradient_booster", dict)
    kind = booster.get("name")
    weight = None
    if kind == "dart":
        weight = _array(booster, "weight_drop", np.float32)
        booster = get(booster, "gbtree", dict)
    elif kind != "gbtree":
        raise UnsupportedModelError(
            f'This XGBoost model has booster="{kind}", which is not made of trees; retrain with '
            f'booster="gbtree".'
        )
    model = get(booster, "model", dict)
    if weight is None and "weight_drop" in model:  # from xgboost 3.4 on, where DART is an option
        dropped = _array(model, "weight_drop", np.float32)
        weight = dropped if len(dropped) else None
    parameters = get(learner, "learner_model_param", dict)
    n_features = integer("num_feature", parameters.get("num_feature"))
    n_outputs = max(integer("num_class", parameters.get("num_class")), 1)
    n_targets = integer("num_target", parameters.get("num_target", "1"))
    if n_targets > 1:
        raise UnsupportedModelError(
            f"This XGBoost model predicts {n_targets} targets at once; train one model per target."
        )
    if n_outputs > _MAX_OUTPUTS:
        raise ModelFileError(f"num_class must be at most {_MAX_OUTPUTS}, got {n_outputs}.")
    objective = get(get(learner, "objective", dict), "name", str)
    own_task, link, _ = _about(objective)
    task = task or own_task
    parts = get(model, "trees", list)
    output = _array(model, "tree_info", np.int32, len(parts))
    if n_rounds:
        n_kept = _trees_in_rounds(model, n_rounds, n_outputs, len(parts))
        parts, output = parts[:n_kept], output[:n_kept]
    names = _names(learner)
    tables, node_ids = _tables(parts, output, _base(objective, parameters, n_outputs))
    if weight is not None:
        tables = _weighted(tables, weight)
    note = get(learner, "attributes", dict, {}).get(NOTE)
    if note is not None and weight is None and not n_rounds:
        restored = restore(tables, check_type(NOTE, note, str), n_features)
        if restored is not None:
            return restored, []
    leaf = tables.leaf
    trees = Trees(
        feature=tables.feature,
        threshold=np.where(leaf, np.float32(0), tables.condition),
        left=tables.left,
        right=tables.right,
        missing_left=tables.missing_left,
        value=np.where(leaf, tables.condition, np.float32(0)),
        tree_start=tables.tree_start,
        tree_output=tables.tree_output,
        base=tables.base,
        link="softmax" if n_outputs > 1 else link,
        task=task,
        # The second class is said where the prediction is above one half, whatever it means; a
        # model that predicts its label compares margins.
        cut=cut_at(0.5, link, np.float32) if n_outputs == 1 and task == "classification" else None,
        compare="margin" if objective == "multi:softmax" else None,
        n_features=n_features,
        classes=classes if task == "classification" else None,
        feature_names=names if names and len(names) == n_features else None,
        gain=tables.gain,
        cover=tables.cover,
        category_start=tables.category_start,
        category=tables.category,
        category_names=_category_names(model),
        sparse_missing=True,
    )
    return trees, node_ids


def _base(objective: str, parameters: dict[str, Any], n_outputs: int) -> Float32Array:
    """Where the margin starts; XGBoost keeps it in the space of the labels."""
    text = str(parameters.get("base_score"))
    try:
        given = np.array([float(part) for part in text.strip("[]").split(",")], dtype=np.float32)
    except ValueError:
        raise ModelFileError(f"base_score must be a number or a list, got {text!r}.") from None
    if len(given) not in (1, n_outputs):
        raise ModelFileError(
            f"base_score has {len(given)} entries but the model has {n_outputs} outputs."
        )
    one = np.float32(1)
    _, _, space = _about(objective)
    with np.errstate(divide="ignore", over="ignore"):
        if space == "logistic":
            given = np.array([-_core.log_float32(one / p - one) for p in given], dtype=np.float32)
        elif space == "exp":
            given = np.array([_core.log_float32(p) for p in given], dtype=np.float32)
    return np.broadcast_to(given, n_outputs).copy()


def _about(objective: str) -> tuple[Task, Link, Link]:
    if objective not in _OBJECTIVES:
        raise UnsupportedModelError(
            f'This XGBoost model has objective="{objective[:80]}", which load_model does not know; '
            f"it knows {', '.join(_OBJECTIVES)}."
        )
    return _OBJECTIVES[objective]


def _trees_in_rounds(model: dict[str, Any], n_rounds: int, n_outputs: int, n_trees: int) -> int:
    if "iteration_indptr" in model:
        ends = _array(model, "iteration_indptr", np.int64)
        if n_rounds < len(ends):
            return min(max(int(ends[n_rounds]), 0), n_trees)
        return n_trees
    parameters = get(model, "gbtree_model_param", dict)
    n_parallel = integer("num_parallel_tree", parameters.get("num_parallel_tree", "1"))
    return min(n_rounds * n_outputs * max(n_parallel, 1), n_trees)


def _names(learner: dict[str, Any]) -> list[str]:
    names = get(learner, "feature_names", list, [])
    return [check_type("feature_names", name, str) for name in names]


def _tables(
    parts: list[Any],
    output: npt.NDArray[np.int32],
    base: Float32Array,
) -> tuple[Tables, list[npt.NDArray[np.int64] | None]]:
    columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in (*_COLUMNS, "sets")}
    category: list[npt.NDArray[np.int32]] = [np.empty(0, np.int32)]
    node_ids: list[npt.NDArray[np.int64] | None] = []
    for k, part in enumerate(parts):
        tree = check_type(f"tree {k}", part, dict)
        size = len(_array(tree, "left_children", np.int32))
        arrays = {name: _array(tree, name, dtype, size) for name, dtype in _COLUMNS.items()}
        parameters = get(tree, "tree_param", dict, {})
        if integer("size_leaf_vector", parameters.get("size_leaf_vector", "1")) > 1:
            raise UnsupportedModelError(
                f"Tree {k} of this XGBoost model has several values a leaf; retrain with "
                f'multi_strategy="one_output_per_tree".'
            )
        n_listed, listed = _sets(tree, size, k)
        alive = arrays["left_children"] != LEAF
        kept = None
        if integer("num_deleted", parameters.get("num_deleted", "0")):
            kept = _reached(arrays["left_children"], arrays["right_children"])
            alive &= np.isin(np.arange(size), kept)
            arrays = _compact(arrays, kept)
        # Pruning leaves sets behind, too.
        category.append(listed[np.repeat(alive, n_listed)])
        n_listed = np.where(alive, n_listed, 0)
        arrays["sets"] = n_listed if kept is None else n_listed[kept]
        node_ids.append(kept)
        for name, array in arrays.items():
            columns[name].append(array)
    size_of = [len(array) for array in columns["left_children"]]
    flat = {
        name: np.concatenate(arrays) if arrays else np.empty(0, _COLUMNS.get(name, np.int64))
        for name, arrays in columns.items()
    }
    leaf = flat["left_children"] == LEAF
    has_set = flat["sets"] > 0
    tables = Tables(
        feature=np.where(leaf, LEAF, flat["split_indices"]).astype(np.int32),
        left=flat["left_children"],
        right=flat["right_children"],
        missing_left=(flat["default_left"] != 0) & ~leaf,
        condition=np.where(has_set, np.float32(0), flat["split_conditions"]),
        gain=flat["loss_changes"],
        cover=flat["sum_hessian"],
        tree_start=np.concatenate([[0], np.cumsum(size_of)]).astype(np.int64),
        tree_output=output,
        base=base,
        category_start=np.concatenate([[0], np.cumsum(flat["sets"])]).astype(np.int64),
        category=np.concatenate(category),
    )
    negative = np.flatnonzero(~leaf & (tables.feature < 0))
    if len(negative):
        raise ModelFileError(f"Node {negative[0]} splits on feature {tables.feature[negative[0]]}.")
    return tables, node_ids


_COLUMNS: dict[str, Any] = {
    "left_children": np.int32,
    "right_children": np.int32,
    "split_indices": np.int32,
    "split_conditions": np.float32,
    "default_left": np.uint8,
    "loss_changes": np.float32,
    "sum_hessian": np.float32,
}


def _sets(
    tree: dict[str, Any], size: int, k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """How many categories each node of a tree has, and which."""
    count = np.zeros(size, dtype=np.int64)
    categories = _array(tree, "categories", np.int32, None, ())
    node = _array(tree, "categories_nodes", np.int64, None, ())
    segment = _array(tree, "categories_segments", np.int64, len(node), ())
    n_of = _array(tree, "categories_sizes", np.int64, len(node), ())
    kind = _array(tree, "split_type", np.uint8, size, np.zeros(size, np.uint8))
    inside = np.all((node >= 0) & (node < size)) and np.all(np.diff(node) > 0)
    if not inside or not np.array_equal(np.flatnonzero(kind), node):
        raise ModelFileError(
            f"Tree {k} of the XGBoost file has categories for other nodes than those that split "
            f"on categories."
        )
    # One set after the other: so the sets are never larger than the file.
    if np.any(n_of < 1) or not np.array_equal(segment, np.cumsum(n_of) - n_of):
        raise ModelFileError(f"Tree {k} of the XGBoost file has empty or overlapping categories.")
    if n_of.sum() != len(categories):
        raise ModelFileError(
            f"Tree {k} of the XGBoost file has {len(categories)} categories, not {n_of.sum()}."
        )
    count[node] = n_of
    order = np.lexsort([categories, np.repeat(np.arange(len(node)), n_of)])
    return count, categories[order]


def _category_names(model: dict[str, Any]) -> dict[int, list[Any]]:
    """What the categories of data frames were called; codes count these lists."""
    names = {}
    table = get(model, "cats", dict, {})
    for feature, given in enumerate(get(table, "enc", list, [])):
        entry = check_type("enc", given, dict)
        if "offsets" in entry:
            listed: list[Any] = _texts(entry)
        else:
            listed = [check_type("enc", v, (int, float)) for v in get(entry, "values", list)]
        if listed:
            names[feature] = listed
    return names


def _texts(entry: dict[str, Any]) -> list[str]:
    """Names that lie one after the other.

    None if one is not ASCII: XGBoost 3.2 then counts letters, not bytes, and loses the last ones.
    """
    ends = _array(entry, "offsets", np.int64)
    data = _array(entry, "values", np.int8).tobytes()
    if len(ends) == 0 or not data.isascii():
        return []
    if ends[0] != 0 or np.any(np.diff(ends) < 0) or ends[-1] > len(data):
        raise ModelFileError("offsets of category names in the XGBoost file do not rise.")
    return [data[a:b].decode() for a, b in itertools.pairwise(ends)]


def _reached(left: npt.NDArray[np.int32], right: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Nodes that a path leads to: pruning leaves deleted ones behind."""
    seen = np.zeros(len(left), dtype=bool)
    level = np.zeros(min(len(left), 1), dtype=np.int64)
    while len(level):
        seen[level] = True
        split = level[left[level] != LEAF]
        level = np.concatenate([left[split], right[split]]).astype(np.int64)
        if np.any((level < 0) | (level >= len(left))) or seen[level].any():
            raise ModelFileError("A tree's children do not form a tree.")
        level = np.unique(level)
    return np.flatnonzero(seen)


def _compact(
    arrays: dict[str, npt.NDArray[Any]], kept: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[Any]]:
    place = np.full(len(arrays["left_children"]) + 1, LEAF, dtype=np.int32)  # LEAF finds the last
    place[kept] = np.arange(len(kept), dtype=np.int32)
    compact = {name: array[kept] for name, array in arrays.items()}
    for name in ("left_children", "right_children"):
        compact[name] = place[np.where(compact["left_children"] == LEAF, LEAF, compact[name])]
    return compact


def _weighted(tables: Tables, weight: Float32Array) -> Tables:
    """DART: a leaf counts its value times the weight of its tree, rounded to float32."""
    size = np.diff(tables.tree_start)
    if len(weight) < len(size):
        raise ModelFileError(f"weight_drop has {len(weight)} entries for {len(size)} trees.")
    scaled = np.where(
        tables.leaf, tables.condition * np.repeat(weight[: len(size)], size), tables.condition
    )
    return replace(tables, condition=scaled)


def check_type(name: str, value: Any, kind: Any) -> Any:
    """An entry of the file, which must be of this kind."""
    if not isinstance(value, kind):
        raise ModelFileError(
            f"{name} in the XGBoost file must be {getattr(kind, '__name__', 'a number')}, "
            f"got {type(value).__name__}."
        )
    return value


def get(mapping: dict[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """An entry of a mapping of the file, which must be of this kind."""
    value = mapping.get(name, default)
    if kind is list and isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    return check_type(name, value, kind)


def integer(name: str, given: Any) -> int:
    """A count, which XGBoost writes as text."""
    try:
        number = int(given) if isinstance(given, str) and len(given) < 12 else None
    except ValueError:
        number = None
    if number is None or not 0 <= number < 2**31:
        shown = repr(given)[:40]
        raise ModelFileError(f"{name} in the XGBoost file must be a count, got {shown}.")
    return number


def _array(
    mapping: dict[str, Any], name: str, dtype: Any, size: int | None = None, default: Any = None
) -> npt.NDArray[Any]:
    """A one-dimensional array of numbers that the dtype can hold."""
    given = mapping.get(name, default)
    exact: npt.NDArray[Any] | None = given
    if not isinstance(given, np.ndarray) or given.dtype != dtype:
        exact = _converted(given, dtype)
    if exact is None:
        raise ModelFileError(
            f"{name} in the XGBoost file must be a list of {np.dtype(dtype).name}."
        )
    if size is not None and len(exact) != size:
        raise ModelFileError(f"{name} in the XGBoost file has {len(exact)} entries, not {size}.")
    return exact


def _converted(given: Any, dtype: Any) -> npt.NDArray[Any] | None:
    """The numbers in the dtype; None if they are no numbers or it cannot hold them."""
    try:
        array = np.asarray(given)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "buif"):
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            exact = array.astype(dtype)
    except (ValueError, TypeError, OverflowError):
        return None
    return exact if np.dtype(dtype).kind == "f" or np.array_equal(exact, array) else None
