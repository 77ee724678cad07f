"""ONNX files of skl2onnx, which onnxruntime runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import skl2onnx

from hunt.kinds import of_sklearn
from hunt.kinds.ours import options
from hunt.source import Rng, Source, enter, flat, folder


def exported(rng: Rng, made: Any, *given: Any, **more: Any) -> Source:
    found = made(rng, *given, **more)
    asked = {"options": {"zipmap": False}} if found.task == "label" else {}
    proto = skl2onnx.to_onnx(found.model, found.X[:1].astype(np.float32), **asked)
    keep = folder()
    path = Path(keep.name) / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    session = onnxruntime.InferenceSession(
        path.read_bytes(), options(), providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name

    def predict(Z: np.ndarray) -> np.ndarray:
        return flat(session.run(None, {name: Z.astype(np.float32)})[0], len(Z))

    return replace(found, model=str(path), predict=predict, keep=keep)


def enter_all() -> None:
    for name in (
        "DecisionTreeClassifier gini",
        "RandomForestClassifier",
        "ExtraTreesClassifier",
        "GradientBoostingClassifier",
    ):
        for k in (2, 3):
            make = of_sklearn._CLASSIFIERS[name]
            enter(f"skl2onnx {name}, {k} classes", exported, of_sklearn.classifier, make, k)
    for name in (
        "DecisionTreeRegressor squared_error",
        "RandomForestRegressor",
        "GradientBoostingRegressor squared_error",
    ):
        make = of_sklearn._REGRESSORS[name]
        enter(f"skl2onnx {name}", exported, of_sklearn.regressor, make)
