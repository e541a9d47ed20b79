"""The command line: the modules of this folder that declare a command. Nothing heavy is imported before one runs: `--help` is quick."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Annotated, Literal

import typer

from traceanalyzer.cli.command import Command, others_commands, own_commands
from traceanalyzer.cli.values import QuickCommand, QuickGroup
from traceanalyzer.errors import InputError
from traceanalyzer.exit_codes import ERROR, INTERRUPTED
from traceanalyzer.terminal import tell_lines

_HELP = (["--help"], ["-h"])
# Of addresses, not of memory that is used. Below it no analysis came to an end.
_LIBRARIES_MB = 400
EPILOG = (
    "Exit codes: 0 passed · 1 a finding at or above --fail-on, a budget broken, or slower than --fail-over allows · "
    "2 wrong usage or unreadable input · 3 could not judge. Each command's --help says more."
)


def _markup() -> Literal["rich"] | None:
    """Boxes and colours are for a terminal that wants them; pipes, logs and `NO_COLOR` get plain lines."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return "rich" if not plain and sys.stdout.isatty() and sys.stderr.isatty() else None


def program(commands: Iterable[Command], listed: bool = False) -> typer.Typer:
    """The command line with these commands of ours, which are only `listed` where its help is all that is asked for."""
    made = typer.Typer(
        name="traceanalyzer",
        cls=QuickGroup,
        help="Find where a GPU's time went. Reads PyTorch (Kineto) traces and Nsight Systems SQLite exports, puts every "
        "nanosecond of every GPU on one line of a ledger, and says what to change and how much it would give.",
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode=_markup(),
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_root)
    for command in commands:
        if listed:
            command.list_in(made)
        else:
            command.add_to(made, QuickCommand)
    return made


def _version(wanted: bool) -> None:
    if wanted:
        from traceanalyzer.version import VERSION

        typer.echo(f"traceanalyzer {VERSION}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    _ask_for_memory()


def _ask_for_memory() -> None:
    """Raises InputError where the limit is below what loading the libraries takes: how they fail there is nobody's to catch."""
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _LIBRARIES_MB << 20:
        raise InputError(
            f"the limit on memory is {limit >> 20} MB, and loading the libraries alone takes {_LIBRARIES_MB}; raise it (ulimit -v)"
        )


# The base of what typer says to a command that is typed wrong; its own name depends on the release.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def command_line() -> int:
    """Do what was typed, and the exit code. Wrong usage is told here, all other errors are raised."""
    own = own_commands(sys.argv[1:])
    app = program(own, listed=sys.argv[1:] in _HELP)
    for command in others_commands(own, sys.argv[1:]):
        command.add_to(app)
    try:
        code = app(standalone_mode=False) or 0
    except _UsageError as error:
        said = io.StringIO()
        error.show(said)  # type: ignore[attr-defined]
        tell_lines(said.getvalue().splitlines())
        return ERROR
    except typer.Abort:
        code = INTERRUPTED
    if code == INTERRUPTED:  # what typer makes of it
        raise KeyboardInterrupt  # which typer keeps to itself
    return code
