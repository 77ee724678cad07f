"""ONNX: files and models whose work is done by one tree ensemble of ``ai.onnx.ml``."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import BoolArray, FloatArray
from hardwood.errors import ModelFileError, UnsupportedModelError
from hardwood.model.decision import LINKS, TASKS, Link, Task
from hardwood.model.load.gate import Reference, positions
from hardwood.model.trees import LEAF, Trees

_MAX_OUTPUTS = 100_000
_MAX_VALUES = 2**19  # a leaf may hold so many in all, beside those that the file lists

_KINDS = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")
_LINKS: dict[str, Link] = {"NONE": "identity", "LOGISTIC": "logistic", "SOFTMAX": "softmax"}
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE", "BRANCH_EQ")
_MAX_CATEGORIES = 2**24  # so many whole numbers float32 tells apart
_FLOAT, _DOUBLE = 1, 11  # TensorProto's numbers


def can_load(source: Any) -> bool:
    """Whether this file can read the object; onnx itself is not imported to find out."""
    return type(source).__name__ == "ModelProto" and hasattr(source, "SerializeToString")


def can_load_bytes(data: bytes) -> bool:
    """Whether a file is ONNX: it begins with the field of its version."""
    return data[:1] == b"\x08"


def load(source: Any) -> tuple[Trees, Reference]:
    """Read a model, or the bytes of a file; a runtime for ONNX is the reference."""
    proto = _parse(source if isinstance(source, bytes) else source.SerializeToString())
    node, dtype = _ensemble(proto)
    trees, column = _read(node, dtype, proto)
    return trees, _reference(proto, node, dtype, trees, column)


def load_bytes(data: bytes) -> Trees:
    """Read a file's bytes; nobody is asked."""
    proto = _parse(data)
    node, dtype = _ensemble(proto)
    return _read(node, dtype, proto)[0]


def _parse(data: bytes) -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError("ONNX files need onnx. Install it with: pip install onnx") from None
    from google.protobuf.message import DecodeError

    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelFileError(f"The file is not ONNX, or it is cut: {error}.") from None


def _ensemble(proto: Any) -> tuple[Any, Any]:
    """The one node that holds trees, fed by the input itself, and the precision of the input."""
    nodes = [n for n in proto.graph.node if n.op_type in _KINDS and n.domain == "ai.onnx.ml"]
    if len(nodes) != 1:
        found = ", ".join(sorted({str(n.op_type) for n in proto.graph.node})) or "nothing"
        raise UnsupportedModelError(
            f"load_model reads ONNX models with one {' or '.join(_KINDS)}; this one has "
            f"{len(nodes)} of them, and consists of {found[:200]}."
        )
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [given for given in proto.graph.input if given.name not in constants]
    if len(inputs) != 1 or list(nodes[0].input) != [inputs[0].name]:
        raise UnsupportedModelError(
            f"The {nodes[0].op_type} of this ONNX model does not read the model's own input but "
            f"{', '.join(map(str, nodes[0].input))[:80]!r}. Export the tree model alone."
        )
    kind = inputs[0].type.tensor_type.elem_type
    if kind not in (_FLOAT, _DOUBLE):
        raise UnsupportedModelError("The input of this ONNX model must be of floats or doubles.")
    return nodes[0], np.float32 if kind == _FLOAT else np.float64


