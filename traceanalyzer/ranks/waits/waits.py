"""Who waited for whom in the collectives of a job, and why the one that came last did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.model.trace import Input, file_names, rank_names
from traceanalyzer.names import readable_name
from traceanalyzer.ranks.shape.lateness import PATTERNS
from traceanalyzer.ranks.shape.stages import stages_of, uneven_words
from traceanalyzer.ranks.waits.late_patterns import late_patterns
from traceanalyzer.ranks.waits.pipelines import bubbles, pipeline
from traceanalyzer.ranks.waits.tables import COLLECTIVE_WAITS
from traceanalyzer.units import format_count, format_duration
from traceanalyzer.vocabulary.lines import COMPUTE, LINES

LONGEST_NAME = 60
MUCH_LONGER = 1.2
"""The same operations take a little longer on one GPU than on another; a fifth longer is larger data, or a slower GPU."""
MOST_OF_IT = 0.5
"""One operation that takes this share of the extra time stands for it."""
DOUBLINGS = 10
"""Blame is followed from a rank that waited itself to the one it waited for, over a thousand ranks if need be."""


def collective_waits(
    communication: pa.Table,
    matches: pa.Table,
    late_work: pa.Table,
    late_names: pa.Table,
    extra_work: pa.Table,
    excess: pa.Table,
    ledger: pa.Table,
    step_ledger: pa.Table,
    waited_intervals: pa.Table,
    inputs: Sequence[Input],
) -> pa.Table:
    """Every communication kernel, in the order of `communication` and of `matches`.

    Who was late because it waited itself for another one is not to blame: that one is, outside of pipelines, in which that is normal.
    """
    start = frames.ints(communication, "start_ns")
    wait = np.maximum(*(np.maximum(frames.ints(communication, c), 0) for c in ("wait", "likely_wait")))
    instance, keys = frames.ints(communication, "instance"), [frames.ints(late_work, "instance")]
    direct = late_work.take(rows_of(keys, [instance]))
    stages = pipeline(communication)
    bubble = bubbles(communication, direct["line"], stages)
    blamed = late_work.take(rows_of(keys, [np.where(bubble, instance, roots(instance, late_work))]))
    late = {c: pc.coalesce(blamed[c], communication[f"late_{c}"]) for c in ("rank", "device")}
    gpu = [frames.ints(pa.table(late), c) for c in late]
    reasons = late_reasons(gpu, blamed["line"], late_names, extra_work, excess, ledger.num_rows)
    told = late_patterns(communication, gpu, bubble).found
    shape = stages_of(stages.ranks, step_ledger, waited_intervals) if len(stages.ranks) else None
    uneven = uneven_words(shape, _gpu_names(shape.gpus, inputs)) if shape is not None and shape.uneven else None
    same = (
        "rank",
        "device",
        "kind",
        "parallelism",
        "instance",
        "ranks",
        "certainty",
        "wait",
        "exposed_wait",
        "likely_wait",
        "exposed_likely_wait",
        "transfer",
    )
    return frames.build(
        COLLECTIVE_WAITS,
        {c: communication[c] for c in (*same, "spread", "start_ns")}
        | {f"late_{c}": values for c, values in late.items()}
        | {f"late_{c}": pc.coalesce(blamed[c], matches[f"late_{c}"]) for c in ("start_ns", "end_ns")}
        | {c: matches[c] for c in ("imbalance", "score")}
        | {"end_ns": start + wait, "late": late_rank_names(late, inputs), "sooner": _sooner(communication)}
        | {"late_line": blamed["line"], **reasons}
        | {"bubble": pa.array(bubble)}
        | {c: frames.numbers(np.full(len(start), getattr(stages, c))) for c in ("stages", "micro_batches")}
        | {"schedule": pa.array([stages.schedule] * len(start), pa.string())}
        | {"job_window": np.full(len(start), _windows(ledger, communication))}
        | {
            "pattern": frames.names(told.pattern, PATTERNS),
            "uneven_stages": pa.array([uneven] * len(start), pa.string()),
        }
        | {"interleaved": pa.array([stages.interleaved] * len(start), pa.bool_())},
    )


def _gpu_names(gpus: Sequence[frames.Key], inputs: Sequence[Input]) -> list[str]:
    late = {c: pa.chunked_array([[gpu[at] for gpu in gpus]], pa.int32()) for at, c in enumerate(("rank", "device"))}
    return [name or "" for name in late_rank_names(late, inputs).to_pylist()]


def late_reasons(
    gpu: list[Array], line: pa.Array, late_names: pa.Table, extra_work: pa.Table, excess: pa.Table, gpus: int
) -> dict[str, pa.Array]:
    """Why each of these GPUs, (rank, device), was late: the columns `late_cause`, `late_doing` and `late_why`.

    `line` is what they spent most of the time on in which others waited; `gpus` counts those of the job.
    """
    more = excess.take(rows_of(gpus_of(excess), gpu))
    cause = pc.coalesce(*(column.cast(pa.string()) for column in (more["line"], line)))
    doing = late_names["name"].take(rows_of(*_by_line(late_names, gpu, cause)))
    extra = extra_work.take(rows_of(gpus_of(extra_work), gpu))
    return {"late_cause": cause, "late_doing": doing, "late_why": _why(cause, more, extra, doing, gpus)}


def roots(instance: Array, late_work: pa.Table) -> Array:
    """For each collective the one in which what made its last rank late began: itself, or that in which this rank waited."""
    own, via = (frames.ints(late_work, c) for c in ("instance", "via"))
    before = np.arange(max(instance.max(initial=0), own.max(initial=0)) + 2)
    before[own] = np.where(via == NULL, own, via)
    root = before
    for _ in range(DOUBLINGS):
        root = root[root]
    # Where ranks wait for each other in a circle nobody was the first.
    root = np.where(before[root] == root, root, np.arange(len(before)))
    return root[np.where(instance == NULL, len(before) - 1, instance)]


def gpus_of(table: pa.Table) -> list[Array]:
    """The columns (rank, device)."""
    return [frames.ints(table, c) for c in ("rank", "device")]


def _by_line(names: pa.Table, gpu: list[Array], line: pa.Array) -> tuple[list[Array], list[Array]]:
    """Keys of `late_names`, and those that are wanted: a GPU and a line."""
    both = pa.chunked_array([*names["line"].cast(pa.string()).chunks, *line.chunks], pa.string()).combine_chunks()
    code = both.dictionary_encode().indices.fill_null(-1).cast(pa.int64()).to_numpy()
    return [*gpus_of(names), code[: names.num_rows]], [*gpu, code[names.num_rows :]]


def late_rank_names(late: dict[str, pa.ChunkedArray], inputs: Sequence[Input]) -> pa.Array:
    """The name of each late rank or, where the trace does not say ranks, of its GPU."""
    names = rank_names(inputs)
    of = {ordinal: f" of {file}" for ordinal, file in file_names(inputs).items()} if len(inputs) > 1 else {}
    pairs = list(zip(late["rank"].to_pylist(), late["device"].to_pylist(), strict=True))
    called = {
        (rank, device): None if None in (rank, device) else names.get(rank, f"GPU {device}{of.get(rank, '')}")
        for rank, device in set(pairs)
    }
    return pa.array([called[pair] for pair in pairs], pa.string())


def _why(cause: pa.Array, more: pa.Table, extra: pa.Table, doing: pa.Array, gpus: int) -> pa.Array:
    """Why each late rank is late, in words; each distinct case is worded once."""
    columns = [cause, more["time"], extra["name"], extra["count"], extra["time"], extra["longer"], doing]
    cases = list(zip(*(column.to_pylist() for column in columns), strict=True))
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
) -> str | None:
    known = LINES.get(line or "")
    if known is None or known.doing is None:
        return None
    more = "meanwhile" if time is None else f"{format_duration(time)} more a step than {than}"
    said = known.doing.format(more=more)
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


def _sooner(communication: pa.Table) -> Array:
    """The part of each exposed wait that was for the last rank alone: the least wait of those that came before it."""
    instance, wait = frames.ints(communication, "instance"), frames.ints(communication, "exposed_wait")
    order = np.lexsort((wait, frames.ints(communication, "wait"), instance))
    order = order[instance[order] != NULL]
    sooner = np.zeros(len(instance), np.int64)
    if not len(order):
        return sooner
    # The last rank's own row comes first of its collective.
    first = np.flatnonzero(np.diff(instance[order], prepend=-1))
    others = np.ones(len(order), bool)
    others[first] = False
    number = np.cumsum(~others) - 1
    least = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(least, number[others], wait[order][others])
    sooner[order[others]] = least[number[others]]
    return sooner


def rows_of(keys: Sequence[Array], wanted: Sequence[Array]) -> pa.Array:
    """For each wanted combination its row among `keys`, which hold each once; null where they do not."""
    code = frames.dense(*(np.concatenate(pair) for pair in zip(keys, wanted, strict=True)))
    row = np.full(int(code.max(initial=0)) + 1, -1)
    row[code[: len(keys[0])]] = np.arange(len(keys[0]))
    found = row[code[len(keys[0]) :]]
    return pa.array(found, mask=found < 0)


def _windows(ledger: pa.Table, communication: pa.Table) -> int:
    gpus = {key for key, _ in frames.groups(communication)}
    rows = zip(*(ledger[c].to_pylist() for c in ("rank", "device", "duration")), strict=True)
    return sum(duration for rank, device, duration in rows if (rank, device) in gpus)
