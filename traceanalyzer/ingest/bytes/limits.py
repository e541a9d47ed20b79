"""How much a file may unpack to: no file fills memory or a disk that its owner did not mean to fill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traceanalyzer.errors import InputError
from traceanalyzer.units import format_bytes

FLAG = "--max-size"
MOST_BYTES = 64 << 30
MOST_MEMBERS = 100_000
"""Files in an archive: each takes memory before anything of it is read."""
MOST_NAME = 8192
"""Characters in the name of a file in an archive. All names are kept, so a packed archive must not hold gigabytes of them."""
# Traces pack 10 to 60 times, and a tiled or idle one some hundred times; a bomb of gzip reaches 1,000 times a layer. Below the
# floor nothing is judged, because it does no harm.
MOST_TIMES_PACKED = 2000
FLOOR_BYTES = 1 << 30


def allowed_bytes(packed_bytes: int, max_bytes: int | None) -> int:
    """The most bytes that a file of `packed_bytes` may give: what the user said, else the defaults above."""
    if max_bytes is not None:
        return max_bytes
    return min(MOST_BYTES, max(FLOOR_BYTES, MOST_TIMES_PACKED * packed_bytes))


def check_size(path: Path, size: int, allowed: int) -> None:
    """Raise InputError for a file that is larger than `allowed`."""
    if size > allowed:
        raise InputError(
            f"{path}: {format_bytes(size)}, more than the limit of {format_bytes(allowed)}; {FLAG} raises the limit"
        )


def check_count(path: Path, members: int) -> None:
    """Raise InputError for an archive of too many files."""
    if members > MOST_MEMBERS:
        raise InputError(f"{path}: an archive of more than {MOST_MEMBERS:,} files; unpack it and name the traces")


def check_name(path: Path, name: str) -> None:
    """Raise InputError for an archive with a longer name than files have."""
    if len(name) > MOST_NAME:
        raise InputError(
            f"{path}: an archive with a name of more than {MOST_NAME:,} characters; unpack it and name the traces"
        )


def check_total(path: Path, size: int, allowed: int) -> None:
    """Raise InputError for an archive whose members are more than `allowed` bytes in total."""
    if size > allowed:
        raise InputError(
            f"{path}: its files unpack to {format_bytes(size)} in total, more than the limit of {format_bytes(allowed)}; "
            f"if that is what they should do, {FLAG} raises the limit"
        )


def limit_blocks(path: Path, blocks: Iterator[bytes], allowed: int) -> Iterator[bytes]:
    """The same blocks. Raises InputError as soon as they are more than `allowed` bytes."""
    given = 0
    for block in blocks:
        given += len(block)
        if given > allowed:
            raise InputError(
                f"{path}: unpacks to more than the limit of {format_bytes(allowed)}; "
                f"if that is what it should do, {FLAG} raises the limit"
            )
        yield block
