"""JUnit, for test reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, asked: Asked) -> bytes:
    from traceanalyzer.render.junit import render_junit

    return render_junit(result, asked.fail_on)


OUTPUT = Output("junit", "for test reports", _render, order=50)
