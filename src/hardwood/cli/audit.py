"""`hardwood audit`: how fragile a model is, as one page."""

from pathlib import Path
from typing import Annotated, Any

import typer

import hardwood as hw
from hardwood.cli import _given as given


def audit(
    model: given.Model,
    data: given.Data,
    label: given.Label = None,
    classes: given.Classes = None,
    eps: given.Eps = None,
    share: given.Share = None,
    threat: given.ThreatFile = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", help="Where to write: .html or .json (repeatable)."),
    ] = None,
    harden: Annotated[
        bool, typer.Option("--harden", help="Train the robust twin and show both.")
    ] = False,
    train: Annotated[
        Path | None, typer.Option("--train", help="Rows for --harden; else half of the data.")
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option("--twin", help="A second model to show, such as that of hardwood harden."),
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="Rows are images of this size, such as 28x28.")
    ] = None,
    norm: given.NormOption = "inf",
    low: given.Low = None,
    high: given.High = None,
    threshold: given.Threshold = None,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Rows to certify; more are sampled.")
    ] = 10_000,
    distances: Annotated[int, typer.Option(min=1, help="Rows to measure exactly.")] = 1_000,
    time_limit: given.Seconds = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    n_jobs: given.Jobs = None,
    least: given.FailUnder = None,
    trust: given.Trust = False,
    as_json: given.AsJson = False,
) -> None:
    """Find out how fragile a model is, where, and what can be proven; write it as one page.

    \b
    Examples:
      hardwood audit model.json rows.csv --label y --eps 0.1 --out report.html
      hardwood audit model.json rows.csv --label y --share 0.1 --out report.html
      hardwood audit model.json rows.csv --label y --threat threat.toml --out report.html --out report.json
      hardwood audit model.json rows.csv --label y --eps 0.1 --harden --train train.csv --out both.html
      hardwood audit model.json rows.csv --label y --eps 0.1 --twin hardened.json --out both.html
      hardwood audit pipeline.joblib rows.csv --label y --eps 0.1 --trust --fail-under 0.05
    """  # noqa: E501, D301
    given.share_of(least)
    paths = [given.writable(path) for path in out or ()]
    for path in paths:
        if path.suffix not in (".html", ".json"):
            raise ValueError(f"--out must end in .html or .json, got {str(path)!r}.")
    source = given.open_model(model, trust)
    rows = given.read_table(data, label, given.column_count(source)).called(classes, source)
    asked = given.read_threat(threat, eps, norm, low, high, share, rows.X)
    X, y, twin = rows.X, rows.labels, None
    if least is not None and hw.load_model(source).task == "regression":
        raise ValueError("--fail-under is for classifiers, and this model predicts numbers.")
    if other is not None:
        if harden:
            raise ValueError("Either --harden trains the twin or --twin names its file, not both.")
        twin = given.open_model(other, trust)
    if harden:
        X, y, twin = _twin(source, rows, asked, train, label, classes)
    with given.progress_bar() as tell:
        report = hw.audit(
            source,
            X,
            y,
            asked,
            classes=given.class_names(classes),
            threshold=threshold,
            name=model.name,
            twin=twin,
            twin_name=None if other is None else other.name,
            image=_size(image),
            max_rows=max_rows,
            n_distances=distances,
            time_limit=time_limit,
            random_state=seed,
            n_jobs=n_jobs,
            progress=tell,
        )
    for path in paths:
        report.to_html(path) if path.suffix == ".html" else report.to_json(path)
    typer.echo(report.to_json() if as_json else report.summary())
    for path in paths:
        typer.echo(f"written: {path}", err=as_json)
    if least is not None:
        given.fail_under(report.certified_accuracy, least)


def _twin(
    source: Any,
    rows: given.Table,
    threat: hw.Threat,
    train: Path | None,
    label: str | None,
    classes: str | None,
) -> tuple[Any, Any, Any]:
    """The rows to compare both models on, and the robust twin, which has not seen them."""
    if train is None:
        seen, rows = rows.half(0), rows.half(1)
    else:
        seen = given.read_table(train, label, given.column_count(source)).called(classes, source)
    return rows.X, rows.labels, hw.harden(source, seen.X, seen.labels, threat)


def _size(image: str | None) -> tuple[int, int] | None:
    if image is None:
        return None
    height, _, width = image.partition("x")
    if not (height.isdigit() and width.isdigit()):
        raise ValueError(f"--image must be HEIGHTxWIDTH, such as 28x28, got {image!r}.")
    return int(height), int(width)
