"""XGBoost: wrappers, boosters, files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xgboost

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
    numbers_of,
    shares_of,
    size,
    table,
    with_categories,
)


def settings_of(rng: Rng, objective: str | None = None) -> dict[str, Any]:
    n_trees, depth = size(rng)
    refits = objective in ("reg:quantileerror", "reg:absoluteerror")  # not with every method
    return {
        "n_estimators": n_trees,
        "max_depth": depth,
        "learning_rate": float(rng.choice([0.3, 1.0, 0.1])),
        "reg_lambda": float(rng.choice([0.0, 1.0])),
        "min_child_weight": 0.0,
        "n_jobs": 1,
        "random_state": int(rng.integers(100)),
        "tree_method": "hist" if refits else str(rng.choice(["hist", "hist", "exact", "approx"])),
        "verbosity": 0,
        **({} if objective is None else {"objective": objective}),
    }


def classifier(
    rng: Rng,
    k: int = 2,
    cls: str = "XGBClassifier",
    holes: bool = False,
    columns: bool = False,
    categories: bool = False,
    objective: Any = None,
    **settings: Any,
) -> Source:
    X = table(rng, holes)
    values = with_categories(rng, X) if categories else {}
    y = classes_of(rng, X, k)
    settings = {**settings_of(rng, objective), **settings}
    if cls == "XGBRFClassifier":
        del settings["learning_rate"]
        settings.update(subsample=0.7, colsample_bynode=0.9, tree_method="hist")
    if categories:
        kinds = ["c" if f in values else "q" for f in range(X.shape[1])]
        settings.update(enable_categorical=True, feature_types=kinds, tree_method="hist")
    names = heads(columns, X)
    model = getattr(xgboost, cls)(**settings)
    fit = {"eval_set": [(X, y)], "verbose": False} if "early_stopping_rounds" in settings else {}
    model.fit(in_columns(X, names), y, **fit)
    return Source(
        model,
        lambda Z: flat(model.predict(in_columns(Z, names)), len(Z)),
        X,
        classes=np.arange(k),
        missing=holes,
        columns=names,
        special=(0.0,) if settings.get("missing") == 0 else (),
        categories=values,
    )


def regressor(
    rng: Rng, objective: str, cls: str = "XGBRegressor", positive: bool = False, **settings: Any
) -> Source:
    holes = bool(rng.random() < 0.2)
    X = table(rng, holes)
    y = shares_of(rng, X) if objective == "reg:logistic" else numbers_of(rng, X, positive)
    settings = {**settings_of(rng, objective), **settings}
    if cls == "XGBRFRegressor":
        del settings["learning_rate"]
        settings["tree_method"] = "hist"
    model = getattr(xgboost, cls)(**settings).fit(X, y)
    return Source(model, model.predict, X, "value", np.arange(2), missing=holes)


def several_quantiles(rng: Rng) -> Source:
    found = regressor(rng, "reg:quantileerror", quantile_alpha=np.array([0.2, 0.5, 0.8]))
    return replace(found, task="refused")


def ranker(rng: Rng, objective: str) -> Source:
    X = table(rng)
    y = classes_of(rng, X, 2)
    settings = {**settings_of(rng, objective), "tree_method": "hist"}
    model = xgboost.XGBRanker(**settings).fit(X, y, group=[len(X)])
    return Source(model, model.predict, X, "raw", np.arange(2))


def logistic_of_mine(y: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logistic loss, as users write it; the model then has no link."""
    p = 1 / (1 + np.exp(-margin))
    return p - y, np.maximum(p * (1 - p), 1e-6)


def linear(rng: Rng) -> Source:
    X = table(rng)
    y = classes_of(rng, X, 2)
    model = xgboost.XGBClassifier(n_estimators=2, booster="gblinear", n_jobs=1).fit(X, y)
    return Source(model, model.predict, X, "refused", np.arange(2))


