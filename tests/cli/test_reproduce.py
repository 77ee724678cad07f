"""`hardwood reproduce` as a user meets it."""

import pytest

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
from typer.testing import CliRunner

from hardwood.cli.reproduce import reproduce


def run(*words):
    import typer

    app = typer.Typer()
    app.command()(reproduce)
    return CliRunner().invoke(app, list(words))


def test_list_names_tables_and_figures():
    done = run("--list")
    assert done.exit_code == 0
    for key in ("table2", "table3", "trees", "forest", "accuracy", "toy", "images"):
        assert f"\n{key} " in f"\n{done.output}"


def test_the_toy_figure(tmp_path):
    done = run("toy", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "figures" / "toy.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_table():
    done = run("table9")
    assert isinstance(done.exception, ValueError)
    assert "'table9' is no table or figure; choose from table2," in str(done.exception)
