"""A check as JUnit, for a CI server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.captures.check import Check


def _render(check: Check, _: Asked) -> bytes:
    from traceanalyzer.render.comparing.check_junit import render_check

    return render_check(check)


OUTPUT = Output("junit", "for a CI server", _render, kind="check", order=40)
