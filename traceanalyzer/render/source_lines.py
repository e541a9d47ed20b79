"""Lines of the program's own code, as the tools around a repository link them."""

from __future__ import annotations

import re

from traceanalyzer.result.document import Source


def line_in_repository(source: Source | None) -> tuple[str, int] | None:
    """The file by its path from the top of the repository, and the line; None where the file lies elsewhere.

    The profiler cuts off the folder that Python imports from, which is the repository's where the program is started at its top.
    """
    if source is None or source.line < 1:
        return None
    path = source.file
    while path.startswith("./"):
        path = path[2:]
    outside = path.startswith(("/", "<", "~")) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) or ".." in path.split("/")
    return None if outside or not path else (path, source.line)
