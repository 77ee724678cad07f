"""A model as XGBoost's document, and the document as JSON."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood.model.trees import LEAF, Trees, refuse_columns
from hardwood.model.xgboost.note import NOTE, note_of
from hardwood.model.xgboost.order import beside_siblings, renumbered
from hardwood.model.xgboost.tables import Tables, tables_of

_NO_PARENT = 2**31 - 1
_XGBOOST_INT64 = 15


def document_of(
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
    place = beside_siblings(trees)
    if place is not None:
        trees = renumbered(trees, place)
    tables = tables_of(trees)
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
    note = note_of(trees, tables, n_base_trees, metadata, place)
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


def to_json(value: Any) -> bytes:
    """Write a document as XGBoost reads it."""
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
