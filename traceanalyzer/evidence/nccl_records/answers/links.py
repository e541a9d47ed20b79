"""Messages beside what nccl-tests reached between as many GPUs: the bus bandwidth of each size, and the share of the reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.evidence.nccl_records.derived_tables import LINK_SHARES

_KINDS = (
    ("allreduce", "all-reduce"),
    ("allgather", "all-gather"),
    ("reducescatter", "reduce-scatter"),
    ("alltoall", "all-to-all"),
    ("sendrecv", "send-receive"),
    ("broadcast", "broadcast"),
    ("reduce", "reduce"),
    ("send", "send"),
    ("recv", "receive"),
)
_MOST = 60
Key = tuple[str, int, int]


def kind(operation: str | None) -> str | None:
    """all-reduce, ... from the name of an operation; None for one that nccl-tests does not measure so, or a barrier."""
    letters = "".join(filter(str.isalpha, (operation or "").lower()))
    if "barrier" in letters:
        return None
    return next((word for part, word in _KINDS if part in letters), None)


def factor(operation: str, gpus: int) -> float | None:
    """Bytes over the busiest link for each byte of the message. Source: nccl-tests, doc/PERFORMANCE.md."""
    if gpus < 2:
        return None
    if operation == "all-reduce":
        return 2 * (gpus - 1) / gpus
    if operation in ("all-gather", "reduce-scatter", "all-to-all"):
        return (gpus - 1) / gpus
    return 1.0


def link_shares(
    nccl_rank_links: pa.Table, nccl_rank_calls: pa.Table, nccl_rank_groups: pa.Table, communication: pa.Table
) -> pa.Table:
    """Only sizes that lie within those that were measured, between as many GPUs, are compared."""
    reference = _references(nccl_rank_links.to_pylist())
    found: dict[tuple[Key, str], list[float | None]] = defaultdict(list)
    for key, rate, source in (*_of_traces(communication), *_of_records(nccl_rank_calls, nccl_rank_groups)):
        if key[:2] in reference:
            found[key, source].append(rate)
    traced = {key for key, source in found if source == _TRACE}
    rows = []
    for (key, source), rates in found.items():
        if key in traced and source != _TRACE:
            continue
        reached = _at(reference[key[:2]], key[2])
        if reached is None:
            continue
        known = [rate for rate in rates if rate is not None]
        median = float(np.median(known)) if known else None
        rows.append((key, source, len(rates), median, reached))
    rows.sort(key=lambda row: (-row[2] * row[0][2], row[0]))
    return pa.Table.from_pylist(
        [
            {
                "rank": 0,
                "operation": key[0],
                "gpus": key[1],
                "bytes": key[2],
                "calls": count,
                "bus_bandwidth": rate,
                "reference": reached,
                "share": rate / reached if rate is not None and reached else None,
                "source": source,
            }
            for key, source, count, rate, reached in rows[:_MOST]
        ],
        LINK_SHARES.schema,
    )


_TRACE, _RECORDS = "traces, without waiting", "records"


def _references(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, int], list[tuple[int, float]]]:
    """The best bus bandwidth by size, of each operation and number of GPUs."""
    best: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for row in rows:
        word = kind(row["operation"])
        if word and row["gpus"] and row["bytes"] and row["bus_bandwidth"]:
            sizes = best[word, row["gpus"]]
            sizes[row["bytes"]] = max(sizes.get(row["bytes"], 0.0), row["bus_bandwidth"])
    return {key: sorted(sizes.items()) for key, sizes in best.items()}


def _at(reference: list[tuple[int, float]], size: int) -> float | None:
    """What was reached at a size, between two sizes by their logarithms; None outside of what was measured."""
    sizes = np.array([one for one, _ in reference], float)
    if not sizes[0] <= size <= sizes[-1]:
        return None
    return float(np.interp(np.log(size), np.log(sizes), [rate for _, rate in reference]))


def _of_traces(communication: pa.Table) -> Iterable[tuple[Key, float | None, str]]:
    if not communication.num_rows:
        return
    columns = ("kind", "group_size", "bytes", "bus_bandwidth", "transfer", "missing")
    for row in communication.select(columns).to_pylist():
        # Where waiting is not told, or not for all ranks, it is in it.
        alone = row["transfer"] is not None and not row["missing"]
        if row["kind"] and row["group_size"] and row["bytes"] and alone:
            yield (row["kind"], row["group_size"], row["bytes"]), row["bus_bandwidth"], _TRACE


def _of_records(calls: pa.Table, groups: pa.Table) -> Iterable[tuple[Key, float | None, str]]:
    sizes = {(row["rank"], row["group"]): row["size"] for row in groups.to_pylist()}
    columns = ("rank", "group", "operation", "bytes", "duration", "bus_bandwidth")
    words: dict[str | None, str | None] = {}
    for row in calls.select(columns).to_pylist():
        operation = row["operation"]
        if operation not in words:
            words[operation] = kind(operation)
        word, gpus, size = words[operation], sizes.get((row["rank"], row["group"])), row["bytes"]
        if word is None or not gpus or not size:
            continue
        rate, own = row["bus_bandwidth"], factor(word, gpus)
        if rate is None and row["duration"] and own:
            rate = own * size / row["duration"]
        yield (word, gpus, size), rate, _RECORDS
