"""scikit-learn: trees, forests, boosting, outliers, pipelines."""

from collections.abc import Callable
from functools import partial
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn import calibration, ensemble, impute, model_selection, preprocessing, tree
from sklearn.pipeline import make_pipeline

from hunt.kinds import of_lightgbm, of_xgboost
from hunt.source import (
    Rng,
    Source,
    classes_of,
    enter,
    flat,
    heads,
    in_columns,
    names_of,
    numbers_of,
    size,
    table,
    with_categories,
)

Make = Callable[[Rng], Any]


def classifier(
    rng: Rng,
    make: Make,
    k: int = 2,
    holes: bool = False,
    columns: bool = False,
    plain: bool = False,
    categories: bool = False,
) -> Source:
    X = table(rng, holes)
    values = with_categories(rng, X) if categories else {}
    classes = np.arange(k) if plain else names_of(rng, k)
    y = classes[classes_of(rng, X, k)]
    names = heads(columns, X)
    model = make(rng)
    if values:
        model.set_params(categorical_features=list(values))
    model.fit(in_columns(X, names), y)

    def predict(Z: np.ndarray) -> np.ndarray:
        return flat(model.predict(in_columns(Z, names)), len(Z))

    return Source(model, predict, X, "label", classes, holes, names, categories=values)


def regressor(
    rng: Rng, make: Make, positive: bool = False, holes: bool = False, task: str = "value"
) -> Source:
    X = table(rng, holes)
    model = make(rng).fit(X, numbers_of(rng, X, positive))
    return Source(model, model.predict, X, task, np.arange(2), holes)


def outliers(rng: Rng, scaled: bool = False, **settings: Any) -> Source:
    X = table(rng)
    model = ensemble.IsolationForest(
        n_estimators=int(rng.integers(1, 5)),
        max_samples=int(rng.choice([4, 8])),
        random_state=int(rng.integers(100)),
        **settings,
    )
    model = make_pipeline(preprocessing.StandardScaler(), model) if scaled else model
    model.fit(X)
    return Source(model, model.predict, X, "label", np.array([-1, 1]))


def several_outputs(rng: Rng, of_classes: bool) -> Source:
    X = table(rng)
    if of_classes:
        y = np.column_stack([classes_of(rng, X, 2), classes_of(rng, X.copy(), 2)])
        model = ensemble.RandomForestClassifier(**forest_size(rng)).fit(X, y)
    else:
        y = np.column_stack([numbers_of(rng, X), numbers_of(rng, X)])
        model = ensemble.RandomForestRegressor(**forest_size(rng)).fit(X, y)
    return Source(model, model.predict, X, "refused", np.arange(2))


def forest_size(rng: Rng) -> dict[str, Any]:
    n_trees, depth = size(rng)
    return {"n_estimators": n_trees, "max_depth": depth, "random_state": int(rng.integers(100))}


def tree_size(rng: Rng) -> dict[str, Any]:
    return {"max_depth": int(rng.integers(1, 5)), "random_state": int(rng.integers(100))}


def hist_size(rng: Rng) -> dict[str, Any]:
    given = forest_size(rng)
    given["max_iter"] = given.pop("n_estimators")
    return {**given, "min_samples_leaf": 1, "early_stopping": False}


def single(rng: Rng, cls: type, **settings: Any) -> Any:
    return cls(**tree_size(rng), **settings)


def many(rng: Rng, cls: type, **settings: Any) -> Any:
    return cls(**forest_size(rng), **settings)


def hist(rng: Rng, cls: type = ensemble.HistGradientBoostingClassifier, **settings: Any) -> Any:
    return cls(**hist_size(rng), **settings)


def many_iterations(rng: Rng, **settings: Any) -> Any:
    size = {**hist_size(rng), "max_iter": 6, **settings}
    return ensemble.HistGradientBoostingClassifier(**size)


def boosted(rng: Rng, **settings: Any) -> Any:
    settings = {"learning_rate": float(rng.choice([0.1, 0.5, 1.0])), **settings}
    return ensemble.GradientBoostingClassifier(**forest_size(rng), **settings)


def bagged(rng: Rng, cls: type, base: type, **settings: Any) -> Any:
    n_trees, seed = int(rng.integers(1, 6)), int(rng.integers(100))
    return cls(base(max_depth=2), n_estimators=n_trees, random_state=seed, **settings)


def ada(rng: Rng) -> Any:
    return ensemble.AdaBoostClassifier(
        tree.DecisionTreeClassifier(max_depth=int(rng.integers(1, 3))),
        n_estimators=int(rng.integers(1, 7)),
        learning_rate=float(rng.choice([1.0, 0.5])),
        random_state=0,
    )


def scaled(rng: Rng, scaler: Callable[[], Any], make: Make) -> Any:
    return make_pipeline(scaler(), make(rng))


