"""The hardwood command: one file a subcommand, put together here."""

import importlib
import io
import logging
import sys
import warnings

from hardwood import __version__
from hardwood.errors import HardwoodError

COMMANDS = (
    "audit",
    "certify",
    "distance",
    "attack",
    "harden",
    "train",
    "predict",
    "check",
    "convert",
    "demo",
    "reproduce",
)


def _tolerate_encodings() -> None:
    """Print ? for what the output cannot encode: a file that Windows opens has no arrows."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run the command line; what the user can mend is one line, not a traceback."""
    _tolerate_encodings()
    try:
        import typer

        commands = [
            getattr(importlib.import_module(f"hardwood.cli.{name}"), name) for name in COMMANDS
        ]
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("typer", "rich"):
            raise
        sys.exit(
            "hardwood: the command line needs typer and rich. Install them with: "
            'pip install "hardwood[cli]"'
        )

    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"hardwood {__version__}")
            raise typer.Exit

    @app.callback()
    def hardwood(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
        debug: bool = typer.Option(
            False, "--debug", help="Show where an error comes from; may stand anywhere."
        ),
    ) -> None:
        """Tree models that stay right when someone tampers with their inputs.

        Start with: hardwood audit MODEL DATA --label COLUMN --eps 0.1 --out report.html
        """

    for command in commands:
        app.command()(command)
    # matplotlib announces on its first run that it looks for fonts.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    warnings.formatwarning = lambda message, *_, **__: f"hardwood: {message}\n"
    words = [word for word in sys.argv[1:] if word != "--debug"]
    try:
        app(words, prog_name="hardwood")
    except (HardwoodError, ImportError, OSError, ValueError) as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"hardwood: {error}", err=True)
        sys.exit(2)
