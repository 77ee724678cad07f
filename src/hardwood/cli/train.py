"""`hardwood train`: a robust model from a table."""

import ast
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

import hardwood as hw
from hardwood.cli import _given as given


class Kind(StrEnum):
    """What to train."""

    BOOSTING = "boosting"
    FOREST = "forest"
    TREE = "tree"
    REGRESSION = "regression"


_ESTIMATORS = {
    Kind.BOOSTING: "RobustGradientBoostingClassifier",
    Kind.FOREST: "RobustRandomForestClassifier",
    Kind.TREE: "RobustDecisionTreeClassifier",
    Kind.REGRESSION: "RobustGradientBoostingRegressor",
}


def train(
    data: given.Data,
    label: given.Label = None,
    eps: given.Eps = None,
    share: given.Share = None,
    threat: given.ThreatFile = None,
    out: Annotated[
        Path, typer.Option("--out", help="The model file: .json or .ubj, XGBoost's formats.")
    ] = Path("model.json"),
    kind: Annotated[Kind, typer.Option(help="What to train.")] = Kind.BOOSTING,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the estimator, as NAME=VALUE (repeatable)."),
    ] = None,
    low: given.Low = None,
    high: given.High = None,
    n_jobs: given.Jobs = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    as_json: given.AsJson = False,
) -> None:
    """Train a model that stays right when someone tampers with its inputs; --eps 0 is natural.

    \b
    Examples:
      hardwood train train.csv --label y --eps 0.1 --out robust.json
      hardwood train train.csv --label y --eps 0 --kind forest --set n_estimators=20 --set max_depth=4 --out natural.json
    """  # noqa: E501, D301
    given.writable(out)
    if out.suffix not in (".json", ".ubj"):
        raise ValueError(f"--out must end in .json or .ubj, got {str(out)!r}.")
    rows = given.read_table(data, label)
    _need_fitting(kind, rows.labels)
    asked = given.read_threat(threat, eps, "inf", low, high, share, rows.X)
    model = getattr(hw, _ESTIMATORS[kind])(threat=asked)
    known = model.get_params()
    common = {"n_jobs": n_jobs, "random_state": seed}
    model.set_params(**{name: value for name, value in common.items() if name in known})
    for name, value in _parameters(settings or []).items():
        if name not in known:
            raise ValueError(
                f"{type(model).__name__} has no parameter {name!r}; it has {', '.join(known)}."
            )
        model.set_params(**{name: value})
    with given.progress_bar() as tell:
        if tell is not None:
            tell("training", 0, 1)
        model.fit(rows.X, rows.labels)
    model.save_model(out)
    facts: dict[str, Any] = {
        "estimator": type(model).__name__,
        "rows": len(rows.labels),
        "columns": int(np.shape(rows.X)[1]),
        "trees": model.trees_.n_trees,
        "leaves": model.trees_.n_leaves,
        "training_score": float(model.score(rows.X, rows.labels)),
        "written": str(out),
    }
    given.show(facts, as_json)


def _need_fitting(kind: Kind, labels: npt.NDArray[Any]) -> None:
    """Refuse words where numbers are predicted, and fractions where classes are."""
    if kind is Kind.REGRESSION:
        words = [one for one in labels.tolist() if isinstance(one, str)]
        if words:
            raise ValueError(
                f"--kind regression predicts numbers, and the column of labels holds {words[0]!r}; "
                f"leave --kind out to train a classifier."
            )
    elif labels.dtype.kind == "f" and (labels % 1).any():
        value = labels[np.flatnonzero(labels % 1)[0]]
        raise ValueError(
            f"The column of labels holds {value:g}, which is no class; pass --kind regression to "
            f"predict numbers."
        )


def _parameters(settings: list[str]) -> dict[str, Any]:
    parameters = {}
    for one in settings:
        name, equals, value = one.partition("=")
        if not equals:
            raise ValueError(f"--set must be NAME=VALUE, such as max_depth=6, got {one!r}.")
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value  # a word, such as criterion=gini
    return parameters
