"""How large a model is and how it was trained, in the words of our estimators."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hardwood.errors import UnsupportedModelError

Kind = Literal["boosting", "regression", "tree", "forest"]


@dataclass(frozen=True)
class Recipe:
    """The estimator that a source model's twin is, and its parameters."""

    kind: Kind
    parameters: dict[str, Any] = field(default_factory=dict)


def recipe_of(model: Any) -> Recipe:
    """Read the recipe of a fitted model, by the library that it is from."""
    library = type(model).__module__.split(".")[0]
    readers: dict[str, Callable[[Any], Recipe]] = {
        "xgboost": _xgboost,
        "lightgbm": _lightgbm,
        "catboost": _catboost,
        "sklearn": _sklearn,
        "hardwood": _ours,
    }
    if library not in readers:
        raise UnsupportedModelError(
            f"harden reads models of {', '.join(readers)}, and pipelines around them; this is a "
            f"{type(model).__module__}.{type(model).__name__}."
        )
    return readers[library](model)


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without what was not said."""
    return {name: value for name, value in given.items() if value is not None}


def _kind_of(objective: str, table: Mapping[str, dict[str, Any]], library: str) -> Recipe:
    for name, parameters in table.items():
        if objective == name or (name.endswith("*") and objective.startswith(name[:-1])):
            kind: Kind = "regression" if "loss" in parameters else "boosting"
            return Recipe(kind, dict(parameters))
    raise UnsupportedModelError(
        f'This {library} model has objective="{objective}", of which hardwood trains no robust '
        f"twin; it does of {', '.join(table)}."
    )


_XGBOOST_OBJECTIVES: dict[str, dict[str, Any]] = {
    "binary:*": {},
    "multi:*": {},
    "reg:squarederror": {"loss": "squared_error"},
    "reg:linear": {"loss": "squared_error"},
    "count:poisson": {"loss": "poisson"},
    "reg:pseudohubererror": {"loss": "huber"},
    "reg:quantileerror": {"loss": "quantile"},
}


def _xgboost(model: Any) -> Recipe:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    config = json.loads(booster.save_config())["learner"]
    booster_kind = config["gradient_booster"]["name"]
    if booster_kind == "gblinear":
        raise UnsupportedModelError("This XGBoost model is linear (gblinear) and has no trees.")
    trained = {
        name: text
        for part in _parts(config["gradient_booster"])
        for name, text in part.items()
        if isinstance(text, str)
    }
    given = _plain(model.get_params()) if hasattr(model, "get_params") else {}

    def number(name: str, default: float, *others: str) -> float:
        for called in (*others, name):
            if called in given:
                return float(given[called])
        return float(f"{float(trained.get(name, default)):.7g}")  # it was a float32

    objective = config["objective"]
    recipe = _kind_of(objective["name"], _XGBOOST_OBJECTIVES, "XGBoost")
    n_rounds = int(booster.num_boosted_rounds())
    if "best_iteration" in booster.attributes():
        n_rounds = int(booster.best_iteration) + 1
    depth, leaves = int(number("max_depth", 6)), int(number("max_leaves", 0))
    parameters: dict[str, Any] = {
        "n_estimators": n_rounds,
        "learning_rate": number("learning_rate", 0.3, "eta"),
        "max_depth": depth or None,
        "max_leaf_nodes": leaves if leaves > 1 else None,
        "reg_lambda": number("lambda", 1, "reg_lambda"),
        "reg_alpha": number("alpha", 0, "reg_alpha"),
        "min_split_gain": number("gamma", 0, "min_split_loss") / 2,
        "min_child_weight": number("min_child_weight", 1),
        "subsample": number("subsample", 1),
        "colsample_bytree": number("colsample_bytree", 1),
    }
    n_parallel = int(number("num_parallel_tree", 1))
    if n_parallel > 1 and n_rounds == 1:
        if recipe.kind != "boosting":
            raise _no_regression_forest(model)
        return Recipe(
            "forest",
            {
                "criterion": "newton",
                "n_estimators": n_parallel,
                "max_samples": parameters["subsample"],
                "bootstrap": False,
                "max_features": number("colsample_bynode", 1),
                **_only(parameters, "max_depth", "max_leaf_nodes", "reg_lambda", "reg_alpha"),
                **_only(parameters, "min_split_gain", "min_child_weight"),
            },
        )
    weight = float(objective.get("reg_loss_param", {}).get("scale_pos_weight", 1))
    weight = float(given.get("scale_pos_weight", weight))
    if weight != 1 and recipe.kind == "boosting":
        parameters["scale_pos_weight"] = weight
    if recipe.parameters.get("loss") == "quantile":
        quantile = given.get("quantile_alpha", objective.get("quantile_loss_param", {}))
        if isinstance(quantile, Mapping):
            quantile = quantile.get("quantile_alpha", "0.5")
        parameters["quantile"] = float(str(quantile).strip("[]()"))
    if recipe.parameters.get("loss") == "huber":
        parameters["huber_slope"] = float(given.get("huber_slope", 1))
    return Recipe(recipe.kind, {**recipe.parameters, **parameters})


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All tables of a configuration, however deep."""
    yield config
    for value in config.values():
        if isinstance(value, Mapping):
            yield from _parts(value)
        elif isinstance(value, list):
            for part in value:
                if isinstance(part, Mapping):
                    yield from _parts(part)


