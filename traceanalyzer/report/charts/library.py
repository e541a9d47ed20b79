"""The charting library as text: the parts of plotly.js that the charts use, which travel with the package (see ci/plotly)."""

from __future__ import annotations

from functools import cache

from traceanalyzer.report.packing import pack
from traceanalyzer.report.templating import template_text

LIBRARY = "vendored/plotly.min.js"
"""Among the templates. Beside it stand its version and checksum."""


@cache
def library() -> str:
    """A script that makes `Plotly`, with the notices of everything in it."""
    return template_text(LIBRARY)


@cache
def packed_library() -> str:
    return pack(library().encode())
