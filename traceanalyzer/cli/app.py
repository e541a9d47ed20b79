"""The program around the commands: whatever happens becomes one line and an exit code, and 1 only ever means that a gate failed.

Nothing is imported here that may fail before somebody can say so.
"""

from __future__ import annotations

import os
import sys

from traceanalyzer.exit_codes import ERROR, INTERRUPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def run() -> NoReturn:
    """The program: `main` in a process that is watched, and then the end of the process at once.

    Taking the interpreter down is left out. Arrow's threads may let go of memory of Python's meanwhile, which aborts the process: seen
    once in some hundred runs on a busy machine, after all had been written.
    """
    os._exit(_guarded(_watched))


def main() -> None:
    """Run the command line; every error becomes one line and an exit code."""
    from traceanalyzer.cli.process.failures import exit_of

    def command() -> int:
        from traceanalyzer.cli.commands import command_line

        return command_line()

    sys.exit(exit_of(command))


def _watched() -> int:
    from traceanalyzer.cli.process.streams import open_standard_streams
    from traceanalyzer.cli.process.supervision import supervise

    open_standard_streams()
    # One thread is all that numpy is asked for here, and many are what it starts: where they are not to be had it interrupts us.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return supervise(lambda: _guarded(_work), _say)


def _work() -> int:
    """What `main` ends with, unless its results could not be written to the end."""
    from traceanalyzer.cli.process.streams import NotWrittenError, end_standard_streams

    code = _guarded(main)
    try:
        end_standard_streams()
    except NotWrittenError as error:
        if code != ERROR and code < 128:  # else it was said already, or is of no interest
            _say(f"error: {error}")
            code = ERROR
    return code


def _guarded(work: Callable[[], int | None]) -> int:
    """The exit code of `work`, also where an error comes up while another one is told."""
    try:
        return work() or 0
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        _say(f"error: {end.code}")
        return ERROR
    except KeyboardInterrupt:
        _say("error: interrupted")
        return INTERRUPTED
    except BaseException as error:
        _say(f"error: the program cannot go on ({type(error).__name__}: {error})")
        return ERROR


def _say(text: str) -> None:
    """One line, with nothing but the system: there may be no memory for more."""
    try:  # noqa: SIM105
        os.write(2, " ".join(text.split()).encode("ascii", "backslashreplace") + b"\n")
    except OSError:
        pass