def _only(parameters: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: parameters[name] for name in names}


def _damped(parameters: dict[str, Any]) -> dict[str, Any]:
    """The same for our Huber loss, where the source's library has another one.

    Others take 1 for its hessian. Ours, as XGBoost's, has the true one, which vanishes where rows
    are far off: leaves of such rows would take enormous steps if nothing held them back.
    """
    if parameters.get("loss") != "huber":
        return parameters
    held = {name: max(1.0, parameters[name]) for name in ("reg_lambda", "min_child_weight")}
    return {**parameters, **held}


_LIGHTGBM_OBJECTIVES: dict[str, dict[str, Any]] = {
    "binary": {},
    "multiclass*": {},
    "regression": {"loss": "squared_error"},
    "regression_l2": {"loss": "squared_error"},
    "poisson": {"loss": "poisson"},
    "huber": {"loss": "huber"},
    "quantile": {"loss": "quantile"},
}

_LIGHTGBM_WORDS = {  # ours, and the names that LightGBM has for the same
    "learning_rate": ("learning_rate", "eta", "shrinkage_rate"),
    "num_leaves": ("num_leaves", "num_leaf", "max_leaves", "max_leaf_nodes"),
    "max_depth": ("max_depth",),
    "reg_lambda": ("reg_lambda", "lambda_l2", "lambda", "l2_regularization"),
    "reg_alpha": ("reg_alpha", "lambda_l1", "l1_regularization"),
    "min_split_gain": ("min_split_gain", "min_gain_to_split"),
    "min_child_weight": ("min_child_weight", "min_sum_hessian_in_leaf", "min_sum_hessian"),
    "min_samples_leaf": ("min_child_samples", "min_data_in_leaf", "min_data"),
    "subsample": ("subsample", "bagging_fraction", "bagging"),
    "subsample_freq": ("subsample_freq", "bagging_freq"),
    "colsample_bytree": ("colsample_bytree", "feature_fraction", "sub_feature"),
    "scale_pos_weight": ("scale_pos_weight",),
    "is_unbalance": ("is_unbalance", "unbalance", "unbalanced_sets"),
    "alpha": ("alpha",),
}
_LIGHTGBM_DEFAULTS = {
    "learning_rate": 0.1,
    "num_leaves": 31,
    "max_depth": -1,
    "reg_lambda": 0.0,
    "reg_alpha": 0.0,
    "min_split_gain": 0.0,
    "min_child_weight": 1e-3,
    "min_samples_leaf": 20,
    "subsample": 1.0,
    "subsample_freq": 0,
    "colsample_bytree": 1.0,
    "scale_pos_weight": 1.0,
    "is_unbalance": False,
    "alpha": 0.9,
}


def _lightgbm(model: Any) -> Recipe:
    booster = getattr(model, "booster_", model)
    given = {**booster.params, **(_plain(model.get_params()) if booster is not model else {})}
    value = {
        ours: next((given[word] for word in words if word in given), _LIGHTGBM_DEFAULTS[ours])
        for ours, words in _LIGHTGBM_WORDS.items()
    }
    objective = str(getattr(model, "objective_", None) or given.get("objective", "regression"))
    recipe = _kind_of(objective.split(" ")[0], _LIGHTGBM_OBJECTIVES, "LightGBM")
    n_rounds = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
    depth = int(value["max_depth"])
    parameters: dict[str, Any] = {
        "n_estimators": int(n_rounds),
        "learning_rate": float(value["learning_rate"]),
        "max_depth": depth if depth > 0 else None,
        "max_leaf_nodes": int(value["num_leaves"]),
        "reg_lambda": float(value["reg_lambda"]),
        "reg_alpha": float(value["reg_alpha"]),
        "min_split_gain": float(value["min_split_gain"]) / 2,
        "min_child_weight": float(value["min_child_weight"]),
        "min_samples_leaf": int(value["min_samples_leaf"]),
        "subsample": float(value["subsample"]) if int(value["subsample_freq"]) > 0 else 1.0,
        "colsample_bytree": float(value["colsample_bytree"]),
    }
    if recipe.kind == "boosting":
        if given.get("class_weight") is not None:
            parameters["class_weight"] = given["class_weight"]
        elif value["is_unbalance"]:
            parameters["class_weight"] = "balanced"
        elif float(value["scale_pos_weight"]) != 1:
            parameters["scale_pos_weight"] = float(value["scale_pos_weight"])
    loss = recipe.parameters.get("loss")
    if loss == "quantile":
        parameters["quantile"] = float(value["alpha"])
    if loss == "huber":
        parameters["huber_slope"] = float(value["alpha"])
    return Recipe(recipe.kind, _damped({**recipe.parameters, **parameters}))


