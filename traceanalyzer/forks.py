"""Work on what is in memory, shared by copies of this process: nothing is imported, read or sent there again.

    results = in_forks(function, items, processes)

    with beside(work) as result:        work is done while this process goes on
        result()

    with shared(function, items, copies) as results:        both: this process goes on, and then takes part
        results()

Only results travel, so they had better be small; a function may be any, and an item as large as it likes. Every command names a thread
`AT_REST`, so what only copies need is imported where they are made.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
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
    with shared(function, items, min(processes, len(items)) - 1) as results:
        return results(done)


@contextmanager
def shared(function: Callable[[Item], Out], items: Sequence[Item], copies: int) -> Iterator[Callable[..., list[Out]]]:
    """The same, begun by so many copies of this process, if there are any to have: each has an item of its own to begin with. This one
    goes on, and takes part when it asks for the results; it may say what is to be called for each.

    Nobody goes on with them after the end of the context.
    """
    work = _Work(function, items)
    with work.in_copies(min(copies, len(items)) if len(items) <= MOST and may_fork() else 0):
        yield work.results


@contextmanager
def beside(work: Callable[[], Out]) -> Iterator[Callable[[], Out]]:
    """What gives the result of some work, which a copy of this process does meanwhile, if there is one to have.

    What the copy does not bring is done here, when it is asked for. Nobody goes on with it after the end of the context.
    """
    with shared(lambda _: work(), [None], 1) as results:
        yield lambda: results()[0]


class _Work(Generic[Item, Out]):
    """What is to be done, and the results so far, by number."""

    def __init__(self, function: Callable[[Item], Out], items: Sequence[Item]) -> None:
        self._function, self._items = function, items
        self._done: Callable[[], object] = lambda: None
        self._told = 0
        self._found: dict[int, Out] = {}
        self._copies: list[_Copy[dict[int, Out]]] = []

    @contextmanager
    def in_copies(self, count: int) -> Iterator[None]:
        """So many copies begin, and end with the context at the latest."""
        with ExitStack() as stack:
            with _undisturbed(), suppress(OSError):  # no more processes, or no more pipes, to be had
                if count > 0:
                    self._left = stack.enter_context(_numbers(range(count, len(self._items))))
                    self._heard, said = (stack.enter_context(end) for end in _pipe())
                    os.set_blocking(self._heard.fileno(), False)
                for at in range(count):
                    self._copies.append(_Copy(partial(self._of_copy, at, said)))
                    stack.callback(self._copies[-1].end)
            yield

    def results(self, done: Callable[[], None] = lambda: None) -> list[Out]:
        self._done = done
        if self._copies:
            for at in _taken(self._left):
                self._do(at)
                self._tell(len(self._heard.read(MOST) or b""))
            for copy in self._copies:
                for brought in copy.brought():
                    self._found |= brought
            self._copies = []
            self._tell(len(self._found) - self._told)
        for at in range(len(self._items)):
            if at not in self._found:
                self._do(at)
        return [self._found[at] for at in range(len(self._items))]

    def _of_copy(self, first: int, each: IO[bytes]) -> dict[int, Out]:
        """What a copy does, and brings: as far as it comes."""
        self._done = lambda: each.write(b".")
        with suppress(Exception):
            for at in chain([first], _taken(self._left)):
                self._do(at)
        return self._found

    def _do(self, at: int) -> None:
        self._found[at] = self._function(self._items[at])
        self._tell(1)

    def _tell(self, count: int) -> None:
        """So many more are done; those of a copy that was killed are told once, though they are done again."""
        for _ in range(min(count, len(self._items) - self._told)):
            self._told += 1
            self._done()


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    take, give = os.pipe()
    return os.fdopen(take, "rb", buffering=0), os.fdopen(give, "wb", buffering=0)


def _numbers(numbers: Iterable[int]) -> IO[bytes]:
    """These numbers, of which each reader takes others."""
    left, all_of_them = _pipe()
    with all_of_them:
        all_of_them.write(b"".join(at.to_bytes(_BYTES, "little") for at in numbers))
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
