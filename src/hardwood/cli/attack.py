"""`hardwood attack`: examples that fool a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

import hardwood as hw
from hardwood.cli import _given as given


def attack(
    model: given.Model,
    data: given.Data,
    label: given.Label = None,
    classes: given.Classes = None,
    eps: given.Eps = None,
    share: given.Share = None,
    threat: given.ThreatFile = None,
    method: Annotated[str, typer.Option(help="Which attack; see hw.find_adversarial.")] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write the examples, one a row.")
    ] = None,
    norm: given.NormOption = "inf",
    low: given.Low = None,
    high: given.High = None,
    threshold: given.Threshold = None,
    time_limit: given.Seconds = None,
    n_jobs: given.Jobs = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the black-box attack.")] = 0,
    trust: given.Trust = False,
    as_json: given.AsJson = False,
) -> None:
    """Change each rightly classified row as little as possible, until the model errs.

    Without --eps, --share or --threat a change of any size counts.

    \b
    Examples:
      hardwood attack model.json rows.csv --label y --out examples.csv
      hardwood attack model.json rows.csv --label y --eps 0.1 --method descent
    """  # noqa: D301
    if out is not None:
        given.writable_rows(out)
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    asked = None
    if threat is not None or eps is not None or share is not None:
        asked = given.read_threat(threat, eps, norm, low, high, share, rows.X)
    decided: dict[str, Any] = {} if threshold is None else {"threshold": threshold}
    with given.progress_bar() as tell:
        found = hw.find_adversarial(
            source,
            rows.X,
            rows.labels,
            method=method,  # type: ignore[arg-type]
            norm=given.norm_of(norm) if asked is None else asked.norm,
            threat=asked,
            random_state=seed,
            time_limit=time_limit,
            n_jobs=n_jobs,
            progress=given.rows_done(tell, "attacking"),
            **decided,
        )
    n = len(found.status)
    counted = {
        name: int((found.status == name).sum()) for name in ("fooled", "survived", "misclassified")
    }
    facts: dict[str, Any] = {"method": found.method}
    if as_json:
        facts |= {"rows": n, **counted, "mean_distance": found.mean_distance}
    else:
        facts |= {name: given.share(part, n) for name, part in counted.items()}
        facts["mean_distance"] = found.mean_distance
    given.show(facts, as_json)
    if out is not None:
        given.write_rows(out, found.to_frame())
        typer.echo(f"written: {out}", err=as_json)
