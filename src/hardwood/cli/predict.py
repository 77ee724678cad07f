"""`hardwood predict`: what a model says of rows."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hardwood as hw
from hardwood.cli import _given as given


def predict(
    model: given.Model,
    data: given.Data,
    label: given.Label = None,
    classes: given.Classes = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write; else to the terminal.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities, too.")] = False,
    n_jobs: given.Jobs = None,
    trust: given.Trust = False,
) -> None:
    """Predict the label of each row; with --label, say how many are right.

    \b
    Examples:
      hardwood predict model.json rows.csv --label y --out predictions.csv
      hardwood predict model.json rows.csv --label y --proba
    """  # noqa: D301
    import pandas as pd

    if out is not None:
        given.writable_rows(out)
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    trees = hw.load_model(source, rows.X)
    said = trees.predict(rows.X, n_jobs=n_jobs)
    own = range(trees.n_classes) if trees.classes is None else trees.classes.tolist()
    names: list[Any] = given.class_names(classes) or list(own)
    called = dict(zip(own, names, strict=True)) if trees.tells_labels else {}
    lines: dict[str, Any] = {"prediction": [called.get(one, one) for one in said.tolist()]}
    if proba:
        share = trees.predict_proba(rows.X, n_jobs=n_jobs)
        lines |= {f"probability {name}": share[:, k] for k, name in enumerate(names)}
    frame = pd.DataFrame(lines)
    if out is None:
        typer.echo(frame.to_csv(index=False), nl=False)
    else:
        given.write_rows(out, frame)
        typer.echo(f"written: {out}")
    if rows.y is not None and trees.tells_labels:
        right = int(np.count_nonzero(said == rows.y))
        typer.echo(f"right: {given.share(right, len(said))}", err=True)
    elif rows.y is not None:
        error = float(np.mean(np.abs(said - rows.y)))
        typer.echo(f"mean absolute error: {error:.4g} ({len(said):,} rows)", err=True)
