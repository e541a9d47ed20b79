"""What is to be said of the recorded program."""

from __future__ import annotations

from traceanalyzer.result.document import Result


def may_be_python(result: Result) -> bool:
    """Whether words of Python fit: it is seen, or nothing tells the language and the file is not from a profiler of any program."""
    languages = result.program.languages
    return "Python" in languages or (not languages and any(one.format != "nsys" for one in result.inputs))
