"""Trees for other tools: an xgboost Booster, LightGBM's text, ONNX, SHAP's arrays.

XGBoost compares as we do. LightGBM and SHAP send x left when ``x <= t``, in double: there, t is the
last double that goes left here, so every row of doubles finds the same leaves.
"""

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model import ubjson
from hardwood.model.trees import LEAF, Trees, core_of, refuse_categories
from hardwood.model.xgboost.tables import cover_of, float32_above
from hardwood.model.xgboost.write import document_of


def to_xgboost(trees: Trees) -> Any:
    """Make an ``xgboost.Booster`` of the model."""
    try:
        import xgboost
    except ImportError:
        raise ImportError(
            "to_xgboost needs xgboost. Install it with: pip install xgboost-cpu"
        ) from None
    # Without a tree for the base, which SHAP takes for a leaf with several values.
    document = document_of(trees, without_note=True)
    return xgboost.Booster(model_file=bytearray(ubjson.encode(document)))


def to_shap(trees: Trees) -> dict[str, Any]:
    """Spell the model out as the dictionary that ``shap.TreeExplainer`` takes."""
    refuse_categories(trees, "to_shap")
    last_left = _last_left(trees)
    cover = cover_of(trees)
    k = trees.value.shape[1]
    parts = []
    for tree in range(trees.n_trees):
        at = slice(trees.tree_start[tree], trees.tree_start[tree + 1])
        leaf = trees.feature[at] == LEAF
        left = np.where(leaf, LEAF, trees.left[at])
        right = np.where(leaf, LEAF, trees.right[at])
        values = np.zeros((len(leaf), trees.n_outputs))
        values[:, trees.tree_output[tree] : trees.tree_output[tree] + k] = trees.value[at]
        parts.append(
            {
                "children_left": left,
                "children_right": right,
                "children_default": np.where(trees.missing_left[at], left, right),
                "features": np.where(leaf, 0, trees.feature[at]),
                "thresholds": np.where(leaf, 0.0, last_left[at]),
                "values": np.where(leaf[:, None], values, 0.0),
                "node_sample_weight": cover[at].astype(np.float64),
            }
        )
    base = trees.base
    return {
        "trees": parts,
        "base_offset": base if len(base) > 1 else float(base[0]),
        "tree_output": "raw_value",
        "objective": "binary_crossentropy" if trees.link == "logistic" else "squared_error",
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
    }


def to_lightgbm(trees: Trees) -> str:
    """Write the model as LightGBM's text, for ``lightgbm.Booster(model_str=...)``."""
    refuse_categories(trees, "to_lightgbm")
    n_outputs = trees.n_outputs
    objective = {
        "identity": "regression"
        if n_outputs == 1
        else f"multiclassova num_class:{n_outputs} sigmoid:1",
        "logistic": f"binary sigmoid:{trees.slope!r}",
        "softmax": f"multiclass num_class:{n_outputs}",
        "share": f"multiclassova num_class:{n_outputs} sigmoid:1",
        "one_vs_rest": f"multiclassova num_class:{n_outputs} sigmoid:{trees.slope!r}",
        "exp": "poisson",
        "square": "regression sqrt",
        "softplus": "cross_entropy_lambda",
        "hinge": "regression",
    }[trees.link]
    rounds = _in_rounds(trees)
    averages = trees.divisor == len(rounds) // n_outputs
    if trees.link != "share" and not (averages or trees.divisor == 1):
        raise UnsupportedModelError(
            f"to_lightgbm cannot express that the margin is divided by {trees.divisor:g} before "
            f"the link; save_model can."
        )
    names = trees.feature_names or [f"Column_{f}" for f in range(trees.n_features)]
    lines = [
        "tree",
        "version=v4",
        f"num_class={n_outputs}",
        f"num_tree_per_iteration={n_outputs}",
        "label_index=0",
        f"max_feature_idx={trees.n_features - 1}",
        f"objective={objective}",
        "feature_names=" + " ".join("_".join(name.split()) or "_" for name in names),
        "feature_infos=" + " ".join(["[-inf:inf]"] * trees.n_features),
        *(["average_output"] if averages and trees.divisor > 1 and trees.link != "share" else []),
        "",
    ]
    last_left, cover = _last_left(trees), cover_of(trees)
    for number, (tree, column, constant) in enumerate(rounds):
        if tree is None:
            lines += [f"Tree={number}", *_text_leaf(constant)]
        else:
            lines += [f"Tree={number}", *_text_tree(trees, tree, column, last_left, cover)]
    return "\n".join([*lines, "end of trees", "", ""])


