"""`hardwood certify`: which rows stay right whatever the threat does."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import hardwood as hw
from hardwood.cli import _given as given


def certify(
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
    least: given.FailUnder = None,
    trust: given.Trust = False,
    as_json: given.AsJson = False,
) -> None:
    """Prove for each row that no change within the threat turns it, or show one that does.

    \b
    Examples:
      hardwood certify model.json rows.csv --label y --eps 0.1
      hardwood certify model.json rows.csv --label y --threat threat.toml --out certificate.csv
    """  # noqa: D301
    given.share_of(least)
    if out is not None:
        given.writable_rows(out)
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    asked = given.read_threat(threat, eps, norm, low, high, share, rows.X)
    decided: dict[str, Any] = {} if threshold is None else {"threshold": threshold}
    with given.progress_bar() as tell:
        answer = hw.certify(
            source,
            rows.X,
            rows.labels,
            asked,
            time_limit=time_limit,
            n_jobs=n_jobs,
            progress=given.rows_done(tell, "certifying"),
            **decided,
        )
    n = len(answer.status)
    wrong = answer.reason == "misclassified"
    counted = {
        "certified": int(np.count_nonzero(answer.status == "certified")),
        "broken": int(np.count_nonzero((answer.status == "broken") & ~wrong)),
        "misclassified": int(np.count_nonzero(wrong)),
        "unknown": int(np.count_nonzero(answer.status == "unknown")),
    }
    if as_json:
        given.show({"rows": n, **counted, "threat": repr(asked)}, True)
    else:
        given.show({name: given.share(part, n) for name, part in counted.items()}, False)
    if out is not None:
        import pandas as pd

        lines = {"row": np.arange(n), "status": answer.status, "reason": answer.reason}
        given.write_rows(out, pd.DataFrame(lines))
        typer.echo(f"written: {out}", err=as_json)
    given.fail_under(answer.certified_accuracy, least)
