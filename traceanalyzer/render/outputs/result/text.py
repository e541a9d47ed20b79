"""The result as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, asked: Asked) -> bytes:
    from traceanalyzer.render.text import render_text

    return render_text(result, asked.sections).encode()


OUTPUT = Output("text", "for people", _render, published=False, order=10)
