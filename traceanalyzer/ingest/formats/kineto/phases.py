"""Ranges that are written as two events: begin and end on a thread (B, E), or wherever, under an id (b, e).

The two may lie far apart in the file and in any order, so all of them wait for its end, in about 40 bytes each and what is read of
the arguments of begins.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

from traceanalyzer.columns import NULL
from traceanalyzer.ingest.formats.kineto import columns as col
from traceanalyzer.ingest.formats.kineto.extras import Extra
from traceanalyzer.ingest.formats.kineto.notes import Notes
from traceanalyzer.ingest.formats.kineto.text.decode import Args, Event, Times
from traceanalyzer.vocabulary.levels import INFO, LOW

ON_A_THREAD = frozenset("BE")
# S and F are an old spelling of b and e.
BEGINS = frozenset("BbS")
NO_NAME = -1
BATCH_ROWS = 1 << 13

Take = Callable[[str | None, list[Event], dict[str, pa.Array]], None]
"""Takes events of one category with their times."""

_args_decoder = msgspec.json.Decoder(Args)


class BeginEnd:
    """Collects begins and ends, and hands on the ranges that they make. Those under an id belong to no thread."""

    PHASES = frozenset("BEbeSF")

    def __init__(self, ids: col.Integers, take: Take, notes: Notes) -> None:
        self._ids, self._take, self._notes = ids, take, notes
        # What a begin and its end share: their thread or their id, numbered.
        self._keys: dict[Hashable, int] = {}
        self._names = col.Codes()
        self._categories = col.Codes()
        self._key, self._time, self._process, self._thread = (array("q") for _ in range(4))
        self._name, self._category, self._begins = array("i"), array("i"), array("b")
        self._args: dict[int, bytes] = {}

    def take(self, events: Sequence[Event], time: Times, extra: Sequence[Extra]) -> None:
        """Begins and ends in the order of the file, all with a time."""
        on_a_thread = [e.ph in ON_A_THREAD for e in events]
        tids = [e.tid if on else None for e, on in zip(events, on_a_thread, strict=True)]
        process = self._ids.identities([e.pid for e in events]).fill_null(NULL).to_numpy()
        thread = self._ids.identities(tids).fill_null(NULL).to_numpy()
        for row, (event, on) in enumerate(zip(events, on_a_thread, strict=True)):
            key = (int(process[row]), int(thread[row])) if on else _identity(event, extra[row])
            if event.ph in BEGINS and event.args is not None and event.args != col.NO_ARGS:
                self._args[len(self._key)] = msgspec.json.encode(event.args)
            self._key.append(self._keys.setdefault(key, len(self._keys)))
            self._name.append(self._names[event.name or None])
            self._category.append(self._categories[event.cat])
            self._begins.append(event.ph in BEGINS)
        for column, values in ((self._time, time), (self._process, process), (self._thread, thread)):
            column.frombytes(values.tobytes())

    def finish(self) -> None:
        """Make ranges of all that came."""
        if not self._time:
            return
        key, time, process, thread = (
            np.frombuffer(a, np.int64) for a in (self._key, self._time, self._process, self._thread)
        )
        name = np.frombuffer(self._name, np.int32)
        begins = np.frombuffer(self._begins, np.int8).astype(bool)
        # At one time named ends come first; an end without a name can only be placed by its place in the file.
        order = np.lexsort((begins | (name == NO_NAME), time, key))
        bounds = [0, *(np.flatnonzero(np.diff(key[order])) + 1).tolist(), len(order)]
        rows: list[int] = []
        ends: list[int] = []
        open_rows: list[int] = []
        orphans = 0
        for first, stop in pairwise(bounds):
            here = order[first:stop]
            found, at, left, lost = _matched(time[here].tolist(), name[here].tolist(), begins[here].tolist())
            rows.extend(here[found].tolist())
            ends.extend(at)
            open_rows.extend(here[left].tolist())
            orphans += lost
        ends.extend([int(time.max())] * len(open_rows))
        taken = np.array(rows + open_rows, np.int64)
        self._report(open_rows, orphans)
        self._hand_on(taken, time[taken], np.array(ends, np.int64), process, thread)

    def _hand_on(self, rows: Times, start: Times, end: Times, process: Times, thread: Times) -> None:
        """The ranges that began with these rows, as complete events of one category after the other."""
        names, categories = self._names.names(), self._categories.names()
        category = np.frombuffer(self._category, np.int32)[rows]
        order = np.lexsort((rows, category))
        bounds = np.flatnonzero(np.diff(category[order])) + 1
        for group in np.split(order, bounds):
            told = categories[code] if len(group) and (code := int(category[group[0]])) >= 0 else None
            for first in range(0, len(group), BATCH_ROWS):
                at = group[first : first + BATCH_ROWS]
                found = [
                    Event(
                        ph="X",
                        cat=told,
                        name=names[self._name[row]] if self._name[row] != NO_NAME else None,
                        pid=_known(process[row]),
                        tid=_known(thread[row]),
                        args=_args_decoder.decode(self._args[row]) if row in self._args else None,
                    )
                    for row in rows[at].tolist()
                ]
                self._take(told, found, {"start_ns": pa.array(start[at]), "end_ns": pa.array(end[at])})

    def _report(self, open_rows: Sequence[int], orphans: int) -> None:
        if open_rows:
            first = self._names.names()[code] if (code := self._name[open_rows[0]]) != NO_NAME else None
            message = "ranges that never end were closed at the last begin or end in the file"
            self._notes.say(LOW, message, len(open_rows), first)
        if orphans:
            self._notes.say(INFO, "ends of ranges that began before the recording were left out", orphans)


def _matched(time: list[int], name: list[int], begins: list[bool]) -> tuple[list[int], list[int], list[int], int]:
    """Pair the events of one key, sorted by time: (begins, their ends' times, begins without an end, ends without a begin).

    An end closes the range of its name that began last; without a name, whichever began last.
    """
    opened: list[int] = []
    by_name: defaultdict[int, list[int]] = defaultdict(list)
    closed: set[int] = set()
    rows: list[int] = []
    ends: list[int] = []

    def close(row: int) -> bool:
        while opened and opened[-1] in closed:
            closed.remove(opened.pop())
        wanted = by_name[name[row]] if name[row] != NO_NAME else by_name[name[opened[-1]]] if opened else []
        if not wanted:
            return False
        begin = wanted.pop()
        closed.add(begin)
        rows.append(begin)
        ends.append(time[row])
        return True

    # Ends for which nothing was open: what they end may begin, and be over, at the same time.
    waiting: list[int] = []
    orphans = 0
    for row, now in enumerate(time):
        if waiting and now != time[waiting[0]]:
            orphans += sum(not close(end) for end in waiting)
            waiting = []
        if begins[row]:
            opened.append(row)
            by_name[name[row]].append(row)
        elif not close(row):
            waiting.append(row)
    orphans += sum(not close(end) for end in waiting)
    return rows, ends, [row for row in opened if row not in closed], orphans


def _known(number: np.int64) -> int | None:
    return None if number == NULL else int(number)


def _identity(event: Event, extra: Extra) -> Hashable:
    """What asynchronous begins and ends share; an id may be local to its process."""
    local = isinstance(extra.id2, dict) and "local" in extra.id2
    id_ = extra.id if extra.id2 is None else extra.id2
    return event.cat, str(extra.scope), str(id_), event.pid if local else None
