"""LightGBM: wrappers, boosters, files."""

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from hunt.source import (
    Rng,
    Source,
    classes_of,
    decided,
    enter,
    flat,
    folder,
    heads,
    in_columns,
    names_of,
    numbers_of,
    shares_of,
    size,
    table,
    with_categories,
)


def settings_of(rng: Rng, **settings: Any) -> dict[str, Any]:
    n_trees, depth = size(rng)
    return {
        "n_estimators": n_trees,
        "max_depth": depth,
        "num_leaves": 2**depth,
        "learning_rate": float(rng.choice([0.1, 0.5, 1.0])),
        "min_child_samples": 1,
        "min_child_weight": 0.0,
        "min_data_in_bin": 1,
        "n_jobs": 1,
        "random_state": int(rng.integers(100)),
        "verbosity": -1,
        **settings,
    }


def classifier(
    rng: Rng,
    k: int = 2,
    holes: bool | None = None,
    columns: bool = False,
    categories: bool = False,
    stopped: bool = False,
    task: str = "label",
    **settings: Any,
) -> Source:
    holes = bool(rng.random() < 0.2) if holes is None else holes
    X = table(rng, holes)
    values = with_categories(rng, X) if categories else {}
    classes = np.arange(2) if task == "raw" else names_of(rng, k)
    y = classes[classes_of(rng, X, k)]
    names = heads(columns, X)
    model = lightgbm.LGBMClassifier(**settings_of(rng, **settings))
    how: dict[str, Any] = {"categorical_feature": list(values)} if values else {}
    if stopped:
        how["callbacks"] = [lightgbm.early_stopping(1, verbose=False)]
        how["eval_set"] = [(X[::2], y[::2])]
    model.fit(in_columns(X, names), y, **how)
    return Source(
        model,
        lambda Z: flat(model.predict(in_columns(Z, names)), len(Z)),
        X,
        task,
        classes=classes,
        missing=holes,
        columns=names,
        special=(0.0,) if settings.get("zero_as_missing") else (),
        categories=values,
    )


def regressor(rng: Rng, objective: str, positive: bool = False, **settings: Any) -> Source:
    holes = bool(rng.random() < 0.2)
    X = table(rng, holes)
    y = shares_of(rng, X) if "entropy" in objective else numbers_of(rng, X, positive)
    model = lightgbm.LGBMRegressor(**settings_of(rng, objective=objective, **settings)).fit(X, y)
    return Source(model, model.predict, X, "value", np.arange(2), missing=holes)


def ranker(rng: Rng, objective: str) -> Source:
    X = table(rng)
    y = classes_of(rng, X, 2)
    model = lightgbm.LGBMRanker(**settings_of(rng, objective=objective))
    model.fit(X, y, group=[len(X)])
    return Source(model, model.predict, X, "raw", np.arange(2))


def booster(
    rng: Rng,
    objective: str,
    k: int = 2,
    file: bool = False,
    numbers: bool = False,
    **settings: Any,
) -> Source:
    """A Booster has no labels: those who use it cut its predictions at a half."""
    holes = bool(rng.random() < 0.2)
    X = table(rng, holes)
    y = numbers_of(rng, X, True) if numbers else classes_of(rng, X, k)
    bare = objective not in ("binary", "multiclass", "multiclassova")
    given = settings_of(rng, objective=objective, **settings)
    rounds = given.pop("n_estimators")
    if k > 2:
        given["num_class"] = k
    data = lightgbm.Dataset(X, y, params={"verbosity": -1, "min_data_in_bin": 1})
    model = lightgbm.train(given, data, rounds)

    def predict(Z: np.ndarray) -> np.ndarray:
        answer = np.asarray(model.predict(Z))
        return answer if bare else decided(answer)

    source, keep = model, None
    if file:
        keep = folder()
        source = str(Path(keep.name) / "m.txt")
        model.save_model(source)
    task = "value" if bare else "label"
    return Source(source, predict, X, task, np.arange(k), holes, keep=keep, bare=bare)


