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
from traceanalyzer.ranks.collectives.recorded import shares, tells_nothing, untold
from traceanalyzer.ranks.shape.lateness import PATTERNS
from traceanalyzer.ranks.shape.stages import stages_of, uneven_words
from traceanalyzer.ranks.waits.late_patterns import late_patterns
from traceanalyzer.ranks.waits.loads import ALL_TO_ALL, UNEVEN, even_waits, loads
from traceanalyzer.ranks.waits.pipelines import bubbles, pipeline
from traceanalyzer.ranks.waits.reasons import MUCH_LONGER, gpus_of, late_reasons, rows_of
from traceanalyzer.ranks.waits.tables import COLLECTIVE_WAITS
from traceanalyzer.vocabulary.lines import COMPUTE

DOUBLINGS = 10
"""Blame is followed from a rank that waited itself to the one it waited for, over a thousand ranks if need be."""


def collective_waits(
    communication: pa.Table,
    matches: pa.Table,
    late_work: pa.Table,
    late_names: pa.Table,
    extra_work: pa.Table,
    extra_ranges: pa.Table,
    excess: pa.Table,
    ledger: pa.Table,
    step_ledger: pa.Table,
    waited_intervals: pa.Table,
    inputs: Sequence[Input],
) -> pa.Table:
    """Every communication kernel, in the order of `communication` and of `matches`.

    Who was late because it waited itself for another one is not to blame: that one is, outside of pipelines, in which that is normal.
    """
    communication = _without_outside(communication)
    start = frames.ints(communication, "start_ns")
    wait = np.maximum(*(np.maximum(frames.ints(communication, c), 0) for c in ("wait", "likely_wait")))
    instance, keys = frames.ints(communication, "instance"), [frames.ints(late_work, "instance")]
    direct = late_work.take(rows_of(keys, [instance]))
    stages = pipeline(communication)
    bubble = bubbles(communication, direct["line"], stages)
    blamed = late_work.take(rows_of(keys, [np.where(bubble, instance, roots(instance, late_work))]))
    late = {c: pc.coalesce(blamed[c], communication[f"late_{c}"]) for c in ("rank", "device")}
    gpu = [frames.ints(pa.table(late), c) for c in late]
    reasons = late_reasons(
        gpu, blamed["line"], late_work, late_names, extra_work, extra_ranges, excess, ledger.num_rows
    )
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
        "missing",
        "certainty",
        "wait",
        "exposed_wait",
        "call_wait",
        "exposed_call_wait",
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
        | {"end_ns": start + wait, "late": late_rank_names(late, inputs)}
        | {"late_line": blamed["line"], **reasons}
        | _sooner(communication, extra_work, gpu, reasons["late_cause"])
        | {"bubble": pa.array(bubble)}
        | {c: frames.numbers(np.full(len(start), getattr(stages, c))) for c in ("stages", "micro_batches")}
        | {"schedule": pa.array([stages.schedule] * len(start), pa.string())}
        | {"job_window": np.full(len(start), _windows(ledger, communication))}
        | {"job_matched": pa.array([shares(communication)[0]] * len(start), pa.float64())}
        | {
            "pattern": frames.names(told.pattern, PATTERNS),
            "uneven_stages": pa.array([uneven] * len(start), pa.string()),
        }
        | {"interleaved": pa.array([stages.interleaved] * len(start), pa.bool_())},
    )


def _gpu_names(gpus: Sequence[frames.Key], inputs: Sequence[Input]) -> list[str]:
    late = {c: pa.chunked_array([[gpu[at] for gpu in gpus]], pa.int32()) for at, c in enumerate(("rank", "device"))}
    return [name or "" for name in late_rank_names(late, inputs).to_pylist()]


def _without_outside(communication: pa.Table) -> pa.Table:
    """Nothing is likely of a wait for a rank that did not record yet or any more, where ranks of the same job recorded together."""
    if not untold(communication):
        return communication
    silent = tells_nothing(communication)
    for name in ("likely_wait", "exposed_likely_wait"):
        likely = np.where(silent, NULL, frames.ints(communication, name))
        at = communication.schema.get_field_index(name)
        communication = communication.set_column(at, communication.schema.field(at), frames.numbers(likely))
    return communication


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


def _sooner(communication: pa.Table, extra_work: pa.Table, late: list[Array], cause: pa.Array) -> dict[str, pa.Array]:
    """The columns `sooner`, `load` and `shared`."""
    load = loads(communication)
    longer = extra_work["longer"].take(rows_of(gpus_of(extra_work), late)).to_numpy()
    computes = pc.equal(cause, COMPUTE.name).fill_null(False).to_numpy(zero_copy_only=False)
    exchanged = frames.equals(communication, "kind", ALL_TO_ALL)
    shared = computes & ((load >= UNEVEN) | (longer >= MUCH_LONGER) | exchanged)
    sooner = np.where(shared, even_waits(communication), _without_the_last(communication))
    return {"sooner": pa.array(sooner), "load": pa.array(load, from_pandas=True), "shared": pa.array(shared)}


def _without_the_last(communication: pa.Table) -> Array:
    """The part of each exposed wait that was for the last rank alone: the least wait of those that came before it."""
    instance, wait = frames.ints(communication, "instance"), frames.ints(communication, "exposed_wait")
    order = np.lexsort((wait, frames.ints(communication, "wait"), instance))
    order = order[wait[order] != NULL]
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


def _windows(ledger: pa.Table, communication: pa.Table) -> int:
    """The windows of all GPUs that communicate, without what tells nothing of waiting."""
    gpus, apart = {key for key, _ in frames.groups(communication)}, untold(communication)
    rows = zip(*(ledger[c].to_pylist() for c in ("rank", "device", "duration")), strict=True)
    return sum(duration - apart.get((rank, device), 0) for rank, device, duration in rows if (rank, device) in gpus)
