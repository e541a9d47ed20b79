"""What went wrong, in one line for the user, and what the program ends with."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from traceanalyzer.cli.process.streams import ReaderGoneError
from traceanalyzer.errors import TraceAnalyzerError
from traceanalyzer.exit_codes import ERROR, FAILED, INTERRUPTED
from traceanalyzer.garbage import collect_rarely
from traceanalyzer.terminal import tell, tell_lines

DEBUG = "TRACEANALYZER_DEBUG"
_NO_MEMORY = "not enough memory for this trace; use a machine with more, or record fewer steps"
_HINTS = {
    errno.EMFILE: "; let the program open more files (ulimit -n), or use fewer --jobs",
    errno.ENFILE: "; the system has no more open files to give",
    errno.EAGAIN: "; the system gives no more processes or threads (ulimit -u): use --jobs 1",
    errno.ENOSPC: "; make room, or set TMPDIR to a folder on another disk",
    errno.EDQUOT: "; make room, or set TMPDIR to a folder on another disk",
    errno.EFBIG: "; let the program write larger files (ulimit -f)",
    errno.EROFS: "; choose a folder that can be written, for temporary files with TMPDIR",
}


def exit_of(command: Callable[[], int]) -> int:
    """What `command` ends with; every error becomes one line, which is told, and an exit code."""
    try:
        collect_rarely()
        return command()
    except ReaderGoneError:
        return 0
    except BaseException as error:
        return _told(error)


def _told(error: BaseException) -> int:
    if isinstance(stop := _stop_behind(error), SystemExit):
        # Our own ends are numbers, and FAILED is not among them here: a library that ends the program so has failed.
        if isinstance(stop.code, int) and stop.code != FAILED:
            return stop.code
        message, code = f"a library ended the program ({stop.code})", ERROR
    elif stop is not None:
        message, code = "interrupted", INTERRUPTED
    elif isinstance(error, TraceAnalyzerError):
        message, code = str(error), error.exit_code
    else:
        if os.environ.get(DEBUG):
            import traceback

            tell_lines("".join(traceback.format_exception(error)).splitlines())
        message, code = _words(error), ERROR
    tell(f"error: {message}")
    return code


def _stop_behind(error: BaseException | None) -> BaseException | None:
    """The interrupt during which an error came up: what is stopped halfway may fail to clean up."""
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__context__
    return error


def _words(error: BaseException) -> str:
    """What is the machine's fault is said as that; what remains is a fault of ours."""
    hint = "" if os.environ.get(DEBUG) else f"; {DEBUG}=1 shows the traceback"
    match error:
        case MemoryError():
            said = _NO_MEMORY
        case RecursionError():
            said = f"the input is nested deeper than can be read{hint}"
        case ImportError():
            said = f"a library cannot be loaded ({_first(error)}); there is too little memory, or install traceanalyzer again{hint}"
        case FileNotFoundError() if "temporary" in str(error):
            said = "no folder for temporary files can be written; set TMPDIR to one"
        case FileNotFoundError() if error.filename is None:
            said = f"{error.strerror}; the current folder may have been deleted: work in another{hint}"
        case OSError() if error.errno:
            file = f"{error.filename}: " if isinstance(error.filename, str) else ""
            said = f"{file}{error.strerror}{_HINTS.get(error.errno, hint)}"
        case RuntimeError() if "start new thread" in str(error):
            said = f"the system gives no more threads{_HINTS[errno.EAGAIN]}"
        case _:
            said = f"this is a fault in traceanalyzer ({type(error).__name__}: {error}){hint}; please report it"
    return said


def _first(error: BaseException) -> str:
    """The error at the bottom of a library's explanations."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)
