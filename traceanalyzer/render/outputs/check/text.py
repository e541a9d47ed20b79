"""A check as text, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.captures.check import Check


def _render(check: Check, _: Asked) -> bytes:
    from traceanalyzer.render.comparing.check_text import render_check

    return render_check(check).encode()


OUTPUT = Output("text", "for people", _render, kind="check", published=False, order=10)
