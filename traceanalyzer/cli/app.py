"""The program around the commands: whatever happens becomes one line and an exit code, and 1 only ever means that a gate failed.

Nothing that may fail is imported here before somebody can say so.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from traceanalyzer.cli.streams import NotWrittenError, end_standard_streams, open_standard_streams
from traceanalyzer.cli.supervision import FAILED, supervised

INTERRUPTED = 130


def run() -> NoReturn:
    """The program: `main` in a process that is watched, and then the end of the process at once.

    Taking the interpreter down is left out. Arrow's threads may let go of memory of Python's meanwhile, which aborts the process: seen
    once in some hundred runs on a busy machine, after all had been written.
    """
    open_standard_streams()
    # One thread is all that numpy is asked for here, and many are what it starts: where they are not to be had it interrupts us.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os._exit(supervised(_work, _say))


def main() -> None:
    """Run the command line; every error becomes one line and an exit code."""
    from traceanalyzer.cli.failures import exit_of

    def command() -> int:
        from traceanalyzer.cli.commands import command_line

        return command_line()

    sys.exit(exit_of(command))


def _work() -> int:
    """What `main` ends with, unless that could not be said in full."""
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as error:  # while another one was told
        _say(f"error: the program could not go on ({type(error).__name__})")
        code = FAILED
    try:
        end_standard_streams()
    except NotWrittenError as error:
        if code != FAILED and code < 128:  # else it was said already, or is of no interest
            _say(f"error: {error}")
            code = FAILED
    return code


def _say(text: str) -> None:
    """One line, with nothing but the system: there may be no memory for more."""
    with suppress(OSError):
        os.write(2, text.encode("ascii", "backslashreplace") + b"\n")
