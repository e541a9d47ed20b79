"""A history of very many captures, whose rows all lie in packs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from tests.history.nights import DAY_NS, night
from traceanalyzer.history.rows import encoded
from traceanalyzer.history.shelf import FORMAT, FORMAT_VERSION, PACK
from traceanalyzer.result.history.entry import Entry, Followed, Part
from traceanalyzer.vocabulary.levels import MEDIUM
from traceanalyzer.vocabulary.lines import LEDGER_LINES

RULES = 12
FAMILIES = ("attention", "communication", "copy", "elementwise", "matmul", "normalization", "optimizer", "reduction")


def many_entries(count: int, series: int, kernels: int = 40) -> list[Entry]:
    """As many captures in as many series, each as full as one of a large program; a step takes 5 % longer from the middle on."""
    random = np.random.default_rng(series)
    made = []
    for number in range(count):
        share = (1 + 0.01 * random.normal()) * (1.05 if number > count // 2 else 1)
        one = night(number, random)
        names = LEDGER_LINES[:12]
        lines = {line: int(ns) for line, ns in zip(names, random.dirichlet(np.ones(12)) * 50e6 * share, strict=True)}
        made.append(
            replace(
                one,
                id=f"{random.integers(1 << 60):016x}{number:016x}",
                name=f"{one.name}.pt.trace.json.gz",
                time_ns=one.time_ns - number * DAY_NS + number * DAY_NS // 24,
                labels=one.labels
                | {"config": f"config-{number % series:03d}", "commit": f"{random.integers(1 << 60):040x}"},
                lines=lines,
                unit_ns=sum(lines.values()),
                families=[Part(family, 20.0, int(random.integers(10**6, 10**7))) for family in FAMILIES],
                kernels=[Part(f"void kernel_{at}<float, {at % 7}>(Tensor)", 12.0, 10**5 * at) for at in range(kernels)],
                findings=[
                    Followed(f"RUL{at:03d}", f"What rule {at} looks for", MEDIUM, int(random.integers(10**5, 10**6)))
                    for at in range(RULES)
                ],
                figures={f"figure.{at}": float(random.random()) for at in range(20)},
                report=f"../reports/{number:032x}.html",
            )
        )
    return made


def write_packed(place: Path, entries: list[Entry]) -> None:
    """A history with them. Each row is in a pack, so that its own file is only looked for, and is empty here."""
    for folder in ("rows", "captures", "packs"):
        (place / folder).mkdir(parents=True)
    (place / "history.json").write_bytes(msgspec.json.encode({"format": FORMAT, "version": FORMAT_VERSION}))
    for first in range(0, len(entries), PACK):
        (place / "packs" / f"{first:032x}.parquet").write_bytes(encoded(entries[first : first + PACK]))
    for entry in entries:
        (place / "rows" / f"{entry.id}.parquet").touch()
