"""Metrics for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, _: Asked) -> bytes:
    from traceanalyzer.render.prometheus import render_prometheus

    return render_prometheus(result).encode()


OUTPUT = Output("prometheus", "for graphs", _render, order=80)