class _Attributes:
    """What a node says, by name; lists of the right type only."""

    def __init__(self, node: Any) -> None:
        self.of = {attribute.name: attribute for attribute in node.attribute}

    def text(self, name: str, default: str) -> str:
        return self.of[name].s.decode(errors="replace") if name in self.of else default

    def texts(self, name: str) -> npt.NDArray[Any]:
        given = self.of[name].strings if name in self.of else ()
        return np.array([text.decode(errors="replace") for text in given], dtype=str)

    def number(self, name: str, default: int) -> int:
        return int(self.of[name].i) if name in self.of else default

    def integers(self, name: str, size: int | None = None) -> npt.NDArray[np.int64]:
        numbers = np.array(self.of[name].ints if name in self.of else (), dtype=np.int64)
        return self._sized(name, numbers, size)

    def floats(self, name: str, size: int | None = None) -> npt.NDArray[Any]:
        """Float32, or doubles from the tensor that some operators offer beside."""
        tensor = self.of.get(f"{name}_as_tensor")
        if tensor is None:
            given = self.of[name].floats if name in self.of else ()
            return self._sized(name, np.array(given, dtype=np.float32), size)
        from onnx import numpy_helper

        try:
            numbers = numpy_helper.to_array(tensor.t)
        except Exception as error:  # it raises whatever numpy and protobuf raise
            raise ModelFileError(f"{name}_as_tensor in the ONNX file: {error}.") from None
        if numbers.ndim != 1 or numbers.dtype not in (np.float32, np.float64):
            raise ModelFileError(f"{name}_as_tensor in the ONNX file must be a list of floats.")
        return self._sized(name, numbers, size)

    def _sized(self, name: str, array: npt.NDArray[Any], size: int | None) -> npt.NDArray[Any]:
        if size is not None and len(array) != size:
            raise ModelFileError(f"{name} in the ONNX file has {len(array)} entries, not {size}.")
        return array


def _read(node: Any, dtype: Any, proto: Any) -> tuple[Trees, int | None]:
    """Trees, and in which column of the node's scores the margin is, if there are two."""
    given = _Attributes(node)
    nodes = _Nodes(given, dtype)
    n_trees = int(nodes.tree[-1]) + 1 if len(nodes.tree) else 0
    transform = given.text("post_transform", "NONE")
    if transform not in _LINKS:
        raise UnsupportedModelError(
            f'This ONNX model has post_transform="{transform[:40]}"; load_model knows '
            f"{', '.join(_LINKS)}."
        )
    link = _LINKS[transform]
    classes, cut, column = None, None, None
    about = _own_note(proto)
    if node.op_type == "TreeEnsembleRegressor":
        prefix, n_outputs = "target", given.number("n_targets", 1)
        task: Task = "regression" if n_outputs == 1 else "raw"
    else:
        prefix, classes, task = "class", _labels(given), "classification"
        n_outputs = len(classes)
    output = given.integers(f"{prefix}_ids")
    weight = given.floats(f"{prefix}_weights", len(output))
    if prefix == "class" and n_outputs == 2:
        if len(np.unique(output)) > 1:
            raise UnsupportedModelError(
                "This ONNX model votes for each of two classes; load_model reads votes for one of "
                "them, which is how exporters write them."
            )
        # One score; where no leaf is negative, it is taken for a share, and half of all decides.
        output, n_outputs, column = np.zeros_like(output), 1, 1
        cut = 0.5 if np.all(weight >= 0) else 0.0
    if link == "logistic" and n_outputs > 1:
        link = "one_vs_rest"
    if not 1 <= n_outputs <= _MAX_OUTPUTS:
        raise ModelFileError(f"n_targets in the ONNX file must be 1 to {_MAX_OUTPUTS}.")
    average = given.text("aggregate_function", "SUM")
    if average not in ("SUM", "AVERAGE"):
        raise UnsupportedModelError(
            f'This ONNX model has aggregate_function="{average[:40]}"; load_model knows SUM and '
            f"AVERAGE."
        )
    share = 1 if average == "SUM" else max(n_trees, 1)
    at = nodes.find(
        given.integers(f"{prefix}_treeids", len(output)),
        given.integers(f"{prefix}_nodeids", len(output)),
    )
    if np.any(nodes.arrays["feature"][at] != LEAF):
        raise ModelFileError(f"{prefix}_nodeids in the ONNX file names nodes that are no leaves.")
    value, first = _values(nodes, at, output, weight.astype(dtype) / dtype(share), n_outputs)
    base = given.floats("base_values")
    if len(base) == 0:
        base = np.zeros(n_outputs)
    if len(base) != n_outputs:
        raise UnsupportedModelError(
            f"This ONNX model has {len(base)} base values for {n_outputs} scores."
        )
    arrays: dict[str, Any] = {
        **nodes.arrays,
        "value": value,
        "tree_start": np.searchsorted(nodes.tree, np.arange(n_trees + 1)),
        "tree_output": first,
    }
    if base.any():
        arrays, base = _with_last(arrays, base.astype(dtype)), np.zeros(n_outputs)
    if about:
        arrays, base = _without_first(arrays, base, about.pop("n_base_trees"))
    trees = Trees(
        **arrays,
        base=base,
        n_features=_n_features(proto),
        classes=classes,
        **(about or {"link": link, "task": task, "cut": cut, "compare": "margin"}),
    )
    return trees, column


