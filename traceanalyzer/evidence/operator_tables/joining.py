"""Operators of an execution trace and of a Kineto trace that are the same, by the id of their record function; and whether a table or
an execution trace is of the same run as a trace at all."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import Array, Flags
from traceanalyzer.evidence.operator_tables.answers.profiles import Profile, profiles
from traceanalyzer.model.tables import Tables

SAME = 0.9
"""From this share of alike on, two files are of one run."""
OTHER = 0.5
"""Below this share they are not."""
LEAST = 10
"""Fewer ids in common tell nothing."""
LEAST_NAMES = 5
"""Names in a table that are as often and as long in a trace, to the last digit that the table gives."""
FILLED = ("shapes", "dtypes", "arguments")
_TIME_OFF, _TIME_OFF_NS = 0.002, 2_000
"""A table gives three decimals of its unit."""
_CUT = ("...", "..")


def fits(own: Tables, trace: Tables) -> bool | None:
    """As `evidence.contract.Evidence.fits`."""
    nodes = own.table("execution_nodes")
    if nodes.num_rows:
        return _nodes_fit(nodes, own.table("execution_traces"), trace)
    found = profiles(own.table("operator_averages"), own.table("average_tables"))
    told = [fit for one in found if (fit := _profile_fits(one, trace)) is not None]
    return any(told) if told else None


def enriched(own: Tables, trace: Tables) -> Mapping[str, pa.Table]:
    """Operators of the trace with shapes, types and arguments of the execution trace, where the trace has none; nothing where the two
    do not agree."""
    nodes, ranges = own.table("execution_nodes"), trace.table("host_ranges")
    if not nodes.num_rows:
        return {}
    at, agree = matched(nodes, ranges)
    if not agreed(at, agree):
        return {}
    rows = pa.array(at, mask=~agree)
    made = ranges
    for name in FILLED:
        if name not in ranges.column_names or not ranges[name].null_count:
            continue
        told = nodes[name].combine_chunks().cast(pa.string()).take(rows)
        if not pc.any(pc.and_(ranges[name].is_null(), told.is_valid())).as_py():
            continue
        field = ranges.schema.field(name)
        filled = pc.coalesce(ranges[name].cast(pa.string()), told)
        filled = filled.dictionary_encode() if pa.types.is_dictionary(field.type) else filled
        made = made.set_column(made.schema.get_field_index(name), field, filled.cast(field.type))
    return {} if made is ranges else {"host_ranges": made}


def matched(nodes: pa.Table, ranges: pa.Table) -> tuple[Array, Flags]:
    """By row of the trace's ranges: the node of its id, -1 for none; and whether both have the same name."""
    ids = frames.ints(nodes, "record_function")
    known = np.flatnonzero(ids != frames.NULL)
    # An id that several nodes have tells nothing.
    values, first, times = np.unique(ids[known], return_index=True, return_counts=True)
    values, place = values[times == 1], known[first[times == 1]]
    wanted = frames.ints(ranges, "record_function")
    if not len(values):
        none = np.full(len(wanted), -1)
        return none, none >= 0
    near = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    found = (values[near] == wanted) & (wanted != frames.NULL)
    at: Array = np.where(found, place[near], -1)
    told = nodes["name"].combine_chunks().cast(pa.string()).take(pa.array(at, mask=~found))
    same = pc.equal(ranges["name"].combine_chunks().cast(pa.string()), told)
    return at, pc.fill_null(same, False).to_numpy(zero_copy_only=False)


def agreed(at: Array, agree: Flags) -> bool:
    """Whether most operators that share an id also share their name, and there are some."""
    shared = int((at >= 0).sum())
    return shared > 0 and int(agree.sum()) >= SAME * shared


def _nodes_fit(nodes: pa.Table, traces: pa.Table, trace: Tables) -> bool | None:
    pids = set(traces["pid"].drop_null().to_pylist())
    there = set(trace.table("processes")["pid"].drop_null().to_pylist())
    if pids and there and not pids & there:
        return False
    ranges = trace.table("host_ranges")
    at, agree = matched(nodes, ranges)
    shared = int((at >= 0).sum())
    if shared >= LEAST:
        share = float(agree.sum()) / shared
        return True if share >= SAME else False if share < OTHER else None
    return _counts_fit(nodes, ranges)


def _counts_fit(nodes: pa.Table, ranges: pa.Table) -> bool | None:
    """Without ids in common: whether operators are as many by name."""
    mine = _counts(nodes.filter(pc.fill_null(nodes["operator"], False)))
    theirs = _counts(ranges.filter(pa.array(frames.equals(ranges, "category", "operator"))))
    if len(mine) < LEAST or not theirs:
        return None
    same = sum(theirs.get(name) == count for name, count in mine.items())
    return True if same >= SAME * len(mine) else None


def _counts(table: pa.Table) -> dict[str, int]:
    found = table["name"].combine_chunks().cast(pa.string()).value_counts()
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))


def _profile_fits(one: Profile, trace: Tables) -> bool | None:
    """A table sums what its trace lists: as many calls of each name, and as long."""
    theirs = _sums(trace)
    named = [row for row in one.rows.to_pylist() if not row["on_device"] and not row["name"].endswith(_CUT)]
    if one.partial:
        named = [row for row in named if row["calls"] >= theirs.get(row["name"], (0, 0))[0]]
    if len(named) < LEAST_NAMES or not theirs:
        return None
    counted = [row for row in named if theirs.get(row["name"], (0, 0))[0] == row["calls"]]
    if len(counted) < OTHER * len(named):
        return False
    timed = [row for row in counted if row["host_total"] is not None]
    as_long = sum(
        abs(theirs[row["name"]][1] - row["host_total"]) <= _TIME_OFF * row["host_total"] + _TIME_OFF_NS for row in timed
    )
    if len(timed) >= LEAST_NAMES and as_long < OTHER * len(timed):
        return False
    return True if len(counted) >= SAME * len(named) and as_long >= max(SAME * len(timed), LEAST_NAMES) else None


def _sums(trace: Tables) -> dict[str, tuple[int, int]]:
    """Calls of each name on the host, and how long they took together."""
    found: dict[str, tuple[int, int]] = {}
    ranges = trace.table("host_ranges")
    ranges = ranges.filter(pa.array(frames.equals(ranges, "category", "operator", "annotation")))
    for table, name in ((ranges, "name"), (trace.table("api_calls"), "raw_name")):
        if not table.num_rows:
            continue
        some = pa.table({"name": table[name].cast(pa.string()), "took": pa.array(frames.duration(table))})
        for row in some.group_by("name", use_threads=False).aggregate([("took", "sum"), ("took", "count")]).to_pylist():
            count, took = found.get(row["name"], (0, 0))
            found[row["name"]] = (count + row["took_count"], took + row["took_sum"])
    return found