def booster(
    rng: Rng,
    objective: str,
    k: int = 2,
    file: str = "",
    task: str = "",
    numbers: bool = False,
    sliced: bool = False,
    stopped: bool = False,
    **settings: Any,
) -> Source:
    """A Booster has no labels: those who use it cut its predictions at a half."""
    task = task or ("label" if objective.startswith(("binary", "multi")) else "value")
    holes = bool(rng.random() < 0.2)
    X = table(rng, holes)
    y = numbers_of(rng, X, True) if numbers else classes_of(rng, X, k)
    given = settings_of(rng, objective)
    rounds = given.pop("n_estimators")
    given["seed"], given["nthread"] = given.pop("random_state"), given.pop("n_jobs")
    given.update(settings)
    if objective.startswith("multi"):
        given["num_class"] = k
    matrix = xgboost.DMatrix(X, y, nthread=1)
    if objective.startswith("rank"):
        matrix.set_group([len(X)])
    if objective == "survival:aft":
        matrix = xgboost.DMatrix(X, nthread=1)
        matrix.set_float_info("label_lower_bound", y)
        matrix.set_float_info("label_upper_bound", y)
    if stopped:
        model = xgboost.train(
            given, matrix, 6, [(matrix, "rows")], early_stopping_rounds=1, verbose_eval=False
        )
    else:
        model = xgboost.train(given, matrix, rounds)
    if sliced:
        model = model[: max(1, rounds - 1)]

    def predict(Z: np.ndarray) -> np.ndarray:
        answer = model.predict(xgboost.DMatrix(Z, nthread=1))
        if task != "label":
            return answer
        return answer.astype(int) if objective == "multi:softmax" else decided(answer)

    source, keep = model, None
    if file:
        keep = folder()
        source = str(Path(keep.name) / f"m.{file}")
        model.save_model(source)
    bare = task == "value"
    return Source(source, predict, X, task, np.arange(k), holes, keep=keep, bare=bare)


def reloaded(rng: Rng, objective: str, cls: str = "XGBClassifier", k: int = 2) -> Source:
    """A wrapper that comes from a file, with nothing but what the file says."""
    task = "label" if cls == "XGBClassifier" else "value"
    found = booster(rng, objective, k, file="json", numbers=task == "value")
    model = getattr(xgboost, cls)(n_jobs=1)
    model.load_model(found.model)

    def predict(Z: np.ndarray) -> np.ndarray:
        return flat(model.predict(Z), len(Z))

    return replace(found, model=model, predict=predict, task=task, bare=False)


_BINARY = (
    "binary:logistic",
    "binary:logitraw",
    "binary:hinge",
    "reg:squarederror",
    "reg:logistic",
    "reg:squaredlogerror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:tweedie",
    "count:poisson",
)
_OPTIONS: dict[str, dict[str, Any]] = {
    "dart": {"booster": "dart", "rate_drop": 0.5},
    "base_score": {"base_score": 0.3},
    "constant": {"base_score": 0.5, "gamma": 1e6},
    "learning_rate 1e-8": {"learning_rate": 1e-8, "base_score": 0.5},
    "scale_pos_weight": {"scale_pos_weight": 3.0},
    "holes": {"holes": True},
    "missing=0": {"missing": 0.0},
    "lossguide": {"grow_policy": "lossguide", "max_leaves": 4, "tree_method": "hist"},
    "num_parallel_tree": {"num_parallel_tree": 3, "subsample": 0.7},
    "early stopping": {"early_stopping_rounds": 2, "n_estimators": 6},
    "max_delta_step": {"max_delta_step": 0.5},
    "frame": {"columns": True},
    "logitraw, base_score": {"objective": "binary:logitraw", "base_score": 0.7},
    "poisson, dart": {"objective": "count:poisson", "booster": "dart", "rate_drop": 0.5},
    "custom objective": {"objective": logistic_of_mine},
    "categories": {"categories": True, "max_cat_to_onehot": 1},
    "categories, one-hot": {"categories": True, "max_cat_to_onehot": 100},
    "categories, holes": {"categories": True, "holes": True, "max_cat_to_onehot": 1},
    "3 classes, categories": {"k": 3, "categories": True},
    "3 classes, dart": {"k": 3, "booster": "dart", "rate_drop": 0.5},
    "3 classes, learning_rate 1e-8": {"k": 3, "learning_rate": 1e-8},
    "3 classes, multi_output_tree": {
        "k": 3,
        "multi_strategy": "multi_output_tree",
        "tree_method": "hist",
    },
}
_NUMBERS = {  # whether the numbers must be positive
    "reg:squarederror": False,
    "reg:squaredlogerror": True,
    "reg:absoluteerror": False,
    "reg:pseudohubererror": False,
    "reg:quantileerror": False,
    "reg:logistic": False,
    "count:poisson": True,
    "reg:gamma": True,
    "reg:tweedie": True,
}


