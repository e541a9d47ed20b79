"""The critical path of a job: from the end of each step backwards over the lines of its ranks and the transfers between them.

It stays on a line until the end of a collective's part that something there waited for; that ended when the transfer did, and the
transfer began when the last line issued its part, where the path goes on. Times are those recorded, each line's on its own clock: the
path is as long as the step on the line that ends last, and every link of it takes its own length of that, so that no two clocks need
agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.replay.tables import JOB_PATH
from traceanalyzer.records import dataclass
from traceanalyzer.result.critical_path import TRANSFER
from traceanalyzer.vocabulary.lines import UNATTRIBUTED


@dataclass(frozen=True)
class _Link:
    """A stay on the chain `hop` (a row of `path_hops`) or, with an `instance`, a transfer to its line."""

    step: int
    hop: int
    start: int
    end: int
    instance: int | None = None


class _Hops:
    """The chains of all lines."""

    def __init__(self, hops: pa.Table) -> None:
        self.rows: list[dict[str, Any]] = hops.to_pylist()
        self.issues: dict[int, int] = {}
        self.sends: dict[tuple[int, int, int], int] = {}
        self.marks: dict[tuple[int, int], list[int]] = {}
        self.first: dict[tuple[int, int], int] = {}
        for at, row in enumerate(self.rows):
            self.first.setdefault((row["rank"], row["device"]), at)
            if row["instance"] is None:
                self.marks.setdefault((row["rank"], row["device"]), []).append(at)
            else:
                self.sends[row["rank"], row["device"], row["instance"]] = at
                if not row["free"]:
                    self.issues.setdefault(row["instance"], at)

    def before(self, row: dict[str, Any]) -> int | None:
        """The chain that ends where the transfer began which this one comes from."""
        if row["source"] is None:
            return None
        if row["source_free"]:
            return self.sends.get((row["rank"], row["device"], row["source"]))
        return self.issues.get(row["source"])

    def steps(self) -> list[int]:
        """The marks of the line that is last to end its last step, counted from the end of the last part."""
        most = max((len(marks) for marks in self.marks.values()), default=0)
        of_all = [marks for marks in self.marks.values() if len(marks) == most]
        return max(of_all, key=lambda marks: self._tail(marks[-1]), default=[])

    def _tail(self, at: int) -> int:
        row = self.rows[at]
        return int(row["end_ns"] - row["start_ns"])

    def path(self, mark: int, length: int) -> Iterator[_Link]:
        """The links of one step, backwards; what leads out of what was recorded is one more stay on its line."""
        at: int | None = mark
        step, end = self.rows[mark]["step"], self.rows[mark]["end_ns"]
        while at is not None and length > 0:
            row = self.rows[at]
            here, start, meets = at, row["start_ns"], row["meets"] is not None
            at = self.first[row["rank"], row["device"]] + row["meets"] if meets else self.before(row)
            if at is None:
                start = end - length
            took = max(min(end - start, length), 0)
            if took > 0:
                yield _Link(step, here, end - took, end)
            length -= took
            if meets:
                end = min(start, end)
            elif at is not None:
                took = min(row["source_transfer"], length)
                if took > 0:
                    yield _Link(step, here, start - took, start, row["source"])
                length -= took
                end = self.rows[at]["end_ns"]


def job_path(path_hops: pa.Table, path_pieces: pa.Table, communication: pa.Table) -> pa.Table:
    """The stretches of the path, sorted by step, the last first in each; those of a step add up to it. Empty without two steps."""
    hops = _Hops(path_hops)
    marks = hops.steps()
    links: list[_Link] = []
    for before, mark in pairwise(marks):
        length = hops.rows[mark]["end_ns"] - hops.rows[before]["end_ns"]
        links += hops.path(mark, length)
    if not links:
        return JOB_PATH.empty()
    return _rows(links, path_hops, path_pieces, communication)


def _rows(links: list[_Link], hops: pa.Table, pieces: pa.Table, communication: pa.Table) -> pa.Table:
    hop, start, end, step = (
        np.array([getattr(one, name) for one in links], np.int64) for name in ("hop", "start", "end", "step")
    )
    instance = np.array([NULL if one.instance is None else one.instance for one in links], np.int64)
    stay = np.flatnonzero(instance == NULL)
    link, piece, low, high = _cut(hop[stay], start[stay], end[stay], hops, pieces)
    link = stay[link]
    kind, kinds = frames.codes(pieces, "kind")
    name, names = frames.codes(pieces, "name")
    where, wheres = frames.codes(pieces, "where")
    words = _Words([*kinds, UNATTRIBUTED.cause, TRANSFER]), _Words(names), _Words([*wheres, TRANSFER, "gpu"])
    told = piece >= 0
    columns = [
        np.where(told, words[0].of(kinds, kind, piece), words[0].number(UNATTRIBUTED.cause)),
        np.where(told, words[1].of(names, name, piece), words[1].number(None)),
        np.where(told, words[2].of(wheres, where, piece), words[2].number("gpu")),
    ]
    moved = np.flatnonzero(instance != NULL)
    called = words[1].numbers(_collective_names(instance[moved], communication))
    link, low, high = np.append(link, moved), np.append(low, start[moved]), np.append(high, end[moved])
    transfer = np.full(len(moved), words[0].number(TRANSFER)), called, np.full(len(moved), words[2].number(TRANSFER))
    kind, name, where = (np.append(*pair) for pair in zip(columns, transfer, strict=True))
    order = np.lexsort((-low, link))
    link, low, high = link[order], low[order], high[order]
    return frames.build(
        JOB_PATH,
        {
            "step": step[link],
            "rank": frames.ints(hops, "rank")[hop[link]],
            "device": frames.ints(hops, "device")[hop[link]],
            "start_ns": low,
            "end_ns": high,
            "where": frames.names(where[order], words[2].texts),
            "kind": frames.names(kind[order], words[0].texts),
            "name": frames.names(np.where(name[order] < 0, NULL, name[order]), words[1].texts),
            "instance": frames.numbers(instance[link]),
        },
    )


class _Words:
    """Texts by number."""

    def __init__(self, texts: list[str | None]) -> None:
        self._number: dict[str, int] = {}
        self.numbers(texts)

    @property
    def texts(self) -> list[str]:
        return list(self._number)

    def number(self, text: str | None) -> int:
        return -1 if text is None else self._number.setdefault(text, len(self._number))

    def numbers(self, texts: list[str | None]) -> Array:
        return np.array([self.number(text) for text in texts], np.int64)

    def of(self, texts: list[str | None], code: Array, rows: Array) -> Array:
        """The numbers of the texts at some rows, of which -1 is any."""
        number: Array = self.numbers(texts)[np.append(code, 0)[rows]]
        return number


def _cut(hop: Array, start: Array, end: Array, hops: pa.Table, pieces: pa.Table) -> tuple[Array, Array, Array, Array]:
    """(stay, piece, start, end) of what the pieces of its chain tell of each stay, and of what they do not (piece -1)."""
    keys = [(frames.ints(hops, c), frames.ints(pieces, c)) for c in ("rank", "device", "hop")]
    number = frames.dense(*(np.concatenate(pair) for pair in keys))
    of_hop, of_piece = number[: hops.num_rows], number[hops.num_rows :]
    order = np.lexsort((frames.ints(pieces, "start_ns"), of_piece))
    low, high = (frames.ints(pieces, c)[order] for c in ("start_ns", "end_ns"))
    first, stop = (np.searchsorted(of_piece[order], of_hop[hop], side=side) for side in ("left", "right"))
    count = stop - first
    row = np.repeat(np.arange(len(hop)), count)
    at = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
    begin, until = np.maximum(low[at], start[row]), np.minimum(high[at], end[row])
    some = until > begin
    row, at, begin, until = row[some], at[some], begin[some], until[some]
    # A chain that was not recorded as far back as the step began.
    earliest = end.copy()
    np.minimum.at(earliest, row, begin)
    left = np.flatnonzero(earliest > start)
    return (
        np.append(row, left),
        np.append(order[at], np.full(len(left), -1)),
        np.append(begin, start[left]),
        np.append(until, earliest[left]),
    )


def _collective_names(instance: Array, communication: pa.Table) -> list[str | None]:
    """What each collective is called: "all-reduce, data parallel"."""
    known = frames.ints(communication, "instance")
    order = np.argsort(known, kind="stable")
    rows = pa.array(order[np.searchsorted(known[order], instance)])
    found = communication.select(["kind", "parallelism"]).take(rows).to_pylist()
    return [", ".join(filter(None, (row["kind"], row["parallelism"]))) or None for row in found]
