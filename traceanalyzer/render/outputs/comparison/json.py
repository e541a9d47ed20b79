"""A comparison as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.comparing.comparison import Comparison


def _render(comparison: Comparison, _: Asked) -> bytes:
    return comparison.to_json()


OUTPUT = Output("json", "for scripts", _render, kind="comparison", published=False, order=30)
