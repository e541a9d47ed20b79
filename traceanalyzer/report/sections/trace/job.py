"""The job section of the page as plain values: its ranks, and who is late."""

from __future__ import annotations

from typing import Any

from traceanalyzer.names import readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.report.context import ReportContext
from traceanalyzer.report.palette import BY_KEY, Swatch
from traceanalyzer.report.section import PageSection
from traceanalyzer.result.document import Result
from traceanalyzer.result.job import LateRank
from traceanalyzer.result.job_shape import AxisTime, HostTime, StageTime
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.result.words.job import Absence, absent, replayed, shape, summary, waiting, why_late
from traceanalyzer.vocabulary.levels import MEDIUM, Severity

LATE_ROWS = STAGE_ROWS = 16


@dataclass(frozen=True)
class LateView:
    """One row of the table of late ranks; `swatch` is the colour of what it does meanwhile, `full` the whole name of that."""

    name: str
    late: LateRank
    why: str
    swatch: Swatch | None
    full: str


@dataclass(frozen=True)
class JobView:
    """`clauses`, `waiting` and `shape` say the job in words; `late_left` is how many late ranks the table leaves out, and their share.
    `stages` are the first GPUs of a pipeline by name."""

    clauses: list[str]
    absent: list[tuple[Absence, Severity]]
    waiting: str | None
    replayed: str | None
    late: list[LateView]
    late_left: tuple[int, float] | None
    shape: list[str]
    axes: list[AxisTime]
    hosts: list[HostTime]
    stages: list[tuple[str, StageTime]]


def job_view(result: Result) -> JobView | None:
    """None for a single GPU."""
    job = result.job
    if job is None:
        return None
    namer = gpu_namer(result.devices)
    left = job.late_ranks[LATE_ROWS:]
    return JobView(
        clauses=summary(result, job),
        absent=[(one, MEDIUM) for one in absent(result, job)],
        waiting=waiting(result, job),
        replayed=replayed(result, job),
        late=[
            LateView(
                namer(late.rank, late.device),
                late,
                why_late(late),
                BY_KEY.get(late.line or ""),
                late.doing if late.doing and late.doing != readable_name(late.doing) else "",
            )
            for late in job.late_ranks[:LATE_ROWS]
        ],
        late_left=(len(left), sum(late.waited_share for late in left)) if left else None,
        shape=shape(result, job),
        axes=job.axes,
        hosts=job.hosts,
        stages=[(namer(one.rank, one.device), one) for one in job.pipeline.gpus[:STAGE_ROWS]] if job.pipeline else [],
    )


def _view(page: ReportContext) -> dict[str, Any] | None:
    job = job_view(page.result)
    if job is None:
        return None
    return {
        "job": job,
        "charts": page.charts.job,
        "has_collectives": bool(page.result.job and page.result.job.collectives),
    }


SECTION = PageSection(name="job", title="Job", order=300, view=_view, needs=("charts",))
