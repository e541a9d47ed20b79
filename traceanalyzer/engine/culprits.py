"""Who leaves each GPU idle: of each cause what the host was at, the function or the place that takes most of it.

A range in which most of the work is launched is the step or the loop, and none to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import NULL, Flags, frames, wide
from traceanalyzer.engine.causes import LINE_CAUSE, cause_of
from traceanalyzer.engine.claims import Claim, ClaimBook, Gpu
from traceanalyzer.engine.columns import Columns
from traceanalyzer.engine.tiles import Rows
from traceanalyzer.intervals import Array, union
from traceanalyzer.names import readable_name
from traceanalyzer.places import frame_parts, frame_text, place_parts
from traceanalyzer.result.verdict import MOST
from traceanalyzer.vocabulary import losses
from traceanalyzer.vocabulary.lines import idle_line, is_idle
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
Which = Callable[[slice], Flags]
"""Of a block of gaps those that are looked at."""


def culprits(
    gaps: pa.Table, claims: ClaimBook, host_ranges: pa.Table, launches: pa.Table, other_threads: pa.Table
) -> pa.Table:
    """As CULPRITS."""
    around = _Around(host_ranges, launches)
    waits, source = frames.by_device(other_threads), Columns(gaps)
    tiles = claims.idle_tiles(source)
    rows = [
        {"rank": gpu[0], "device": gpu[1], **found}
        for gpu, run in source.gpus or ()
        for mine in [gaps.slice(run.start, len(run))]
        for own in [None if tiles is None else tiles.tiles[run.start : run.stop]]
        for found in (*_Gpu(gpu, mine, own, claims, around).culprits(), *_lock(waits[gpu], claims.claims.get(gpu, [])))
    ]
    return pa.Table.from_pylist(rows, CULPRITS)


def _lock(waits: pa.Table, claims: Sequence[Claim]) -> Iterator[dict[str, object]]:
    """The thread that holds Python's lock for most of what was claimed of the waits for it, and what it runs."""
    lost = sum(claim.ns for claim in claims if claim.rule == LOCK and is_idle(claim.line))
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
        self._launched: dict[int, dict[int, Array]] = {}

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
        within, calls = 0, self._calls(rank)
        for (one,), at in frames.together(of):
            when = calls.get(one, np.empty(0, np.int64))
            begun, over = (np.searchsorted(when, times) for times in union(start[at], end[at]))
            within += int((over - begun).sum())
        return within > MOST_LAUNCHES * max(sum(map(len, calls.values())), 1)

    def _calls(self, rank: int) -> dict[int, Array]:
        """When each process of a rank launched, in order."""
        if rank not in self._launched:
            own = frames.ints(self.launches, "rank") == rank
            process, when = (frames.ints(self.launches, column)[own] for column in ("process", "start_ns"))
            self._launched[rank] = {one: np.sort(when[at], kind="stable") for (one,), at in frames.together(process)}
        return self._launched[rank]


