"""The `headwater` command: finds the subcommand, and turns failures into a sentence.

Starting must feel instant, so a subcommand's module is imported only when the command line names
it; the list in the help is made from the table here.

What goes wrong is told in one sentence on standard error. Exit codes: 0 for success, 1 for failure,
2 for a command line that makes no sense. `HEADWATER_DEBUG=1` shows the traceback instead.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import typer

from headwater import __version__
from headwater.base.errors import KafkaError


class Subcommand(NamedTuple):
    """A module with a `typer.Typer` called `app`, and its line in the help."""

    module: str
    help: str


SUBCOMMANDS: Final = {
    "log": Subcommand("headwater.cli.log", "Look into a broker's log files and verify them."),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debugging = os.environ.get("HEADWATER_DEBUG") == "1"
    try:
        build_app(given)(args=given, prog_name="headwater")
    except SystemExit as finished:
        return _exit_code(finished)
    except Exception as failure:
        if debugging:
            raise
        print(f"headwater: {describe_failure(failure)}", file=sys.stderr)
        return 1
    return 0


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """The command with the subcommand that `arguments` name; the others only show up in help."""
    app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_root)
    named = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, subcommand in SUBCOMMANDS.items():
        if name == named:
            subapp = importlib.import_module(subcommand.module).app
        else:
            subapp = typer.Typer()
            subapp.callback()(_nothing)
        app.add_typer(subapp, name=name, help=subcommand.help)
    return app


def describe_failure(failure: Exception) -> str:
    """One sentence for the person at the keyboard."""
    if isinstance(failure, KafkaError):
        return str(failure)
    if isinstance(failure, OSError) and failure.strerror:
        place = f"{failure.filename}: " if failure.filename is not None else ""
        return f"{place}{failure.strerror}."
    return (
        f"unexpected {type(failure).__name__}: {failure} "
        "(set HEADWATER_DEBUG=1 to see where it comes from)"
    )


def _exit_code(finished: SystemExit) -> int:
    if finished.code is None or isinstance(finished.code, int):
        return finished.code or 0
    print(finished.code, file=sys.stderr)
    return 1


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"headwater {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A Kafka-compatible event-streaming platform in Python."""


def _nothing() -> None:
    """Stands in for a subcommand that was not loaded."""
