"""The one door for models: anything with trees in, `Trees` out."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hardwood import _check
from hardwood.errors import UnsupportedModelError
from hardwood.model import file
from hardwood.model.decision import Task
from hardwood.model.load import (
    catboost,
    gate,
    lightgbm,
    onnx,
    pipeline,
    sklearn,
    wrappers,
    xgboost,
    xgboost_dump,
)
from hardwood.model.load.xgboost_dump import Unsaid
from hardwood.model.trees import Trees

_Loader = tuple[Callable[[Any], bool], Callable[[Any], tuple[Trees, gate.Reference]]]
_LOADERS: tuple[_Loader, ...] = (
    (sklearn.can_load, sklearn.load),
    (xgboost.can_load, xgboost.load),
    (lightgbm.can_load, lightgbm.load),
    (onnx.can_load, onnx.load),
)


def load_model(
    source: Any,
    X: Any = None,
    *,
    n_classes: int | None = None,
    base_score: float | None = None,
    task: Task | None = None,
    n_features: int | None = None,
) -> Trees:
    """Turn a tree model into `Trees`.

    Parameters
    ----------
    source : object, str or Path
        A fitted model, or the name of a file:

        - an estimator of hardwood, `Trees` (which come back as they are), a file of `save_model`;
        - XGBoost: ``Booster`` and the wrappers ``XGBClassifier``, ``XGBRegressor``,
          ``XGBRFClassifier``, ``XGBRFRegressor``; ``.json`` and ``.ubj`` files;
        - LightGBM: ``Booster`` and its wrappers; ``.txt`` files;
        - CatBoost; ``.json`` files, of numeric columns. A model with categories needs `X`, a frame
          that holds their names, symmetric trees, and ``max_ctr_complexity=1``;
        - scikit-learn: decision and extra trees, random forests, ``GradientBoosting*``,
          ``HistGradientBoosting*``, ``Bagging*`` and ``AdaBoostClassifier`` of trees,
          ``IsolationForest``;
        - ONNX with one ``TreeEnsembleRegressor`` or ``TreeEnsembleClassifier`` that reads the input
          itself; ``.onnx`` files, which onnxruntime vouches for if it is there;
        - a scikit-learn ``Pipeline`` that ends in such a model: the trees take rows as they are
          before its first step, categories and blanks included, and so do threats. Steps that map
          one column at a time are looked through: scalers, ``PowerTransformer``,
          ``QuantileTransformer``, ``KBinsDiscretizer``, ``Binarizer``, imputers, encoders,
          ``FunctionTransformer`` of a monotone function, ``ColumnTransformer``, ``FeatureUnion``;
        - ``GridSearchCV`` and its kin, ``FixedThresholdClassifier``,
          ``TunedThresholdClassifierCV`` and ``CalibratedClassifierCV(ensemble=False)`` around any
          of these.

        A model with early stopping is cut where its own predict cuts it. Also XGBoost's JSON
        *dump* (``Booster.dump_model(..., dump_format="json")``), which holds the trees alone.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Rows of yours on which a model object must agree with what was read, beside those that
        loading tries anyway. A file has nobody to ask.
    n_classes : int or None, default=None
        For a dump: the number of classes; None means two, or a regression.
    base_score : float or None, default=None
        For a dump: XGBoost's base score, for two classes a probability; None means 0.5.
    task : {"classification", "regression", "raw"} or None, default=None
        For a dump: what the sum of its trees means; None means a classification.
    n_features : int or None, default=None
        For a dump: the number of columns; None means those of `X`, or as many as the trees use.

    Returns
    -------
    Trees
        The same model: the same leaf for every row, rows on thresholds included, and the same
        labels, probabilities or predictions. ``metadata["checked_against_source"]`` is False for a
        dump, which nobody can vouch for.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> trees = hw.load_model(tree)
    >>> trees.n_leaves, trees.link, trees.task
    (3, 'share', 'classification')
    """
    return open_model(source, X, Unsaid(n_classes, base_score, task, n_features))[0]


def open_model(
    source: Any,
    X: Any = None,
    unsaid: Unsaid | None = None,
    *,
    like: Any = None,
    threshold: float | None = None,
) -> tuple[Trees, gate.Reference | None]:
    """As `load_model`, with whom to ask what a foreign model itself says of rows.

    `like` is a table that will be asked about: a dump does not know how many columns there are, and
    a model that was trained on an array does not know what they are called.
    `threshold` is the probability from which on the second of two classes is said.
    """
    _check.need_values(like if X is None else X)
    trees, reference = _open(source, X, unsaid, like)
    trees = _called_as(trees, like)
    return (
        (trees, reference) if threshold is None else wrappers.decide_at(trees, reference, threshold)
    )


def _called_as(trees: Trees, like: Any) -> Trees:
    """The model with names of its columns; one without takes those of the frame it is asked about.

    Such a model reads a frame in the frame's order, so these are the names that its user knows, and
    that a threat says.
    """
    names = None if like is None else _check.column_names(like)
    if names is None or trees.feature_names is not None or len(names) != trees.n_features:
        return trees
    return trees if len(set(names)) < len(names) else trees.replace(feature_names=names)


def _open(
    source: Any, X: Any, unsaid: Unsaid | None, like: Any
) -> tuple[Trees, gate.Reference | None]:
    if isinstance(source, str | Path):
        data = file.read(source)
        if xgboost_dump.can_load_bytes(data):
            unsaid = unsaid or Unsaid()
            shape = np.shape(like if X is None else X)
            if unsaid.n_features is None and len(shape) == 2:
                unsaid = replace(unsaid, n_features=shape[1])
            return load_bytes(data, repr(str(source)), unsaid), None
        if not onnx.can_load_bytes(data):
            _refuse_unsaid(unsaid)
            return load_bytes(data, repr(str(source))), None
        source = data  # an ONNX file can be asked itself
    _refuse_unsaid(unsaid)
    own = _own(source)
    if own is not None:
        return own, None
    trees, reference = _load(source, like if X is None else X)
    rows = None if X is None else trees.rows(X)
    gate.check(trees, reference, rows)
    gate.check_given(trees, reference, like if X is None else X)
    return trees, reference


def _load(source: Any, like: Any = None) -> tuple[Trees, gate.Reference]:
    if isinstance(source, bytes):
        return onnx.load(source)
    if pipeline.can_load(source):
        if catboost.can_load(source.steps[-1][1]):
            like = pipeline.after_steps(source, like)
        return pipeline.load(source, partial(_load, like=like))
    if wrappers.can_load(source):
        return wrappers.load(source, partial(_load, like=like))
    own = _own(source)
    if own is not None:
        return own, gate.own_reference(own, type(source).__name__)
    if catboost.can_load(source):  # keeps no names of its categories
        return catboost.load(source, like)
    for can_load, load in _LOADERS:
        if can_load(source):
            _refuse_one_class(source)
            return load(source)
    raise UnsupportedModelError(
        f"load_model cannot read {type(source).__module__}.{type(source).__name__}; it reads "
        f"hardwood's own estimators, Trees, models of XGBoost, LightGBM, CatBoost and ONNX, "
        f"scikit-learn's {', '.join(sklearn.READS)}, a Pipeline that ends in one of these, and "
        f"{', '.join(wrappers.WRAPPERS)} around them."
    )


def _refuse_one_class(source: Any) -> None:
    classes: Any = getattr(source, "classes_", ())
    if np.shape(classes) == (1,):
        raise UnsupportedModelError(
            f"This {type(source).__name__} was trained on one class, {np.array(classes).tolist()}: "
            f"it says the same of every row, and no change can fool it. Train it on two or more."
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


def _refuse_unsaid(unsaid: Unsaid | None) -> None:
    if unsaid:
        raise ValueError(
            f"n_classes={unsaid.n_classes}, base_score={unsaid.base_score}, task={unsaid.task!r} "
            f"and n_features={unsaid.n_features} are for XGBoost's JSON dumps; every other model "
            f"says them itself. Leave them out."
        )


def load_bytes(data: bytes, name: str = "the file", unsaid: Unsaid | None = None) -> Trees:
    """Read the bytes of a model file; nobody vouches for them."""
    with np.errstate(all="ignore"):  # hostile numbers overflow; the core checks the results
        if xgboost_dump.can_load_bytes(data):
            return xgboost_dump.load_bytes(data, unsaid or Unsaid())
        if onnx.can_load_bytes(data):
            return onnx.load_bytes(data)
        if lightgbm.can_load_text(data):
            return lightgbm.load_text(data)
        document = file.parse(data)
        if xgboost.can_load_document(document):
            return xgboost.load_document(document)
        if catboost.can_load_document(document):
            return catboost.load_document(document)
    raise UnsupportedModelError(
        f"load_model cannot read {name}; it reads files of hardwood, XGBoost, LightGBM, "
        f"CatBoost and ONNX."
    )
