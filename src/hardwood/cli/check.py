"""`hardwood check`: whether a report of an audit holds."""

import json
from pathlib import Path
from typing import Annotated

import typer

import hardwood as hw
from hardwood.cli import _given as given


def check(
    report: Annotated[Path, typer.Argument(help="A report that hardwood audit wrote as .json.")],
    model: Annotated[Path, typer.Option("--model", help="The model file that it speaks of.")],
    data: Annotated[Path, typer.Option("--data", help="The rows that it speaks of.")],
    label: given.Label = None,
    classes: given.Classes = None,
    twin: Annotated[
        Path | None, typer.Option("--twin", help="The second model of a report with a twin.")
    ] = None,
    n_rows: Annotated[
        int, typer.Option("--rows", min=1, help="Certificates and distances to prove again.")
    ] = 100,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of that sample; another one each time if left.")
    ] = None,
    trust: given.Trust = False,
    as_json: given.AsJson = False,
) -> None:
    """Replay every example of a report, derive its counts, and prove a sample of it again.

    Ends with code 1 if a claim does not hold.

    \b
    Examples:
      hardwood check report.json --model model.json --data rows.csv --label y
    """  # noqa: D301
    if not report.exists():
        raise ValueError(f"{str(report)!r} does not exist; check the name of the report.")
    claims = hw.Audit.from_json(report)
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    if "twin" in claims.content and claims.content["data"]["n_rows"] == len(rows.labels) // 2:
        rows = rows.half(1)  # the twin was trained on the others
    other = None if twin is None else given.open_model(twin, trust)
    answers = claims.check(
        source, rows.X, rows.labels, twin=other, n_rows=n_rows, random_state=seed
    )
    if as_json:
        typer.echo(json.dumps(answers, indent=1))
    else:
        for one in answers:
            typer.echo(f"{'holds' if one['passed'] else 'FAILS'}  {one['words']}")
    if not all(one["passed"] for one in answers):
        raise typer.Exit(1)