_forest = partial(many, cls=ensemble.RandomForestClassifier)

_CLASSIFIERS: dict[str, Make] = {
    **{
        f"{cls.__name__} {criterion}": partial(single, cls=cls, criterion=criterion)
        for cls in (tree.DecisionTreeClassifier, tree.ExtraTreeClassifier)
        for criterion in ("gini", "entropy", "log_loss")
    },
    "DecisionTreeClassifier class_weight": partial(
        single, cls=tree.DecisionTreeClassifier, class_weight="balanced"
    ),
    "RandomForestClassifier": _forest,
    "RandomForestClassifier class_weight": partial(_forest, class_weight="balanced_subsample"),
    "ExtraTreesClassifier": partial(many, cls=ensemble.ExtraTreesClassifier),
    "BaggingClassifier": partial(
        bagged, cls=ensemble.BaggingClassifier, base=tree.DecisionTreeClassifier
    ),
    "BaggingClassifier max_features": partial(
        bagged, cls=ensemble.BaggingClassifier, base=tree.DecisionTreeClassifier, max_features=0.7
    ),
    "AdaBoostClassifier": ada,
    "GradientBoostingClassifier": boosted,
    "GradientBoostingClassifier init zero": partial(boosted, init="zero"),
    "HistGradientBoostingClassifier": hist,
}
_TWO_CLASSES: dict[str, Make] = {
    "GradientBoostingClassifier exponential": partial(boosted, loss="exponential"),
    "GradientBoostingClassifier exponential, init zero": partial(
        boosted, loss="exponential", init="zero"
    ),
    "GradientBoostingClassifier learning_rate 1e-17": partial(
        boosted, learning_rate=1e-17, init="zero"
    ),
    "HistGradientBoostingClassifier learning_rate 1e-17": partial(hist, learning_rate=1e-17),
}
_REGRESSORS: dict[str, Make] = {
    **{
        f"DecisionTreeRegressor {criterion}": partial(
            single, cls=tree.DecisionTreeRegressor, criterion=criterion
        )
        for criterion in ("squared_error", "absolute_error", "poisson")
    },
    "ExtraTreeRegressor": partial(single, cls=tree.ExtraTreeRegressor),
    "RandomForestRegressor": partial(many, cls=ensemble.RandomForestRegressor),
    "ExtraTreesRegressor": partial(many, cls=ensemble.ExtraTreesRegressor),
    "BaggingRegressor": partial(
        bagged, cls=ensemble.BaggingRegressor, base=tree.DecisionTreeRegressor
    ),
    **{
        f"GradientBoostingRegressor {loss}": partial(
            many, cls=ensemble.GradientBoostingRegressor, loss=loss
        )
        for loss in ("squared_error", "absolute_error", "huber", "quantile")
    },
    "GradientBoostingRegressor init zero": partial(
        many, cls=ensemble.GradientBoostingRegressor, init="zero"
    ),
    **{
        f"HistGradientBoostingRegressor {loss}": partial(
            hist, cls=ensemble.HistGradientBoostingRegressor, loss=loss
        )
        for loss in ("squared_error", "absolute_error", "poisson", "gamma")
    },
    "HistGradientBoostingRegressor quantile": partial(
        hist, cls=ensemble.HistGradientBoostingRegressor, loss="quantile", quantile=0.3
    ),
}
_SCALERS: dict[str, Callable[[], Any]] = {
    "StandardScaler": preprocessing.StandardScaler,
    "MinMaxScaler": preprocessing.MinMaxScaler,
    "MinMaxScaler clip": partial(preprocessing.MinMaxScaler, clip=True),
    "MaxAbsScaler": preprocessing.MaxAbsScaler,
    "RobustScaler": preprocessing.RobustScaler,
    "PowerTransformer": preprocessing.PowerTransformer,
    "QuantileTransformer": partial(preprocessing.QuantileTransformer, n_quantiles=5),
    "KBinsDiscretizer ordinal": partial(
        preprocessing.KBinsDiscretizer, 3, encode="ordinal", strategy="uniform"
    ),
    "KBinsDiscretizer onehot": partial(
        preprocessing.KBinsDiscretizer, 3, encode="onehot-dense", strategy="uniform"
    ),
    "Binarizer": partial(preprocessing.Binarizer, threshold=0.5),
    "FunctionTransformer arctan": partial(preprocessing.FunctionTransformer, np.arctan),
    "FunctionTransformer negative": partial(preprocessing.FunctionTransformer, np.negative),
    "SimpleImputer": impute.SimpleImputer,
}


def _inside(rng: Rng, wrap: Callable[[Any], Any], make: Make = boosted) -> Any:
    return wrap(make(rng))


