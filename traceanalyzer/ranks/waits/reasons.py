"""Why the rank that comes last does, in words: what it does more of than the others, where in the program, and in which kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.intervals import Array
from traceanalyzer.names import readable_name
from traceanalyzer.ranks.waits.rank_ranges import TIME_OF
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_count, format_duration
from traceanalyzer.vocabulary.lines import COMPUTE, LINES

LONGEST_NAME = 60
MUCH_LONGER = 1.2
"""The same operations take a little longer on one GPU than on another; a fifth longer is larger data, or a slower GPU."""
MOST_OF_IT = 0.5
"""One operation that takes this share of the extra time stands for it."""


@dataclass(frozen=True)
class Range:
    """A row of `extra_ranges`."""

    name: str
    frame: bool
    time: int
    more: int
    only: bool
    steps: int
    seen: int

    @property
    def words(self) -> str:
        short = readable_name(self.name, LONGEST_NAME)
        name = short if self.frame else f"'{short}'"
        if self.only and 0 < self.seen < self.steps:
            much = f"{format_duration(self.time * self.steps)} in {self.seen} of {self.steps} steps"
        else:
            much = format_duration(self.time) if self.only else f"{format_duration(self.more)} more"
            much += "" if not self.steps else " of each step" if self.only else " a step"
        return f"inside {name} ({much})"


def late_reasons(
    gpu: list[Array],
    line: pa.Array,
    late_work: pa.Table,
    late_names: pa.Table,
    extra_work: pa.Table,
    extra_ranges: pa.Table,
    excess: pa.Table,
    gpus: int,
) -> dict[str, pa.Array]:
    """Why each of these GPUs, (rank, device), was late: the columns `late_cause`, `late_doing` and `late_why`.

    `line` is what they spent most of the time on in which others waited; `gpus` counts those of the job.
    """
    # Of many collectives the same GPU was late for the same reason, which is told once.
    code = frames.dense(*gpu, frames.codes(pa.table({"line": line}), "line")[0])
    first, of = np.unique(code, return_index=True, return_inverse=True)[1:]
    gpu, line = [one[first] for one in gpu], line.take(pa.array(first))
    more = excess.take(rows_of(gpus_of(excess), gpu))
    cause = pc.coalesce(*(column.cast(pa.string()) for column in (more["line"], line)))
    doing = late_names["name"].take(rows_of(*_by_line(late_names, gpu, cause)))
    extra = extra_work.take(rows_of(gpus_of(extra_work), gpu))
    inside = _ranges(gpu, cause, more, late_work, extra_ranges)
    why = _why(cause, more, extra, doing, inside, gpus)
    told = {"late_cause": cause, "late_doing": doing, "late_why": why}
    return {name: values.take(pa.array(of)) for name, values in told.items()}


def _ranges(
    gpu: list[Array], cause: pa.Array, more: pa.Table, late_work: pa.Table, extra_ranges: pa.Table
) -> list[Range | None]:
    """For each GPU the range that most of what it does more of lies in, or else the frame; None where it is in many places."""
    ranges: dict[tuple[int, int, str], list[Range]] = {}
    for row in extra_ranges.to_pylist():
        key = row["rank"], row["device"], row.pop("column")
        ranges.setdefault(key, []).append(Range(**{f.name: row[f.name] for f in fields(Range)}))
    if not ranges:
        return [None] * len(cause)
    took = frames.duration(late_work)
    late: defaultdict[tuple[int, int], int] = defaultdict(int)
    for (rank, device), rows in frames.together(*gpus_of(late_work)):
        late[rank, device] = int(took[rows].sum())
    cases = list(zip(*(one.tolist() for one in gpu), cause.to_pylist(), more["time"].to_pylist(), strict=True))
    found = {}
    for rank, device, line, time in set(cases):
        least = None if time is None else MOST_OF_IT * time
        found[rank, device, line, time] = next(
            (
                one
                for one in ranges.get((rank, device, TIME_OF.get(line or "", "")), ())
                if (
                    one.more >= least
                    if least is not None
                    else one.more * max(one.steps, 1) >= MOST_OF_IT * late[rank, device]
                )
            ),
            None,
        )
    return [found[case] for case in cases]


def gpus_of(table: pa.Table) -> list[Array]:
    """The columns (rank, device)."""
    return [frames.ints(table, c) for c in ("rank", "device")]


def rows_of(keys: Sequence[Array], wanted: Sequence[Array]) -> pa.Array:
    """For each wanted combination its row among `keys`, which hold each once; null where they do not."""
    code = frames.dense(*(np.concatenate(pair) for pair in zip(keys, wanted, strict=True)))
    row = np.full(int(code.max(initial=0)) + 1, -1)
    row[code[: len(keys[0])]] = np.arange(len(keys[0]))
    found = row[code[len(keys[0]) :]]
    return pa.array(found, mask=found < 0)


def _by_line(names: pa.Table, gpu: list[Array], line: pa.Array) -> tuple[list[Array], list[Array]]:
    """Keys of `late_names`, and those that are wanted: a GPU and a line."""
    both = pa.chunked_array([*names["line"].cast(pa.string()).chunks, *line.chunks], pa.string()).combine_chunks()
    code = both.dictionary_encode().indices.fill_null(-1).cast(pa.int64()).to_numpy()
    return [*gpus_of(names), code[: names.num_rows]], [*gpu, code[names.num_rows :]]


def _why(
    cause: pa.Array, more: pa.Table, extra: pa.Table, doing: pa.Array, inside: list[Range | None], gpus: int
) -> pa.Array:
    """Why each late rank is late, in words; each distinct case is worded once."""
    columns = [cause, more["time"], extra["name"], extra["count"], extra["time"], extra["longer"], doing]
    cases = list(zip(*(column.to_pylist() for column in columns), inside, strict=True))
    than = "the other rank" if gpus == 2 else "the median rank"
    worded = {case: _reason(than, *case) for case in set(cases)}
    return pa.array([worded[case] for case in cases], pa.string())


def _reason(
    than: str,
    line: str | None,
    time: int | None,
    name: str | None,
    count: float | None,
    extra: int | None,
    longer: float | None,
    doing: str | None,
    inside: Range | None = None,
) -> str | None:
    known = LINES.get(line or "")
    if known is None or known.doing is None:
        return None
    more = "meanwhile" if time is None else f"{format_duration(time)} more a step than {than}"
    said = known.doing.format(more=more)
    # What launched it, or what the host was in, says more than the kernels; of idle time it is the place.
    if inside is not None and inside.name != doing:
        said = f"{said}, {inside.words}"
        doing = None if known.is_idle else doing
    if known is COMPUTE and time is not None and name is not None and extra is not None:
        short = readable_name(name, LONGEST_NAME)
        if extra < MOST_OF_IT * time and longer is not None and longer >= MUCH_LONGER:
            return f"{said}: it runs as many operations, but they take {longer:.1f} times as long"
        if extra < MOST_OF_IT * time:
            return f"{said}, above all in {short} ({format_duration(extra)})"
        many = f"{format_count(round(count or 0))} more of {short}" if round(count or 0) > 0 else f"a longer {short}"
        return f"{said}: {many} ({format_duration(extra)})"
    # What ran last before the others met is not what there is more of.
    named = doing is not None and (known is not COMPUTE or time is None)
    return f"{said}, above all in {readable_name(doing or '', LONGEST_NAME)}" if named else said
