"""What only hardwood knows of a model, in a note beside XGBoost's tables.

The trees are written as XGBoost's tables, so stock xgboost reads the file. The attribute
``hardwood`` holds a note (JSON) with everything the tables cannot say; ``docs/format`` describes
it. XGBoost's tables are the truth: a note that contradicts them is an error, and a note about other
trees (someone trained on) is not read.
"""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import Float32Array, FloatArray
from hardwood.errors import ModelFileError
from hardwood.model.columns import Columns
from hardwood.model.decision import LINKS, TASKS
from hardwood.model.trees import Trees, take_sets
from hardwood.model.xgboost.order import renumbered
from hardwood.model.xgboost.tables import Tables, factor_of, float32, float32_above, scaled
from hardwood.threat import Threat

FORMAT = 3
NOTE = "hardwood"
_CLASS_TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "str", "object"),
)


def note_of(
    trees: Trees,
    tables: Tables,
    n_base_trees: int,
    metadata: Mapping[str, Any] | None,
    place: npt.NDArray[np.int64] | None,
) -> dict[str, Any]:
    """What the tables cannot say; `place` is the position of each node before it was put there."""
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
    if trees.sparse_missing:
        note["sparse_missing"] = True
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
        elif not np.array_equal(float32(array), array) or (
            name == "value" and factor_of(trees) != 1
        ):
            note[name] = base64.b64encode(array.astype("<f8").tobytes()).decode()
    if place is not None:
        start = np.repeat(trees.tree_start[:-1], np.diff(trees.tree_start))
        back = np.empty(trees.n_nodes, dtype="<i4")
        back[start + place] = np.arange(trees.n_nodes) - start
        note["node"] = base64.b64encode(back.tobytes()).decode()
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
    return trees if "node" not in note else renumbered(trees, _places(note["node"], trees))


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
    if not np.array_equal(scaled(base, factor), tables.base):
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
        if not np.array_equal(scaled(exact_value, factor), value):
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
        sparse_missing=_typed("sparse_missing", note.get("sparse_missing", False), bool),
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


def _as(dtype: Any, tables: Float32Array, exact: FloatArray | None) -> npt.NDArray[Any]:
    return (tables if exact is None else exact).astype(dtype)


def _known(note: dict[str, Any], name: str, tables: Float32Array) -> npt.NDArray[Any] | None:
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
