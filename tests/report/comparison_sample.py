"""Two made-up runs to compare: the report's sample, and the same on another clock with its data loader four times as quick."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from report_sample import HOSTILE, HOSTILE_TOO, ORIGIN, Sample, sample

from tests.support.comparisons import US, change, comparison, problem, side
from traceanalyzer.report.comparison_page import render_comparison_html
from traceanalyzer.result.comparing.comparison import Comparison, Note
from traceanalyzer.result.document import Evidence, Result

LATER = 86_400_000_000_001
"""NEW was recorded a day after BASE."""
QUICKER = 4


def base() -> tuple[Result, Sample]:
    result, tables = sample()
    return result, complete(tables)


def new() -> tuple[Result, Sample]:
    """All times from the first on are divided by QUICKER, and moved."""
    result, tables = sample()
    findings = [replace(one, evidence=[_evidence_later(item) for item in one.evidence]) for one in result.findings]
    later = Sample(**{name: _later(table) for name, table in tables.tables.items()})
    return replace(result, findings=findings), complete(later)


def complete(tables: Sample) -> Sample:
    """All steps but the first are complete, as a trace has them."""
    steps = tables.tables["step_stats"]
    known = pa.array(np.arange(steps.num_rows) > 0)
    steps = steps.set_column(steps.schema.get_field_index("complete"), steps.schema.field("complete"), known)
    return Sample(**{**tables.tables, "step_stats": steps})


def _later(table: pa.Table) -> pa.Table:
    for at, field in enumerate(table.schema):
        if field.name.endswith("_ns") and field.name != "duration_ns":
            since = pc.divide(pc.subtract(table.column(at), ORIGIN), QUICKER)
            table = table.set_column(at, field, pc.add(since, ORIGIN + LATER))
    return table


def _evidence_later(item: Evidence) -> Evidence:
    start, end = ((time - ORIGIN) // QUICKER + ORIGIN + LATER for time in (item.start_ns, item.end_ns))
    return replace(item, start_ns=start, end_ns=end)


def compared(**other: object) -> Comparison:
    """With names that mean harm wherever a name can stand."""
    given: dict[str, object] = {
        "headline": f"A step is 1.52 times as fast: 12.1 ms instead of 18.4 ms, without {HOSTILE}.",
        "base": side(f"/home/alice/{HOSTILE_TOO.replace('/', '')}.json", 18_400 * US),
        "new": side("/home/alice/runs/new.json", 12_100 * US),
        "notes": [Note("versions", f"base ran on {HOSTILE}, new on torch 2.6.0")],
        "families": [change(HOSTILE, 6_000 * US, 6_600 * US)],
        "kernels": [
            change(HOSTILE, 6_000 * US, 6_600 * US, base_count=24, new_count=24),
            change(HOSTILE_TOO, 400 * US, None, base_count=2, new_count=0),
            *(change(f"kernel_{n}", 1_000 * US + n, 1_000 * US - n * US) for n in range(40)),
        ],
        "collectives": [change(f"all-reduce {HOSTILE}", None, 30 * US)],
        "problems": [
            *comparison().problems,
            replace(problem("MEM001", HOSTILE, "worse", 1_000 * US, 2_000 * US), message=HOSTILE_TOO),
        ],
    }
    return comparison(**{**given, **other})


def rendered(**options: object) -> bytes:
    """The page of both runs with their timelines."""
    (base_result, base_tables), (new_result, new_tables) = base(), new()
    given = {"base_result": base_result, "new_result": new_result, **options}
    return render_comparison_html(compared(), base_tables, new_tables, **given)  # type: ignore[arg-type]
