"""SARIF, for code scanning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, _: Asked) -> bytes:
    from traceanalyzer.render.sarif import render_sarif

    return render_sarif(result)


OUTPUT = Output("sarif", "for code scanning", _render, order=40)
