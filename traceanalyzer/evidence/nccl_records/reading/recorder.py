"""Dumps of PyTorch's flight recorder: a pickle (`_dump_nccl_trace`) or JSON (`_dump_nccl_trace_json`), of any version.

Facts of the format: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp of PyTorch 2.2 to 2.11 (versions 1.x
to 2.10 of the dump): a newer one has more keys. In JSON a time that is not known is 0, and the numbers of `pg_status` are text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.errors import InputError
from traceanalyzer.evidence.nccl_records.reading.columns import (
    MOST_RANKS,
    Wrong,
    clean,
    few,
    table,
    text,
    time_of,
    times,
    whole,
    wholes,
)
from traceanalyzer.evidence.nccl_records.reading.places import Places
from traceanalyzer.evidence.nccl_records.reading.sizes import Sizes
from traceanalyzer.evidence.nccl_records.tables import CALLS, COMPLETED, GROUPS, SCHEDULED, STARTED
from traceanalyzer.ingest.bytes.pickles import Budget, is_pickle, unpickled
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.records import dataclass

P2P = frozenset({"send", "recv"})
_STATES = frozenset({SCHEDULED, STARTED, COMPLETED})
_PEERS = re.compile(r"(\d{1,9})\s*(->|<-)\s*(\d{1,9})")
Pair = tuple[str, str | None]


@dataclass
class Dump:
    """What a dump holds. `calls` and `groups` are rows of those tables; `member` is the rank of the job that the content tells."""

    version: str | None = None
    library: str | None = None
    calls: pa.Table = field(default_factory=lambda: table(CALLS, {"entry": []}))
    groups: pa.Table = field(default_factory=lambda: table(GROUPS, {"group": []}))
    member: int | None = None
    world_size: int | None = None
    lost_beginning: bool = False
    active_only: bool = False
    latest_ns: int | None = None
    recorded: bool = False
    timed: bool = False
    placed: bool = False


def read_recorder(source: Source, progress: Callable[[int], None], wrong: Wrong) -> Dump:
    """Raises InputError for what is damaged, hostile or no such dump."""
    data, size = _content(source, progress)
    if isinstance(data, list):
        data = {"entries": data}
    if not isinstance(data, dict) or not any(key in data for key in ("entries", "pg_status", "pg_config")):
        raise InputError(
            f"{source.path}: no dump of the NCCL flight recorder: it has neither entries nor process groups"
        )
    budget = Budget(size)
    try:
        return _dump(data, budget, wrong)
    except OverflowError as error:
        raise InputError(f"{source.path}: {error}; this is no dump as PyTorch writes it") from error


def _content(source: Source, progress: Callable[[int], None]) -> tuple[Any, int]:
    if is_pickle(source.head):
        return unpickled(source, progress, pairs=True)
    with source.open(progress) as stream:
        found = b"".join(iter(lambda: stream.read(1 << 20), b""))
        if stream.damage:
            raise InputError(f"{source.path}: {stream.damage}")
    try:
        return msgspec.json.decode(found.removeprefix(b"\xef\xbb\xbf")), len(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{source.path}: damaged JSON of a dump of the NCCL flight recorder; copy or dump it again"
        ) from error


def _dump(data: dict[Any, Any], budget: Budget, wrong: Wrong) -> Dump:
    found = Dump(version=text(data.get("version"), wrong))
    library = data.get("comm_lib_version", data.get("nccl_version"))
    found.library = text(library, wrong) or None
    entries = data.get("entries")
    found.recorded = isinstance(entries, list)
    wrong.count += entries is not None and not found.recorded
    listed: list[Any] = entries if isinstance(entries, list) else []
    budget.spend(listed)
    rows = [entry for entry in listed if type(entry) is dict]
    wrong.count += len(listed) - len(rows)
    pairs = _pairs(rows)
    named = dict.fromkeys(zip([entry.get("pg_id") for entry in rows], pairs, strict=True)) if _plain_ids(rows) else {}
    names = {str(id_): pair[0] for id_, pair in named if id_ is not None and pair is not None and pair[0] is not None}
    groups = _groups(data, names, budget, wrong)
    found.calls = _calls(rows, pairs, budget, wrong)
    called = [name for name in found.calls["group"].unique().to_pylist() if name is not None]
    for name in called:
        groups.setdefault(name, {})
    described = {pair[0]: pair for pair in dict.fromkeys(pairs) if pair is not None}
    for name, row in groups.items():
        if row.get("description") is None and name in described:
            row["description"] = described[name][1]
    found.groups = table(
        GROUPS,
        {"group": list(groups)}
        | {
            key: [row.get(key) for row in groups.values()]
            for key in ("description", "ranks", "size", "last_enqueued", "last_started", "last_completed")
        },
    )
    _tell(found, data, rows, pairs, groups, wrong)
    return found


def _plain_ids(rows: list[dict[str, Any]]) -> bool:
    return {type(entry.get("pg_id")) for entry in rows} <= {int, type(None)}


def _pairs(rows: list[dict[str, Any]]) -> list[Pair | None]:
    """Name and description of each call's group."""
    known: dict[Any, Pair | None] = {}
    found = []
    for entry in rows:
        group = entry.get("process_group")
        if type(group) is list and len(group) == 2:
            group = tuple(group)
        try:
            pair = known[group]
        except (KeyError, TypeError):
            pair = _pair(entry)
            if type(group) is tuple and type(group[0]) is str and type(group[1]) is str:
                known[group] = pair
        found.append(pair)
    return found


