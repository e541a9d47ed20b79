"""A check as annotations on GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.captures.check import Check


def _render(check: Check, _: Asked) -> bytes:
    from traceanalyzer.render.comparing.check_github import render_check

    return render_check(check).encode()


OUTPUT = Output("github", "for annotations", _render, kind="check", order=50)
