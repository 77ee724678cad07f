"""The one door for models: anything with trees in, `Trees` out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hardwood.errors import UnsupportedModelError
from hardwood.model import file
from hardwood.model.load import catboost, gate, lightgbm, onnx, pipeline, sklearn, xgboost
from hardwood.model.trees import Trees

_Loader = tuple[Callable[[Any], bool], Callable[[Any], tuple[Trees, gate.Witness]]]
_LOADERS: tuple[_Loader, ...] = (
    (sklearn.speaks, sklearn.load),
    (xgboost.speaks, xgboost.load),
    (lightgbm.speaks, lightgbm.load),
    (catboost.speaks, catboost.load),
    (onnx.speaks, onnx.load),
)


def load_model(source: Any, X: Any = None) -> Trees:
    """Turn a tree model into `Trees`.

    Parameters
    ----------
    source : object, str or Path
        A fitted model, or the name of a file:

        - an estimator of hardwood, `Trees` (which come back as they are), a file of `save_model`;
        - XGBoost: ``Booster`` and the wrappers ``XGBClassifier``, ``XGBRegressor``,
          ``XGBRFClassifier``, ``XGBRFRegressor``; ``.json`` and ``.ubj`` files;
        - LightGBM: ``Booster`` and its wrappers; ``.txt`` files;
        - CatBoost with numeric columns; ``.json`` files;
        - scikit-learn: decision and extra trees, random forests, ``GradientBoosting*``,
          ``HistGradientBoosting*``, ``Bagging*`` and ``AdaBoostClassifier`` of trees,
          ``IsolationForest``;
        - ONNX with one ``TreeEnsembleRegressor`` or ``TreeEnsembleClassifier`` that reads the input
          itself; ``.onnx`` files, which onnxruntime vouches for if it is there;
        - a scikit-learn ``Pipeline`` of such a model after scalers (``StandardScaler``,
          ``MinMaxScaler``, ``MaxAbsScaler``, ``RobustScaler``): the trees take rows as they are
          before scaling, as doubles, and so do threats.

        A model with early stopping is cut where its own predict cuts it.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows of yours on which a model object must agree with what was read, beside those that
        loading tries anyway. A file has nobody to ask.

    Returns
    -------
    Trees
        The same model: the same leaf for every row, rows on thresholds included.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> hw.load_model(tree)
    Trees(n_trees=1, n_leaves=3, n_features=4, n_outputs=3, x_dtype='float32', link='share')
    """
    return open_model(source, X)[0]


def open_model(source: Any, X: Any = None) -> tuple[Trees, gate.Witness | None]:
    """As `load_model`, with whom to ask what a foreign model itself says of rows."""
    if isinstance(source, str | Path):
        data = file.read(source)
        if not onnx.speaks_bytes(data):
            return load_bytes(data, repr(str(source))), None
        source = data  # an ONNX file can be asked itself
    own = _own(source)
    if own is not None:
        return own, None
    trees, witness = _load(source)
    rows = None if X is None else trees.rows(X)
    gate.check(trees, witness, rows)
    return trees, witness


def _load(source: Any) -> tuple[Trees, gate.Witness]:
    if isinstance(source, bytes):
        return onnx.load(source)
    if pipeline.speaks(source):
        return pipeline.load(source, _load)
    own = _own(source)
    if own is not None:
        return own, gate.Witness(type(source).__name__, own.margin)
    for speaks, load in _LOADERS:
        if speaks(source):
            return load(source)
    raise UnsupportedModelError(
        f"load_model cannot read {type(source).__module__}.{type(source).__name__}; it reads "
        f"hardwood's own estimators, Trees, models of XGBoost, LightGBM, CatBoost and ONNX, "
        f"scikit-learn's {', '.join(sklearn.READS)}, and a Pipeline of scalers and one of "
        f"these. From a search pass the fitted model itself."
    )


def _own(source: Any) -> Trees | None:
    """Trees, or those of an estimator of ours."""
    if isinstance(source, Trees):
        return source
    own = getattr(source, "trees_", None)
    if isinstance(own, Trees):
        return own
    if type(source).__module__.startswith("hardwood.") and hasattr(source, "fit"):
        raise ValueError(f"This {type(source).__name__} is not fitted yet; call fit first.")
    return None


def load_bytes(data: bytes, name: str = "the file") -> Trees:
    """Read the bytes of a model file; nobody vouches for them."""
    with np.errstate(all="ignore"):  # hostile numbers overflow; the core checks the results
        if onnx.speaks_bytes(data):
            return onnx.load_bytes(data)
        if lightgbm.speaks_text(data):
            return lightgbm.load_text(data)
        document = file.parse(data)
        if xgboost.speaks_document(document):
            return xgboost.load_document(document)
        if catboost.speaks_document(document):
            return catboost.load_document(document)
    raise UnsupportedModelError(
        f"load_model cannot read {name}; it reads files of hardwood, XGBoost, LightGBM, "
        f"CatBoost and ONNX."
    )