def _in_rounds(trees: Trees) -> list[tuple[int | None, int, float]]:
    """Tree and column of its values, or a constant, one for each output in turn.

    Where an output has fewer trees than another, constants of zero fill the round.
    """
    of_output: list[list[tuple[int | None, int, float]]] = [[] for _ in trees.base]
    if trees.base.any():
        for output, base in enumerate(trees.base):
            of_output[output].append((None, 0, float(base)))
    for tree, first in enumerate(trees.tree_output):
        for column in range(trees.value.shape[1]):
            of_output[first + column].append((tree, column, 0.0))
    n_rounds = max(len(own) for own in of_output)
    return [
        own[k] if k < len(own) else (None, 0, 0.0) for k in range(n_rounds) for own in of_output
    ]


def _text_leaf(value: float) -> list[str]:
    fields = {"num_leaves": "1", "num_cat": "0", "leaf_value": repr(value), "shrinkage": "1"}
    return [*(f"{name}={text}" for name, text in fields.items()), "", ""]


def _text_tree(
    trees: Trees, tree: int, column: int, last_left: FloatArray, cover: npt.NDArray[Any]
) -> list[str]:
    at = slice(trees.tree_start[tree], trees.tree_start[tree + 1])
    leaf = trees.feature[at] == LEAF
    value = trees.value[at, column].astype(np.float64)
    if leaf.all():
        return _text_leaf(float(value[0]))
    split = ~leaf
    # LightGBM counts splits and leaves apart; leaf i is written as -1 - i.
    place = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(split) - 1)
    count = np.maximum(cover[at], 1).astype(np.int64)
    nothing = np.zeros(int(split.sum()))
    fields: dict[str, Any] = {
        "num_leaves": [int(leaf.sum())],
        "num_cat": [0],
        "split_feature": trees.feature[at][split],
        "split_gain": nothing,
        "threshold": last_left[at][split],
        "decision_type": 8 + 2 * trees.missing_left[at][split].astype(int),  # NaN is missing
        "left_child": place[trees.left[at][split]],
        "right_child": place[trees.right[at][split]],
        "leaf_value": value[leaf],
        "leaf_weight": cover[at][leaf].astype(np.float64),
        "leaf_count": count[leaf],
        "internal_value": nothing,
        "internal_weight": cover[at][split].astype(np.float64),
        "internal_count": count[split],
        "is_linear": [0],
        "shrinkage": [1],
    }
    return [
        *(f"{name}={' '.join(map(repr, np.asarray(a).tolist()))}" for name, a in fields.items()),
        "",
        "",
    ]