def _pair(entry: dict[str, Any]) -> Pair | None:
    """Name and description of a call's group: both since version 2.1, the name alone before."""
    found = entry.get("process_group", entry.get("pg_name"))
    if isinstance(found, tuple | list) and len(found) == 2 and type(found[0]) is str and type(found[1]) is str:
        return clean(found[0]), clean(found[1])
    if type(found) is str:
        return clean(found), None
    id_ = entry.get("pg_id")
    return (str(id_), None) if type(id_) is int else None


def _groups(data: dict[Any, Any], names: dict[str, str], budget: Budget, wrong: Wrong) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    config = data.get("pg_config")
    if isinstance(config, dict):
        budget.spend(config)
        for key, one in config.items():
            if type(one) is not dict:
                wrong.count += 1
                continue
            name = text(one.get("name", key), wrong)
            ranks = _ranks(one.get("ranks"), budget, wrong)
            if name is not None:
                groups[name] = {
                    "description": text(one.get("desc"), wrong),
                    "ranks": None if ranks is None else json.dumps(ranks),
                    "size": None if ranks is None else len(ranks),
                }
    status = data.get("pg_status")
    if isinstance(status, dict):
        budget.spend(status)
        for key, one in status.items():
            if type(one) is not dict:
                wrong.count += 1
                continue
            # A status is known by the number of its group: the calls tell its name, else the numbers of groups count as their names do.
            name = names.get(str(key), str(key) if str(key) in groups or not groups else None)
            if name is None:
                continue
            row = groups.setdefault(clean(name), {})
            for what in ("enqueued", "started", "completed"):
                row[f"last_{what}"] = whole(one.get(f"last_{what}_collective"), wrong)
    return groups


def _ranks(found: Any, budget: Budget, wrong: Wrong) -> list[int] | None:
    """The ranks of a group: a list, or the text of one."""
    if type(found) is str:
        try:
            found = json.loads(found) if len(found) < 1 << 23 else None
        except (ValueError, RecursionError):
            found = None
    if not isinstance(found, list) or not found:
        wrong.count += found is not None and found != []
        return None
    budget.spend(found)
    if not all(type(rank) is int and 0 <= rank < MOST_RANKS for rank in found):
        wrong.count += 1
        return None
    return found


def _calls(rows: list[dict[str, Any]], pairs: list[Pair | None], budget: Budget, wrong: Wrong) -> pa.Table:
    places, sizes = Places(budget, wrong), Sizes(budget)

    def of(key: str) -> list[Any]:
        return [entry.get(key) for entry in rows]

    operations = _operations(of("profiling_name"), of("is_p2p"), wrong)
    sent = [one[2] for one in operations]
    sequence = wholes([entry.get("collective_seq_id", entry.get("seq_id")) for entry in rows], wrong)
    p2p = wholes(of("p2p_seq_id"), wrong)
    given, taken = sizes.all(of("input_sizes")), sizes.all(of("output_sizes"))
    types = sizes.types(of("input_dtypes"), of("output_dtypes"))
    completed = times(of("time_discovered_completed_ns"), wrong)
    state = _states(of("state"), completed, wrong)
    retired = of("retired")
    return table(
        CALLS,
        {
            "entry": wholes([entry.get("record_id", number) for number, entry in enumerate(rows)], wrong),
            "group": [pair and pair[0] for pair in pairs],
            "sequence": [None if one else number for one, number in zip(sent, sequence, strict=True)],
            "p2p_sequence": [
                (own if own is not None else number) if one else None
                for one, own, number in zip(sent, p2p, sequence, strict=True)
            ],
            "operation": [one[0] for one in operations],
            "peer": [one[1] for one in operations],
            "dtype": [name for name, _ in types],
            "sizes": [_shown(one, other) for one, other in zip(given, taken, strict=True)],
            "in_elements": [elements for _, elements in given],
            "out_elements": [elements for _, elements in taken],
            "bytes": [
                max(one or 0, other or 0) * width if width and not one is other is None else None
                for (_, one), (_, other), (_, width) in zip(given, taken, types, strict=True)
            ],
            "state": state,
            "created_ns": _created(rows, wrong),
            "started_ns": times(of("time_discovered_started_ns"), wrong),
            "completed_ns": completed,
            "duration": [
                round(length * 1e6) if isinstance(length, int | float) and 0 <= length < 1e9 else None
                for length in of("duration_ms")
            ],
            "timed_out": [
                bool(gone) and one is not None and one != COMPLETED for gone, one in zip(retired, state, strict=True)
            ],
            "place": [places.of(frames) for frames in of("frames")],
        },
    )


