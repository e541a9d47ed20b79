"""Which host each rank ran on, as far as its recording says it. Names of hosts tell of people: outside of here they are numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from traceanalyzer.model.trace import Input
from traceanalyzer.redaction.people import host_of_file


def hosts_of(processes: pa.Table, inputs: Sequence[Input]) -> Mapping[int, int]:
    """The number of the host of each input by its ordinal, from 1 on by the lowest rank on each; empty where one is not known.

    The recording's own word counts, else the name that PyTorch gives a trace, of host and process id, where the process is in it.
    """
    said: dict[int, set[str]] = {}
    pids: dict[int, set[int]] = {}
    columns = [processes[name].to_pylist() for name in ("rank", "pid", "host")]
    for rank, pid, host in zip(*columns, strict=True):
        said.setdefault(rank, set()).update([host] if host else [])
        pids.setdefault(rank, set()).update([pid] if pid is not None else [])
    names: dict[int, str] = {}
    for one in inputs:
        own = said.get(one.ordinal, set()) or {host_of_file(one.path, pids.get(one.ordinal, ()))} - {None}
        if len(own) != 1:
            return {}
        names[one.ordinal] = next(iter(own)) or ""
    by_rank = sorted(inputs, key=lambda one: (one.rank is None, one.rank or 0, one.ordinal))
    numbers: dict[str, int] = {}
    for one in by_rank:
        numbers.setdefault(names[one.ordinal], len(numbers) + 1)
    return {ordinal: numbers[name] for ordinal, name in names.items()}
