"""The hardwood command: one file a subcommand, put together here."""

import logging
import sys
import warnings

from hardwood import __version__
from hardwood.errors import HardwoodError


def main() -> None:
    """Run the command line; what the user can mend is one line, not a traceback."""
    try:
        import typer

        from hardwood.cli.convert import convert
        from hardwood.cli.demo import demo
        from hardwood.cli.reproduce import reproduce
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
    ) -> None:
        """Tree models that stay right when someone tampers with their inputs."""

    app.command()(demo)
    app.command()(convert)
    app.command()(reproduce)
    # matplotlib announces on its first run that it looks for fonts.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    warnings.formatwarning = lambda message, *_, **__: f"hardwood: {message}\n"
    try:
        app(prog_name="hardwood")
    except (HardwoodError, ImportError, OSError, ValueError) as error:
        sys.exit(f"hardwood: {error}")
