"""Which files a store on a disk consists of, and what lies beside it while it is written.

    STORE/manifest.json
    STORE/gpu_ops/rank=0/part-0.parquet
    .STORE.parts/                             the shelf, only while the store is written, or after that was interrupted
    .STORE.parts/lock                         held by the process that writes
    .STORE.parts/KEY/                         a finished part: part.json and TABLE.parquet
    .STORE.parts/RUN-.../                     a part that is being made
    .STORE.parts/new/  .STORE.parts/old/      the store that takes the place of the old one, and the old one

Nothing else is ever removed: files are taken away by these names, one by one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from traceanalyzer.files import is_folder, status_of
from traceanalyzer.model.table_specs import is_table_name, table_specs

MANIFEST = "manifest.json"
PARTS = ".parts"
"""In a store behind a URL: the folder of what is finished of one that is being written."""
PART = "part.json"
LOCK, NEW, OLD = "lock", "new", "old"
_FILE = "part-0.parquet"
_RANK = re.compile(r"rank=(?:0|[1-9]\d{0,9})")
_KEY = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[0-9a-f]{8}-\w+")


def file_of(name: str, ordinal: int) -> str:
    """Where in a store the table `name` of one rank lies."""
    return f"{name}/rank={ordinal}/{_FILE}"


def shelf_of(store: Path) -> Path:
    """The shelf of a store whose place is resolved."""
    return store.parent / f".{store.name}{PARTS}"


def locate_store(store: Path) -> Path:
    """Where a store is to be read: in its place or, after a kill between the two renames that replace it, on its shelf."""
    if status_of(store) is not None:
        return store
    place = Path(os.path.realpath(store))
    shelf = shelf_of(place)
    # The old one is moved away when the new one is whole.
    return shelf / NEW if is_interrupted(place) and status_of(shelf / NEW / MANIFEST) else store


def is_interrupted(store: Path) -> bool:
    """Whether the old store has been moved away and the new one is not in its place yet."""
    shelf = shelf_of(store)
    return not os.path.lexists(store) and is_folder(shelf / OLD) and is_folder(shelf / NEW)


def foreign(folder: Path, known: Collection[str] | None = None) -> list[str]:
    """The names within a folder that a store does not consist of, as far as they are links or of another kind too.

    With `known`, the paths of a store's files, every other file is foreign as well. Raises OSError.
    """
    found: list[str] = []
    for entry in os.scandir(folder):
        if _is_table(entry):
            found += _foreign_in_table(entry)
        elif entry.name != MANIFEST or not entry.is_file(follow_symlinks=False):
            found.append(entry.name)
    if known is not None:
        found += [file for file in files_in(folder) if file not in known and file not in found]
    return sorted(found)


def _is_table(entry: os.DirEntry[str]) -> bool:
    """Whether it is the folder of a table; one that nothing here knows must hold ranks."""
    if not (is_table_name(entry.name) and entry.is_dir(follow_symlinks=False)):
        return False
    return entry.name in table_specs() or any(is_rank(one.name) for one in os.scandir(entry))


def _foreign_in_table(table: os.DirEntry[str]) -> Iterator[str]:
    for rank in os.scandir(table):
        if not is_rank(rank.name) or not rank.is_dir(follow_symlinks=False):
            yield f"{table.name}/{rank.name}"
            continue
        for file in os.scandir(rank):
            if file.name != _FILE or not file.is_file(follow_symlinks=False):
                yield f"{table.name}/{rank.name}/{file.name}"


def is_rank(name: str) -> bool:
    """Whether the folders of ranks within a table are called so."""
    return bool(_RANK.fullmatch(name))


def is_key(name: str) -> bool:
    """Whether finished parts are called so."""
    return bool(_KEY.fullmatch(name))


def files_in(folder: Path) -> list[str]:
    """The paths of a store's tables, within its folder."""
    paths = (path.relative_to(folder) for path in folder.glob(f"*/rank=*/{_FILE}"))
    return [str(path) for path in paths if is_table_name(path.parts[0])]


def foreign_on_shelf(shelf: Path) -> list[str]:
    """The names on a shelf that are none of ours. Raises OSError."""
    found: list[str] = []
    for entry in os.scandir(shelf):
        if entry.name == LOCK and entry.is_file(follow_symlinks=False):
            continue
        if not entry.is_dir(follow_symlinks=False):
            found.append(entry.name)
        elif entry.name in (NEW, OLD):
            found += [f"{entry.name}/{name}" for name in foreign(Path(entry))]
        elif is_key(entry.name):
            found += [f"{entry.name}/{one.name}" for one in os.scandir(entry) if not _is_of_part(one.name)]
        elif not _RUN.fullmatch(entry.name):
            found.append(entry.name)
    return sorted(found)


def _is_of_part(name: str) -> bool:
    """Whether the files of a finished part are called so."""
    stem, _, suffix = name.partition(".")
    return name == PART or (suffix == "parquet" and is_table_name(stem))


def remove_store(folder: Path) -> None:
    """Remove a store, and only what it consists of. Raises OSError, also when something else is in it, which stays."""
    for entry in list(os.scandir(folder)):
        if entry.name == MANIFEST:
            Path(entry).unlink()
        elif _is_table(entry):
            for rank in Path(entry).iterdir():
                (rank / _FILE).unlink(missing_ok=True)
                rank.rmdir()
            Path(entry).rmdir()
    folder.rmdir()


def remove_parts(shelf: Path) -> None:
    """Remove the finished parts from a shelf, as far as that is possible."""
    for folder in shelf.iterdir():
        if is_key(folder.name):
            remove_part(folder)


def remove_part(folder: Path) -> None:
    """Remove a finished part, as far as that is possible."""
    with suppress(OSError):
        for file in folder.iterdir():
            if _is_of_part(file.name):
                file.unlink()
        folder.rmdir()


def remove_unfinished(shelf: Path) -> None:
    """Remove what is being made of parts, as far as that is possible."""
    for folder in shelf.iterdir():
        if _RUN.fullmatch(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
