"""Steps that get longer from one to the next, and what grows in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.derive.kernels.kernels import blocks
from traceanalyzer.derive.steps.tables import STEP_GROWTH
from traceanalyzer.derive.trends import trend
from traceanalyzer.intervals import Array
from traceanalyzer.names import readable_name
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_bytes, format_count, format_duration
from traceanalyzer.vocabulary.lines import (
    COMPUTE,
    EXPOSED_MEMCPY,
    LEDGER_LINES,
    cause_of_line,
    column,
    is_idle,
    step_words,
)

Floats = npt.NDArray[np.float64]

LEAST = 6
"""Steps from which a trend can be told from chance: six that rise have a probability below 1 % among unordered ones, five have not."""
MORE = 1.1
"""A number has grown that is so many times as large in the last steps as in the first."""
ALIKE = 0.5
"""Grids that have grown by this part of what the steps have say that these have more to compute."""
LONGEST = 60
OF_OPS = ["row", "kind", "class", "name", "start_ns", "end_ns", "grid", "bytes"]


def step_growth(step_ledger: pa.Table, ledger_ops: pa.Table, step_ops: pa.Table, gaps: pa.Table) -> pa.Table:
    """One row per GPU with enough steps that are compared."""
    ops, members, idle = (frames.by_device(table) for table in (ledger_ops, step_ops, gaps))
    rows = [
        row
        for key, steps in frames.split(step_ledger)
        if (row := _device(key, steps, ops[key], members[key], idle[key])) is not None
    ]
    return pa.Table.from_pylist(rows, schema=STEP_GROWTH.schema)


def _device(
    key: frames.Key, steps: pa.Table, ops: pa.Table, members: pa.Table, gaps: pa.Table
) -> dict[str, object] | None:
    """The row of one GPU. What grows is looked up only where something does."""
    compared = np.flatnonzero(steps["excess"].is_valid().to_numpy())
    if len(compared) < LEAST:
        return None
    found = trend(frames.duration(steps)[compared].astype(float))
    row: dict[str, object] = {
        "rank": key[0],
        "device": key[1],
        "start_ns": int(frames.ints(steps, "start_ns")[compared[0]]),
        "end_ns": int(frames.ints(steps, "end_ns")[compared[-1]]),
        "steps": len(compared),
        "slope": round(found.slope),
        "first": round(found.first),
        "last": round(found.last),
        "chance": found.chance,
        "steady": found.steady,
    }
    if not found.steady or found.last <= found.first:
        return row
    part = max(2, len(compared) // 4)
    ends = _Ends(steps.num_rows, compared, compared[:part], compared[-part:])
    lines = np.stack([frames.ints(steps, column(line)) for line in LEDGER_LINES], axis=1)
    line = LEDGER_LINES[int(np.argmax(ends.more(lines)))]
    work = _work(ends, ops.select(OF_OPS), members)
    larger = line == COMPUTE.name and work.larger(found.last / max(found.first, 1.0))
    return row | {"line": line, "reason": _reason(line, ends, steps, work, gaps, larger), "larger": larger}


@dataclass(frozen=True)
class _Ends:
    """The steps that are compared, the first and the last of them, by their places among all `count` steps."""

    count: int
    compared: Array
    first: Array
    last: Array

    def means(self, values: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Of a value a step the means of both."""
        return values[self.first].mean(axis=0), values[self.last].mean(axis=0)

    def more(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
        first, last = self.means(values)
        return last - first

    def fitted(self, values: Floats) -> tuple[float, float]:
        """Of a value a step that of the first and of the last step, on the line through all."""
        line = trend(values[self.compared])
        return line.first, line.last

    def sums(self, step: Array, weight: npt.NDArray[np.generic]) -> Floats:
        """Weights added up by step."""
        sums: Floats = np.bincount(step, weight, self.count).astype(float)
        return sums


class _Work:
    """The operations of the steps: what they took, and how many blocks and bytes they had."""

    def __init__(self, ends: _Ends, ops: pa.Table, step: Array) -> None:
        self.ends, self.ops, self.step = ends, ops, step
        self.length, self.blocks = frames.duration(ops), np.maximum(blocks(ops), 0)
        self.kernel = frames.equals(ops, "kind", "kernel") & frames.equals(ops, "class", COMPUTE.name)
        self.name, self.names = frames.codes(ops, "name")

    def number(self, rows: frames.Flags) -> Floats:
        """How many of these operations each step has."""
        return self.ends.sums(self.step[rows], np.ones(int(rows.sum())))

    def each(self, rows: frames.Flags, values: Array) -> tuple[float, float]:
        """Of these operations the mean of a value, in the first and in the last step."""
        number = np.maximum(self.number(rows), 1)
        return self.ends.fitted(self.ends.sums(self.step[rows], values[rows]) / number)

    def larger(self, grown: float) -> bool:
        """Whether kernels have more blocks, about as the steps got longer, and not only more of them run."""
        if grown <= 1:
            return False
        blocks = _grown(self.each(self.kernel, self.blocks))
        return blocks >= 1 + ALIKE * (grown - 1) and blocks >= _grown(self.ends.fitted(self.number(self.kernel)))

    def growing(self) -> frames.Flags | None:
        """The kernels of the name whose time grew most; None where none did."""
        inside = np.zeros(self.ends.count)
        inside[self.ends.last] = 1 / len(self.ends.last)
        inside[self.ends.first] -= 1 / len(self.ends.first)
        weight = np.where(self.kernel, self.length * inside[self.step], 0.0)
        grown = np.bincount(self.name, weight, len(self.names))
        best = int(np.argmax(grown)) if len(grown) else 0
        return self.name == best if len(grown) and grown[best] > 0 else None

    def kernels(self, larger: bool) -> str:
        """What the kernel that grew most has more of."""
        mine = self.growing()
        if mine is None:
            return "computing"
        mine &= self.kernel
        name = readable_name(self.names[int(self.name[np.flatnonzero(mine)[0]])] or "a kernel", LONGEST)
        if larger:
            many = self.each(self.kernel, self.blocks)
            return f"the size of kernels: {_rounded(many[0])} blocks at first and {_rounded(many[1])} at last, above all in {name}"
        number, of_all = self.ends.fitted(self.number(mine)), self.ends.fitted(self.number(self.kernel))
        each = self.each(mine, self.length)
        if _grown(number) >= max(MORE, _grown(each)) and number[0] >= 1:
            return f"the number of kernels: {_rounded(number[0])} a step at first and {_rounded(number[1])} at last of {name}"
        if _grown(of_all) >= max(MORE, _grown(each)):
            return f"the number of kernels: {_rounded(of_all[0])} a step at first and {_rounded(of_all[1])} at last, above all {name}"
        if _grown(each) >= MORE and _grown(self.each(mine, self.blocks)) < MORE:
            return f"the time of kernels of the same size: {name} takes {_time(each[0])} at first and {_time(each[1])} at last"
        return f"computing, above all {name}"

    def more(self) -> str:
        """How many more operations are launched, if many more."""
        number = self.ends.fitted(self.number(np.ones(len(self.step), bool)))
        if number[0] < 1 or _grown(number) < MORE:
            return ""
        return f", with {_rounded(number[0])} operations a step at first and {_rounded(number[1])} at last"

    def copies(self) -> str:
        """How many bytes are copied."""
        rows = frames.equals(self.ops, "kind", "memcpy")
        size = np.maximum(frames.ints(self.ops, "bytes"), 0)
        first, last = self.ends.fitted(self.ends.sums(self.step[rows], size[rows]))
        if last < MORE * first:
            return step_words(EXPOSED_MEMCPY.name)
        return f"what is copied: {format_bytes(round(first))} a step at first and {format_bytes(round(last))} at last"


def _work(ends: _Ends, ops: pa.Table, members: pa.Table) -> _Work:
    op, step = frames.ints(members, "op"), frames.ints(members, "step")
    row = frames.ints(ops, "row")
    mine = frames.among(op, row)
    op, step = op[mine], step[mine]
    order = np.argsort(row)
    at = order[np.searchsorted(row[order], op)]
    return _Work(ends, ops.take(pa.array(at)), step)


def _reason(line: str, ends: _Ends, steps: pa.Table, work: _Work, gaps: pa.Table, larger: bool) -> str:
    if line == COMPUTE.name:
        return work.kernels(larger)
    if line == EXPOSED_MEMCPY.name:
        return work.copies()
    words = step_words(line)
    place = _place(line, ends, steps, gaps) if is_idle(line) else None
    where = f" in {readable_name(place, LONGEST)}" if place else ""
    return f"{words}{where}{work.more() if is_idle(line) else ''}"


def _place(line: str, ends: _Ends, steps: pa.Table, gaps: pa.Table) -> str | None:
    """Where the host was for most of what the last steps have more of idle time of this cause."""
    mine = gaps.filter(pa.array(frames.equals(gaps, "cause", cause_of_line(line))))
    step = np.searchsorted(frames.ints(steps, "start_ns"), frames.ints(mine, "start_ns"), side="right") - 1
    share = np.zeros(ends.count + 1)
    share[ends.last] = 1 / len(ends.last)
    share[ends.first] -= 1 / len(ends.first)
    code, names = frames.codes(mine, "place")
    grown = np.bincount(code, frames.duration(mine) * share[step], len(names))
    best = int(np.argmax(grown))
    return names[best] if grown[best] >= 0.5 * max(grown.sum(), 1.0) else None


def _grown(ends: tuple[float, float]) -> float:
    return ends[1] / ends[0] if ends[0] > 0 else float("inf")


def _rounded(value: float) -> str:
    return format_count(round(value))


def _time(ns: float) -> str:
    return format_duration(round(ns))
