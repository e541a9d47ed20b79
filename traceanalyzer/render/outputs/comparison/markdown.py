"""A comparison as Markdown, for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.comparing.comparison import Comparison


def _render(comparison: Comparison, asked: Asked) -> bytes:
    from traceanalyzer.render.comparing.compare_markdown import render_comparison_markdown

    return render_comparison_markdown(comparison, asked.title).encode()


OUTPUT = Output("markdown", "for a pull request", _render, kind="comparison", order=20)