def _with_last(arrays: dict[str, Any], base: npt.NDArray[Any]) -> dict[str, Any]:
    """The same trees and the base, as trees of one leaf: onnxruntime adds it after all others."""
    several = arrays["value"].ndim == 2
    n = 1 if several else len(base)
    start, n_categories = arrays["tree_start"], arrays["category_start"][-1]
    ends = {
        "feature": np.full(n, LEAF),
        "threshold": np.zeros(n),
        "left": np.full(n, LEAF),
        "right": np.full(n, LEAF),
        "missing_left": np.zeros(n, dtype=bool),
        "category_start": np.full(n, n_categories),
        "value": base[None] if several else base,
        "tree_start": start[-1] + np.arange(1, n + 1),
        "tree_output": np.arange(n),
    }
    return {
        name: of
        if of is None or name not in ends
        else np.concatenate([of, ends[name].astype(of.dtype)])
        for name, of in arrays.items()
    }


def _without_first(
    arrays: dict[str, Any], base: npt.NDArray[Any], n: int
) -> tuple[dict[str, Any], npt.NDArray[Any]]:
    """The base that `Trees.to_onnx` wrote as the first so many trees, and the trees without it."""
    start = arrays["tree_start"]
    if n >= len(start) or start[n] != n:
        raise ModelFileError(f"The ONNX file has no {n} trees of one leaf, as its note says.")
    value, output = arrays["value"][:n].astype(np.float64), arrays["tree_output"]
    base = base.astype(np.float64)
    if output is None:
        base += value.sum(axis=0)
    else:
        np.add.at(base, output[:n], value)
    rest = {name: of if of is None else of[n:] for name, of in arrays.items() if name != "category"}
    rest["tree_start"] = start[n:] - n
    return {**rest, "category": arrays["category"]}, base


def _own_note(proto: Any) -> dict[str, Any] | None:
    """What `Trees.to_onnx` says of task, link and decision, in a model that it wrote."""
    text = next((entry.value for entry in proto.metadata_props if entry.key == "hardwood"), None)
    if text is None:
        return None
    try:
        note = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFileError(
            "hardwood's note in the ONNX file is not JSON, or it is cut."
        ) from None
    names = ("link", "task", "divisor", "slope", "cut", "compare", "n_base_trees")
    if not isinstance(note, dict) or sorted(note) != sorted(names):
        raise ModelFileError(f"hardwood's note in the ONNX file must have {', '.join(names)}.")
    numbers = all(type(note[name]) in (int, float) for name in ("divisor", "slope", "cut"))
    numbers &= type(note["n_base_trees"]) is int and note["n_base_trees"] >= 0
    if note["link"] not in LINKS or note["task"] not in TASKS or not numbers:
        raise ModelFileError("hardwood's note in the ONNX file names no link, task or number.")
    return note


