"""The loop of a watcher. It only looks and waits: each capture is judged in a process of its own, so none can take the watcher with
it, and what it takes does not add up over months."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from traceanalyzer.errors import InputError, TraceAnalyzerError, UnreachableError
from traceanalyzer.history.shelf import HistoryError, Shelf
from traceanalyzer.records import dataclass
from traceanalyzer.result.history.trend import Trend, trend_of
from traceanalyzer.terminal import tell
from traceanalyzer.urls import Place, local_of, shown_place
from traceanalyzer.watch.desk import Desk, Done
from traceanalyzer.watch.landing import Landed, Settling, captures_in
from traceanalyzer.watch.notices import Notices, Told, send
from traceanalyzer.watch.outputs import Kept, write_outputs
from traceanalyzer.watch.taking import NotWholeError, Task, take

T = TypeVar("T")
_MOST_TRIES = 3
"""A capture that ended so many processes is left alone until it changes."""
_PUBLISHING = "outputs"
NEW, KNOWN, WAITS, BLOCKED = "new", "known", "waits", "blocked"
"""What becomes of a capture in a look: it is taken or left out, it was before, it is not whole or somebody else is at it, or a disk
or network fails."""


class CrashedError(Exception):
    """The process that did something ended without a word."""


@dataclass(frozen=True)
class Watch:
    """What to watch. A capture is taken when it has been still for `settle_s` seconds, a damaged one when it has been for
    `give_up_s`. It is looked every `every_s`."""

    place: Place
    task: Task
    kept: Kept
    notices: Notices
    settle_s: float
    give_up_s: float
    every_s: float


class Watcher:
    """One that watches; any number of them may share a place, its history and its reports."""

    def __init__(self, given: Watch) -> None:
        self._given = given
        self._desk = Desk(given.kept.reports)
        self._settling = Settling(given.settle_s)
        self._published: set[str] | None = None
        """The captures that the outputs show, as far as this one knows."""

    def run(self, once: bool = False) -> None:
        """Look until somebody stops it or, `once`, until nothing is left to take. Raises InputError where there is nothing to watch,
        the history cannot be one or, `once`, a disk or network goes on failing."""
        given = self._given
        in_own_process(check_history, given.task.history)
        blocked = 0
        while True:
            left = self.look()
            blocked = blocked + 1 if left == BLOCKED else 0
            if once and left == KNOWN:
                return
            if once and blocked == _MOST_TRIES:
                raise InputError(
                    f"{shown_place(given.place)}: not all could be done, as said; the next run goes on there"
                )
            time.sleep(min(given.every_s, max(given.settle_s, 0.1)) if once else given.every_s)

    def look(self) -> str:
        """Take what has landed and bring all outputs up to date; KNOWN where nothing is left, else WAITS or, where only that stands in
        the way, BLOCKED."""
        try:
            found = captures_in(self._given.place)
        except FileNotFoundError as error:
            raise InputError(
                f"{shown_place(self._given.place)}: there is no such folder; make it, or name another"
            ) from error
        except OSError as error:  # a disk or a network that may come back
            tell(f"{shown_place(self._given.place)}: cannot be looked at ({error}); again in {self._given.every_s:g} s")
            return BLOCKED
        settled = self._settling.settled(found, time.monotonic(), time.time_ns())
        states = [self._taken(one) for one in settled]
        states.append(self._publish(NEW in states))
        if WAITS in states or len(settled) < len(found):
            return WAITS
        return BLOCKED if BLOCKED in states else KNOWN

    def _taken(self, one: Landed) -> str:
        """What becomes of a capture now."""
        if self._is_done(self._desk.done(one.key)):
            return KNOWN
        with self._desk.at(one.key) as alone:
            if not alone:
                return WAITS
            done = self._desk.done(one.key)  # by the other watcher, meanwhile
            return KNOWN if self._is_done(done) else self._take(one, done.tries if done else 0)

    @staticmethod
    def _is_done(done: Done | None) -> bool:
        return done is not None and (done.tries >= _MOST_TRIES or not done.crashed)

    def _take(self, one: Landed, tries: int) -> str:
        given = self._given
        still_s = (time.time_ns() - one.changed_ns) / 1e9 if one.changed_ns is not None else given.give_up_s
        try:
            id = in_own_process(take, one.place, given.task, still_s >= given.give_up_s)
        except NotWholeError as error:
            tell(
                f"{one.name}: not whole yet ({error}); it is taken when it is, or in {given.give_up_s - still_s:.0f} s as it is"
            )
            return WAITS
        except (OSError, HistoryError, UnreachableError) as error:  # nothing is noted, so it is tried again
            tell(f"{one.name}: {getattr(error, 'strerror', None) or error}; again in {given.every_s:g} s")
            return BLOCKED
        except InputError as error:
            tell(f"left out: {error}")
            self._note(one, Done(one.name, error=str(error)))
            return NEW
        except TraceAnalyzerError:
            raise
        except (CrashedError, MemoryError):
            return self._crashed(one, tries, "its process ended or was ended, most likely because memory ran out")
        except Exception as error:  # a fault of ours must not stop what others wait for
            return self._crashed(one, tries, f"{type(error).__name__}: {error}")
        self._note(one, Done(one.name, id=id))
        tell(f"{one.name}: taken")
        return NEW

    def _crashed(self, one: Landed, tries: int, why: str) -> str:
        tell(f"left out: {one.name}: {why} (try {tries + 1} of {_MOST_TRIES})")
        self._note(one, Done(one.name, error=why, tries=tries + 1, crashed=True))
        return WAITS if tries + 1 < _MOST_TRIES else NEW

    def _note(self, one: Landed, done: Done) -> None:
        try:
            self._desk.note(one.key, done)
        except OSError as error:
            tell(f"{one.name}: cannot be noted as done ({error.strerror or error}); it will be looked at again")

    def _publish(self, new: bool) -> str:
        """Bring the outputs up to date, where something is new, here or by another watcher; KNOWN where they are."""
        given = self._given
        try:
            ids = self._ids()
            if not new and ids == self._published:
                return KNOWN
            with self._desk.at(_PUBLISHING) as alone:
                if not alone:
                    return WAITS
                in_own_process(publish, given.task.history, given.kept, given.notices)
        except (OSError, InputError, CrashedError) as error:
            tell(f"the outputs are not up to date ({error or 'a process ended'}); again in {given.every_s:g} s")
            return BLOCKED
        self._published = ids
        return KNOWN

    def _ids(self) -> set[str]:
        """The captures of the history. What speaks to a bucket is kept out of this process."""
        history = self._given.task.history
        return ids_in(history) if local_of(history) is not None else in_own_process(ids_in, history)


def check_history(history: Place) -> None:
    """Raises HistoryError where the place cannot become a history."""
    Shelf(history).check()


def ids_in(history: Place) -> set[str]:
    """The captures of a history. Raises InputError."""
    return Shelf(history).ids()


def publish(history: Place, kept: Kept, notices: Notices) -> None:
    """Write all outputs of a history, and tell of what changed. Raises InputError and OSError."""
    shelf = Shelf(history)
    if not shelf.ids():
        write_outputs(kept, trend_of([]), [])
        return
    shelf.pack()
    entries = shelf.read().entries
    trend: Trend = trend_of(entries)
    write_outputs(kept, trend, entries)
    if notices.command or notices.webhook:
        told = Told(kept.reports / ".watch")
        for notice in told.missing(trend, entries, notices.verdicts):
            send(notice, notices)
            told.remember(notice)


def in_own_process(work: Callable[..., T], *arguments: Any) -> T:
    """What `work` gives in a process of its own. Raises what it raises, and CrashedError where the process ends without a word."""
    with ProcessPoolExecutor(1, get_context("spawn")) as one:
        try:
            return one.submit(work, *arguments).result()
        except BrokenProcessPool as error:
            raise CrashedError from error
