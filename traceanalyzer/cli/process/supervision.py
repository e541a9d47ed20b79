"""One process works and another, which does nothing else, watches over it.

What a library does in C can be caught by no `except`: it aborts where it finds no memory or no thread, it calls exit(1), the system
kills it. So an exit code counts only if the worker said it in so many words; any other end is an error. Signals go on to the worker.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from traceanalyzer.exit_codes import ERROR, INTERRUPTED
from traceanalyzer.forks import AT_REST, STOPS

# Who asks a second time after so long gets what they ask for. Ctrl-C comes twice at once: from the terminal and from the watcher.
_PATIENCE_S = 1.0
# A stop that was lost comes again so soon.
_AGAIN_S = 0.01
# As long may a worker that nobody watches any more take to clean up.
_LAST_WORDS_S = 10.0
_MEMORY = "most likely because memory ran out; use a machine with more, or record fewer steps"


def supervise(work: Callable[[], int], tell: Callable[[str], None]) -> int:
    """What `work` says in a process of its own; ERROR where it ends without a word, of which one line is told.

    Where no process can be had, it is done in this one.
    """
    if not hasattr(os, "fork"):
        return _watched(work)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # until both know what to do with them
    try:
        heard, say = os.pipe()
        life, watching = os.pipe()
        woken, wake = os.pipe()
        worker = os.fork()
    except OSError:
        return _watched(work)
    if worker == 0:
        os.close(heard)
        os.close(watching)
        os.close(woken)
        os.close(wake)
        _work(work, say, life)
    os.close(say)
    os.close(life)
    stopped = _passed_on(worker)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    said = _word(heard, woken)
    _, status, used = os.wait4(worker, 0)
    if said:
        return said[0]
    if stopped:
        return 128 + stopped[0][0]
    if os.WIFSIGNALED(status) and (number := os.WTERMSIG(status)) in STOPS:
        return 128 + number
    tell(f"error: {_end(status, used.ru_utime + used.ru_stime)}")
    return ERROR


def _word(heard: int, woken: int) -> bytes:
    """What the worker says, as `os.read`. A signal that comes right before this process begins to wait wakes it as well: else it would
    be passed on when the worker has ended."""
    either = select.poll()
    for one in (heard, woken):
        either.register(one, select.POLLIN)
    while all(ready != heard for ready, _ in either.poll()):
        os.read(woken, 1)
    return os.read(heard, 1)


def _work(work: Callable[[], int], say: int, life: int) -> NoReturn:
    code = ERROR
    try:
        with suppress(RuntimeError, MemoryError):  # no thread to be had
            threading.Thread(target=_end_unwatched, args=(life,), name=AT_REST, daemon=True).start()
        code = _watched(work)
        with suppress(OSError):  # nobody listens
            os.write(say, bytes([code]))
    finally:  # an error that could not even be told is left to the watcher, who hears nothing
        os._exit(code)


def _watched(work: Callable[[], int]) -> int:
    """`work`, which hears of the first signal to stop and of no other: it cleans up then."""
    stops: list[BaseException] = []

    def stop(number: int, _: FrameType | None) -> None:
        if not stops:
            stops.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
            raise stops[0]

    def again(*_: object) -> None:
        raise stops[0]

    def dropped(lost: sys.UnraisableHookArgs) -> None:
        """Python goes on after what is raised in `__del__`, say. A stop that came there comes again after that."""
        if lost.exc_value in stops and hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, again)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            sys.__unraisablehook__(lost)

    sys.unraisablehook = dropped
    _handle(stop)
    try:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)  # One may have come already, and is heard here.
        return work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ERROR


def _passed_on(worker: int) -> list[tuple[int, float]]:
    """The signals that this process has been sent, each with the time of a clock, in a list that grows."""
    heard: list[tuple[int, float]] = []

    def forward(number: int, _: FrameType | None) -> None:
        heard.append((number, time.monotonic()))
        insists = heard[-1][1] - heard[0][1] > _PATIENCE_S
        with suppress(ProcessLookupError):
            if len(heard) == 1 or insists:
                os.kill(worker, signal.SIGKILL if insists else number)

    _handle(forward)
    return heard


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` sets it, and a shell for what runs behind
            signal.signal(number, handler)


def _end_unwatched(life: int) -> None:
    """Nothing is ever written there: it ends when the watcher has ended."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_LAST_WORDS_S)
    os._exit(ERROR)


def _end(status: int, cpu_s: float) -> str:
    import resource

    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    limit = resource.getrlimit(resource.RLIMIT_CPU)[0]
    if number == signal.SIGXCPU or (number == signal.SIGKILL and 0 <= limit <= cpu_s + 1):
        return "the limit on CPU time was reached; raise it (ulimit -t), or record fewer steps"
    if number == signal.SIGKILL:
        return f"the program was killed, {_MEMORY}"
    how = signal.Signals(number).name if number else f"exit code {os.waitstatus_to_exitcode(status)}"
    return f"a library ended the program ({how}), {_MEMORY}"
