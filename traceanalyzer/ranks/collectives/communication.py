"""Communication kernels: what each one carries, and the time that no compute hides.

What a trace says about a collective lies in up to five places, trusted in this order: the arguments on the kernel (`collectives`),
those of the call of NCCL that launched it (`nccl_calls`), the operator around its launch (`record_param_comms`, `nccl:all_reduce`,
NVTX ranges of NCCL), other kernels of the same name on the same stream, and the name of the kernel. Kernels queued before the capture
have only the last two.

`communication` adds what `matches` finds out about each kernel's counterparts on other ranks.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames, most
from traceanalyzer.columns.frames import NULL
from traceanalyzer.columns.grouped import Floats, Groups, Names, text_codes
from traceanalyzer.columns.spill import forget
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.launches.launches import call_of
from traceanalyzer.derive.ledger.busy import Busy
from traceanalyzer.derive.steps.steps import steps_at
from traceanalyzer.derive.streams.handover import HANDOVER_NS
from traceanalyzer.derive.streams.hardware_queues import one_queue
from traceanalyzer.derive.streams.transfers import computes, exposed_time
from traceanalyzer.intervals import Array, Spans, coverage, covered_before, latest_of, union
from traceanalyzer.ranks.collectives import nccl_calls
from traceanalyzer.ranks.collectives.calls import call_spans
from traceanalyzer.ranks.collectives.classes import OPERATOR
from traceanalyzer.ranks.collectives.collective_names import bus_factor, in_one_machine, kind_of, message_bytes, nvlink
from traceanalyzer.ranks.collectives.collectives import lanes
from traceanalyzer.ranks.collectives.grouped_sends import continue_back, describe
from traceanalyzer.ranks.collectives.likely_waits import likely_waits
from traceanalyzer.ranks.collectives.tables import COMMUNICATION, MATCHES
from traceanalyzer.ranks.collectives.told import Told
from traceanalyzer.ranks.groups.peers import peers
from traceanalyzer.ranks.parallelism.parallelism import parallelism

MAIN_STREAM_SHARE = 0.10
"""A stream with less of the GPU's compute than this prepares buffers; it is not where the program computes."""

LARGE_BYTES = 8 << 20
"""From this size on a collective runs at the speed of its links; below, latency has a part in it."""
FASTEST, FEW = 0.9, 8
"""The quantile that stands for what links can do, and how many collectives it takes to say so."""

NUMBERS = ("group_size", "bytes", "in_bytes", "out_bytes", "peer", "sequence")
"""What a kernel's arguments say in numbers."""
TEXTS = ("kind", "group", "group_ranks", "dtype", "sends", "receives")


def communication(
    communication_kernels: pa.Table, matches: pa.Table, busy: dict[frames.Key, Busy], devices: pa.Table
) -> pa.Table:
    """Every communication kernel on the ledger, in the order of gpu_ops, with what its counterparts on other ranks tell."""
    kernels = communication_kernels
    matched = matches["wait"].is_valid().to_numpy()
    start = frames.ints(kernels, "start_ns")
    wait, transfer = (np.where(matched, frames.ints(matches, c), 0) for c in ("wait", "transfer"))
    likely = likely_waits(kernels, np.where(matched, transfer, NULL))
    waited = np.where(matched, wait, np.maximum(likely, 0))
    call_wait = np.where(matched, frames.ints(matches, "call_wait"), 0)
    open_wait, open_call = waited.copy(), call_wait.copy()
    for key, rows in frames.groups(kernels):
        end = start[rows] + waited[rows]
        open_wait[rows] -= coverage(start[rows], end, busy[key].compute)
        open_call[rows] -= coverage(end - call_wait[rows], end, busy[key].compute)
    alone = frames.ints(kernels, "exposed")
    sent = np.maximum(alone - open_wait, 0)
    sent = np.where(matched, sent, np.minimum(sent, _usual_transfer(kernels, matched, transfer)))
    took = np.where(matched, transfer, frames.duration(kernels))
    rate = _bus_bandwidth(kernels, took, frames.ints(matches, "ranks"))
    return frames.build(
        COMMUNICATION,
        {c: kernels[c] for c in COMMUNICATION.schema.names}
        | {c: matches[c] for c in MATCHES.schema.names if c in COMMUNICATION.schema.names}
        | {
            "exposed_wait": pa.array(open_wait, mask=~matched),
            "exposed_call_wait": pa.array(open_call, mask=~matched),
            "likely_wait": frames.numbers(likely),
            "exposed_likely_wait": pa.array(open_wait, mask=likely == NULL),
            "exposed_transfer": sent,
            "bus_bandwidth": pa.array(rate, from_pandas=True),
            "link_bandwidth": pa.array(_link_bandwidth(kernels, devices), from_pandas=True),
            "best_bandwidth": pa.array(_best_bandwidth(kernels, rate), from_pandas=True),
        },
    )


