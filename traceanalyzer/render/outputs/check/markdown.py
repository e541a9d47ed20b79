"""A check as Markdown, for a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.captures.check import Check


def _render(check: Check, _: Asked) -> bytes:
    from traceanalyzer.render.comparing.check_markdown import render_check

    return render_check(check).encode()


OUTPUT = Output("markdown", "for a summary", _render, kind="check", order=30)