class _Nodes:
    """The nodes in our order: trees as they appear, nodes as they appear, the root first.

    ``arrays`` are those of `Trees`, ``tree`` is the tree of each node.
    """

    def __init__(self, given: _Attributes, dtype: Any) -> None:
        ids, names = given.integers("nodes_nodeids"), given.integers("nodes_treeids")
        n = len(ids)
        mode, feature = given.texts("nodes_modes"), given.integers("nodes_featureids", n)
        if len(mode) != n or len(names) != n:
            raise ModelFileError("nodes_modes, nodes_treeids and nodes_nodeids differ in length.")
        leaf = mode == "LEAF"
        self._refuse_modes(mode, leaf, names, ids)
        self._place: dict[tuple[int, int], int] = {}
        for at, pair in enumerate(zip(names.tolist(), ids.tolist(), strict=True)):
            if self._place.setdefault(pair, at) != at:
                raise ModelFileError(f"The ONNX file has node {pair[1]} of tree {pair[0]} twice.")
        self._moved = np.arange(n)
        child = {}
        for side in ("true", "false"):
            ends = given.integers(f"nodes_{side}nodeids", n)
            child[side] = np.zeros(n, dtype=np.int64)
            child[side][~leaf] = self.find(names[~leaf], ends[~leaf])
        number: dict[int, int] = {}
        tree = np.array([number.setdefault(t, len(number)) for t in names.tolist()], dtype=np.int64)
        order = np.argsort(tree, kind="stable")
        self._moved = np.argsort(order)
        self.tree, leaf, mode = tree[order], leaf[order], mode[order]
        start = np.searchsorted(self.tree, self.tree)
        true, false = (
            np.where(leaf, LEAF, self._moved[child[side][order]] - start) if n else order
            for side in ("true", "false")
        )
        # x > t is not x <= t, and x <= t is x < the float after t; a listed category goes right.
        equal = mode == "BRANCH_EQ"
        swap = equal | np.isin(mode, ("BRANCH_GT", "BRANCH_GTE"))
        threshold = given.floats("nodes_values", n)[order].astype(dtype)
        beyond = np.nextafter(threshold, dtype(np.inf))
        threshold = np.where(np.isin(mode, ("BRANCH_LEQ", "BRANCH_GT")), beyond, threshold)
        tracks = "nodes_missing_value_tracks_true"
        missing_true = given.integers(tracks, n if tracks in given.of else 0) != 0
        missing_true = missing_true[order] if len(missing_true) else np.zeros(n, dtype=bool)
        if np.any(feature[order][~leaf] < 0):
            raise ModelFileError("nodes_featureids in the ONNX file must not be negative.")
        self._refuse_numbers(feature[order], threshold, equal, leaf)
        self.arrays = {
            "feature": np.where(leaf, LEAF, feature[order]),
            "threshold": np.where(leaf | equal, dtype(0), threshold),
            "category_start": np.concatenate([[0], np.cumsum(equal)]),
            "category": threshold[equal].astype(np.int32),
            "left": np.where(swap, false, true),
            "right": np.where(swap, true, false),
            "missing_left": (missing_true != swap) & ~leaf,
        }

    def find(
        self, tree: npt.NDArray[np.int64], node: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Where nodes lie that are named by tree and id."""
        pairs = zip(tree.tolist(), node.tolist(), strict=True)
        found = np.array([self._place.get(pair, -1) for pair in pairs], dtype=np.int64)
        if np.any(found < 0):
            at = int(np.argmin(found))
            raise ModelFileError(f"The ONNX file has no node {node[at]} in tree {tree[at]}.")
        return self._moved[found] if len(found) else found

    @staticmethod
    def _refuse_modes(
        mode: npt.NDArray[Any],
        leaf: BoolArray,
        names: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int64],
    ) -> None:
        unknown = ~leaf & ~np.isin(mode, _MODES)
        if unknown.any():
            at = int(np.argmax(unknown))
            raise UnsupportedModelError(
                f"Tree {names[at]}, node {ids[at]} of this ONNX model is of mode "
                f"{str(mode[at])[:40]!r}; load_model knows {', '.join(_MODES)}."
            )

    @staticmethod
    def _refuse_numbers(
        feature: npt.NDArray[np.int64],
        value: npt.NDArray[Any],
        equal: BoolArray,
        leaf: BoolArray,
    ) -> None:
        """Only categories are asked for equality: whole numbers that no split puts in order."""
        whole = (value == np.trunc(value)) & (value >= 0) & (value < _MAX_CATEGORIES)
        ordered = np.isin(feature, feature[~equal & ~leaf])
        odd = equal & (~whole | ordered)
        if odd.any():
            at = int(np.argmax(odd))
            why = "compares it as a number, too" if ordered[at] else "that is no category"
            raise UnsupportedModelError(
                f"This ONNX model asks by BRANCH_EQ whether column {feature[at]} is {value[at]:g}, "
                f"but {why}; load_model takes the columns of BRANCH_EQ for categories, which are "
                f"whole numbers from 0 on."
            )


def _labels(given: _Attributes) -> npt.NDArray[Any]:
    """The classes; strings if there are any, else whole numbers."""
    texts = given.texts("classlabels_strings")
    labels = texts if len(texts) else given.integers("classlabels_int64s")
    if not 2 <= len(labels) <= _MAX_OUTPUTS:
        raise ModelFileError(f"The ONNX file has {len(labels)} labels, not 2 to {_MAX_OUTPUTS}.")
    return labels


def _values(
    nodes: _Nodes,
    at: npt.NDArray[np.int64],
    output: npt.NDArray[np.int64],
    weight: npt.NDArray[Any],
    n_outputs: int,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
    """Values of all nodes, and the output of each tree if its leaves agree on one."""
    if np.any((output < 0) | (output >= n_outputs)):
        raise ModelFileError(f"The ONNX file has weights for outputs beyond 0 to {n_outputs - 1}.")
    n, n_trees = len(nodes.tree), int(nodes.tree[-1]) + 1 if len(nodes.tree) else 0
    first = np.zeros(n_trees, dtype=np.int64)
    first[nodes.tree[at]] = output
    if np.array_equal(first[nodes.tree[at]], output):
        single = np.zeros(n, dtype=weight.dtype)
        np.add.at(single, at, weight)
        return single, first
    if n * n_outputs > max(_MAX_VALUES, 64 * len(weight)):
        raise ModelFileError(
            f"The ONNX file has {n} nodes and {n_outputs} outputs but only {len(weight)} weights."
        )
    value = np.zeros((n, n_outputs), dtype=weight.dtype)
    np.add.at(value, (at, output), weight)
    return value, None


def _n_features(proto: Any) -> int | None:
    """What the input's shape says, if it says so."""
    for given in proto.graph.input:
        sizes = given.type.tensor_type.shape.dim
        if len(sizes) == 2 and 0 < sizes[1].dim_value < 2**31:
            return int(sizes[1].dim_value)
    return None


def _reference(proto: Any, node: Any, dtype: Any, trees: Trees, column: int | None) -> Reference:
    """The ensemble alone for margins, without what turns its scores into probabilities."""
    import onnx

    bare = onnx.ModelProto()
    bare.CopyFrom(proto)
    del bare.graph.node[:], bare.graph.output[:], bare.graph.value_info[:]
    del bare.graph.initializer[:]
    alone = bare.graph.node.add()
    alone.CopyFrom(node)
    for attribute in alone.attribute:
        if attribute.name == "post_transform":
            attribute.s = b"NONE"
    scores = node.output[-1]
    kind = onnx.TensorProto.FLOAT if column is not None or dtype is np.float32 else _DOUBLE
    bare.graph.output.append(onnx.helper.make_tensor_value_info(scores, kind, None))
    run = _runtime(bare)

    def margin(X: FloatArray) -> FloatArray:
        given = np.asarray(run([scores], {bare.graph.input[0].name: X.astype(dtype)})[0])
        given = given.astype(np.float64).reshape(len(X), -1)
        return given if column is None else given[:, [column]]

    # Labels come from the model as it is: from the node, or from what our own export puts behind.
    said = node.output[0] if node.op_type == "TreeEnsembleClassifier" else "label"
    tells = trees.tells_labels and said in {output.name for output in proto.graph.output}
    whole = _runtime(proto) if tells else run

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        given = np.asarray(whole([said], {bare.graph.input[0].name: X.astype(dtype)})[0])
        return positions(
            given, np.arange(trees.n_classes) if trees.classes is None else trees.classes
        )

    # Runtimes add in an order of their own.
    return Reference("ONNX model", margin, exact=False, label=label if tells else None)


def _runtime(proto: Any) -> Callable[..., Any]:
    """Onnxruntime if it is there, else onnx's own reference."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        reference: Callable[..., Any] = ReferenceEvaluator(proto).run
        return reference
    # On several threads the order in which it adds depends on how many rows it is given at once.
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # it has many of its own
        raise UnsupportedModelError(f"onnxruntime refuses this ONNX model: {error}") from None
    run: Callable[..., Any] = session.run
    return run
