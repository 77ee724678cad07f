"""The robust twin of a model: the same size, trained on the same raw columns."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

from hardwood import _check
from hardwood.errors import UnsupportedModelError
from hardwood.estimators.boosting import (
    RobustGradientBoostingClassifier,
    RobustGradientBoostingRegressor,
)
from hardwood.estimators.forest import RobustRandomForestClassifier
from hardwood.estimators.tree import RobustDecisionTreeClassifier
from hardwood.hardening.source import Recipe, recipe_of
from hardwood.threat import Threat, threat_of

_ESTIMATORS: dict[str, Any] = {
    "boosting": RobustGradientBoostingClassifier,
    "regression": RobustGradientBoostingRegressor,
    "tree": RobustDecisionTreeClassifier,
    "forest": RobustRandomForestClassifier,
}


def harden(
    model: Any, X: Any, y: Any, threat: Threat | float, *, sample_weight: Any = None, **changes: Any
) -> BaseEstimator:
    """Train the robust twin of a fitted model.

    Parameters
    ----------
    model : object
        A fitted model of XGBoost, LightGBM, CatBoost or scikit-learn, or a pipeline, search or
        calibration around one. Its size is read from it: trees or rounds, depth or leaves, learning
        rate, regularisation, sampling, class weights and objective.
    X : array-like of shape (n_samples, n_features)
        Training rows, in the columns that `model` itself takes: for a pipeline, the raw ones.
        Categories are taken as they are, and missing values, too.
    y : array-like of shape (n_samples,)
        Labels, or numbers.
    threat : Threat or number
        What the twin has to stand; a number is ``Threat(eps=number)``.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows.
    **changes
        Parameters of the twin that shall differ, such as ``max_depth=8`` or ``inner="exact"``.

    Returns
    -------
    estimator
        Fitted: `RobustGradientBoostingClassifier` or `RobustGradientBoostingRegressor` for boosted
        models, `RobustRandomForestClassifier` for forests, `RobustDecisionTreeClassifier` for a
        tree. It takes the same tables as `model`. Columns that a `ColumnTransformer` drops are
        dropped: the twin is then a pipeline, and questions about categories are put to its last
        step, ``twin[-1]``, and the columns that are left.

    Notes
    -----
    The pipeline's own steps are not repeated: thresholds do not care about monotone scaling,
    categories and missing values have their sides, and only in raw columns does the threat mean
    what it says.

    Examples
    --------
    >>> import hardwood as hw
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> model = HistGradientBoostingClassifier(max_iter=20, max_depth=4).fit(X, y)
    >>> twin = hw.harden(model, X, y, threat=0.05)
    >>> twin.n_estimators_, twin.max_depth
    (20, 4)
    >>> before, after = (hw.certify(m, X[:100], y[:100], 0.05) for m in (model, twin))
    >>> before.certified_accuracy < after.certified_accuracy
    True
    """
    threat = threat_of(threat)
    _check_width(model, X)
    core, kept = _inside(model)
    recipe = recipe_of(core)
    estimator = _estimator(recipe, threat, changes)
    dropped = kept is not None and len(kept) < _width(X)
    if not dropped:
        return estimator.fit(X, y, sample_weight=sample_weight)
    choose = ColumnTransformer([("kept", "passthrough", kept)], verbose_feature_names_out=False)
    choose.set_output(transform="pandas" if hasattr(X, "iloc") else "polars")
    twin = make_pipeline(choose, estimator)
    weights = {f"{twin.steps[-1][0]}__sample_weight": sample_weight}
    return twin.fit(X, y, **({} if sample_weight is None else weights))


def _estimator(recipe: Recipe, threat: Threat, changes: dict[str, Any]) -> Any:
    made = _ESTIMATORS[recipe.kind](threat=threat)
    known = made.get_params()
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise ValueError(
            f"harden was asked to change {unknown[0]!r}, which is no parameter of "
            f"{type(made).__name__}; it has {', '.join(sorted(known))}."
        )
    return made.set_params(**{**recipe.parameters, **changes})


def _inside(model: Any) -> tuple[Any, list[Any] | None]:
    """The model inside pipelines and wrappers, and the columns that its pipeline keeps."""
    kept: list[Any] | None = None
    while True:
        if isinstance(model, Pipeline):
            check_is_fitted(model)
            for _, step in model.steps[:-1]:
                if isinstance(step, ColumnTransformer) and kept is None:
                    kept = _kept(step)
                elif kept is None and step not in (None, "passthrough") and _selects(step):
                    raise UnsupportedModelError(
                        f"The step {type(step).__name__} of this pipeline chooses columns by their "
                        f"data; harden keeps the columns that a ColumnTransformer names. Harden "
                        f"the last step on the columns that are left."
                    )
            model = model.steps[-1][1]
            continue
        inner = next(
            (
                getattr(model, name)
                for name in ("best_estimator_", "estimator_")
                if type(model).__module__.startswith("sklearn.model_selection")
                and hasattr(model, name)
            ),
            None,
        )
        if inner is None and type(model).__name__ == "CalibratedClassifierCV":
            inner = model.calibrated_classifiers_[0].estimator
        if inner is None and type(model).__name__ == "FrozenEstimator":
            inner = model.estimator
        if inner is None:
            return model, kept
        model = inner


def _selects(step: Any) -> bool:
    return hasattr(step, "get_support")


def _kept(transformer: ColumnTransformer) -> list[Any]:
    """The columns that a ColumnTransformer reads, in their order."""
    names = getattr(transformer, "feature_names_in_", None)
    columns = list(range(transformer.n_features_in_)) if names is None else list(names)
    read: set[int] = set()
    for name, step, _ in transformer.transformers_:
        if step == "drop":
            continue
        read.update(transformer._transformer_to_input_indices[name])
    return [column for at, column in enumerate(columns) if at in read]


def _check_width(model: Any, X: Any) -> None:
    """Refuse other columns than the model's: its twin would learn from what the model never saw."""
    width = getattr(model, "n_features_in_", None)
    if width is None or width == _width(X):
        return
    named, names = getattr(model, "feature_names_in_", None), _check.column_names(X)
    differ = set() if named is None or names is None else set(names) ^ set(map(str, named))
    shown = f", such as {sorted(differ)[0]!r}" if differ else ""
    raise ValueError(
        f"X has {_width(X)} features but the model was trained on {width}{shown}; harden needs the "
        f"columns that the model itself takes."
    )


def _width(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])
