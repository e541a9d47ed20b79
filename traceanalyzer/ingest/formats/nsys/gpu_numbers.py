"""The number of each GPU that people know it by.

Nsight Systems numbers GPUs in an order of its own. A program knows them by CUDA's numbers, which CUDA_VISIBLE_DEVICES may change
for each process; an administrator by nvidia-smi's, which follow the PCI bus.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database

Numbers = dict[int, int]
_MOST = 1 << 16


def gpu_numbers(database: Database, used: Iterable[tuple[int, int]]) -> Numbers:
    """From the profiler's number of each GPU to the one that is shown; `used` are (the profiler's number, a process's CUDA number).

    What all processes call a GPU, where no two GPUs are called the same. Else the machine's own CUDA numbers, else the order on the PCI
    bus. Where the file tells none of these for every GPU, the profiler's numbers stay.
    """
    called = defaultdict(set)
    for gpu, number in used:
        called[gpu].add(number)
    rows = _cuda_gpus(database)
    gpus = {row["device"] for row in rows} | called.keys()
    agreed = _distinct({gpu: next(iter(numbers)) for gpu, numbers in called.items() if len(numbers) == 1})
    machine = _distinct({row["device"]: row["cuda"] for row in rows if row["cuda"] is not None})
    bus = sorted((row["bus"].lower(), row["device"]) for row in rows if row["bus"])
    places: tuple[Numbers, ...] = (machine, {gpu: at for at, (_, gpu) in enumerate(bus)})
    by_machine = next((numbers for numbers in places if gpus <= numbers.keys()), {})
    if called and called.keys() <= agreed.keys():
        # GPUs that no process of the recording saw have no number there; they keep clear of those that have.
        return agreed | _clear_of(
            set(agreed.values()), sorted(gpus - agreed.keys()), lambda gpu: by_machine.get(gpu, gpu)
        )
    return by_machine


def _cuda_gpus(database: Database) -> list[dict[str, Any]]:
    """The GPUs that can run CUDA, one row each; other display adapters are no part of either order."""
    sql = selects.select(database, tables.GPU, "device is not null and (sm_count > 0 or compute_major > 0)", "device")
    found = database.table(sql) if sql else None
    return list({row["device"]: row for row in found.to_pylist()}.values()) if found else []


def _distinct(numbers: Numbers) -> Numbers:
    """The numbers, or none where two GPUs have the same one, or one has a number that no GPU has."""
    possible = all(0 <= number < _MOST for number in numbers.values())
    return numbers if possible and len(set(numbers.values())) == len(numbers) else {}


def _clear_of(taken: set[int], gpus: list[int], wish: Callable[[int], int]) -> Numbers:
    """A number for each of these GPUs that none else has: the one wished for, else the next that is free."""
    found: Numbers = {}
    for gpu in gpus:
        number = wish(gpu)
        while number in taken:
            number += 1
        taken.add(number)
        found[gpu] = number
    return found
