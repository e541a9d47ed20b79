"""Comma-separated values, for spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, _: Asked) -> bytes:
    from traceanalyzer.render.comma_separated import render_csv

    return render_csv(result).encode()


OUTPUT = Output("csv", "for spreadsheets", _render, order=70)
