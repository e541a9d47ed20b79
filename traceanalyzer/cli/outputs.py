"""Where a command writes: each place resolved once, and checked against all that it reads and writes, before anything is read."""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceanalyzer.errors import InputError
from traceanalyzer.files import is_folder, resolve_place, status_of
from traceanalyzer.urls import Place, local_of, url_of

if TYPE_CHECKING:
    from traceanalyzer.config import Config

STDOUT = Path("-")
Also = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="FORMAT=FILE",
        help="Write the same result in another format too, such as markdown=summary.md; may be repeated. The input is read once.",
        show_default=False,
    ),
]
# Files that SQLite keeps beside a database, and takes for a part of it.
_SQLITE_SIDES = ("-wal", "-shm", "-journal")


class Outputs:
    """The outputs of one command. Each is a place that can be written, is none of the inputs and none of the other outputs.

    `inputs` are what the user named to be read, `config` and `files` what the command reads besides. Every method gives the resolved
    place, which is the one to write to, and raises InputError.
    """

    def __init__(self, inputs: Sequence[Path], config: Config | None = None, files: Sequence[Path | None] = ()) -> None:
        read = (config.file, config.check.baseline) if config else ()
        self._inputs = [*inputs, *(file for file in (*read, *files) if file is not None)]
        self._rules = config.rules if config else ()
        self._taken: list[Path] = []

    def file(self, output: Path, given: str = "") -> Path:
        """The place of a file; `-` is standard output and stays so. `given` is how the user names it, if not by itself."""
        if str(output) == "-":
            return STDOUT
        if url_of(output) is not None:
            raise InputError(f"{given or output}: outputs are written to this machine; name a file")
        place = _device(output) or resolve_place(output)
        _check_writable(output, place)
        for one in self._inputs:
            _check_not_read(output, place, one)
        for one in self._rules:
            if any(_same(path, place) for path in _rule_files(one)):
                raise InputError(f"{output}: is a file of rules, which is read; choose another output")
        self._take(place, f"{given or output}: another output goes to {output} already; name another file")
        return place

    def also(self, values: list[str] | None, formats: Sequence[str]) -> list[tuple[str, Path]]:
        """What `--also` asks for. Refused too: no format or an unknown one, and standard output."""
        wanted: list[tuple[str, Path]] = []
        for value in values or []:
            name, is_pair, file = value.partition("=")
            known = ", ".join(formats)
            if not is_pair or not file:
                raise InputError(f"--also {value}: write it as FORMAT=FILE, such as markdown=summary.md")
            if name not in formats:
                raise InputError(f"--also {value}: there is no format '{name}'; choose one of {known}")
            if file == "-":
                raise InputError(f"--also {value}: only the main output can go to standard output; name a file")
            wanted.append((name, self.file(Path(file), f"--also {value}")))
        return wanted

    def store(self, given: Path | None) -> Place | None:
        """The place of a store, if one is asked for: a folder or a URL."""
        from traceanalyzer.model.stores.layout import shelf_of
        from traceanalyzer.model.stores.placing import check_place

        if given is None:
            return None
        place = check_place(given, [*self._inputs, *self._rules])
        if isinstance(place, Path):
            for one in (place, shelf_of(place)):
                self._take(one, f"{given}: another output goes there already; choose another name")
        return place

    def _take(self, place: Path, refusal: str) -> None:
        if _is_ordinary(place):
            if any(_overlap(place, other) for other in self._taken):
                raise InputError(refusal)
            self._taken.append(place)


def _device(output: Path) -> Path | None:
    """The path itself where it leads to what has no place on a disk: a pipe or a device."""
    status = status_of(output)
    return None if status is None or _is_on_disk(status) else output.absolute()