_WRAPPERS: dict[str, Make] = {
    "FixedThresholdClassifier": partial(
        _inside,
        wrap=partial(model_selection.FixedThresholdClassifier, threshold=0.3),
    ),
    "FixedThresholdClassifier of a forest": partial(
        _inside, wrap=partial(model_selection.FixedThresholdClassifier, threshold=0.6), make=_forest
    ),
    "CalibratedClassifierCV": partial(
        _inside, wrap=partial(calibration.CalibratedClassifierCV, cv=2, ensemble=False)
    ),
    "CalibratedClassifierCV isotonic": partial(
        _inside,
        wrap=partial(calibration.CalibratedClassifierCV, cv=2, ensemble=False, method="isotonic"),
    ),
    **(
        {
            "CalibratedClassifierCV temperature": partial(
                _inside,
                wrap=partial(
                    calibration.CalibratedClassifierCV, cv=2, ensemble=False, method="temperature"
                ),
            )
        }
        if hasattr(calibration, "_TemperatureScaling")  # since scikit-learn 1.8
        else {}
    ),
    "GridSearchCV": partial(
        _inside,
        wrap=partial(model_selection.GridSearchCV, param_grid={"max_depth": [1, 2]}, cv=2),
    ),
    "GradientBoostingClassifier init tree": partial(
        boosted, init=tree.DecisionTreeClassifier(max_depth=1)
    ),
    "HistGradientBoostingClassifier early stopping": partial(
        many_iterations, early_stopping=True, validation_fraction=None, n_iter_no_change=1
    ),
    "RandomForestClassifier max_leaf_nodes": partial(_forest, max_leaf_nodes=3),
}


def _xgb(rng: Rng) -> Any:
    return xgboost.XGBClassifier(**of_xgboost.settings_of(rng))


def _lgbm(rng: Rng) -> Any:
    return lightgbm.LGBMClassifier(**of_lightgbm.settings_of(rng))


_CLASSIFIERS_LAST: dict[str, Make] = {
    "RandomForestClassifier": _forest,
    "GradientBoostingClassifier": boosted,
    "HistGradientBoostingClassifier": hist,
    "XGBClassifier": _xgb,
    "LGBMClassifier": _lgbm,
}
_LAST = list(_CLASSIFIERS_LAST)


def enter_all() -> None:
    for name, make in _CLASSIFIERS.items():
        for k in (2, 3):
            enter(f"{name}, {k} classes", classifier, make, k)
    for name, make in _TWO_CLASSES.items():
        enter(name, classifier, make)
    for k in (2, 3):
        enter(f"HistGradientBoostingClassifier holes, {k} classes", classifier, hist, k, True)
    one = _CLASSIFIERS["DecisionTreeClassifier gini"]
    for k in (2, 3):
        enter(
            f"HistGradientBoostingClassifier categories, {k} classes",
            classifier,
            hist,
            k,
            categories=True,
        )
    for title, wrap in _WRAPPERS.items():
        enter(title, classifier, wrap)
    enter("DecisionTreeClassifier holes", classifier, one, holes=True)
    enter("RandomForestClassifier holes", classifier, _forest, holes=True)
    enter("RandomForestClassifier frame", classifier, _forest, columns=True)
    for contamination in ("auto", 0.1, 0.3):
        enter(f"IsolationForest {contamination}", outliers, contamination=contamination)
    enter("IsolationForest max_features", outliers, contamination=0.2, max_features=0.6)
    for name, make in _REGRESSORS.items():
        enter(name, regressor, make, "poisson" in name or "gamma" in name)
    poisson = _REGRESSORS["HistGradientBoostingRegressor poisson"]
    enter("HistGradientBoostingRegressor poisson, holes", regressor, poisson, True, True)
    median = partial(bagged, cls=ensemble.AdaBoostRegressor, base=tree.DecisionTreeRegressor)
    enter("AdaBoostRegressor", regressor, median, task="refused")
    for of_classes, name in ((False, "Regressor"), (True, "Classifier")):
        enter(f"RandomForest{name} 2 outputs", several_outputs, of_classes)
    for i, (name, scaler) in enumerate(_SCALERS.items()):
        for last in (_LAST[i % len(_LAST)], _LAST[(i - 2) % len(_LAST)]):
            pipe = partial(scaled, scaler=scaler, make=_CLASSIFIERS_LAST[last])
            title = f"Pipeline {name}, {last}"
            enter(title, classifier, pipe, plain=last == "XGBClassifier")
    for loss in ("squared_error", "poisson"):
        make = _REGRESSORS[f"HistGradientBoostingRegressor {loss}"]
        pipe = partial(scaled, scaler=preprocessing.StandardScaler, make=make)
        enter(f"Pipeline StandardScaler, {loss}", regressor, pipe, loss == "poisson")
    enter("Pipeline StandardScaler, IsolationForest", outliers, True, contamination=0.1)
