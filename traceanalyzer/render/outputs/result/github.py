"""Annotations on GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, asked: Asked) -> bytes:
    from traceanalyzer.render.github import render_github

    return render_github(result, asked.fail_on).encode()


OUTPUT = Output("github", "for annotations", _render, order=60)
