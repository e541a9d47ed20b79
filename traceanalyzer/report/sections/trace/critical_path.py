"""What sets the length of a step: the largest links of the critical path."""

from __future__ import annotations

from typing import Any

from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.palette import BY_KEY, Swatch
from traceanalyzer.report.section import PageSection
from traceanalyzer.result.critical_path import TRANSFER
from traceanalyzer.result.words.critical_path import left_words, path_length, path_rows, path_title
from traceanalyzer.vocabulary.lines import idle_line

ROWS = 8


def _view(page: ReportContext) -> dict[str, Any] | None:
    path, rows = page.result.critical_path, path_rows(page.result, ROWS)
    if path is None or not rows:
        return None
    return {
        "title": path_title(path),
        "length": path_length(path),
        "rows": [(row, kind_swatch(row.link.kind)) for row in rows],
        "left": left_words(path, rows),
        "steps": path.step_count,
    }


def kind_swatch(kind: str) -> Swatch | None:
    """The colour of a kind of link: that of its line in the ledger, of a transfer that of communication."""
    return BY_KEY["communication"] if kind == TRANSFER else BY_KEY.get(kind) or BY_KEY.get(idle_line(kind))


SECTION = PageSection(
    name="critical-path", title="Critical path", template="critical-path.html.j2", order=35, view=_view
)