def logistic_of_mine(y: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logistic loss, as users write it; such a classifier predicts margins."""
    p = 1 / (1 + np.exp(-margin))
    return p - y, np.maximum(p * (1 - p), 1e-6)


_FOREST = {
    "boosting_type": "rf",
    "subsample": 0.7,
    "subsample_freq": 1,
    "learning_rate": 1.0,
}
_DART = {"boosting_type": "dart", "drop_rate": 0.5}
_STOP = {"pred_early_stop": True, "pred_early_stop_freq": 1, "pred_early_stop_margin": 0.2}
_OPTIONS: dict[str, dict[str, Any]] = {
    "rf": _FOREST,
    "dart": _DART,
    "goss": {"data_sample_strategy": "goss"},
    "sigmoid 2": {"sigmoid": 2.0},
    "sigmoid .3": {"sigmoid": 0.3},
    "pred_early_stop": _STOP,
    "is_unbalance": {"is_unbalance": True},
    "scale_pos_weight": {"scale_pos_weight": 2.5},
    "learning_rate 1e-17": {"learning_rate": 1e-17, "boost_from_average": False},
    "boost_from_average off": {"boost_from_average": False},
    "linear_tree": {"linear_tree": True},
    "zero_as_missing": {"zero_as_missing": True},
    "no missing": {"use_missing": False},
    "extra_trees": {"extra_trees": True},
    "path_smooth": {"path_smooth": 1.0},
    "holes": {"holes": True},
    "frame": {"columns": True},
    "regression, reg_sqrt": {"objective": "regression", "reg_sqrt": True},
    "custom objective": {"objective": logistic_of_mine, "task": "raw"},
    "predict_raw_score": {"predict_raw_score": True},
    "num_iteration_predict": {"num_iteration_predict": 2, "n_estimators": 4},
    "start_iteration_predict": {"start_iteration_predict": 1, "n_estimators": 4},
    "early stopping": {"stopped": True, "n_estimators": 6},
    "categories": {"categories": True, "cat_smooth": 0.0, "min_data_per_group": 1},
    "categories, one-hot": {"categories": True, "max_cat_to_onehot": 100},
    "monotone": {"monotone_constraints_method": "basic"},
    "3 classes, early stopping": {"k": 3, "stopped": True, "n_estimators": 4},
    "3 classes, rf": {"k": 3, **_FOREST},
    "3 classes, dart": {"k": 3, **_DART},
    "3 classes, pred_early_stop": {"k": 3, **_STOP},
    "multiclassova, sigmoid 2": {"k": 3, "objective": "multiclassova", "sigmoid": 2.0},
}
_BINARY = (
    "binary",
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "mape",
    "poisson",
    "quantile",
    "tweedie",
    "cross_entropy",
    "cross_entropy_lambda",
)
_NUMBERS = {  # whether the numbers must be positive
    "regression": False,
    "regression_l1": False,
    "huber": False,
    "fair": False,
    "mape": False,
    "quantile": False,
    "poisson": True,
    "gamma": True,
    "tweedie": True,
    "cross_entropy": False,
    "cross_entropy_lambda": False,
}


def enter_all() -> None:
    for objective in _BINARY:
        enter(f"LGBMClassifier {objective}", classifier, objective=objective)
        enter(f"lightgbm.Booster {objective}", booster, objective)
    for objective in ("multiclass", "multiclassova"):
        enter(f"LGBMClassifier {objective}", classifier, 3, objective=objective)
        enter(f"lightgbm.Booster {objective}", booster, objective, 3)
    for name, settings in _OPTIONS.items():
        enter(f"LGBMClassifier {name}", classifier, **settings)
    for objective, positive in _NUMBERS.items():
        enter(f"LGBMRegressor {objective}", regressor, objective, positive)
    enter("LGBMRegressor reg_sqrt", regressor, "regression", reg_sqrt=True)
    for name in ("rf", "dart", "goss", "linear_tree", "extra_trees"):
        enter(f"LGBMRegressor {name}", regressor, "regression", **_OPTIONS[name])
    enter("LGBMRegressor poisson, rf", regressor, "poisson", True, **_FOREST)
    for objective in ("lambdarank", "rank_xendcg"):
        enter(f"LGBMRanker {objective}", ranker, objective)
    for objective in ("poisson", "gamma", "regression"):
        enter(f"lightgbm.Booster {objective}, numbers", booster, objective, numbers=True)
    for objective, k in (("binary", 2), ("regression", 2), ("multiclass", 3), ("poisson", 2)):
        enter(f"lightgbm .txt {objective}", booster, objective, k, file=True)
    enter("lightgbm .txt poisson, numbers", booster, "poisson", file=True, numbers=True)
    enter("lightgbm .txt rf", booster, "binary", file=True, **_FOREST)