def _usual_transfer(kernels: pa.Table, matched: frames.Flags, transfer: Array) -> Array:
    """The longest transfer of the matched kernels of the same name on the same GPU; without any, no bound."""
    family = Groups(frames.dense(lanes(kernels), frames.codes(kernels, "name")[0]))
    longest = family.max(np.where(matched, transfer, NULL))[family.of]
    return np.where(longest == NULL, np.iinfo(np.int64).max, longest)


def _bus_bandwidth(kernels: pa.Table, time: Array, found: Array) -> Floats:
    """GB/s (bytes per ns) over the busiest link, NaN where size, kind or the number of ranks is not known."""
    kind, kinds = frames.codes(kernels, "kind")
    size, told = frames.ints(kernels, "bytes"), frames.ints(kernels, "group_size")
    ranks = np.where(told != NULL, told, np.where(found != NULL, found, 0))
    pairs, at = np.unique(np.stack((kind, ranks)), axis=1, return_inverse=True)
    factor = np.array([bus_factor(kinds[k], n) or np.nan for k, n in pairs.T.tolist()])[at.ravel()]
    return np.where((size > 0) & (time > 0), factor * size / np.maximum(time, 1), np.nan)


def _link_bandwidth(kernels: pa.Table, devices: pa.Table) -> Floats:
    """Nominal GB/s of the links that join a kernel's GPU to the rest of its group, NaN where that is not known."""
    group, groups = frames.codes(kernels, "group_ranks")
    rate = np.full(len(group), np.nan)
    names = {(row["rank"], row["device"]): row["name"] for row in devices.to_pylist()}
    gpus = Counter(rank for rank, _ in names)
    for (rank, device), rows in frames.groups(kernels):
        if fast := nvlink(names.get((rank, device))):
            near = frames.passing(group[rows], groups, partial(in_one_machine, gpus=gpus[rank]))
            rate[rows] = np.where(near, fast, np.nan)
    return rate


def _best_bandwidth(kernels: pa.Table, rate: Floats) -> Floats:
    """For each large collective what the fastest tenth of those of its lane, group and kind reach; NaN where they are few."""
    large = (frames.ints(kernels, "bytes") >= LARGE_BYTES) & ~np.isnan(rate)
    if not large.any():
        return np.full(len(rate), np.nan)
    like = frames.dense(lanes(kernels), *(frames.codes(kernels, c)[0] for c in ("group", "group_ranks", "kind")))
    of = Groups(like)
    best = np.where(of.count(large) >= FEW, of.quantile(np.where(large, rate, np.nan), FASTEST), np.nan)
    return np.where(large, best[of.of], np.nan)


