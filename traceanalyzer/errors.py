"""The errors a user is meant to read: one line that names the file, what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from traceanalyzer.exit_codes import ERROR, NOT_JUDGED


class TraceAnalyzerError(Exception):
    """Base of every error with a message for the user. `exit_code` is what the command line ends with."""

    exit_code = ERROR


class InputError(TraceAnalyzerError):
    """An input that cannot be read as a trace: missing, empty, not a trace, or not yet exported."""


class UnreachableError(InputError):
    """An input that a disk or network does not give now, whatever it holds."""


class ChangedError(InputError):
    """A store that is another one than when reading it began; who begins again reads the new one. `happened` is all but what to do."""

    def __init__(self, happened: str) -> None:
        super().__init__(f"{happened}; give the command again when nobody writes it")
        self.happened = happened

    def __reduce__(self) -> tuple[type[ChangedError], tuple[str]]:
        return type(self), (self.happened,)


class ConfigError(TraceAnalyzerError):
    """A rule file, parameter or configuration value that is wrong. What is told of it may have several lines, the message has one."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


class WorkerError(TraceAnalyzerError):
    """Other processes or machines that cannot be had, or that were lost while they worked."""


class NotJudgedError(TraceAnalyzerError):
    """Traces that can be read but do not tell what was asked for, such as a baseline of a damaged capture."""

    exit_code = NOT_JUDGED


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "; did you mean 'x'?" for the nearest known name, or nothing."""
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""
