"""CatBoost: classifiers, regressors, the base class, files."""

from pathlib import Path
from typing import Any

import catboost
import numpy as np

from hunt.source import (
    Rng,
    Source,
    classes_of,
    enter,
    flat,
    folder,
    heads,
    in_columns,
    names_of,
    numbers_of,
    size,
    table,
)


def settings_of(rng: Rng, **settings: Any) -> dict[str, Any]:
    n_trees, depth = size(rng)
    if settings.get("grow_policy") == "Lossguide":
        settings["max_leaves"] = 2**depth
    return {
        "iterations": n_trees,
        "depth": depth,
        "learning_rate": float(rng.choice([0.1, 0.5, 1.0])),
        "l2_leaf_reg": float(rng.choice([0.0, 1.0, 3.0])),
        "random_seed": int(rng.integers(100)),
        "thread_count": 1,
        "verbose": False,
        "allow_writing_files": False,
        "bootstrap_type": "No",
        **settings,
    }


def classifier(
    rng: Rng,
    k: int = 2,
    cut: float | None = None,
    holes: bool = False,
    columns: bool = False,
    base: bool = False,
    file: bool = False,
    change: str = "",
    **settings: Any,
) -> Source:
    X = table(rng, holes)
    plain = base or file or settings.get("loss_function") == "CrossEntropy"
    classes = np.arange(k) if plain else names_of(rng, k)
    y = classes[classes_of(rng, X, k)]
    names = heads(columns, X)
    settings = settings_of(rng, **settings)
    if base:
        model = catboost.CatBoost({"loss_function": "Logloss", **settings})
    else:
        model = catboost.CatBoostClassifier(**settings)
    model.fit(in_columns(X, names), y)
    if cut is not None:
        model.set_probability_threshold(cut)
    if change == "scale and bias":
        model.set_scale_and_bias(0.5, -0.25 if k == 2 else [0.1, 0.0, -0.2])
    if change == "shrink":
        model.shrink(ntree_end=max(1, model.tree_count_ - 1))

    def predict(Z: np.ndarray) -> np.ndarray:
        asked = {"prediction_type": "Class"} if base else {}
        label = flat(model.predict(in_columns(Z, names), **asked), len(Z))
        # CatBoost spells booleans; its users compare them as they are in classes_.
        return label == "True" if classes.dtype == bool and label.dtype.kind in "UO" else label

    source, keep = model, None
    if file:
        keep = folder()
        source = str(Path(keep.name) / "m.json")
        model.save_model(source, format="json")
    return Source(source, predict, X, "label", classes, holes, names, keep=keep)


def regressor(
    rng: Rng,
    loss: str,
    positive: bool = False,
    task: str = "value",
    base: bool = False,
    file: bool = False,
    **settings: Any,
) -> Source:
    holes = bool(rng.random() < 0.2)
    X = table(rng, holes)
    y = numbers_of(rng, X, positive)
    cls = catboost.CatBoostRegressor
    if loss == "MultiRMSE":
        y = np.column_stack([y, numbers_of(rng, X)])
    if loss in ("MultiLogloss", "MultiCrossEntropy"):
        y = np.column_stack([classes_of(rng, X, 2), classes_of(rng, X.copy(), 2)])
        cls = catboost.CatBoostClassifier
    settings = settings_of(rng, loss_function=loss, **settings)
    model = catboost.CatBoost(settings) if base else cls(**settings)
    model.fit(X, y)
    source, keep = model, None
    if file:
        keep = folder()
        source = str(Path(keep.name) / "m.json")
        model.save_model(source, format="json")

    def predict(Z: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(Z))

    return Source(source, predict, X, task, np.arange(2), holes, keep=keep)


def ranker(rng: Rng, loss: str) -> Source:
    X = table(rng)
    model = catboost.CatBoostRanker(**settings_of(rng, loss_function=loss))
    model.fit(X, classes_of(rng, X, 2), group_id=np.zeros(len(X), dtype=int))
    return Source(model, lambda Z: np.asarray(model.predict(Z)), X, "raw", np.arange(2))


_NUMBERS = {  # whether the numbers must be positive
    "RMSE": False,
    "MAE": False,
    "Quantile:alpha=0.3": False,
    "Expectile:alpha=0.3": False,
    "Huber:delta=1.0": False,
    "LogCosh": False,
    "Lq:q=3": False,
    "MAPE": False,
    "LogLinQuantile:alpha=0.5": True,
    "Poisson": True,
    "Tweedie:variance_power=1.5": True,
}


def enter_all() -> None:
    for loss in ("Logloss", "CrossEntropy"):
        enter(f"CatBoostClassifier {loss}", classifier, loss_function=loss)
    for loss in ("MultiClass", "MultiClassOneVsAll"):
        enter(f"CatBoostClassifier {loss}", classifier, 3, loss_function=loss)
    enter("CatBoostClassifier MultiClass, 2 classes", classifier, loss_function="MultiClass")
    for cut in (0.2, 0.7):
        enter(f"CatBoostClassifier threshold {cut}", classifier, cut=cut)
    for policy in ("Depthwise", "Lossguide"):
        for k in (2, 3):
            enter(f"CatBoostClassifier {policy}, {k} classes", classifier, k, grow_policy=policy)
        enter(f"CatBoostRegressor {policy}", regressor, "RMSE", grow_policy=policy)
    for side in ("Min", "Max"):
        enter(f"CatBoostClassifier holes {side}", classifier, holes=True, nan_mode=side)
    enter("CatBoostClassifier frame", classifier, columns=True)
    enter("CatBoostClassifier learning_rate 1e-5", classifier, learning_rate=1e-5)
    enter("CatBoostClassifier class weights", classifier, auto_class_weights="Balanced")
    enter("CatBoost Logloss", classifier, base=True)
    enter("CatBoost MultiClass", classifier, 3, base=True, loss_function="MultiClass")
    enter("CatBoost RMSE", regressor, "RMSE", base=True)
    enter("CatBoost Poisson", regressor, "Poisson", True, base=True, task="raw")
    for k in (2, 3):
        enter(f"catboost .json {k} classes", classifier, k, file=True)
    enter("catboost .json RMSE", regressor, "RMSE", file=True)
    enter("catboost .json Poisson", regressor, "Poisson", True, file=True)
    for loss, positive in _NUMBERS.items():
        enter(f"CatBoostRegressor {loss}", regressor, loss, positive)
    for change in ("scale and bias", "shrink"):
        for k in (2, 3):
            enter(f"CatBoostClassifier {change}, {k} classes", classifier, k, change=change)
    enter(
        "CatBoostClassifier Focal", classifier, loss_function="Focal:focal_alpha=0.5;focal_gamma=2"
    )
    enter("CatBoostRegressor Cox", regressor, "Cox", True, task="raw")
    enter("CatBoostRanker QueryRMSE", ranker, "QueryRMSE")
    enter("CatBoostRanker YetiRank", ranker, "YetiRank")
    enter("CatBoost MultiCrossEntropy", regressor, "MultiCrossEntropy", task="refused")
    for loss in ("MultiRMSE", "RMSEWithUncertainty", "MultiLogloss"):
        enter(f"CatBoost {loss}", regressor, loss, task="refused")
