"""The tables of the page: each a few columns of plain values, packed together in one block."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.model.tables import Tables
from traceanalyzer.report.packing import packed_json
from traceanalyzer.report.page_size import Budget
from traceanalyzer.report.tables.gpu_work import copies, kernels
from traceanalyzer.report.tables.host_work import operators, syncs
from traceanalyzer.report.tables.idle import gaps
from traceanalyzer.report.tables.job import collectives, gpus
from traceanalyzer.report.tables.table import DataTable
from traceanalyzer.report.timeline.timeline import Layout
from traceanalyzer.result.document import Result

__all__ = ["build_tables", "packed_tables"]


def build_tables(
    result: Result,
    tables: Tables | None,
    timeline: Layout | None,
    shown_ranks: str | None = None,
    most: int = Budget.rows,
    gpu_names: Sequence[str] | None = None,
) -> list[DataTable]:
    """The tables that have rows, each at most `most`, in the order of the page.

    `shown_ranks` says of which ranks the tables of a part of the ranks are, for example "8 of 512 ranks: 0-7"; None: of all of them.
    `gpu_names` are those of `result.devices`.
    """
    shown = f"For {shown_ranks}." if shown_ranks else ""
    found: list[DataTable | None] = []
    if tables is not None:
        windows = sum(device.window_ns for device in result.devices)
        found += [kernels(tables, windows, most), operators(tables, shown, most)]
        found += [gaps(tables, timeline, shown, most) if timeline else None]
        found += [syncs(tables, shown, most), copies(tables, shown, most)]
    found += [collectives(result, most), gpus(result, most, gpu_names)]
    return [table for table in found if table is not None]


def packed_tables(tables: list[DataTable]) -> str:
    """All of them as one block for the page."""
    return packed_json([table.payload() for table in tables])
