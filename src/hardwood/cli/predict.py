"""`hardwood predict`: what a model says of rows."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import hardwood as hw
from hardwood.cli import _given as given


def predict(
    model: given.Model,
    data: given.Data,
    label: given.Label = None,
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
        given.writable(out)
    source = given.open_model(model, trust)
    trees = hw.load_model(source)
    rows = given.read_table(data, label, trees.n_features)
    said = trees.predict(rows.X, n_jobs=n_jobs)
    lines = {"prediction": said}
    if proba:
        names = range(trees.n_classes) if trees.classes is None else trees.classes
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
