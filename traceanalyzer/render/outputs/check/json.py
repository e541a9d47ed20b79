"""A check as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceanalyzer.render.output import Asked, Output

if TYPE_CHECKING:
    from traceanalyzer.result.captures.check import Check


def _render(check: Check, _: Asked) -> bytes:
    return check.to_json()


OUTPUT = Output("json", "for scripts", _render, kind="check", published=False, order=20)
