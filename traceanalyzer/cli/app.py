"""The command line: one verb a module, no logic here. Nothing heavy is imported before a verb runs, so that `--help` is quick."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from traceanalyzer.cli import analyze, ingest, report, rules
from traceanalyzer.errors import TraceAnalyzerError

EPILOG = (
    "Exit codes: 0 clean · 1 findings at or above --fail-on · 2 wrong usage or unreadable input · "
    "3 could not judge (no GPU work, or damage that hides it)."
)

app = typer.Typer(
    name="traceanalyzer",
    help="Find where a GPU's time went. Reads PyTorch (Kineto) traces and Nsight Systems SQLite exports, puts every "
    "nanosecond of every GPU on one line of a ledger, and says what to change and how much it would give.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("report", help=report.report.__doc__, epilog=EPILOG)(report.report)
app.command("analyze", help=analyze.analyze.__doc__, epilog=EPILOG)(analyze.analyze)
app.command("ingest", help=ingest.ingest.__doc__)(ingest.ingest)
app.add_typer(rules.app, name="rules")


def _version(wanted: bool) -> None:
    if wanted:
        from traceanalyzer.version import VERSION

        typer.echo(f"traceanalyzer {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; errors meant for the user become one line and an exit code."""
    try:
        app()
    except TraceAnalyzerError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (`| head`) has enough; nothing may be written to stdout any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
