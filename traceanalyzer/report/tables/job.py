"""Tables of a job: its GPUs beside each other, and its collectives."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.names import capitalized
from traceanalyzer.report.tables.table import Column, DataTable, left_out
from traceanalyzer.result.document import Result
from traceanalyzer.result.gpus import lines_side_by_side, steps_of_gpus
from traceanalyzer.result.words.gpu_names import gpu_namer
from traceanalyzer.vocabulary.lines import COMPUTE, EXPOSED_COMMUNICATION, PARTS

_OF_WINDOW = "as a share of the GPU's window, first GPU operation to last"


def gpus(result: Result, most: int, names: Sequence[str] | None = None) -> DataTable | None:
    """The ledger of each GPU in short; None for a single one. `names` are those of `result.devices`."""
    devices = result.devices
    if len(devices) < 2:
        return None
    namer, steps = gpu_namer(devices), steps_of_gpus(result)[:most]
    names = names or [namer(device.rank, device.device) for device in devices]
    first = devices[:most]
    windows = [max(device.window_ns, 1) for device in first]

    def share(title: str, about: str, times: list[int]) -> Column:
        shares = [round(ns / window, 6) for ns, window in zip(times, windows, strict=True)]
        return Column(title, "share", f"{about}, {_OF_WINDOW}", shares)

    lines = lines_side_by_side(devices)[:most]
    parts = [
        share(part.words, capitalized(part.meaning), [one[part.name] for one in lines])
        for part in PARTS[EXPOSED_COMMUNICATION.name]
        if lines and part.name in lines[0]
    ]
    columns = (
        Column("GPU", "text", "Rank of the job, or number of the GPU", names[:most]),
        Column("window", "duration", "From its first GPU operation to its last", [d.window_ns for d in first]),
        share(COMPUTE.words, "Time in which a kernel computed", [d.compute_ns for d in first]),
        share(
            "exposed communication", "Communication that no compute hid", [d.exposed_communication_ns for d in first]
        ),
        *parts,
        share(
            "exposed copies",
            "Copies and memsets that nothing else hid",
            [d.exposed_memcpy_ns + d.exposed_memset_ns for d in first],
        ),
        share("idle", "Time in which nothing ran", [d.idle_ns for d in first]),
        Column(
            "median step",
            "duration",
            "Median time of a step on the GPU",
            [s.median_ns if s else None for s in steps],
            each=True,
        ),
        Column("kernels", "count", "Kernels that ran on it", [d.kernel_count for d in first]),
    )
    rest = len(devices) - len(first)
    note = f"The first {len(first):,} of {len(devices):,} GPUs. " if rest else ""
    return DataTable("gpus", "GPUs", note, len(devices), columns, order=0)


def collectives(result: Result, most: int) -> DataTable | None:
    """Collectives by kind, what they serve, group size and message size, over all ranks."""
    job = result.job
    if job is None or not job.collectives:
        return None
    every = sorted(job.collectives, key=lambda one: -one.exposed_ns)
    first, count = every[:most], len(every) + job.collectives_left
    rest_ns = sum(one.exposed_ns for one in every[most:]) + job.collectives_left_exposed_ns
    unmatched = [one.wait_ns is None or one.at_least for one in first]

    def rate(title: str, about: str, values: list[float | None]) -> Column:
        rounded = [None if value is None else round(value, 3) for value in values]
        about = f"{about}; a lower bound (≥) where waiting could not be told from transfer"
        return Column(title, "rate", about, rounded, at_least=unmatched)

    columns = (
        Column("Collective", "text", "What kind of collective", [one.kind for one in first]),
        Column("serves", "text", "Which way of working in parallel it serves", [one.parallelism for one in first]),
        Column(
            "ranks",
            "count",
            "Ranks of its group; a send takes two of them",
            [one.group_size for one in first],
        ),
        Column("size", "bytes", "Size of one message", [one.bytes for one in first]),
        Column("count", "count", "How many collectives, not counted once a rank", [one.count for one in first]),
        Column(
            "transfer",
            "duration",
            "Median time of one on one GPU, waiting for other ranks left out",
            [one.median_transfer_ns for one in first],
            each=True,
        ),
        rate("bandwidth", "Size over transfer time", [one.algorithm_bandwidth for one in first]),
        rate("bus bandwidth", "What the busiest link carries in that time", [one.bus_bandwidth for one in first]),
        Column(
            "waiting",
            "duration",
            "Time spent waiting for the last rank, over all GPUs, hidden by computation or not; a lower bound (≥) where ranks were not "
            "recorded",
            [one.wait_ns for one in first],
            at_least=[one.at_least for one in first],
        ),
        Column(
            "exposed",
            "duration",
            "Time in which nothing else ran on the GPU, waiting included, over all GPUs",
            [one.exposed_ns for one in first],
        ),
    )
    note = left_out("with the most exposed time", len(first), count, rest_ns)
    return DataTable("collectives", "Collectives", note, count, columns, order=9)