def _shown(given: tuple[str, int | None], taken: tuple[str, int | None]) -> str | None:
    return None if given[1] is taken[1] is None else f"{given[0]} -> {taken[0]}"


def _created(rows: list[dict[str, Any]], wrong: Wrong) -> list[int | None]:
    """In nanoseconds; the first versions had microseconds."""
    found = times([entry.get("time_created_ns") for entry in rows], wrong)
    if any("time_created_us" in entry for entry in rows):
        for at, entry in enumerate(rows):
            micro = whole(entry.get("time_created_us"), wrong, 1)
            if found[at] is None and micro is not None:
                found[at] = time_of(micro * 1000, wrong)
    return found


def _states(found: list[Any], completed: list[int | None], wrong: Wrong) -> list[str | None]:
    """A state that is none of the known ones, or not told, follows from whether a call is complete."""
    known: list[str | None] = []
    for state, end in zip(found, completed, strict=True):
        if type(state) is str and state in _STATES:
            known.append(state)
        else:
            wrong.count += state is not None
            known.append(COMPLETED if end else None)
    return known


Operation = tuple[str | None, int | None, bool]


def _operations(names: list[Any], p2p: list[Any], wrong: Wrong) -> list[Operation]:
    known: dict[tuple[str, bool], Operation] = {}
    found = []
    for name, is_p2p in zip(names, p2p, strict=True):
        if type(name) is not str:
            found.append(_operation(name, is_p2p, wrong))
            continue
        key = (name, is_p2p is True)
        if (one := known.get(key)) is None:
            one = known[key] = _operation(name, is_p2p, wrong)
        found.append(one)
    return found


def _operation(name: Any, is_p2p: Any, wrong: Wrong) -> Operation:
    """What was called, who is on the other side within the group, and whether it is a send or receive."""
    if type(name) is not str:
        wrong.count += name is not None
        return None, None, is_p2p is True
    word, _, rest = clean(name.partition(":")[2] or name).strip().partition(" ")
    found = _PEERS.search(rest)
    peer = int(found[3]) if found else None
    return word or name[:100], peer, word in P2P or (is_p2p is True and word != "coalesced")


def _tell(
    found: Dump,
    data: dict[Any, Any],
    rows: list[dict[str, Any]],
    pairs: list[Pair | None],
    groups: dict[str, dict[str, Any]],
    wrong: Wrong,
) -> None:
    """What the content tells of the rank, the job and the ring."""
    whole_job = [row for name, row in groups.items() if row.get("description") == "default_pg" or name == "0"]
    sizes = [row["size"] for row in whole_job if row.get("size")]
    found.world_size = max(sizes) if sizes else None
    found.member = _member(data, rows, pairs, groups, found.world_size, wrong)
    first, entries = pc.min(found.calls["entry"]).as_py(), found.calls.num_rows
    found.lost_beginning = bool(first)
    states = Counter(found.calls["state"].to_pylist())
    enqueued = any((row.get("last_enqueued") or 0) > 0 for row in groups.values())
    # A dump of what is active alone has no completed call, though some were made before.
    found.active_only = not states[COMPLETED] and (found.lost_beginning or (not entries and enqueued))
    if found.active_only:
        found.lost_beginning = True
    latest = (pc.max(found.calls[name]).as_py() for name in ("created_ns", "started_ns", "completed_ns"))
    found.latest_ns = max((time for time in latest if time is not None), default=None)
    found.timed = found.calls["started_ns"].null_count < found.calls.num_rows
    found.placed = found.calls["place"].null_count < found.calls.num_rows


def _member(
    data: dict[Any, Any],
    rows: list[dict[str, Any]],
    pairs: list[Pair | None],
    groups: dict[str, dict[str, Any]],
    world: int | None,
    wrong: Wrong,
) -> int | None:
    """The rank of the job: as the dump says it, by its sends and receives, or as the only rank that all of its groups share.

    A process records only the groups that it is a member of. None where these tell nothing, or contradict each other.
    """
    told: set[int] = set()
    if (said := data.get("rank")) is not None and (number := few(said, wrong)) is not None:
        told.add(number)
    lists = {name: json.loads(row["ranks"]) for name, row in groups.items() if row.get("ranks")}
    calls = zip(pairs, [entry.get("profiling_name") for entry in rows], strict=True)
    for pair, operation in dict.fromkeys((pair, name) for pair, name in calls if type(name) is str):
        peers = _PEERS.search(operation)
        ranks = lists.get(pair[0], []) if pair else []
        if peers and int(peers[1]) < len(ranks):
            told.add(ranks[int(peers[1])])
    states = data.get("nccl_comm_state")
    if isinstance(states, dict) and world is not None:
        of_job = [one for one in states.values() if type(one) is dict and whole(one.get("nRanks"), wrong) == world]
        told |= {number for one in of_job if (number := few(one.get("rank"), wrong)) is not None}
    shared = set.intersection(*map(set, lists.values())) if lists else set()
    if len(shared) == 1:
        told |= shared
    if len(told) != 1 or (shared and not told <= shared):
        return None
    return next(iter(told))
