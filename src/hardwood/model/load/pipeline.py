"""A scikit-learn Pipeline of scalers and a tree model, as trees that take the rows before scaling.

A scaler that never falls keeps the order of each column, so "scaled x < threshold" is "x < the
first double that is scaled to the threshold or beyond". That double is found by bisection through
the scaler's own arithmetic: there is no rounding left to think about, and a threat is stated in the
units of the data.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hardwood._check import FLOAT32_MAX, FloatArray
from hardwood.errors import UnsupportedModelError
from hardwood.model.decision import last_float
from hardwood.model.load.gate import Witness
from hardwood.model.trees import LEAF, Trees, refuse_categories

# Subtract, divide, multiply, clip: in floats, too, none of these changes the order of two numbers.
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


def speaks(source: Any) -> bool:
    """Whether the object is a Pipeline; scikit-learn itself is not imported to find out."""
    return type(source).__module__ == "sklearn.pipeline" and type(source).__name__ == "Pipeline"


def load(source: Any, load_last: Callable[[Any], tuple[Trees, Witness]]) -> tuple[Trees, Witness]:
    """Read the last step and bring its thresholds before the scalers."""
    scalers = [step for _, step in source.steps[:-1] if step not in (None, "passthrough")]
    for scaler in scalers:
        _check_scaler(scaler)
    trees, witness = load_last(source.steps[-1][1])
    if not scalers:
        return trees, witness
    refuse_categories(trees, "a Pipeline with scalers")

    def scale(X: FloatArray) -> FloatArray:
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            for scaler in scalers:
                X = scaler.transform(X)
        return np.ascontiguousarray(X, dtype=np.float64)

    def accepts(X: FloatArray) -> npt.NDArray[np.bool_]:
        too_large = np.abs(scale(X)) > FLOAT32_MAX
        return witness.accepts(scale(X)) & ~too_large.any(axis=1)

    names = getattr(scalers[0], "feature_names_in_", None)
    state = trees.__getstate__()
    state["threshold"] = _before(trees, scale)
    state["feature_names"] = trees.feature_names if names is None else list(names)
    leaf, label, predict = witness.leaf, witness.label, witness.predict
    return Trees(**state), replace(
        witness,
        name=f"Pipeline with {witness.name}",
        margin=lambda X: witness.margin(scale(X)),
        leaf=None if leaf is None else lambda X: leaf(scale(X)),
        label=None if label is None else lambda X: label(scale(X)),
        predict=None if predict is None else lambda X: predict(scale(X)),
        accepts=accepts,
        infinite=False,
    )


def _check_scaler(scaler: Any) -> None:
    kind = type(scaler)
    if not kind.__module__.startswith("sklearn.preprocessing.") or kind.__name__ not in SCALERS:
        raise UnsupportedModelError(
            f"This Pipeline has the step {kind.__name__}, which load_model cannot look through; it "
            f"knows {', '.join(SCALERS)}. Pass the tree model itself, and rows as it sees them."
        )
    if not hasattr(scaler, "n_features_in_"):
        raise ValueError(f"This Pipeline's {kind.__name__} is not fitted yet; call fit first.")
    factor = scaler.scale_
    if factor is not None and not np.all(factor > 0):
        column = int(np.argmin(factor > 0))
        raise UnsupportedModelError(
            f"This Pipeline's {kind.__name__} scales column {column} by {factor[column]}, which "
            f"does not keep its order. Scale by positive numbers."
        )


def _before(trees: Trees, scale: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """For each split the first double that, scaled, does not go left; infinity if there is none."""
    edge = np.asarray(trees._core.edges())
    split = np.flatnonzero(trees.feature != LEAF)
    threshold = np.zeros(trees.n_nodes)
    if len(split) == 0:
        return threshold
    # Column by column, the distinct edges of a feature; all are bisected at once.
    distinct = [np.unique(edge[split[trees.feature[split] == f]]) for f in range(trees.n_features)]
    table = np.full((max(map(len, distinct)), trees.n_features), np.inf)
    for f, edges in enumerate(distinct):
        table[: len(edges), f] = edges
    last_left = last_float(lambda x: scale(x) < table, np.float64, table.shape, FLOAT32_MAX)
    first = np.nextafter(last_left, np.inf)
    first = np.where(first > FLOAT32_MAX, np.inf, np.where(np.isinf(last_left), -np.inf, first))
    for f, edges in enumerate(distinct):
        at = split[trees.feature[split] == f]
        threshold[at] = first[np.searchsorted(edges, edge[at]), f]
    return threshold
