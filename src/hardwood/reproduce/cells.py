"""Train one model, measure it, and keep the answer in a file."""

import json
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import RepeatedStratifiedKFold

import hardwood as hw
from hardwood.datasets import Dataset
from hardwood.reproduce.settings import Cell

SEED = 0
Say = Callable[[str], Any]


def run(cell: Cell, out: Path, say: Say) -> dict[str, Any]:
    """Measure a cell, or read its result file if the settings there are these."""
    path = out / cell.file
    found = known(cell, out)
    if found is not None:
        say(f"{cell.file}: kept")
        return found
    begin = time.perf_counter()
    data = hw.datasets.load(cell.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hw.HardwoodWarning)  # the answer tells what they say
        answer = _MEASURE[cell.settings["kind"]](cell, data)
    result = {
        "table": cell.table,
        "set": cell.name,
        "training": cell.training,
        "settings": cell.settings,
        "seed": SEED,
        "data": data.note,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("hardwood", "numpy", "scikit-learn")},
        },
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(time.perf_counter() - begin, 2),
        "answer": answer,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")  # a result is there as a whole or not at all
    draft.write_text(json.dumps(result, indent=1) + "\n")
    draft.replace(path)
    say(f"{cell.file}: {result['seconds']:.0f} s")
    return result


def known(cell: Cell, out: Path) -> dict[str, Any] | None:
    """The result of a cell, if it was measured with the same settings."""
    path = out / cell.file
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text())
    same = result["settings"] == json.loads(json.dumps(cell.settings))
    return result if same and result["seed"] == SEED else None


def train(cell: Cell, data: Dataset) -> tuple[Any, float]:
    """Fit the model that a cell is about, and say the seconds; asked again, give the same one."""
    settings = cell.settings
    asked = {k: settings.get(k) for k in _TRAINED_BY}
    if settings["kind"] not in ("tree", "forest"):
        asked["kind"] = "boosting"
        asked["trees"] = np.max(settings["trees"]).item()
    key = json.dumps([data.name, data.note, cell.training, asked])
    if key not in _trained:
        begin = time.perf_counter()
        model = _fit(cell, data)
        _trained[key] = model, round(time.perf_counter() - begin, 2)
    return _trained[key]


# The settings that make a model; the others say how it is measured.
_TRAINED_BY = (
    "kind",
    "eps",
    "depth",
    "trees",
    "train_rows",
    "method",
    "learning_rate",
    "min_split_gain",
    "base_score",
    "robustness",
    "min_child_weight",
    "colsample_bytree",
    "max_bins",
    "models",
)
_trained: dict[str, tuple[Any, float]] = {}


def _fit(cell: Cell, data: Dataset) -> Any:
    settings = cell.settings
    n_rows = settings.get("train_rows", len(data.X_train))
    X, y = _spaced(n_rows, data.X_train, data.y_train)
    inner = {"certified": "certified", "exact": "exact", "gini": "exact"}.get(
        cell.training, "paper"
    )
    common = {"eps": settings["eps"], "max_depth": settings["depth"], "n_jobs": -1}
    if settings["kind"] == "tree":
        criterion = "gini" if cell.training == "gini" else "entropy"
        inner = "exact" if cell.training == "natural" else inner
        tree = hw.RobustDecisionTreeClassifier(
            inner=inner, criterion=criterion, method="exact", **common
        )
        return tree.fit(X, y)
    if settings["kind"] == "forest":
        forest = hw.RobustRandomForestClassifier(
            criterion="newton",
            inner=inner,
            n_estimators=settings["trees"],
            max_samples=0.5,
            max_features=0.5,
            bootstrap=False,
            random_state=SEED,
            **common,
        )
        return forest.fit(X, y)
    trees = settings["trees"]
    base_score = settings.get("base_score")
    if base_score is not None and data.n_classes > 2:
        base_score = np.zeros(data.n_classes)  # one number for all classes says nothing
    one = hw.RobustGradientBoostingClassifier(
        inner=inner,
        robustness=settings.get("robustness", 1.0),
        min_child_weight=settings.get("min_child_weight", 1.0),
        colsample_bytree=settings.get("colsample_bytree", 1.0),
        max_bins=settings.get("max_bins", 256),
        method=settings["method"],
        n_estimators=trees if isinstance(trees, int) else max(trees),
        learning_rate=settings["learning_rate"],
        min_split_gain=settings["min_split_gain"],
        base_score=base_score,
        random_state=SEED,
        **common,
    )
    if "models" not in settings:
        return one.fit(X, y)
    several = [clone(one).set_params(random_state=SEED + k) for k in range(settings["models"])]
    return hw.average([model.fit(X, y) for model in several])


def exact_distance(
    model: Any, X: Any, y: Any, norm: Any, settings: dict[str, Any]
) -> dict[str, Any]:
    """Mean exact distance over rightly classified rows, with what the clock left open."""
    if len(X) == 0:
        return {"n": 0, "settled": 0, "lower": None, "upper": None}
    found = hw.minimal_distance(
        model, X, y, norm=norm, time_limit=settings["seconds_a_row"], n_jobs=-1
    )
    right = found.status != "misclassified"
    answer = {
        "n": int(right.sum()),
        "settled": int((found.status == "exact").sum()),
        "lower": _mean(found.lower[right]),
        "upper": _mean(found.upper[right]),
    }
    if norm == "inf" and right.any():
        answer["error"] = _standard_error(found.upper[right])
    return answer


