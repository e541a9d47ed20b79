"""Work on what is in memory, shared by copies of this process: nothing is imported, read or sent there again.

    results = in_forks(function, items, processes)

    with beside(work) as result:        work is done while this process goes on
        result()

Only results travel, so they had better be small; a function may be any, and an item as large as it likes. Every command names a thread
`AT_REST`, so what only copies need is imported where they are made.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import IO, Generic, NoReturn, TypeVar

Item = TypeVar("Item")
Out = TypeVar("Out")

AT_REST = "at rest"
"""The name of a thread that waits and holds nothing."""
MOST = 1 << 12
"""Items that are shared: their numbers lie in a pipe, which holds no more."""
STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that ask a process to stop."""
_BYTES = 4
_SIGNAL_AT_PARENTS_DEATH = 1
"""PR_SET_PDEATHSIG of Linux's sys/prctl.h."""


def may_fork() -> bool:
    """Whether a copy of this process can do what it can: on Linux, where no other thread of Python may hold a lock meanwhile. Those of
    Arrow begin anew in a copy."""
    awake = [one for one in threading.enumerate() if one.name != AT_REST]
    return sys.platform == "linux" and awake == [threading.current_thread()]


def in_forks(
    function: Callable[[Item], Out], items: Sequence[Item], processes: int, done: Callable[[], None] = lambda: None
) -> list[Out]:
    """The function's results, in the order of the items, worked out by at most so many processes, of which this is one: who is done
    with an item takes the next. `done` is called for each.

    What a copy does not bring is done here: it was killed, there was none to have, or the function failed there. Raises what the
    function raises.
    """
    work = _Work(function, items, done)
    if processes > 1 and 1 < len(items) <= MOST and may_fork():
        work.share(min(processes, len(items)))
    for at in range(len(items)):
        if at not in work.found:
            work.do(at)
    return [work.found[at] for at in range(len(items))]


@contextmanager
def beside(work: Callable[[], Out]) -> Iterator[Callable[[], Out]]:
    """What gives the result of some work, which a copy of this process does meanwhile, if there is one to have.

    What the copy does not bring is done here, when it is asked for. Nobody goes on with it after the end of the context.
    """
    copy: _Copy[Out] | None = None

    @cache
    def result() -> Out:
        brought = copy.brought() if copy else ()
        return brought[0] if brought else work()

    try:
        if may_fork():
            with _undisturbed(), suppress(OSError):
                copy = _Copy(work)
        yield result
    finally:
        if copy:
            copy.end()


class _Work(Generic[Item, Out]):
    """What is to be done, and the results so far, by number."""

    def __init__(self, function: Callable[[Item], Out], items: Sequence[Item], done: Callable[[], None]) -> None:
        self._function, self._items = function, items
        self._done: Callable[[], object] = done
        self._told = 0
        self.found: dict[int, Out] = {}

    def do(self, at: int) -> None:
        self.found[at] = self._function(self._items[at])
        self._tell(1)

    def share(self, processes: int) -> None:
        """Do it in several processes."""
        left, heard, said = _numbers(len(self._items)), *_pipe()
        with left, heard, said:
            os.set_blocking(heard.fileno(), False)
            copies: list[_Copy[dict[int, Out]]] = []
            own = partial(self.of_copy, left, said)
            try:
                with _undisturbed(), suppress(OSError):  # no more processes, or no more pipes, to be had
                    for _ in range(processes - 1):
                        copies.append(_Copy(own))
                for at in _taken(left):
                    self.do(at)
                    self._tell(len(heard.read(MOST) or b""))
                for copy in copies:
                    for brought in copy.brought():
                        self.found |= brought
                self._tell(len(self.found) - self._told)
            finally:
                for copy in copies:
                    copy.end()

    def of_copy(self, left: IO[bytes], each: IO[bytes]) -> dict[int, Out]:
        """What a copy does, and brings: as far as it comes."""
        self._done = lambda: each.write(b".")
        with suppress(Exception):
            for at in _taken(left):
                self.do(at)
        return self.found

    def _tell(self, count: int) -> None:
        """So many more are done; those of a copy that was killed are told once, though they are done again."""
        for _ in range(min(count, len(self._items) - self._told)):
            self._told += 1
            self._done()


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    take, give = os.pipe()
    return os.fdopen(take, "rb", buffering=0), os.fdopen(give, "wb", buffering=0)


def _numbers(count: int) -> IO[bytes]:
    """The numbers below this one, of which each reader takes others."""
    left, all_of_them = _pipe()
    with all_of_them:
        all_of_them.write(b"".join(at.to_bytes(_BYTES, "little") for at in range(count)))
    return left


def _taken(left: IO[bytes]) -> Iterator[int]:
    while number := left.read(_BYTES):
        yield int.from_bytes(number, "little")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals to stop come after the end of the context: in what runs around a fork (`os.register_at_fork`) they would be lost, and
    copies are stopped by their original."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Copy(Generic[Out]):
    """A copy of this process that does some work. It is made `_undisturbed`."""

    def __init__(self, work: Callable[[], Out]) -> None:
        """Raises OSError where there is none to have."""
        original = os.getpid()
        hear, say = os.pipe()
        self._hear = os.fdopen(hear, "rb")
        with os.fdopen(say, "wb") as said, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # It is about threads, and these are Arrow's.
            self._process = os.fork()
            if self._process == 0:
                self._live(work, said, original)

    def _live(self, work: Callable[[], Out], said: IO[bytes], original: int) -> NoReturn:
        """All that a copy does. Nothing that its original was about goes on here."""
        try:
            _end_with(original)
            # Else what it says could still be heard when the original is gone, and would wait for that.
            self._hear.close()
            import pickle

            pickle.dump((work(),), said, pickle.HIGHEST_PROTOCOL)
            said.flush()
        finally:
            os._exit(0)

    def brought(self) -> tuple[Out] | tuple[()]:
        """Its result; none if it was killed, or failed."""
        import pickle

        try:
            return pickle.load(self._hear)  # type: ignore[no-any-return]
        except (EOFError, pickle.UnpicklingError):
            return ()

    def end(self) -> None:
        """Stop it, if it has not ended."""
        self._hear.close()
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


def _end_with(original: int) -> None:
    """Have the system stop this process when the one that it is a copy of ends, however that ends."""
    import ctypes

    ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    if os.getppid() != original:  # It was gone before.
        os._exit(0)
