"""Our own models: as they are, from a file, and in the libraries that can read them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import onnxruntime
import xgboost

import hardwood as hw
from hunt.source import (
    Rng,
    Source,
    classes_of,
    decided,
    enter,
    flat,
    folder,
    names_of,
    numbers_of,
    size,
    table,
)

Make = Callable[[Rng], Any]


def _eps(rng: Rng) -> float:
    return float(rng.choice([0.0, 0.0, 0.1, 0.3]))


def tree(rng: Rng, **settings: Any) -> Any:
    return hw.RobustDecisionTreeClassifier(
        eps=_eps(rng), max_depth=int(rng.integers(1, 5)), **settings
    )


def forest(rng: Rng, **settings: Any) -> Any:
    n_trees, depth = size(rng)
    return hw.RobustRandomForestClassifier(
        eps=_eps(rng),
        n_estimators=n_trees,
        max_depth=depth,
        random_state=int(rng.integers(100)),
        n_jobs=1,
        **settings,
    )


def boosted(rng: Rng, cls: Any = hw.RobustGradientBoostingClassifier, **settings: Any) -> Any:
    n_trees, depth = size(rng)
    settings = {"learning_rate": float(rng.choice([0.1, 0.3, 1.0])), **settings}
    return cls(
        eps=_eps(rng),
        n_estimators=n_trees,
        max_depth=depth,
        min_child_weight=0.0,
        n_jobs=1,
        **settings,
    )


def adversarial(rng: Rng) -> Any:
    return hw.AdversarialBoostingClassifier(boosted(rng), n_rounds=1, n_jobs=1)


def logistic_of_mine(y: np.ndarray, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p = 1 / (1 + np.exp(-margin))
    return p - y, np.maximum(p * (1 - p), 1e-6)


def classifier(
    rng: Rng, make: Make, k: int = 2, holes: bool | None = None, plain: bool = False
) -> Source:
    holes = bool(rng.random() < 0.2) if holes is None else holes
    X = table(rng, holes)
    classes = np.arange(k) if plain else names_of(rng, k)
    model = make(rng).fit(X, classes[classes_of(rng, X, k)])
    return Source(model, model.predict, X, "label", classes, holes)


def regressor(rng: Rng, make: Make, positive: bool = False, holes: bool | None = None) -> Source:
    holes = bool(rng.random() < 0.2) if holes is None else holes
    X = table(rng, holes)
    model = make(rng).fit(X, numbers_of(rng, X, positive))
    return Source(model, model.predict, X, "value", np.arange(2), holes)


def saved(rng: Rng, make: Callable[..., Source], ending: str, *given: Any, **more: Any) -> Source:
    """The file, which must say all that the model says."""
    found = make(rng, *given, **more)
    keep = folder()
    path = str(Path(keep.name) / f"m.{ending}")
    found.model.save_model(path)
    return replace(found, model=path, keep=keep)


def in_xgboost(rng: Rng, make: Callable[..., Source], cls: str, *given: Any, **more: Any) -> Source:
    """The file in stock xgboost: the same labels and numbers, bit for bit."""
    found = saved(rng, make, "json", *given, **more)
    reader = getattr(xgboost, cls)(n_jobs=1)
    reader.load_model(found.model)

    def predict(Z: np.ndarray) -> np.ndarray:
        return flat(reader.predict(Z), len(Z))

    twins = {"in xgboost": (found.predict, predict)}
    return replace(found, model=reader, predict=predict, twins=twins)


def in_lightgbm(rng: Rng, make: Callable[..., Source], *given: Any, **more: Any) -> Source:
    """The text in stock LightGBM, which adds in double, and takes 1e-36 for zero."""
    found = make(rng, *given, **more)
    reader = lightgbm.Booster(model_str=found.model.trees_.to_lightgbm())

    def predict(Z: np.ndarray) -> np.ndarray:
        return reader.predict(Z) if found.task == "value" else decided(reader.predict(Z))

    def near(Z: np.ndarray) -> np.ndarray:
        """Our answer, or theirs where zero or the last bits of a sum decide."""
        theirs = ((Z != 0) & (np.abs(Z) < 1e-34)).any(axis=1)
        if found.task == "label":
            top = np.sort(found.model.predict_proba(Z), axis=1)
            theirs |= top[:, -1] - top[:, -2] < 1e-6
        return np.where(theirs, predict(Z), found.predict(Z))

    twins = {"in lightgbm": (near, predict)}
    return replace(found, model=reader, predict=predict, twins=twins)


def in_onnx(rng: Rng, make: Callable[..., Source], *given: Any, **more: Any) -> Source:
    """The bytes in onnxruntime."""
    found = make(rng, *given, **more)
    keep = folder()
    path = Path(keep.name) / "m.onnx"
    path.write_bytes(found.model.trees_.to_onnx())
    session = onnxruntime.InferenceSession(
        path.read_bytes(), options(), providers=["CPUExecutionProvider"]
    )
    output = "label" if found.task == "label" else "mean"

    def predict(Z: np.ndarray) -> np.ndarray:
        return flat(session.run([output], {"X": Z.astype(np.float32)})[0], len(Z))

    twins = {} if found.task == "label" else {"in onnxruntime": (found.predict, predict)}
    return replace(found, model=str(path), predict=predict, keep=keep, twins=twins)


def options() -> Any:
    one = onnxruntime.SessionOptions()
    one.intra_op_num_threads = one.inter_op_num_threads = 1
    one.log_severity_level = 3
    return one


_regression = partial(boosted, cls=hw.RobustGradientBoostingRegressor)
_CLASSIFIERS: dict[str, Make] = {
    "tree gini": partial(tree, criterion="gini"),
    "tree entropy": partial(tree, criterion="entropy"),
    "forest gini": partial(forest, criterion="gini"),
    "forest entropy": partial(forest, criterion="entropy"),
    "boosting paper": partial(boosted, inner="paper"),
    "boosting exact": partial(boosted, inner="exact"),
    "boosting certified": partial(boosted, inner="certified"),
    "boosting method exact": partial(boosted, method="exact"),
}
_TWO_CLASSES: dict[str, Make] = {
    "tree paper": partial(tree, inner="paper"),
    "forest newton": partial(forest, criterion="newton"),
    "boosting class_weight": partial(boosted, class_weight="balanced"),
    "boosting custom loss": partial(boosted, loss=logistic_of_mine, inner="exact"),
    "adversarial boosting": adversarial,
    "boosting base_score": partial(boosted, base_score=0.5),
    "boosting learning_rate 1e-8": partial(boosted, learning_rate=1e-8, base_score=0.5),
}
_REGRESSORS: dict[str, Make] = {
    loss: partial(_regression, loss=loss)
    for loss in ("squared_error", "huber", "poisson", "quantile")
}


def enter_all() -> None:
    for name, make in _CLASSIFIERS.items():
        for k in (2, 3):
            enter(f"our {name}, {k} classes", classifier, make, k)
    for name, make in _TWO_CLASSES.items():
        enter(f"our {name}", classifier, make)
    for name, make in _REGRESSORS.items():
        enter(f"our regressor {name}", regressor, make, name == "poisson")
        enter(f"our regressor {name}, .ubj", saved, regressor, "ubj", make, name == "poisson")
        for reader in ("xgboost", "lightgbm", "onnx"):
            use = {"xgboost": in_xgboost, "lightgbm": in_lightgbm, "onnx": in_onnx}[reader]
            first = ("XGBRegressor",) if reader == "xgboost" else ()
            enter(
                f"our regressor {name} in {reader}", use, regressor, *first, make, name == "poisson"
            )
    some = {name: _CLASSIFIERS[name] for name in ("tree gini", "forest entropy", "boosting paper")}
    for name, make in some.items():
        for k in (2, 3):
            enter(f"our {name}, {k} classes, .json", saved, classifier, "json", make, k)
            for reader, use in (("lightgbm", in_lightgbm), ("onnx", in_onnx)):
                enter(f"our {name}, {k} classes, in {reader}", use, classifier, make, k, plain=True)
    for name, k in (("boosting paper", 2), ("boosting paper", 3), ("boosting exact", 2)):
        make = _CLASSIFIERS[name]
        enter(
            f"our {name}, {k} classes, in xgboost",
            in_xgboost,
            classifier,
            "XGBClassifier",
            make,
            k,
            plain=True,
        )
    newton = _TWO_CLASSES["forest newton"]
    enter(
        "our forest newton in xgboost", in_xgboost, classifier, "XGBClassifier", newton, plain=True
    )