class _Gpu:
    """The gaps of one GPU, read in blocks: there may be millions."""

    def __init__(self, gpu: Gpu, gaps: pa.Table, tiles: Rows | None, claims: ClaimBook, around: _Around) -> None:
        """`tiles` are those that the gaps are, if that is known."""
        self.gaps, self.around, self.gpu, self.claims = Columns(gaps), around, gpu, claims
        self.causes: list[str] = []
        self.cause = self._causes(tiles)
        """For each part of a gap its cause in the verdict, as a place in `causes`."""
        self.length = np.zeros(len(self.causes), np.int64)
        for rows, start, end in self._blocks():
            np.add.at(self.length, self.cause[rows], end - start)
        self.calls = _names(gaps, "api_name")

    def culprits(self) -> Iterator[dict[str, object]]:
        lost = dict(zip(self.causes, self.length.tolist(), strict=True))
        for family in dict.fromkeys(CAUSES[cause].bound_by for cause in sorted(lost) if cause in CAUSES):
            if family == losses.UNKNOWN.name:
                continue
            names = [
                name
                for name, cause in CAUSES.items()
                if cause.bound_by == family and cause.idle and name != losses.START_UP.name
            ]
            name = max(names, key=lambda one: lost.get(one, 0))
            for level, (subject, ns) in enumerate(self._subjects(name, self._of(names)), WHOLE + 1):
                if subject and ns:
                    yield {"cause": name, "level": level, "subject": subject, "ns": ns}
        if copies := lost.get(losses.LAUNCH_COPIES.name):
            yield {"cause": losses.LAUNCH_COPIES.name, "level": WHOLE, "subject": None, "ns": copies}

    def _of(self, causes: Collection[str]) -> Which:
        """The parts with one of these causes."""
        wanted = np.array([cause in causes for cause in self.causes], bool)
        return lambda rows: wanted.take(self.cause[rows])

    def _subjects(self, cause: str, which: Which) -> Iterator[tuple[str | None, int]]:
        """What the host was at, the function or the range, and the place; None where there is none to name."""
        activity, ns, _ = self._heaviest("activity", which)
        near, in_near = self._near(which)
        place, in_place = self._place(cause, which)
        doing = DOING.get(cause, "")
        if activity in ACTIVITIES:
            inside, _ = self._near(lambda rows: which(rows) & self._equals("activity", activity, rows))
            where = f" in {inside}" if inside else ""
            yield f"{ACTIVITIES[activity]}{where}", ns
        else:
            yield None, 0
        yield (None, 0) if near is None or cause in BY_PLACE else (_subject(doing, near), in_near)
        yield (None, 0) if place is None else (_subject(doing, place), in_place)

    def _near(self, which: Which) -> tuple[str | None, int]:
        """The user's function, or else the range, that holds most of these parts."""
        source, in_source = self._top("source", which)
        if source is not None:
            return _function_first(source), in_source
        name, in_range = self._top("annotation", which)
        return (None, 0) if name is None else (f'{RANGE}"{readable_name(name, LONGEST)}"', in_range)

    def _place(self, cause: str, which: Which) -> tuple[str | None, int]:
        name, ns = self._top("range_name" if cause == losses.INPUT.name else "place", which)
        if name is None or (CAUSES[cause].bound is losses.BY_LAUNCH and name in self.calls):
            return None, 0
        what, source = place_parts(name)
        if source is None:
            return _function_first(name), ns
        if self.around.is_the_step(self.gpu[0], what):
            return None, 0
        return f"{readable_name(frame_text(what), LONGEST)} in {_function_first(source)}", ns

    def _top(self, column: str, which: Which) -> tuple[str | None, int]:
        """What holds at least half of these parts, unless that is the step or a data loader's own range, whose name tells nothing."""
        name, ns, every = self._heaviest(column, which)
        if name is None or ns < MOST * every or name.startswith(TORCH_LOADER):
            return None, 0
        return (None, 0) if self.around.is_the_step(self.gpu[0], name) else (name, ns)

    def _heaviest(self, column: str, which: Which) -> tuple[str | None, int, int]:
        """The name that holds most of these parts, as far as their place goes, how much that is, and how long the parts are."""
        if self.gaps.table[column].null_count == len(self.gaps.table):
            return None, 0, 0
        total, every = np.zeros(0), 0
        for rows, start, end in self._blocks():
            names, here = self._column(column, rows), which(rows)
            length = (end - start)[here]
            inside = np.minimum(wide(self._column("place_duration", rows), NULL)[here], length)
            total = total if len(total) else np.zeros(len(names.dictionary) + 1)
            code = wide(names.indices, len(names.dictionary))[here]
            np.add.at(total, code, (length if column == "activity" else inside).astype(np.float64))
            every += int(length.sum())
        best = int(total[:-1].argmax())
        return (names.dictionary[best].as_py(), int(total[best]), every) if total[best] > 0 else (None, 0, every)

    def _causes(self, tiles: Rows | None) -> npt.NDArray[np.int8]:
        """By the category that claimed each part, else its own."""
        claims = self.claims.claims.get(self.gpu, [])
        categories = sorted({claim.category for claim in claims})
        of = np.array([categories.index(claim.category) for claim in claims] + [-1])
        found = np.empty(len(self.gaps.table), np.int8)
        for rows, start, _ in self._blocks():
            causes = self._column("cause", rows)
            by = of.take(self.claims.idle_holders(*self.gpu, start, None if tiles is None else tiles[rows]))
            copies = self._equals("next_op_kind", "memcpy", rows)
            key = (wide(causes.indices, NULL) * (len(categories) + 1) + by + 1) * 2 + copies
            places = np.zeros(2 * (len(causes.dictionary) + 1) * (len(categories) + 1), np.int8)
            for one in np.flatnonzero(np.bincount(key)).tolist():
                cause, claim, copy = one // 2 // (len(categories) + 1), one // 2 % (len(categories) + 1) - 1, one % 2
                line = idle_line(causes.dictionary[cause].as_py())
                name = LINE_CAUSE[line] if claim < 0 else cause_of(categories[claim], line)
                places[one] = self._place_of(losses.LAUNCH_COPIES.name if copy and name == losses.LAUNCH.name else name)
            found[rows] = places.take(key)
        return found

    def _place_of(self, cause: str) -> int:
        if cause not in self.causes:
            self.causes.append(cause)
        return self.causes.index(cause)

    def _blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """The rows of a block, and when each starts and ends."""
        at = 0
        for start, end in self.gaps.times(range(len(self.gaps.table))):
            yield slice(at, at + len(start)), start, end
            at += len(start)

    def _column(self, name: str, rows: slice) -> pa.Array:
        return self.gaps.column(name, range(rows.start, rows.stop))

    def _equals(self, column: str, wanted: str, rows: slice) -> Flags:
        names = self._column(column, rows)
        at = names.dictionary.index(wanted).as_py()
        return wide(names.indices, NULL) == at if at >= 0 else np.zeros(len(names), bool)


def _names(table: pa.Table, column: str) -> set[str | None]:
    """The names that a column may have, those of all of its dictionary where it is shorter than the column."""
    names = table[column].unify_dictionaries()
    few = names.num_chunks and len(names.chunk(0).dictionary) > len(names)
    return set(names.unique().to_pylist() if few else names.chunk(0).dictionary.to_pylist())


def _subject(doing: str, name: str) -> str:
    return f"{doing}{name}" if doing or not name.startswith(RANGE) else f"T{name[1:]}"


def _function_first(place: str) -> str:
    """`train.py:155 (log_metrics)` as "log_metrics (train.py:155)"; anything else as it is."""
    frame = frame_parts(place)
    return readable_name(f"{frame[1]} ({frame[0]})" if frame else place, LONGEST)