def communication_kernels(
    communication_ops: pa.Table,
    ledger_ops: pa.Table,
    busy: dict[frames.Key, Busy],
    collectives: pa.Table,
    launches: pa.Table,
    host_ranges: pa.Table,
    host_steps: pa.Table,
    callers: Callers,
    api_calls: pa.Table,
) -> pa.Table:
    """Every communication kernel on the ledger, in the order of gpu_ops; what only several ranks together tell is null."""
    kernels = communication_ops
    at = call_of(frames.ints(kernels, "row"), launches)
    rank, process = frames.ints(kernels, "rank"), frames.ints(kernels, "process")
    called = frames.ints_at(launches, "start_ns", at)
    calls = launches.take(pa.array(at, mask=at < 0))
    step = steps_at(host_steps, rank, process, called)
    told = _described(kernels, collectives)
    describe(told, calls, host_ranges, collectives)
    nccl_calls.describe(told, calls, host_ranges, collectives)
    _add_operators(told, rank, calls, host_ranges)
    continue_back(told, kernels, called, step)
    _add_relatives(told, kernels)
    begun, returned = call_spans(calls, host_ranges, callers)
    forget()
    columns = ("rank", "device", "process", "stream", "start_ns", "end_ns", "name")
    missing = {c.name: pa.nulls(kernels.num_rows, c.type) for c in COMMUNICATION.columns}
    table = frames.build(
        COMMUNICATION,
        missing
        | {c: kernels[c] for c in columns}
        | {c: pa.array(told.texts[c], from_pandas=True) for c in TEXTS}
        | {c: frames.numbers(told.numbers[c]) for c in NUMBERS}
        | {
            "call_start_ns": frames.numbers(begun),
            "call": frames.numbers(np.where(begun == NULL, NULL, returned - begun)),
        }
        | {"step": frames.numbers(step), "one_queue": one_queue(kernels, ledger_ops, launches, api_calls)}
        | _placed(ledger_ops, busy),
    )
    at_column = table.schema.get_field_index("parallelism")
    served = parallelism(table, calls, collectives, host_ranges, callers)
    return table.set_column(at_column, table.schema.field(at_column), served)


def _described(kernels: pa.Table, collectives: pa.Table) -> Told:
    """The arguments on the kernels themselves."""
    collectives = collectives.filter(pc.is_null(collectives["thread"]))
    keys = ("rank", "device", "stream", "start_ns", "end_ns")
    code = frames.dense(*(np.concatenate((frames.ints(kernels, k), frames.ints(collectives, k))) for k in keys))
    of_kernel, of_collective = code[: kernels.num_rows], code[kernels.num_rows :]
    place = np.full(int(code.max()) + 1, -1, np.int64)
    place[of_collective] = np.arange(len(of_collective))
    at = place[of_kernel]
    found = collectives.take(pa.array(at, mask=at < 0))
    texts = {name: _texts(found, name) for name in ("group", "group_ranks", "dtype")}
    numbers = {name: frames.ints(found, name).copy() for name in NUMBERS}
    lists = {side: np.full(found.num_rows, None, object) for side in ("sends", "receives")}
    return Told({**texts, "kind": _kinds(found), **lists}, numbers)


def _add_operators(told: Told, rank: Array, calls: pa.Table, host_ranges: pa.Table) -> None:
    """What the operators around the launch calls say, where the kernels have no arguments."""
    has_kind = told.has_kind
    if has_kind.all():
        return
    of_nccl = _around(calls, host_ranges, frames.where(host_ranges, "name", lambda n: n.lower().startswith("nccl")))
    noted = _around(calls, host_ranges, frames.equals(host_ranges, "name", OPERATOR))
    told.texts["kind"] = np.where(has_kind, told.texts["kind"], _kinds(of_nccl))
    told.numbers["bytes"] = np.where(told.numbers["bytes"] == NULL, _sizes(noted), told.numbers["bytes"])
    named = peers(of_nccl["name"].to_pylist(), rank, told.texts["group_ranks"])
    told.numbers["peer"] = np.where(told.numbers["peer"] == NULL, named, told.numbers["peer"])


def _around(calls: pa.Table, host_ranges: pa.Table, which: frames.Flags) -> pa.Table:
    """For each call the range of its thread that began last before it, of `which`; nulls where that one is over or there is none."""
    ranges = host_ranges.filter(pa.array(which))
    keys = ("rank", "process", "thread")
    lane = frames.dense(*(np.concatenate((frames.ints(ranges, key), frames.ints(calls, key))) for key in keys))
    start, end = frames.ints(ranges, "start_ns"), frames.ints(ranges, "end_ns")
    at = latest_of(lane[: len(start)], start, end, lane[len(start) :], frames.ints(calls, "start_ns"))
    return ranges.take(pa.array(at, mask=at < 0))