def to_onnx(trees: Trees) -> bytes:
    """Write the model as ONNX: rows of float32 in, label (position) and margin out."""
    try:
        from onnx import TensorProto, helper
    except ImportError:
        raise ImportError("to_onnx needs onnx. Install it with: pip install onnx") from None
    refuse_categories(trees, "to_onnx")
    # Onnxruntime adds base values after all trees, and ours come before: as trees of one leaf.
    based = np.flatnonzero(trees.base)
    n_based, nothing = len(based), np.zeros(len(based), dtype=np.int64)
    leaf = trees.feature == LEAF
    k = trees.value.shape[1]
    size = np.diff(trees.tree_start)
    tree_of = np.repeat(np.arange(trees.n_trees), size)
    node = np.arange(trees.n_nodes) - trees.tree_start[tree_of]
    output = (trees.tree_output[tree_of[leaf]][:, None] + np.arange(k)).ravel()
    with np.errstate(over="ignore"):
        value = trees.value[leaf].astype(np.float32).ravel()

    def after_base(first: npt.ArrayLike, others: npt.ArrayLike) -> list[Any]:
        joined: list[Any] = np.concatenate([first, others]).tolist()
        return joined

    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["margin"],
        domain="ai.onnx.ml",
        n_targets=trees.n_outputs,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=after_base(np.arange(n_based), tree_of + n_based),
        nodes_nodeids=after_base(nothing, node),
        nodes_featureids=after_base(nothing, np.where(leaf, 0, trees.feature)),
        nodes_modes=after_base(["LEAF"] * n_based, np.where(leaf, "LEAF", "BRANCH_LT")),
        nodes_values=after_base(nothing, np.where(leaf, 0, float32_above(trees.threshold))),
        nodes_truenodeids=after_base(nothing, np.where(leaf, 0, trees.left)),
        nodes_falsenodeids=after_base(nothing, np.where(leaf, 0, trees.right)),
        nodes_missing_value_tracks_true=after_base(
            nothing, (trees.missing_left & ~leaf).astype(int)
        ),
        target_treeids=after_base(np.arange(n_based), np.repeat(tree_of[leaf] + n_based, k)),
        target_nodeids=after_base(nothing, np.repeat(node[leaf], k)),
        target_ids=after_base(based, output),
        target_weights=after_base(trees.base[based].astype(np.float32), value),
    )
    cut = helper.make_tensor("cut", TensorProto.FLOAT, [1], [float(np.float32(trees.cut))])
    side = helper.make_tensor("side", TensorProto.INT64, [1], [1])
    if not trees.tells_labels:
        decide, constants = [_onnx_link(trees)], []
    elif trees.n_outputs == 1:
        decide = [
            helper.make_node("Greater", ["margin", "cut"], ["above"]),
            helper.make_node("Cast", ["above"], ["column"], to=TensorProto.INT64),
            helper.make_node("Squeeze", ["column", "side"], ["label"]),
        ]
        constants = [cut, side]
    else:
        decide = [helper.make_node("ArgMax", ["margin"], ["label"], axis=1, keepdims=0)]
        constants = []
    said = (
        helper.make_tensor_value_info("label", TensorProto.INT64, [None])
        if trees.tells_labels
        else helper.make_tensor_value_info("mean", TensorProto.FLOAT, [None, trees.n_outputs])
    )
    graph = helper.make_graph(
        [ensemble, *decide],
        "hardwood",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, trees.n_features])],
        [
            said,
            helper.make_tensor_value_info("margin", TensorProto.FLOAT, [None, trees.n_outputs]),
        ],
        constants,
    )
    versions = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=8, producer_name="hardwood")
    names = ("link", "task", "divisor", "slope", "cut", "compare")
    note = {name: getattr(trees, name) for name in names} | {"n_base_trees": n_based}
    helper.set_model_props(model, {"hardwood": json.dumps(note)})
    data: bytes = model.SerializeToString()
    return data


def _onnx_link(trees: Trees) -> Any:
    """The node that turns margins into the numbers of a regression."""
    from onnx import helper

    kinds = {"identity": "Identity", "exp": "Exp", "softplus": "Softplus", "logistic": "Sigmoid"}
    if trees.link not in kinds or trees.divisor != 1 or trees.slope != 1:
        raise UnsupportedModelError(
            f"to_onnx cannot express the link {trees.link!r} with divisor={trees.divisor:g} and "
            f"slope={trees.slope:g}; save_model can."
        )
    return helper.make_node(kinds[trees.link], ["margin"], ["mean"])


def _last_left(trees: Trees) -> FloatArray:
    """The largest double that goes left in each split."""
    before: FloatArray = np.nextafter(np.asarray(core_of(trees).edges()), -np.inf)
    return np.maximum(before, -np.finfo(np.float64).max)
