"""The errors a user is meant to read: one line that names the file, what is wrong and what to do."""

from __future__ import annotations


class TraceAnalyzerError(Exception):
    """Base of every error with a message for the user. `exit_code` is what the command line ends with."""

    exit_code = 2


class InputError(TraceAnalyzerError):
    """An input that cannot be read as a trace: missing, empty, not a trace, or not yet exported."""


class ConfigError(TraceAnalyzerError):
    """A rule file, parameter or configuration value that is wrong."""


class WorkerError(TraceAnalyzerError):
    """Other processes or machines that cannot be had, or that were lost while they worked."""
