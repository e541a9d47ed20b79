"""Who may claim which nanosecond: every stretch of every GPU's ledger is claimed once, by the first rule that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceanalyzer.columns import integers, wide
from traceanalyzer.columns.frames import together
from traceanalyzer.columns.in_blocks import in_blocks
from traceanalyzer.columns.spill import Growing, Narrow, forget
from traceanalyzer.engine.columns import Columns
from traceanalyzer.engine.tiles import Asked, Intervals, Rows, Taken, Tiles, Whole
from traceanalyzer.intervals import Spans, union
from traceanalyzer.model.claimed import Claimed
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.lines import is_idle

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


Gpu = tuple[int, int]
"""(rank, device)."""


@dataclass(frozen=True)
class Claim:
    """What one rule took of one ledger line of one GPU."""

    rule: str
    category: str
    rank: int
    device: int
    taken: Taken

    @property
    def line(self) -> str:
        return self.taken.line

    @property
    def ns(self) -> int:
        return self.taken.ns


class ClaimBook:
    """The ledger of each GPU, and the claims made so far on each, in order."""

    def __init__(self, ledger_intervals: pa.Table) -> None:
        """`ledger_intervals`: columns rank, device, line, start_ns and end_ns; the rows of a GPU do not overlap."""
        self.claims: dict[Gpu, list[Claim]] = {}
        self._tiles = {gpu: Tiles(*columns) for gpu, columns in _ledgers(ledger_intervals)}
        self._found: WeakKeyDictionary[Columns, Whole | None] = WeakKeyDictionary()

    def unclaimed(self, rank: int, device: int, asked: Iterable[Asked], lines: Collection[str]) -> int:
        """How many ns of the intervals on these lines nobody has claimed yet."""
        return sum(int(self.unclaimed_of(rank, device, some, lines).sum()) for some in asked)

    def unclaimed_of(self, rank: int, device: int, asked: Asked, lines: Collection[str]) -> Rows:
        """As `unclaimed`, for each of the intervals, which may overlap and come in any order."""
        tiles = self._tiles.get((rank, device))
        return np.zeros(len(asked[0]), np.int64) if tiles is None else tiles.unclaimed(asked, lines)

    def unclaimed_rows(self, rows: pa.Table, lines: Collection[str]) -> pa.Array:
        """For each row (rank, device, start_ns, end_ns), how many ns of it on these lines nobody has claimed yet."""
        rank, device, start, end = (integers(rows, name) for name in ("rank", "device", "start_ns", "end_ns"))
        left = np.zeros(len(rank), np.int64)
        for (one, other), here in together(rank, device):
            left[here] = self.unclaimed_of(one, other, Intervals(start[here], end[here]), lines)
        return pa.array(left)

    def claim(
        self, rule: str, category: str, rank: int, device: int, asked: Iterable[Asked], lines: Iterable[str]
    ) -> int:
        """Take what is left of the intervals on these lines; returns the ns taken."""
        tiles = self._tiles.get((rank, device))
        made = [Claim(rule, category, rank, device, taken) for taken in tiles.claim(asked, lines)] if tiles else []
        if made:
            self.claims.setdefault((rank, device), []).extend(made)
        return sum(claim.ns for claim in made)

    def who(self, rank: int, device: int, asked: Iterable[Asked], lines: Iterable[str]) -> dict[str, int]:
        """Rule -> ns of the intervals on these lines that it holds, the largest first."""
        claims = self.claims.get((rank, device), [])
        held: dict[str, int] = {}
        if claims:
            found = self._tiles[rank, device].held(asked, lines, [claim.taken for claim in claims])
            for claim, ns in zip(claims, found, strict=True):
                if ns:
                    held[claim.rule] = held.get(claim.rule, 0) + ns
        return dict(sorted(held.items(), key=lambda item: (-item[1], item[0])))

    def snapshot(self) -> Callable[[], None]:
        """A function that puts the book back as it is now, as long as no later one is made: a rule that fails halfway must leave no
        claim behind."""
        claims = {gpu: list(made) for gpu, made in self.claims.items()}
        marks = [tiles.mark() for tiles in self._tiles.values()]

        def restore() -> None:
            self.claims = claims
            for back in marks:
                back()

        return restore

    def of_rule(self, rule: str, rank: int, device: int) -> Claimed:
        """What a rule claimed on a GPU, where it `has_any`."""
        claims = self.claims[rank, device]
        return self._tiles[rank, device].claimed([claim.taken for claim in claims if claim.rule == rule])

    def has_any(self, rule: str, rank: int, device: int) -> bool:
        """Whether a rule claimed anything on a GPU."""
        return any(claim.rule == rule for claim in self.claims.get((rank, device), ()))

    def all(self) -> Iterator[Claim]:
        """By GPU, and in the order they were made."""
        return chain.from_iterable(self.claims.values())

    def spans(self, claim: Claim) -> Spans:
        """All that a claim took."""
        return self._tiles[claim.rank, claim.device].spans(claim.taken)

    def idle_holders(self, rank: int, device: int, times: Ints, tiles: Rows | None = None) -> Rows:
        """For each time the place of the claim of idle time that holds it, among the `claims` on this GPU; -1 for none.

        `tiles` are those that the times are in, if that is known.
        """
        claims = self.claims.get((rank, device), [])
        if not claims:
            return np.full(len(times), -1)
        place = np.full(max(claim.taken.number for claim in claims) + 2, -1)
        for at, claim in enumerate(claims):
            place[claim.taken.number] = at if is_idle(claim.line) else -1
        return place[self._tiles[rank, device].holders(times, [claim.taken for claim in claims], tiles)]

    def idle_tiles(self, source: Columns) -> Whole | None:
        """For each row the idle tile that it is, where these are just the rows: so it is with gaps, if nothing else cut them."""
        if source not in self._found:
            self._found[source] = self._idle_tiles(source)
        return self._found[source]

    def _idle_tiles(self, source: Columns) -> Whole | None:
        found: dict[int, Whole] = {}
        for gpu, run in source.gpus or ():
            tiles = self._tiles.get(gpu)
            own = None if tiles is None else tiles.idle_tiles(len(run), source.times(run))
            if own is None:
                return None
            found[run.start] = own
        if len(found) < 2:
            return next(iter(found.values()), None)
        number, ns = Narrow(), Narrow()
        for at in sorted(found):
            number.add(found[at].tiles)
            ns.add(found.pop(at).ns)
        return Whole(number.array(), ns.array())

    def table(self) -> pa.Table:
        """All claims in CLAIMS_SCHEMA, one row a stretch, by GPU and in the order they were made."""
        parts = [
            pa.table(
                [
                    *(
                        pa.repeat(pa.scalar(value, CLAIMS_SCHEMA.field(at).type), len(spans[0]))
                        for at, value in enumerate((claim.rule, claim.category, claim.rank, claim.device, claim.line))
                    ),
                    pa.array(spans[0]),
                    pa.array(spans[1]),
                ],
                schema=CLAIMS_SCHEMA,
            )
            for claim in self.all()
            for spans in [self.spans(claim)]
        ]
        return pa.concat_tables(parts).unify_dictionaries() if parts else CLAIMS_SCHEMA.empty_table()


def _ledgers(ledger_intervals: pa.Table) -> Iterator[tuple[Gpu, tuple[Ints, Ints, Rows, list[str | None]]]]:
    """Of each GPU the start, end and line of its tiles, in order of time, and the names of the lines."""
    source = Columns(ledger_intervals)
    if not (apart := source.apart):
        source = Columns(ledger_intervals.sort_by([(name, "ascending") for name in ("rank", "device", "start_ns")]))
    for gpu, run in source.gpus or ():
        start, end = (source.column(name, run).to_numpy() for name in ("start_ns", "end_ns"))
        names = source.column("line", run)
        line, count = Growing(), len(names.dictionary)
        for rows in in_blocks(len(names)):
            line.add(wide(names.indices[rows], count).astype(np.int8 if count < 100 else np.int32))
        forget()
        kept = slice(None) if apart else end > start
        yield gpu, (start[kept], end[kept], line.array()[kept], [*names.dictionary.to_pylist(), None])


def spans_by_gpu(rows: pa.Table) -> dict[Gpu, Spans]:
    """The union of the rows' intervals on each (rank, device), in their order; rows without either are on no ledger."""
    rank, device, start, end = (integers(rows, name) for name in ("rank", "device", "start_ns", "end_ns"))
    spans = {(key[0], key[1]): union(start[at], end[at]) for key, at in together(rank, device)}
    return {gpu: found for gpu, found in sorted(spans.items()) if min(gpu) >= 0}
