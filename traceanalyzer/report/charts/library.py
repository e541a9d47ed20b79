"""The charting library as text. It is read as a file: importing its Python package takes a second, and nothing else of it is used."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from traceanalyzer.report.packing import packed


@cache
def library() -> str:
    """plotly.js whole, as the Python package plotly carries it."""
    package = importlib.util.find_spec("plotly")
    assert package and package.submodule_search_locations, "plotly is a dependency of this package"
    return (Path(package.submodule_search_locations[0]) / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


@cache
def packed_library() -> str:
    return packed(library().encode())
