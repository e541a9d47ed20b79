"""Markdown, for a step summary or a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, asked: Asked) -> bytes:
    from traceanalyzer.render.markdown import render_markdown

    return render_markdown(result, asked.sections).encode()


OUTPUT = Output("markdown", "for a step summary or a comment", _render, order=30)
