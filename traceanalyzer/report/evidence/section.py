"""A section of evidence as a section of the page: its blocks as plain values for the template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from traceanalyzer.records import dataclass
from traceanalyzer.report.charts.figure import Chart
from traceanalyzer.report.evidence.flames import FlameView, flame_view
from traceanalyzer.report.evidence.grids import grid_table
from traceanalyzer.report.evidence.levels import levels_chart
from traceanalyzer.report.evidence.lines import lines_chart
from traceanalyzer.report.evidence.scatters import scatter_chart
from traceanalyzer.report.packing import packed_json
from traceanalyzer.report.tables.table import DataTable
from traceanalyzer.result.sections import Flame, Grid, Levels, Scatter, Section, Words

SHOWN_ROWS = 12
"""Rows of a table that stand in the section itself; a longer one is among the page's tables too."""
_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class EvidenceView:
    """`blocks` are (kind, value) in their order: "words" with a list of (text, whether it is code), "table", "chart" and "flame"."""

    name: str
    title: str
    blocks: list[tuple[str, Any]]
    flames: str

    @property
    def tables(self) -> list[DataTable]:
        return [value for kind, value in self.blocks if kind == "table"]

    @property
    def charts(self) -> list[Chart]:
        return [value for kind, value in self.blocks if kind == "chart"]


def evidence_view(section: Section, rows: int, nodes: int) -> EvidenceView | None:
    """With tables of at most `rows` and flame graphs of about `nodes`; None where no block has anything. Raises ValueError for a name
    that cannot be an anchor, and for data that do not fit together."""
    if not _NAME.fullmatch(section.name):
        raise ValueError(f"the section '{section.name}' needs a name of small letters, digits and hyphens")
    blocks: list[tuple[str, Any]] = []
    for number, block in enumerate(section.blocks, 1):
        id_ = f"{section.name}-{number}"
        if isinstance(block, Words):
            blocks.append(("words", code_apart(block.text)))
        elif isinstance(block, Grid) and block.rows:
            blocks.append(("table", grid_table(block, id_, rows)))
        elif isinstance(block, Levels):
            chart = levels_chart(block, id_) if block.stacked else lines_chart(block, id_)
            blocks += [("chart", chart)] if chart else []
        elif isinstance(block, Scatter):
            blocks += [("chart", chart)] if (chart := scatter_chart(block, id_)) else []
        elif isinstance(block, Flame):
            blocks += [("flame", flame)] if (flame := flame_view(block, id_, nodes)) else []
    if not blocks:
        return None
    flames = {one.id: one.data for one in _flames(blocks)}
    return EvidenceView(section.name, section.title, blocks, packed_json(flames) if flames else "")


def _flames(blocks: Sequence[tuple[str, Any]]) -> list[FlameView]:
    return [value for kind, value in blocks if kind == "flame"]


def code_apart(text: str) -> list[tuple[str, bool]]:
    """The pieces of a text and whether they are code: what stands between backticks."""
    return [(piece, number % 2 == 1) for number, piece in enumerate(text.split("`")) if piece]