def _add_relatives(told: Told, kernels: pa.Table) -> None:
    """What all other kernels of the same name on the same stream agree on; at last, what the kernel's name says."""
    name, names = frames.codes(kernels, "name")
    who = [frames.ints(kernels, key) for key in ("rank", "process", "device", "context", "stream")]
    family = frames.dense(*who, name)
    for column in ("kind", "group", "group_ranks"):
        code, values = text_codes(told.texts[column])
        shared = most.agreed(family, code, code >= 0)
        # A code of -1 is the None at the end.
        told.texts[column] = np.array([*values, None], object)[np.where((code < 0) & (shared != NULL), shared, code)]
    for column in ("group_size", "peer"):
        number = told.numbers[column]
        told.numbers[column] = np.where(number == NULL, most.agreed(family, number, number != NULL), number)
    by_name = np.array([kind_of(n) if n else None for n in names], object)[name]
    told.texts["kind"] = np.where(told.has_kind, told.texts["kind"], by_name)


def _placed(ledger_ops: pa.Table, busy: dict[frames.Key, Busy]) -> dict[str, pa.Array]:
    """How each communication kernel lies beside the compute kernels of its GPU."""
    alone, done, shared, ordered = [], [], [], []
    for key, ops in frames.split(ledger_ops):
        mine = np.flatnonzero(frames.equals(ops, "class", "communication"))
        if not len(mine):
            continue
        start, end = frames.ints(ops, "start_ns")[mine], frames.ints(ops, "end_ns")[mine]
        alone.append(exposed_time(start, end, busy[key].compute))
        done.append(covered_before(end, busy[key].compute))
        shared.append(_on_main_stream(ops)[mine])
        ordered.append(_handed_over(start, end, busy[key].compute) & ~shared[-1])
        forget()
    return {
        "exposed": pa.array(np.concatenate(alone)),
        "computed": pa.array(np.concatenate(done)),
        "compute_stream": pa.array(np.concatenate(shared)),
        "serialized": pa.array(np.concatenate(ordered)),
    }


def _on_main_stream(ops: pa.Table) -> frames.Flags:
    """For each operation of one GPU, whether the program computes on its stream."""
    stream = frames.streams(ops)
    work = np.bincount(stream, weights=np.where(computes(ops), frames.duration(ops), 0))
    main: frames.Flags = work >= max(MAIN_STREAM_SHARE * work.sum(), 1)
    return main[stream]


def _handed_over(start: Array, end: Array, compute: Spans) -> frames.Flags:
    """Whether the stretch of communication around each kernel fills a pause of compute: it begins and ends as the pause does."""
    if not len(compute[0]):
        return np.zeros(len(start), bool)
    low, high = union(start, end + HANDOVER_NS)
    high = high - HANDOVER_NS
    before = np.searchsorted(compute[1], low, side="right") - 1
    after = np.searchsorted(compute[0], high, side="left")
    tight = (before >= 0) & (after < len(compute[0])) & (coverage(low, high, compute) == 0)
    tight &= low - compute[1][np.maximum(before, 0)] <= HANDOVER_NS
    tight &= compute[0][np.minimum(after, len(compute[0]) - 1)] - high <= HANDOVER_NS
    stretch = np.searchsorted(low, start, side="right") - 1
    inside: frames.Flags = tight[stretch] & (end <= high[stretch])
    return inside


def _texts(table: pa.Table, name: str) -> Names:
    return np.array(table[name].to_pylist(), object)


def _kinds(table: pa.Table) -> Names:
    """The kind of collective that each name says; each distinct name is looked at once."""
    code, names = frames.codes(table, "name")
    kinds = np.full(len(names), None, object)
    for at in np.unique(code).tolist():
        kinds[at] = kind_of(name) if (name := names[at]) else None
    return kinds[code]


def _sizes(operators: pa.Table) -> Array:
    """Message size that each operator notes, `NULL` where it notes none."""
    seen: dict[tuple[str, str], int | None] = {}
    sizes = []
    for pair in zip(operators["shapes"].to_pylist(), operators["dtypes"].to_pylist(), strict=True):
        if pair not in seen:
            seen[pair] = message_bytes(*pair) if None not in pair else None
        sizes.append(NULL if seen[pair] is None else seen[pair])
    return np.array(sizes, np.int64)
