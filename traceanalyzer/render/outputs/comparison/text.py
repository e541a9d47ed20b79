"""A comparison as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.comparing.comparison import Comparison


def _render(comparison: Comparison, _: Asked) -> bytes:
    from traceanalyzer.render.comparing.compare_text import render_comparison

    return render_comparison(comparison).encode()


OUTPUT = Output("text", "for people", _render, kind="comparison", published=False, order=10)
