"""XGBoost: boosters, scikit-learn wrappers, and documents read from .json and .ubj files."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model import ubjson
from hardwood.model.decision import Task
from hardwood.model.load.gate import Reference
from hardwood.model.trees import Trees
from hardwood.model.xgboost.read import check_type, get, integer, read


def can_load(source: Any) -> bool:
    """Whether this file can read the object; xgboost itself is not imported to find out."""
    return type(source).__module__.split(".")[0] == "xgboost"


def can_load_document(document: dict[str, Any]) -> bool:
    """Whether a document is XGBoost's."""
    return "learner" in document


def load(source: Any) -> tuple[Trees, Reference]:
    """Read a Booster or a wrapper; a wrapper predicts with its best iteration, and so do we."""
    booster, name = source, type(source).__name__
    classes, n_rounds = None, 0
    if hasattr(source, "get_booster"):
        booster = source.get_booster()
        missing = source.missing
        if not (isinstance(missing, float) and math.isnan(missing)):
            raise UnsupportedModelError(
                f"This {name} takes missing={missing!r} for a missing value. Replace it by NaN in "
                f"the data and set missing=nan."
            )
        classes = getattr(source, "classes_", None)
        n_rounds = _best_rounds(booster.attributes())
    elif not hasattr(booster, "save_raw"):
        raise UnsupportedModelError(f"load_model cannot read xgboost's {name}; pass the model.")
    document = ubjson.decode(bytes(booster.save_raw("ubj")))
    trees, node_ids = read(document, n_rounds, classes, _task_of(name))
    # Our own models take zeros for zeros, but not when xgboost runs them.
    trees = trees.replace(sparse_missing=True)
    return trees, _reference(source, booster, trees, node_ids, n_rounds)


def load_document(document: dict[str, Any]) -> Trees:
    """Read a file's document; one that a wrapper saved is cut at its best iteration, as there."""
    attributes = get(get(document, "learner", dict), "attributes", dict, {})
    if "scikit_learn" not in attributes:
        return read(document, 0)[0]
    # The wrapper that saved the file leaves its kind in it.
    about = check_type("scikit_learn", attributes["scikit_learn"], str)
    kind = [k for k in ("Classifier", "Regressor", "Ranker") if f'"{k.lower()}"' in about]
    return read(document, _best_rounds(attributes), None, _task_of("".join(kind)))[0]


def _task_of(wrapper: str) -> Task | None:
    """What a wrapper makes of any objective; None for a Booster."""
    ends: dict[str, Task] = {
        "Classifier": "classification",
        "Regressor": "regression",
        "Ranker": "raw",
    }
    return next((task for end, task in ends.items() if wrapper.endswith(end)), None)


def _best_rounds(attributes: dict[str, Any]) -> int:
    """Rounds up to the best one, 0 if early stopping named none."""
    best = attributes.get("best_iteration")
    return 0 if best is None else integer("best_iteration", best) + 1


def _reference(
    source: Any,
    booster: Any,
    trees: Trees,
    node_ids: list[npt.NDArray[np.int64] | None],
    n_rounds: int,
) -> Reference:
    import xgboost

    def ask(X: FloatArray, dtype: Any, **what: bool) -> npt.NDArray[Any]:
        # Not inplace_predict: with DART, it rounds differently.
        given = booster.predict(
            xgboost.DMatrix(X), iteration_range=(0, n_rounds), validate_features=False, **what
        )
        return np.asarray(given, dtype=dtype).reshape(len(X), -1)

    def margin(X: FloatArray) -> FloatArray:
        return ask(X, np.float64, output_margin=True)

    def leaf(X: FloatArray) -> npt.NDArray[np.int64]:
        found = ask(X, np.int64, pred_leaf=True)
        for k, ids in enumerate(node_ids):
            if ids is not None:
                found[:, k] = np.searchsorted(ids, found[:, k])
        return found

    def predict(X: FloatArray) -> FloatArray:
        return ask(X, np.float64)

    def label(X: FloatArray) -> npt.NDArray[np.int64]:
        if source is not booster and not len(trees.categorical_features):
            return np.asarray(source.predict(X, validate_features=False)).astype(np.int64).ravel()
        given = predict(X)
        if trees.n_outputs == 1 or given.shape[1] == 1:  # multi:softmax predicts labels
            return (given[:, 0] > 0.5 if trees.n_outputs == 1 else given[:, 0]).astype(np.int64)
        largest: npt.NDArray[np.int64] = np.argmax(given, axis=1)
        return largest

    return Reference(
        type(source).__name__,
        margin,
        # In our own files, trees and nodes can be others than xgboost's.
        leaf if len(node_ids) == trees.n_trees else None,
        label=label if trees.tells_labels else None,
        predict=None if trees.compare == "margin" and trees.n_outputs > 1 else predict,
        sparse_missing=True,
        dtype=np.float32,
    )
