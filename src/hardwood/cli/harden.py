"""`hardwood harden`: the robust twin of a model."""

from pathlib import Path
from typing import Annotated

import typer

import hardwood as hw
from hardwood.cli import _given as given


def harden(
    model: given.Model,
    data: given.Data,
    label: given.Label = None,
    classes: given.Classes = None,
    eps: given.Eps = None,
    share: given.Share = None,
    threat: given.ThreatFile = None,
    out: Annotated[
        Path, typer.Option("--out", help="The twin's file: .json or .ubj, XGBoost's formats.")
    ] = Path("hardened.json"),
    low: given.Low = None,
    high: given.High = None,
    trust: given.Trust = False,
) -> None:
    """Train the robust twin of a model: same columns, same size, same learning rate.

    The data are rows to train on, best those that the model was trained on.

    \b
    Examples:
      hardwood harden model.json train.csv --label y --eps 0.1 --out hardened.json
    """  # noqa: D301
    given.writable(out)
    if out.suffix not in (".json", ".ubj"):
        raise ValueError(f"--out must end in .json or .ubj, got {str(out)!r}.")
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    asked = given.read_threat(threat, eps, "inf", low, high, share, rows.X)
    with given.progress_bar() as tell:
        if tell is not None:
            tell("hardening", 0, 1)
        twin = hw.harden(source, rows.X, rows.labels, asked)
    twin.save_model(out)
    typer.echo(f"written: {out}")
