"""`hardwood distance`: how far each row is from being fooled."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hardwood as hw
from hardwood.cli import _given as given


def distance(
    model: given.Model,
    data: given.Data,
    label: given.Label = None,
    classes: given.Classes = None,
    eps: given.Eps = None,
    share: given.Share = None,
    threat: given.ThreatFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write one line a row.")
    ] = None,
    norm: given.NormOption = "inf",
    low: given.Low = None,
    high: given.High = None,
    threshold: given.Threshold = None,
    time_limit: given.Seconds = None,
    n_jobs: given.Jobs = None,
    trust: given.Trust = False,
    as_json: given.AsJson = False,
) -> None:
    """Measure the smallest change that fools the model, row by row.

    A threat is needed only for directions, ranges and columns that do not move; its size does not
    limit the search.

    \b
    Examples:
      hardwood distance model.json rows.csv --label y
      hardwood distance model.json rows.csv --label y --norm 2 --time-limit 1 --out distances.csv
    """  # noqa: D301
    if out is not None:
        given.writable_rows(out)
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    asked = None
    if any(one is not None for one in (threat, eps, share, low, high)):
        size = 1.0 if eps is None and threat is None and share is None else eps
        asked = given.read_threat(threat, size, norm, low, high, share, rows.X)
    decided: dict[str, Any] = {} if threshold is None else {"threshold": threshold}
    with given.progress_bar() as tell:
        found = hw.minimal_distance(
            source,
            rows.X,
            rows.labels,
            norm=given.norm_of(norm) if asked is None else asked.norm,
            threat=asked,
            time_limit=time_limit,
            n_jobs=n_jobs,
            progress=given.rows_done(tell, "measuring"),
            **decided,
        )
    n = len(found.status)
    attacked = found.status != "misclassified"
    counts = {name: int(np.count_nonzero(found.status == name)) for name in ("exact", "unknown")}
    counts["misclassified"] = int(np.count_nonzero(~attacked))
    facts: dict[str, Any] = {
        name: part if as_json else given.share(part, n) for name, part in counts.items()
    }
    if attacked.any():
        for name, q in (("smallest", 0.0), ("median", 0.5), ("largest", 1.0)):
            low_end, high_end = (
                float(np.quantile(side[attacked], q, method="lower"))
                for side in (found.lower, found.upper)
            )
            facts[name] = (
                low_end if low_end == high_end else f"between {low_end:.4g} and {high_end:.4g}"
            )
    given.show({"rows": n, **facts} if as_json else facts, as_json)
    if out is not None:
        import pandas as pd

        lines = {"row": np.arange(n), "lower": found.lower, "upper": found.upper}
        given.write_rows(out, pd.DataFrame({**lines, "status": found.status}))
        typer.echo(f"written: {out}", err=as_json)