def enter_all() -> None:
    for objective in _BINARY:
        more = {"quantile_alpha": 0.5} if "quantile" in objective else {}
        enter(f"XGBClassifier {objective}", classifier, objective=objective, **more)
        enter(f"xgboost.Booster {objective}", booster, objective, **more)
    for objective in ("multi:softprob", "multi:softmax"):
        enter(f"XGBClassifier {objective}", classifier, 3, objective=objective)
        for k in (2, 3):
            enter(f"xgboost.Booster {objective}, {k} classes", booster, objective, k)
    for name, settings in _OPTIONS.items():
        enter(f"XGBClassifier {name}", classifier, **settings)
    enter("XGBClassifier gblinear", linear)
    enter("xgboost.Booster slice", booster, "binary:logistic", sliced=True)
    enter("xgboost.Booster early stopping", booster, "binary:logistic", stopped=True)
    enter("xgboost .json early stopping", booster, "binary:logistic", stopped=True, file="json")
    for k in (2, 3):
        enter(f"XGBRFClassifier, {k} classes", classifier, k, cls="XGBRFClassifier")
    for objective in ("binary:logistic", "binary:hinge", "reg:squarederror", "count:poisson"):
        enter(f"XGBClassifier.load_model {objective}", reloaded, objective)
    enter("XGBClassifier.load_model multi:softprob", reloaded, "multi:softprob", k=3)
    enter("XGBRegressor.load_model count:poisson", reloaded, "count:poisson", "XGBRegressor")
    for objective, positive in _NUMBERS.items():
        more = {"quantile_alpha": 0.3} if "quantile" in objective else {}
        enter(f"XGBRegressor {objective}", regressor, objective, positive=positive, **more)
    enter("XGBRegressor dart", regressor, "reg:squarederror", booster="dart", rate_drop=0.5)
    enter(
        "XGBRegressor poisson, base_score",
        regressor,
        "count:poisson",
        positive=True,
        base_score=2.0,
    )
    enter("XGBRegressor several quantiles", several_quantiles)
    enter("XGBRFRegressor", regressor, "reg:squarederror", "XGBRFRegressor", subsample=0.7)
    for objective in ("rank:pairwise", "rank:ndcg", "rank:map"):
        enter(f"XGBRanker {objective}", ranker, objective)
    for objective in ("count:poisson", "reg:gamma", "reg:squarederror", "survival:aft"):
        enter(f"xgboost.Booster {objective}, numbers", booster, objective, numbers=True)
    enter("xgboost.Booster survival:cox", booster, "survival:cox", task="raw", numbers=True)
    for file in ("json", "ubj"):
        for objective in ("binary:logistic", "binary:hinge", "reg:squarederror", "reg:logistic"):
            enter(f"xgboost .{file} {objective}", booster, objective, file=file)
    enter("xgboost .json multi:softprob", booster, "multi:softprob", 3, file="json")
    enter("xgboost .ubj multi:softmax", booster, "multi:softmax", 3, file="ubj")
    enter("xgboost .json rank:pairwise", booster, "rank:pairwise", file="json", task="raw")
    enter("xgboost .json poisson, numbers", booster, "count:poisson", file="json", numbers=True)
    enter("xgboost .ubj gamma, numbers", booster, "reg:gamma", file="ubj", numbers=True)