_CATBOOST_OBJECTIVES: dict[str, dict[str, Any]] = {
    "Logloss": {},
    "CrossEntropy": {},
    "MultiClass*": {},
    "RMSE": {"loss": "squared_error"},
    "Poisson": {"loss": "poisson"},
    "Huber*": {"loss": "huber"},
    "Quantile*": {"loss": "quantile"},
}


def _catboost(model: Any) -> Recipe:
    given = {**model.get_all_params(), **_plain(model.get_params())}
    objective = str(given.get("loss_function", "RMSE"))
    recipe = _kind_of(objective, _CATBOOST_OBJECTIVES, "CatBoost")
    leaves = given.get("max_leaves") if given.get("grow_policy") == "Lossguide" else None
    parameters: dict[str, Any] = {
        "n_estimators": int(model.tree_count_),
        "learning_rate": float(given["learning_rate"]),
        "max_depth": int(given.get("depth", given.get("max_depth", 6))),
        "max_leaf_nodes": leaves,
        "reg_lambda": float(given.get("l2_leaf_reg", 3)),
        "min_samples_leaf": max(1, int(given.get("min_data_in_leaf", 1))),
        "subsample": _catboost_share(given),
        "colsample_bytree": float(given.get("rsm", 1)),
        "min_child_weight": 0.0,
    }
    if recipe.kind == "boosting":
        if given.get("auto_class_weights") == "Balanced":
            parameters["class_weight"] = "balanced"
        elif given.get("class_weights"):
            weights = given["class_weights"]
            if not isinstance(weights, Mapping):
                weights = dict(zip(model.classes_.tolist(), weights, strict=True))
            if len(set(weights.values())) > 1:
                parameters["class_weight"] = dict(weights)
        elif given.get("scale_pos_weight", 1) != 1:
            parameters["scale_pos_weight"] = float(given["scale_pos_weight"])
    for word, ours in (("alpha", "quantile"), ("delta", "huber_slope")):
        if f"{word}=" in objective:
            parameters[ours] = float(objective.split(f"{word}=")[1].split(";")[0])
    cats = model.get_cat_feature_indices()
    if cats:
        parameters["categorical_features"] = sorted(cats)
    return Recipe(recipe.kind, _damped({**recipe.parameters, **parameters}))


def _catboost_share(given: Mapping[str, Any]) -> float:
    if given.get("bootstrap_type") in ("Bernoulli", "MVS", "Poisson"):
        return min(1.0, float(given.get("subsample", 1)))
    return 1.0


def _sklearn(model: Any) -> Recipe:
    name = type(model).__name__
    given = model.get_params()
    readers: dict[str, Callable[[Any, dict[str, Any]], Recipe]] = {
        "HistGradientBoostingClassifier": _hist_boosting,
        "HistGradientBoostingRegressor": _hist_boosting,
        "GradientBoostingClassifier": _gradient_boosting,
        "GradientBoostingRegressor": _gradient_boosting,
        "DecisionTreeClassifier": _tree,
        "ExtraTreeClassifier": _tree,
        "RandomForestClassifier": _forest,
        "ExtraTreesClassifier": _forest,
    }
    if name in readers:
        return readers[name](model, given)
    if name in (
        "RandomForestRegressor",
        "ExtraTreesRegressor",
        "DecisionTreeRegressor",
        "ExtraTreeRegressor",
    ):
        raise _no_regression_forest(model)
    raise UnsupportedModelError(
        f"harden knows no robust twin of a {name}; it does of {', '.join(readers)}."
    )


