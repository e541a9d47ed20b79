"""Who may claim which nanosecond: every stretch of every GPU's ledger is claimed once, by the first rule that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns.frames import together
from traceanalyzer.intervals import EMPTY, Spans, coverage, intersect, join, subtract, total, union

Ints = npt.NDArray[np.int64]
NAME = pa.dictionary(pa.int32(), pa.string())
CLAIMS_SCHEMA = pa.schema(
    [
        ("rule", NAME),
        ("category", NAME),
        ("rank", pa.int32()),
        ("device", pa.int32()),
        ("line", NAME),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Claim:
    """What one rule took of one ledger line of one GPU."""

    rule: str
    category: str
    rank: int
    device: int
    line: str
    spans: Spans


class ClaimBook:
    """The unclaimed intervals of each ledger line of each GPU, and the claims made so far on each, in order."""

    def __init__(self, ledger_intervals: pa.Table) -> None:
        """`ledger_intervals`: columns rank, device, line, start_ns and end_ns; the rows of a GPU do not overlap."""
        self.claims: dict[tuple[int, int], list[Claim]] = {}
        lines = ledger_intervals["line"].cast(pa.string()).combine_chunks().dictionary_encode()
        spans = _spans_by(ledger_intervals, lines.indices.to_numpy(zero_copy_only=False).astype(np.int64))
        self._free: dict[tuple[int, int, str], Spans] = {
            (rank, device, lines.dictionary[line].as_py()): free for (rank, device, line), free in spans.items()
        }

    def unclaimed(self, rank: int, device: int, intervals: Spans, lines: Iterable[str]) -> int:
        """How many ns of `intervals` on these lines nobody has claimed yet."""
        return int(coverage(*intervals, self._unclaimed(rank, device, lines)).sum())

    def unclaimed_rows(self, rows: pa.Table, lines: Iterable[str]) -> pa.Array:
        """For each row (rank, device, start_ns, end_ns), how many ns of it on these lines nobody has claimed yet."""
        rank, device, start, end = (_array(rows, name) for name in ("rank", "device", "start_ns", "end_ns"))
        left = np.zeros(len(rank), np.int64)
        for (one, other), here in together(rank, device):
            left[here] = coverage(start[here], end[here], self._unclaimed(one, other, lines))
        return pa.array(left)

    def _unclaimed(self, rank: int, device: int, lines: Iterable[str]) -> Spans:
        # The lines of a GPU do not overlap, so their union has the length of all of them.
        free = [self._free[rank, device, line] for line in set(lines) if (rank, device, line) in self._free]
        return free[0] if len(free) == 1 else join(*free) if free else EMPTY

    def claim(self, rule: str, category: str, rank: int, device: int, intervals: Spans, lines: Iterable[str]) -> int:
        """Take what is left of `intervals` on these lines; returns the ns taken."""
        taken = 0
        for line in lines:
            free = self._free.get((rank, device, line), EMPTY)
            spans = intersect(free, intervals)
            if len(spans[0]):
                self._free[rank, device, line] = subtract(free, spans)
                self.claims.setdefault((rank, device), []).append(Claim(rule, category, rank, device, line, spans))
                taken += total(spans)
        return taken

    def who(self, rank: int, device: int, intervals: Spans, lines: Iterable[str]) -> dict[str, int]:
        """Rule -> ns of `intervals` on these lines that it holds, the largest first."""
        held: dict[str, int] = {}
        wanted = set(lines)
        for claim in self.claims.get((rank, device), ()):
            if claim.line in wanted:
                shared = total(intersect(claim.spans, intervals))
                if shared:
                    held[claim.rule] = held.get(claim.rule, 0) + shared
        return dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))

    def snapshot(self) -> Callable[[], None]:
        """A function that puts the book back as it is now: a rule that fails halfway must leave no claim behind."""
        free, claims = dict(self._free), {gpu: list(made) for gpu, made in self.claims.items()}

        def restore() -> None:
            self._free, self.claims = free, claims

        return restore

    def table(self) -> pa.Table:
        """All claims in CLAIMS_SCHEMA, one row a stretch, by GPU and in the order they were made."""
        parts = [
            pa.table(
                [
                    *(
                        pa.repeat(pa.scalar(value, CLAIMS_SCHEMA.field(at).type), len(claim.spans[0]))
                        for at, value in enumerate((claim.rule, claim.category, claim.rank, claim.device, claim.line))
                    ),
                    pa.array(claim.spans[0]),
                    pa.array(claim.spans[1]),
                ],
                schema=CLAIMS_SCHEMA,
            )
            for made in self.claims.values()
            for claim in made
        ]
        return pa.concat_tables(parts).unify_dictionaries() if parts else CLAIMS_SCHEMA.empty_table()


def spans_by_gpu(rows: pa.Table) -> dict[tuple[int, int], Spans]:
    """The union of the rows' intervals on each (rank, device), in their order; rows without either are on no ledger."""
    spans = _spans_by(rows, np.zeros(rows.num_rows, np.int64))
    return {(rank, device): found for (rank, device, _), found in spans.items() if rank >= 0 and device >= 0}


def _spans_by(rows: pa.Table, label: Ints) -> dict[tuple[int, int, int], Spans]:
    """The union of the rows' intervals by (rank, device, label), in their order."""
    rank, device, start, end = (_array(rows, name) for name in ("rank", "device", "start_ns", "end_ns"))
    spans = {(key[0], key[1], key[2]): union(start[at], end[at]) for key, at in together(rank, device, label)}
    return dict(sorted(spans.items()))


def _array(table: pa.Table, name: str) -> Ints:
    # A row without rank or device is on no ledger: -1 matches none.
    column = table[name].fill_null(-1).cast(pa.int64())
    return np.asarray(column.to_numpy(), dtype=np.int64)
