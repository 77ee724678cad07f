"""`hardwood reproduce`: the paper's tables and figures on this machine."""

import time
from pathlib import Path
from typing import Annotated

import typer

from hardwood import datasets
from hardwood.reproduce import cells, figures, tables
from hardwood.reproduce.settings import FIGURES, TABLES, PaperTable, read_figure, read_table


def reproduce(
    what: Annotated[
        list[str] | None, typer.Argument(help="Tables and figures, by name; all by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small slices of everything.")] = False,
    out: Annotated[Path, typer.Option(help="Directory for results.")] = Path("reproduction"),
    only: Annotated[
        list[str] | None, typer.Option("--set", help="Only these data sets (repeatable).")
    ] = None,
    names: Annotated[
        bool, typer.Option("--list", help="List tables and figures, then end.")
    ] = False,
) -> None:
    """Make the paper's tables and figures again; resumes where it stopped.

    \b
    Examples:
      hardwood reproduce --list
    """  # noqa: D301
    if names:
        for key in TABLES:
            typer.echo(f"{key:<13} {read_table(key).title}")
        for key in FIGURES:
            typer.echo(f"{key:<13} {read_figure(key)['title']}")
        return
    known = (*TABLES, *FIGURES)
    wanted = what or list(known)
    for key in wanted:
        if key not in known:
            raise ValueError(f"{key!r} is no table or figure; choose from {', '.join(known)}.")
    _find_data(wanted, out, only, quick)
    begin = time.perf_counter()
    if not quick:
        typer.echo(cost(wanted, out, only))
    for key in wanted:
        if key in TABLES:
            _make_table(read_table(key, quick), out, only)
        else:
            figures.draw(key, out, quick, typer.echo)
    typer.echo(f"{time.perf_counter() - begin:.0f} s; everything is in {out}")


def _find_data(wanted: list[str], out: Path, only: list[str] | None, quick: bool) -> None:
    """Look for every data set, and fetch what is not here, before hours are announced."""
    open_cells = [
        cell
        for key in wanted
        if key in TABLES
        for cell in read_table(key, quick).cells
        if (not only or cell.name in only) and cells.known(cell, out) is None
    ]
    for name in dict.fromkeys(cell.name for cell in open_cells):
        if datasets.find(name) is None:
            typer.echo(f"{name} is not here yet; looking for it at its source")
            datasets.load(name)


def cost(wanted: list[str], out: Path, only: list[str] | None) -> str:
    """What is ahead, said before it begins."""
    minutes = sum(read_figure(key)["minutes"] for key in wanted if key in FIGURES)
    n_open = 0
    for cell in (c for key in wanted if key in TABLES for c in read_table(key).cells):
        if (not only or cell.name in only) and cells.known(cell, out) is None:
            minutes += cell.minutes
            n_open += 1
    took = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return (
        f"{n_open} models to measure and {sum(key in FIGURES for key in wanted)} figures to draw: "
        f"about {took} on two cores. Stop it whenever you like; it goes on where it was."
    )


def _make_table(table: PaperTable, out: Path, only: list[str] | None) -> None:
    chosen = [cell for cell in table.cells if not only or cell.name in only]
    open_cells = [cell for cell in chosen if cells.known(cell, out) is None]
    typer.echo(f"{table.title}: {len(open_cells)} of {len(chosen)} models to measure")
    for cell in chosen:
        cells.run(cell, out, typer.echo)
    path = out / f"{table.key}.md"
    path.write_text(tables.page(table, out))
    typer.echo(str(path))
