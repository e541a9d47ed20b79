"""Who leaves each GPU idle: of each cause what the host was at, the function or the place that takes most of it.

A range in which most of the work is launched is the step or the loop, and none to blame.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.engine.causes import LINE_CAUSE, cause_of
from traceanalyzer.intervals import Array, coverage, union
from traceanalyzer.names import readable_name
from traceanalyzer.places import frame_parts, frame_text, place_parts
from traceanalyzer.result.verdict import MOST
from traceanalyzer.vocabulary import losses
from traceanalyzer.vocabulary.lines import IDLE_PREFIX, idle_line
from traceanalyzer.vocabulary.losses import CAUSES

CULPRITS = pa.schema(
    [
        ("rank", pa.int32()),
        ("device", pa.int32()),
        ("cause", pa.string()),
        ("level", pa.int32()),
        ("subject", pa.string()),
        ("ns", pa.int64()),
    ]
)
"""`cause` is one of the verdict's, `level` is lower for what says more, `subject` begins a sentence. Of each GPU, `bound_by` and level
the largest; and with level `WHOLE` the ns of a cause that the ledger does not tell apart."""
WHOLE = 0
MOST_LAUNCHES = 0.5
"""A range in which more than this share of the launches happens is what they are made for."""
ACTIVITIES = {
    "compilation": "Compiling code",
    "garbage_collection": "Garbage collection",
    "first_use": "Loading code for its first use",
    "checkpoint": "Writing a checkpoint",
    "evaluation": "Evaluation",
}
"""Activities of the host that are a reason by themselves."""
DOING = {
    losses.LAUNCH.name: "Launching kernels in ",
    losses.LAUNCH_COPIES.name: "Launching copies in ",
    losses.INPUT.name: "Loading data in ",
    losses.SYNCHRONIZATION.name: "Waiting for the GPU in ",
    losses.MEMORY_MANAGEMENT.name: "Allocating and freeing memory in ",
}
"""What is done in a place where the cause is not the place itself."""
LOCK = "HST004"
"""The rule that claims the time in which another thread holds Python's lock."""
BY_PLACE = (losses.OS.name, losses.MPI.name)
"""Causes whose place is the call and the range or frame around it, which says more than either."""
TORCH_LOADER = "enumerate(DataLoader)"
RANGE = "the range "
LONGEST = 80


def culprits(
    gaps: pa.Table, claims: pa.Table, host_ranges: pa.Table, launches: pa.Table, other_threads: pa.Table
) -> pa.Table:
    """As CULPRITS; `claims` as in CLAIMS_SCHEMA."""
    idle = claims.filter(pc.starts_with(claims["line"].cast(pa.string()), IDLE_PREFIX))
    around = _Around(host_ranges, launches)
    rows = [
        {"rank": rank, "device": device, **found}
        for (rank, device), mine in frames.split(gaps)
        for found in (
            *_Gpu(mine, _of(idle, rank, device), around).culprits(),
            *_lock(_of(other_threads, rank, device), _of(idle, rank, device)),
        )
    ]
    return pa.Table.from_pylist(rows, CULPRITS)


def _of(table: pa.Table, rank: int, device: int) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table["rank"], rank), pc.equal(table["device"], device)))


def _lock(waits: pa.Table, claims: pa.Table) -> Iterator[dict[str, object]]:
    """The thread that holds Python's lock for most of what was claimed of the waits for it, and what it runs."""
    lost = int(frames.duration(claims)[frames.equals(claims, "rule", LOCK)].sum())
    if not lost:
        return
    other, others = frames.codes(waits, "other")
    frame, names = frames.codes(waits, "frame")
    length = frames.duration(waits)
    (who, what), ns = max(
        ((key, int(length[rows].sum())) for key, rows in frames.together(other, frame)), key=lambda one: one[1]
    )
    running = names[what]
    code = f"runs {_function_first(running)} and " if running else ""
    thread = str(others[who])
    subject = f"{thread[:1].upper()}{thread[1:]}, which {code}holds Python's lock,"
    yield {"cause": losses.HOST.name, "level": WHOLE + 1, "subject": subject, "ns": min(ns, lost)}


class _Around:
    """The host's ranges by their names in messages, and the launches: which ranges are around most of them."""

    def __init__(self, ranges: pa.Table, launches: pa.Table) -> None:
        self.ranges, self.launches = ranges, launches
        self.name, self.names = frames.codes(ranges, "name")

    @cached_property
    def called(self) -> dict[str, list[int]]:
        """The places in `names` of what a message calls so."""
        found: dict[str, list[int]] = {}
        for at, name in enumerate(self.names):
            for text in {name, frame_text(name)} if name else ():
                found.setdefault(text, []).append(at)
        return found

    def is_the_step(self, rank: int, name: str) -> bool:
        """Whether most launches of a rank happen within ranges of this name."""
        rows = np.flatnonzero(
            np.isin(self.name, self.called.get(name, [])) & (frames.ints(self.ranges, "rank") == rank)
        )
        of, start, end = (frames.ints(self.ranges, column)[rows] for column in ("process", "start_ns", "end_ns"))
        calls = frames.ints(self.launches, "rank") == rank
        process, when = (frames.ints(self.launches, column)[calls] for column in ("process", "start_ns"))
        within = 0
        for (one,), at in frames.together(of):
            within += int(coverage(when[process == one], when[process == one] + 1, union(start[at], end[at])).sum())
        return within > MOST_LAUNCHES * max(len(when), 1)


