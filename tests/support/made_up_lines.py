"""Lines of a job, made up: what each GPU does between the collectives that they share, as `line_events` says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from traceanalyzer.derive.replay.stretches import NEVER
from traceanalyzer.ranks.replay.tables import ISSUE, JOIN, LINE_EVENTS, MARK

Steps = Sequence[Sequence[tuple[int, int]]]
"""Of one line: for each step its collectives, as (work before it, work beside it)."""


def line_events(lines: Sequence[Steps], transfer: int = 10) -> pa.Table:
    """All lines have the same collectives, each between all of them; what happens when is what follows from that."""
    count = len(lines)
    rows: list[list[dict[str, Any]]] = [[] for _ in lines]
    now, number = [0] * count, 0
    for step in range(len(lines[0])):
        for at in range(len(lines[0][step])):
            issued = [time + line[step][at][0] for time, line in zip(now, lines, strict=True)]
            met, instance = max(issued), number
            number += 1
            for one, line in enumerate(lines):
                before, beside = line[step][at]
                own = {"instance": instance, "met": met, "transfer": transfer}
                rows[one].append(_row(one, ISSUE, before, issued[one], **own, after_gpu=0))
                now[one] = max(issued[one] + beside, met + transfer)
                rows[one].append(_row(one, JOIN, beside, now[one], **own))
        for one in range(count):
            rows[one].append(_row(one, MARK, 0, now[one], step=step))
    for one in range(count):
        rows[one].append(_row(one, MARK, 0, now[one]))
    return pa.Table.from_pylist([row for line in rows for row in line], schema=LINE_EVENTS.schema)


def _row(line: int, kind: str, work: int, time: int, **more: int) -> dict[str, Any]:
    matrix = [0, NEVER, NEVER, NEVER, 0, NEVER, NEVER, NEVER, work]
    fixed = {"rank": line, "device": 0, "kind": kind, "work": matrix, "time": time, "origin": 0}
    return {**dict.fromkeys(LINE_EVENTS.schema.names), **fixed, "free": False, "pair": False, **more}
