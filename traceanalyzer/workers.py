"""Work on the parts of a job, one after the other or at once: in this process, in others, or on a Dask cluster.

    with workers(jobs, scheduler) as executor:
        results = map_parts(executor, function, items)

Functions and items travel to other processes, so a function is one of a module, and an item small: a path, not a table.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, as_completed, wait
from contextlib import ExitStack, contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import TypeVar

from traceanalyzer.errors import WorkerError
from traceanalyzer.exit_codes import ERROR
from traceanalyzer.forks import in_forks
from traceanalyzer.terminal import tell
from traceanalyzer.urls import INSTALL

Item = TypeVar("Item")
Out = TypeVar("Out")

LOCAL = "local"
# A process takes as long to start as reading some megabytes does.
WORTH_BYTES = 32 << 20
# To make a copy of this process takes some milliseconds. What is derived of a part takes some times what the part does.
_MOST_SHARING = 16
_TOGETHER_BYTES = 1 << 30
_CONNECT_S = 20
_MOST_NAMED = 3


def jobs_for(sizes: Iterable[int], asked: int | None = None, scheduler: str | None = None) -> int:
    """How many processes work on inputs of these packed sizes (bytes): never more than there are inputs.

    Where none are `asked` for, one a CPU; without a `scheduler` only as many as pay for it, 1 when this one will do.
    """
    sizes = list(sizes)
    pay = cpus() if scheduler is not None else min(cpus(), sum(sizes) // WORTH_BYTES)
    return max(min(asked or pay, len(sizes)), 1)


def processes_for(sizes: Iterable[int]) -> int:
    """How many processes share parts in memory whose tables take so many bytes, where none are asked for: one a CPU, but no more than
    can hold what is derived of them at once."""
    return max(min(cpus(), _MOST_SHARING, _TOGETHER_BYTES // max([*sizes, 1])), 1)


def cpus() -> int:
    """Those that this process may use, where the system says."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def workers(jobs: int | None = None, scheduler: str | None = None) -> Iterator[Executor | None]:
    """What runs the work of `map_parts`; None stands for this process.

    `jobs` is the number of processes, none or one of which is this one. `scheduler` is the address of a Dask scheduler
    (tcp://host:8786), whose workers do the work then, or "local" for a Dask cluster of `jobs` processes on this machine.
    Where the system has no processes to give (no semaphores without a /dev/shm that can be written), this one does the work.

    Raises WorkerError when there is no Dask or no scheduler at that address.
    """
    if scheduler is not None:
        with _dask(scheduler, jobs) as executor:
            yield executor
    elif jobs is None or jobs <= 1 or (pool := _processes(jobs)) is None:
        yield None
    else:
        with pool:
            yield pool


def map_parts(
    executor: Executor | None,
    function: Callable[[Item], Out],
    items: Iterable[Item],
    done: Callable[[], None] | None = None,
    name: Callable[[Item], str] = str,
    processes: int = 1,
) -> list[Out]:
    """The function's results, in the order of the items. `done` is called after each, and `name` says what to call one in an error.
    Without an executor so many `processes` share what this one has in memory.

    The first error ends it: what has not begun is not begun. Raises what the function raises, and WorkerError for workers that are
    lost.
    """
    items = list(items)
    done = done or (lambda: None)
    if executor is None:
        return in_forks(function, items, processes, done)
    futures = _submitted(executor, function, items)
    place = {future: number for number, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            try:
                future.result()
            except BrokenExecutor as error:
                # Work begins in order, so those that were being done are the first of the others.
                left = [name(item) for item, one in zip(items, futures, strict=True) if one.exception() is not None]
                raise _lost(left[: executor.jobs] if isinstance(executor, _Processes) else left) from error
            except CancelledError as error:
                raise WorkerError("the scheduler or its workers are gone; start again when they are back") from error
            except Exception as error:
                if _was_killed(error):
                    raise _lost([name(items[place[future]])]) from error
                raise
            done()
    except BaseException as error:
        if isinstance(executor, _Processes) and not isinstance(error, Exception):
            executor.end()  # and nothing is cancelled before: a pool that breaks does not expect that
            wait(futures)
        else:
            wait([future for future in futures if not future.cancel()])
        raise
    return [future.result() for future in futures]


def _submitted(executor: Executor, function: Callable[[Item], Out], items: list[Item]) -> list[Future[Out]]:
    try:
        return [executor.submit(function, item) for item in items]
    except BrokenExecutor as error:
        raise WorkerError(
            "the workers are gone, most likely because memory ran out; use fewer at a time with --jobs"
        ) from error
    except (OSError, RuntimeError) as error:
        if not isinstance(executor, _Processes):
            raise
        executor.shutdown(wait=False, cancel_futures=True)
        raise WorkerError(f"the system gives no more processes ({error}); use fewer with --jobs") from error


def _lost(names: list[str]) -> WorkerError:
    which = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    return WorkerError(
        f"{which}: a worker was killed at {'this' if len(names) == 1 else 'one of these'}, most likely because memory ran out; "
        "use fewer at a time with --jobs, or a machine with more memory"
    )


def _was_killed(error: Exception) -> bool:
    """Whether it is Dask's word for a task during which workers died again and again."""
    if not type(error).__module__.startswith("distributed"):
        return False
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


class _Processes(ProcessPoolExecutor):
    """Processes of their own, not forks of this one: Arrow's threads do not survive a fork."""

    def __init__(self, jobs: int) -> None:
        super().__init__(jobs, get_context("spawn"), _begin)
        self.jobs = jobs
        self._others = set(active_children())

    def end(self) -> None:
        """Stop at once what is running."""
        for child in set(active_children()) - self._others:
            child.terminate()


def _processes(jobs: int) -> _Processes | None:
    try:
        return _Processes(jobs)
    except (OSError, ImportError, NotImplementedError) as error:
        tell(f"no processes to share the work with ({error}); this one reads the files one after another")
        return None


def _begin() -> None:
    """What a process does first. An interrupt is its parent's to handle, and it ends when the parent is gone.

    What cannot even begin ends without a word: that it is gone is for the parent to say.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        from traceanalyzer.arrow import use_little_memory
        from traceanalyzer.garbage import collect_rarely

        collect_rarely()
        threading.Thread(target=_end_with_parent, daemon=True).start()
        use_little_memory()
    except BaseException:
        os._exit(ERROR)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(ERROR)


@contextmanager
def _dask(scheduler: str, jobs: int | None) -> Iterator[Executor]:
    if scheduler != LOCAL and "://" not in scheduler:
        raise WorkerError(f"--scheduler: '{scheduler}' is neither an address such as tcp://host:8786 nor {LOCAL}")
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise WorkerError(f"--scheduler needs Dask; {INSTALL}") from error
    with ExitStack() as stack:
        address = scheduler
        if scheduler == LOCAL:
            with _uninterrupted():
                cluster = LocalCluster(  # type: ignore[no-untyped-call]
                    n_workers=jobs or cpus(), threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
                )
            address = stack.enter_context(cluster).scheduler_address
        try:
            client = stack.enter_context(Client(address, timeout=_CONNECT_S))  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TypeError) as error:
            said = str(error) or "timed out"
            raise WorkerError(f"{scheduler}: no Dask scheduler answers there ({said}); check the address") from error
        yield client.get_executor()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Processes that are started meanwhile never hear of an interrupt, which is for this one to handle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
