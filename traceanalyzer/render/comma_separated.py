"""The findings as CSV (RFC 4180), for a spreadsheet or a database: one row a finding."""

from __future__ import annotations

import csv
import io
import re

from traceanalyzer.render.lines import printable
from traceanalyzer.result.document import Finding, Result

COLUMNS = (
    *("rule", "slug", "title", "severity", "confidence", "rank", "device", "recoverable_ns", "recoverable_share"),
    *(
        "speedup_ceiling",
        "predicted_speedup",
        "predicted_speedup_least",
        "predicted_speedup_most",
        "prediction_note",
        "per_step_ns",
    ),
    *("place", "place_ns", "place_predicted_speedup", "file", "line", "message"),
)
_FORMULA = re.compile(r"^[\s'\"]*[=+\-@＝＋－＠]")


def render_csv(result: Result) -> str:
    """A heading and a row a finding, in the order of the result; what is not known is empty. Lines end as RFC 4180 says."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(_row(finding) for finding in result.findings)
    return text.getvalue()


def _row(finding: Finding) -> list[str | int | float | None]:
    saving, source, place = finding.saving, finding.source, finding.saving.place
    least, most = saving.predicted_speedup_range or (None, None)
    return [
        *map(_text, (finding.rule, finding.slug, finding.title, finding.severity, finding.confidence)),
        *(finding.scope.rank, finding.scope.device),
        *(saving.recoverable_ns, saving.recoverable_share, saving.speedup_ceiling, saving.predicted_speedup),
        *(least, most, _text(saving.prediction_note or ""), saving.per_step_ns),
        *((_text(place.name), place.ns, place.predicted_speedup) if place else (None, None, None)),
        *(_text(source.file) if source else None, source.line if source else None),
        _text(finding.message),
    ]


def _text(words: str) -> str:
    """A text that a spreadsheet would run as a formula gets an apostrophe before it."""
    line = printable(" ".join(words.split()))
    return f"'{line}" if _FORMULA.match(line) else line