def _distances(cell: Cell, data: Dataset) -> dict[str, Any]:
    """Accuracy, attacks and exact distances: Tables 2 and 3, their twins, the forests."""
    settings = cell.settings
    model, seconds = train(cell, data)
    answer: dict[str, Any] = {"fit_seconds": seconds}
    answer["accuracy"] = float(model.score(data.X_test, data.y_test))
    answer["leaves"] = int(model.trees_.n_leaves)
    for norm in settings["norms"]:
        if norm == "inf" or settings["l1_l2"]:
            name = norm if norm == "inf" else f"l{norm}"
            n_rows = settings.get(f"{name}_rows", settings["exact_rows"])
            X, y = _right_rows(model, data, n_rows)
            answer[name] = exact_distance(model, X, y, norm, settings)
    for method in settings["attacks"]:
        n_rows = settings["cheng_rows"] if method == "cheng" else settings["exact_rows"]
        X, y = _right_rows(model, data, n_rows)
        more = {}
        if method == "cheng":
            # Towards training rows it starts as the original does: from examples of other labels.
            X_train, y_train = _spaced(2000, data.X_train, data.y_train)
            more = {"random_state": SEED, "X_train": X_train, "y_train": y_train}
        found = hw.find_adversarial(model, X, y, method=method, n_jobs=-1, **more)
        distance = found.distance[found.success]
        truth = exact_distance(model, X[found.success], y[found.success], "inf", settings)
        answer[method] = {
            "n": len(distance),
            "exact": truth["upper"],  # of the same rows
            "mean": _mean(distance),
            "error": _standard_error(distance),
            "queries": float(found.n_queries.mean()) if len(X) else 0.0,
        }
    return answer


def _over_trees(cell: Cell, data: Dataset) -> dict[str, Any]:
    """Accuracy and exact distance of one run's model, cut at several numbers of trees."""
    settings = cell.settings
    model, _ = train(cell, data)
    rows = []
    for k in settings["trees"]:
        cut = model.trees_.first(k * model.trees_.n_outputs)
        label = model.classes_[cut.predict_class(data.X_test)]
        right = np.flatnonzero(label == data.y_test)
        X, y = _spaced(settings["exact_rows"], data.X_test[right], data.y_test[right])
        rows.append(
            {
                "trees": k,
                "accuracy": float(np.mean(label == data.y_test)),
                "inf": exact_distance(cut, X, y, "inf", settings),
            }
        )
    return {"rows": rows}


def _accuracies(cell: Cell, data: Dataset) -> dict[str, Any]:
    """Clean, attacked and certified accuracy."""
    settings = cell.settings
    model, seconds = train(cell, data)
    X, y = _spaced(settings["certify_rows"], data.X_test, data.y_test)
    threat = hw.Threat(settings["target_eps"])
    found = hw.certify(model, X, y, threat, time_limit=settings["seconds_a_row"], n_jobs=-1)
    answer: dict[str, Any] = {
        "fit_seconds": seconds,
        "clean": _mean(model.predict(data.X_test) == data.y_test),
        "certified": found.certified_accuracy,
        "attacked": found.attacked_accuracy,
        "n": len(X),
    }
    if "folds" in settings:
        answer["folds"] = _over_folds(cell, data, threat)
    return answer


def _over_folds(cell: Cell, data: Dataset, threat: hw.Threat) -> dict[str, Any]:
    """The same over folds of the training rows, three times, where few test rows decide."""
    n_folds, X, y = cell.settings["folds"], data.X_train, data.y_train
    folds = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=3, random_state=SEED)
    clean, certified = [], []
    for rows, held in folds.split(X, y):
        model = _fit(cell, replace(data, X_train=X[rows], y_train=y[rows]))
        proof = hw.certify(model, X[held], y[held], threat, n_jobs=-1)
        clean.append(_mean(model.predict(X[held]) == y[held]))
        certified.append(proof.certified_accuracy)
    return {
        "clean": _mean(clean),
        "certified": _mean(certified),
        "spread": float(np.std(certified)),
    }


_MEASURE = {
    "tree": _distances,
    "boosting": _distances,
    "forest": _distances,
    "trees": _over_trees,
    "accuracy": _accuracies,
}


def _right_rows(model: Any, data: Dataset, n_rows: int) -> tuple[Any, Any]:
    """Evenly spaced test rows that the model gets right."""
    right = np.flatnonzero(model.predict(data.X_test) == data.y_test)
    return _spaced(n_rows, data.X_test[right], data.y_test[right])


def _spaced(n_rows: int, X: Any, y: Any) -> tuple[Any, Any]:
    if n_rows >= len(X):
        return X, y
    rows = np.unique(np.linspace(0, len(X) - 1, n_rows).astype(int))
    return X[rows], y[rows]


def _mean(values: Any) -> float | None:
    """The mean; None where it is not a number that JSON knows."""
    mean = float(np.mean(values)) if len(values) else np.inf
    return mean if np.isfinite(mean) else None


def _standard_error(values: Any) -> float | None:
    """Of the mean; None where there is none."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return float(values.std(ddof=1) / np.sqrt(len(values)))
