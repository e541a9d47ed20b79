"""The result as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.document import Result


def _render(result: Result, _: Asked) -> bytes:
    return result.to_json()


OUTPUT = Output("json", "for scripts (all there is)", _render, published=False, order=20)
