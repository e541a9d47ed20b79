"""The command line: one verb a module, no logic here. Nothing heavy is imported before a verb runs, so that `--help` is quick."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Annotated, Literal, NoReturn

import typer

from traceanalyzer.cli import analyze, baseline, check, compare, doctor, export, ingest, report, rules
from traceanalyzer.cli.common import JUDGED, tell
from traceanalyzer.errors import TraceAnalyzerError
from traceanalyzer.garbage import collect_rarely

EPILOG = (
    "Exit codes: 0 passed · 1 a finding at or above --fail-on, a budget broken, or slower than --fail-over allows · "
    "2 wrong usage or unreadable input · 3 could not judge. Each command's --help says more."
)

DEBUG = "TRACEANALYZER_DEBUG"


def _markup() -> Literal["rich"] | None:
    """Boxes and colours are for a terminal that wants them; pipes, logs and `NO_COLOR` get plain lines."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return "rich" if not plain and sys.stdout.isatty() and sys.stderr.isatty() else None


app = typer.Typer(
    name="traceanalyzer",
    help="Find where a GPU's time went. Reads PyTorch (Kineto) traces and Nsight Systems SQLite exports, puts every "
    "nanosecond of every GPU on one line of a ledger, and says what to change and how much it would give.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=_markup(),
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("report", help=report.report.__doc__, epilog=JUDGED)(report.report)
app.command("analyze", help=analyze.analyze.__doc__, epilog=JUDGED)(analyze.analyze)
app.command("check", help=check.check.__doc__, epilog=check.EPILOG)(check.check)
app.command("compare", help=compare.compare.__doc__, epilog=compare.EPILOG)(compare.compare)
app.add_typer(baseline.app, name="baseline")
app.command("export", help=export.export.__doc__, epilog=export.EPILOG)(export.export)
app.command("doctor", help=doctor.doctor.__doc__)(doctor.doctor)
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


def run() -> NoReturn:
    """The program: `main`, and then the end of the process at once.

    Taking the interpreter down is left out. Arrow's threads may let go of memory of Python's meanwhile, which aborts the process: seen
    once in some hundred runs on a busy machine, after all had been written. A gate would read exit code 134.
    """
    code: object = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more
            stream.flush()
    os._exit(code if isinstance(code, int) else 1)


def main() -> None:
    """Run the command line; every error becomes one line and an exit code."""
    collect_rarely()
    # A job that is cancelled leaves nothing half-written either.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app()
    except TraceAnalyzerError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except MemoryError:
        _fail("not enough memory for this trace; use a machine with more, or record fewer steps")
    except Exception as error:
        match _stop_behind(error):
            case KeyboardInterrupt():
                _fail("interrupted", 130)
            case SystemExit() as stop:
                raise stop from None
        if os.environ.get(DEBUG):
            traceback.print_exc()
        hint = "" if os.environ.get(DEBUG) else f"; {DEBUG}=1 shows the traceback"
        _fail(f"this is a fault in traceanalyzer ({type(error).__name__}: {error}){hint}; please report it")


def _stop_behind(error: BaseException | None) -> BaseException | None:
    """The interrupt during which an error came up: a library that is stopped halfway may fail to clean up."""
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__context__
    return error


def _terminated(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _fail(message: str, exit_code: int = 2) -> NoReturn:
    tell(f"error: {message}")
    sys.exit(exit_code)