def _is_on_disk(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def _is_ordinary(place: Path) -> bool:
    status = status_of(place)
    return status is None or _is_on_disk(status)


def _check_writable(output: Path, place: Path) -> None:
    """Refuse what cannot work before any time is spent on reading: a folder, a place inside a file, one that is protected."""
    status = status_of(place)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise InputError(f"{output}: is a folder; name the file to write in it")
    if status is not None and (stat.S_ISBLK(status.st_mode) or stat.S_ISSOCK(status.st_mode)):
        raise InputError(f"{output}: is a disk or a socket; name a file")
    if status is not None and not _is_on_disk(status):
        return
    above = next((folder for folder in place.parents if os.path.lexists(folder)), None)
    if above is not None and not above.is_dir():
        raise InputError(f"{output}: cannot be written ({above} is not a folder); choose another output")
    if above is not None and not os.access(above, os.W_OK):
        raise InputError(f"{output}: cannot be written (no permission to write to {above}); choose another output")
    if status is not None and not stat.S_IMODE(status.st_mode) & 0o222:
        raise InputError(f"{output}: is write-protected; choose another output")


def _check_not_read(output: Path, place: Path, one: Path) -> None:
    """Refuse an output that is an input under whatever name, or in a store that is one, or is taken for a part of one."""
    refusal = f"{output}: is an input; inputs are never written to, choose another output"
    if str(one) == "-":
        if _is_stdin(place):
            raise InputError(refusal)
        return
    given = local_of(one)
    if given is None or not os.path.lexists(given):
        return
    if is_folder(given) and _lies_in_store(place, given):
        raise InputError(f"{output}: lies in the store {given}, which is an input; choose another output")
    if is_folder(given) and _lies_in_history(place, given):
        raise InputError(f"{output}: lies in the history {given}, which only ever grows; choose another output")
    if _is_part_of(place, given):
        raise InputError(refusal)
    for side in _SQLITE_SIDES:
        database = place.with_name(place.name[: -len(side)] or place.name)
        if place.name.casefold().endswith(side) and _is_part_of(database, given):
            raise InputError(f"{output}: would be taken for a part of the input {database}; choose another output")


def _is_part_of(place: Path, given: Path) -> bool:
    """Whether what is at a place is the input, or a recording in the folder that is the input."""
    status, folder = status_of(place), status_of(given)
    if status is None or folder is None:
        return False
    if not stat.S_ISDIR(folder.st_mode):
        return os.path.samestat(status, folder)
    if not stat.S_ISREG(status.st_mode):
        return False
    from traceanalyzer.ingest.bytes.folders import is_recording_in
    from traceanalyzer.ingest.registry import registry

    return is_recording_in(given, place, registry())


def _lies_in_store(place: Path, given: Path) -> bool:
    from traceanalyzer.model.stores.layout import shelf_of
    from traceanalyzer.model.stores.placing import within
    from traceanalyzer.model.stores.store import is_store

    if not is_store(given):
        return False
    folder = resolve_place(given)
    inside = within(place, folder) or within(place, shelf_of(folder))
    return inside or any(_same(path, place) for path in folder.rglob("*"))


def _lies_in_history(place: Path, given: Path) -> bool:
    from traceanalyzer.history.shelf import is_history
    from traceanalyzer.model.stores.placing import within

    return within(place, resolve_place(given)) and is_history(given)


def _same(path: Path, place: Path) -> bool:
    one, other = status_of(path), status_of(place)
    return one is not None and other is not None and os.path.samestat(one, other)


def _is_stdin(place: Path) -> bool:
    status = status_of(place)
    try:
        return status is not None and os.path.samestat(status, os.fstat(sys.stdin.fileno()))
    except (OSError, ValueError, AttributeError):
        return False


def _rule_files(given: Path) -> list[Path]:
    return [path for path in given.rglob("*") if path.suffix in (".yaml", ".yml")] if is_folder(given) else [given]


def _overlap(place: Path, other: Path) -> bool:
    """Whether two places are one, also under names that some disks do not tell apart, or one lies in the other."""
    one, two = _folded(place), _folded(other)
    if one == two or f"{one}{os.sep}".startswith(f"{two}{os.sep}") or f"{two}{os.sep}".startswith(f"{one}{os.sep}"):
        return True
    return _same(place, other)


def _folded(place: Path) -> str:
    return unicodedata.normalize("NFC", os.fsdecode(place)).casefold()
