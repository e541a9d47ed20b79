"""Packing what is written."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast


@contextmanager
def packing(out: IO[bytes], pack: bool) -> Iterator[IO[bytes]]:
    """Where to write what `out` is to hold, packed with gzip or not. No clock goes in: the same data gives the same bytes."""
    if not pack:
        yield out
        return
    with gzip.GzipFile(filename="", mode="wb", compresslevel=5, fileobj=out, mtime=0) as packed:
        yield cast(IO[bytes], packed)