def _no_regression_forest(model: Any) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"hardwood trains no robust {type(model).__name__}: its trees and forests are classifiers. "
        f"Train a RobustGradientBoostingRegressor instead."
    )


_SKLEARN_LOSSES: dict[str, dict[str, Any]] = {
    "log_loss": {},
    "squared_error": {"loss": "squared_error"},
    "poisson": {"loss": "poisson"},
    "huber": {"loss": "huber"},
    "quantile": {"loss": "quantile"},
}


def _hist_boosting(model: Any, given: dict[str, Any]) -> Recipe:
    recipe = _kind_of(given["loss"], _SKLEARN_LOSSES, "scikit-learn")
    parameters = {
        "n_estimators": int(model.n_iter_),
        "learning_rate": float(given["learning_rate"]),
        "max_depth": given["max_depth"],
        "max_leaf_nodes": given["max_leaf_nodes"],
        "max_bins": int(given["max_bins"]) + 1,  # theirs counts no missing values
        "reg_lambda": float(given["l2_regularization"]),
        "min_samples_leaf": int(given["min_samples_leaf"]),
        "min_child_weight": 1e-3,
        **_plain({"class_weight": given.get("class_weight")}),
        **_plain({"monotonic_cst": given.get("monotonic_cst")}),
    }
    if given.get("quantile") is not None and recipe.parameters.get("loss") == "quantile":
        parameters["quantile"] = float(given["quantile"])
    marked = given.get("categorical_features")
    if marked is not None and not isinstance(marked, str):
        parameters["categorical_features"] = marked
    return Recipe(recipe.kind, {**recipe.parameters, **parameters})


def _gradient_boosting(model: Any, given: dict[str, Any]) -> Recipe:
    recipe = _kind_of(given["loss"], _SKLEARN_LOSSES, "scikit-learn")
    parameters = {
        "n_estimators": int(model.n_estimators_),
        "learning_rate": float(given["learning_rate"]),
        "max_depth": None if given["max_leaf_nodes"] else given["max_depth"],
        "max_leaf_nodes": given["max_leaf_nodes"],
        "reg_lambda": 0.0,
        "min_child_weight": 0.0,
        "min_samples_leaf": _count(given["min_samples_leaf"]),
        "subsample": float(given["subsample"]),
    }
    loss = recipe.parameters.get("loss")
    if loss == "quantile":
        parameters["quantile"] = float(given["alpha"])
    if loss == "huber":  # alpha is a share of the rows; the slope that it came to is in y's unit
        slope = getattr(getattr(getattr(model, "_loss", None), "closs", None), "delta", None)
        parameters |= {"huber_slope": float(slope)} if slope else {}
    return Recipe(recipe.kind, _damped({**recipe.parameters, **parameters}))


def _count(given: Any) -> int:
    """A number of rows; a share of them is not known any more."""
    return int(given) if isinstance(given, int) else 1


_TREE_WORDS = (
    "max_depth",
    "max_leaf_nodes",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "max_features",
    "class_weight",
    "monotonic_cst",
)


def _shares(given: dict[str, Any]) -> dict[str, Any]:
    parameters = {name: given[name] for name in _TREE_WORDS if name in given}
    if parameters.get("class_weight") == "balanced_subsample":
        parameters["class_weight"] = "balanced"
    criterion = "gini" if given["criterion"] == "gini" else "entropy"
    return {"criterion": criterion, **parameters}


def _tree(model: Any, given: dict[str, Any]) -> Recipe:
    return Recipe("tree", _shares(given))


def _forest(model: Any, given: dict[str, Any]) -> Recipe:
    parameters = {
        "n_estimators": len(model.estimators_),
        "bootstrap": given["bootstrap"],
        "max_samples": given["max_samples"] if given["bootstrap"] else None,
    }
    return Recipe("forest", {**_shares(given), **parameters})


def _ours(model: Any) -> Recipe:
    kinds: dict[str, Kind] = {
        "RobustGradientBoostingClassifier": "boosting",
        "RobustGradientBoostingRegressor": "regression",
        "RobustDecisionTreeClassifier": "tree",
        "RobustRandomForestClassifier": "forest",
    }
    name = type(model).__name__
    if name not in kinds:
        raise UnsupportedModelError(
            f"harden reads fitted estimators, and this is a {name}; of a file or of Trees only the "
            f"trees are known, not how they were trained."
        )
    parameters = {k: v for k, v in model.get_params().items() if k not in ("eps", "threat")}
    if hasattr(model, "n_estimators_"):
        parameters["n_estimators"] = int(model.n_estimators_)
    return Recipe(kinds[name], parameters)