class _Gpu:
    """The gaps of one GPU."""

    def __init__(self, gaps: pa.Table, claims: pa.Table, around: _Around) -> None:
        self.gaps, self.around, self.rank = gaps, around, int(frames.ints(gaps, "rank")[0])
        self.length = frames.duration(gaps)
        self.inside = np.minimum(frames.ints(gaps, "place_duration"), self.length)
        self.cause = _causes(gaps, claims)
        self.activity = frames.codes(gaps, "activity")
        self.calls = set(frames.codes(gaps, "api_name")[1])

    def culprits(self) -> Iterator[dict[str, object]]:
        for family in dict.fromkeys(CAUSES[cause].bound_by for cause in np.unique(self.cause) if cause in CAUSES):
            if family == losses.UNKNOWN.name:
                continue
            names = [
                name
                for name, cause in CAUSES.items()
                if cause.bound_by == family and cause.idle and name != losses.START_UP.name
            ]
            rows = np.isin(self.cause, names)
            name = max(names, key=lambda one: int(self.length[self.cause == one].sum()))
            for level, (subject, ns) in enumerate(self._subjects(name, rows), WHOLE + 1):
                if subject and ns:
                    yield {"cause": name, "level": level, "subject": subject, "ns": ns}
        if copies := int(self.length[self.cause == losses.LAUNCH_COPIES.name].sum()):
            yield {"cause": losses.LAUNCH_COPIES.name, "level": WHOLE, "subject": None, "ns": copies}

    def _subjects(self, cause: str, rows: frames.Flags) -> Iterator[tuple[str | None, int]]:
        """What the host was at, the function or the range, and the place; None where there is none to name."""
        activity, ns = _top(self.activity, self.length, rows)
        near, in_near = self._near(rows)
        place, in_place = self._place(cause, rows)
        doing = DOING.get(cause, "")
        if activity in ACTIVITIES:
            here = rows & (self.activity[0] == self.activity[1].index(activity))
            inside, _ = self._near(here)
            where = f" in {inside}" if inside else ""
            yield f"{ACTIVITIES[activity]}{where}", ns
        else:
            yield None, 0
        yield (None, 0) if near is None or cause in BY_PLACE else (_subject(doing, near), in_near)
        yield (None, 0) if place is None else (_subject(doing, place), in_place)

    def _near(self, rows: frames.Flags) -> tuple[str | None, int]:
        """The user's function, or else the range, that holds most of these parts."""
        source, in_source = self._top("source", rows)
        if source is not None:
            return _function_first(source), in_source
        name, in_range = self._top("annotation", rows)
        return (None, 0) if name is None else (f'{RANGE}"{readable_name(name, LONGEST)}"', in_range)

    def _place(self, cause: str, rows: frames.Flags) -> tuple[str | None, int]:
        name, ns = self._top("range_name" if cause == losses.INPUT.name else "place", rows)
        if name is None or (CAUSES[cause].bound is losses.BY_LAUNCH and name in self.calls):
            return None, 0
        what, source = place_parts(name)
        if source is None:
            return _function_first(name), ns
        if self.around.is_the_step(self.rank, what):
            return None, 0
        return f"{readable_name(frame_text(what), LONGEST)} in {_function_first(source)}", ns

    def _top(self, column: str, rows: frames.Flags) -> tuple[str | None, int]:
        """What holds at least half of these parts, unless that is the step or a data loader's own range, whose name tells nothing."""
        name, ns = _top(frames.codes(self.gaps, column), self.inside, rows)
        if name is None or ns < MOST * self.length[rows].sum() or name.startswith(TORCH_LOADER):
            return None, 0
        return (None, 0) if self.around.is_the_step(self.rank, name) else (name, ns)


def _causes(gaps: pa.Table, claims: pa.Table) -> Array:
    """For each part of a gap its cause in the verdict: by the category that claimed it, else its own."""
    order = np.argsort(frames.ints(claims, "start_ns"), kind="stable")
    start, end = (frames.ints(claims, column)[order] for column in ("start_ns", "end_ns"))
    begin = frames.ints(gaps, "start_ns")
    at = np.searchsorted(start, begin, side="right") - 1
    claimed = (at >= 0) & (np.append(end, 0)[at] > begin)
    own, causes = frames.codes(gaps, "cause")
    category, categories = frames.codes(claims, "category")
    of = np.where(claimed, np.append(category[order], 0)[at], -1)
    copies = frames.equals(gaps, "next_op_kind", "memcpy")
    found = np.empty(len(begin), object)
    for (one, by, copy), rows in frames.together(own, of, copies.astype(np.int64)):
        line = idle_line(causes[one])
        cause = LINE_CAUSE[line] if by < 0 else cause_of(str(categories[by]), line)
        found[rows] = losses.LAUNCH_COPIES.name if cause == losses.LAUNCH.name and copy else cause
    return found


def _top(names: tuple[Array, list[str | None]], weight: Array, rows: frames.Flags) -> tuple[str | None, int]:
    """The name with the largest weight among these rows, and that weight; nulls do not count."""
    code, values = names
    total = np.bincount(code[rows], weight[rows], len(values))[:-1]
    return (values[int(total.argmax())], int(total.max())) if total.max(initial=0) > 0 else (None, 0)


def _subject(doing: str, name: str) -> str:
    return f"{doing}{name}" if doing or not name.startswith(RANGE) else f"T{name[1:]}"


def _function_first(place: str) -> str:
    """`train.py:155 (log_metrics)` as "log_metrics (train.py:155)"; anything else as it is."""
    frame = frame_parts(place)
    return readable_name(f"{frame[1]} ({frame[0]})" if frame else place, LONGEST)
