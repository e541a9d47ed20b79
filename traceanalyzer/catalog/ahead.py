"""Tables made ahead by a second thread, while the rules run: what is read when they are done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from threading import Thread

from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.workers import cpus

_IN_ORDER = "other_threads"
"""Its places are numbered as they come among those of the host, so it is made where it always was."""


@contextmanager
def made_ahead(catalog: Catalog, names: Sequence[str]) -> Iterator[None]:
    """Make these of the tables meanwhile, in their order, where a trace is large and a processor is left.

    Numpy and Arrow leave the interpreter to others while they compute. What raises is left to whoever asks for the table.
    """
    if not catalog.is_large or parent_process() is not None or cpus() < 2 or catalog.table("cpu_samples").num_rows:
        yield
        return
    wanted = [name for name in names if _IN_ORDER not in catalog.made_of(name)]
    is_over = False

    def make() -> None:
        for name in wanted:
            if not is_over:
                with suppress(Exception):
                    catalog.make(name)

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over = True
        thread.join()
