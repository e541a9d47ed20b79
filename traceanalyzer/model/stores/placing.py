"""Where a store may be written: in a place that is resolved once, where nothing else is, and apart from all inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from traceanalyzer.errors import InputError
from traceanalyzer.files import is_folder, resolve_place, status_of
from traceanalyzer.model.stores.layout import (
    MANIFEST,
    PARTS,
    file_of,
    files_in,
    foreign,
    foreign_on_shelf,
    is_key,
    is_rank,
    shelf_of,
)
from traceanalyzer.model.stores.store import is_own_manifest, is_store, read_statement, stated_tables
from traceanalyzer.model.table_specs import table_specs
from traceanalyzer.urls import Place, RemoteFolder, local_of, shown_place, url_of, without_credentials

_NAMED = 3


def check_place(place: Place, inputs: Sequence[Place] = ()) -> Place:
    """The place of a store that can be written without harm to anything that is there: a resolved path, or a URL. Raises InputError."""
    local = local_of(place)
    if local is None:
        url = url_of(place) or ""
        _check_url(url, inputs)
        return url
    return _check_folder(local, [given for one in inputs if (given := local_of(one)) is not None])


def _check_folder(given: Path, inputs: Sequence[Path]) -> Path:
    if str(given) == "-":
        raise InputError("-: a store is a folder and cannot be written to standard output; name a folder")
    folder = resolve_place(given)
    above = next((p for p in folder.parents if os.path.lexists(p)), None)
    if above is not None and not above.is_dir():
        raise InputError(f"{given}: cannot be written ({above} is not a folder); choose another name")
    if above is not None and not os.access(above, os.W_OK):
        raise InputError(f"{given}: cannot be written (no permission to write to {above}); choose another name")
    for one in inputs:
        _check_apart(given, folder, one)
    check_replaceable(given, folder)
    return folder


def _check_apart(given: Path, folder: Path, one: Path) -> None:
    """A store is not an input, holds none, and lies in no other store that is one. In a folder of traces it is passed over."""
    if not os.path.lexists(one):
        return
    place = resolve_place(one)
    if within(place, folder):
        what = "is an input" if within(folder, place) else f"holds the input {one}"
    elif is_folder(place) and within(folder, place) and is_store(place):
        what = f"lies in the input {one}"
    else:
        return
    raise InputError(f"{given}: {what}; inputs are never written to, choose another name")


def within(place: Path, folder: Path) -> bool:
    """Whether a resolved place is a folder or file or lies in it, also under another name: of another case, or by a hard link."""
    if folder in (place, *place.parents):
        return True
    status = status_of(folder)
    above = (status_of(one) for one in (place, *place.parents))
    return status is not None and any(os.path.samestat(one, status) for one in above if one is not None)


def check_replaceable(given: Place, folder: Path) -> None:
    """Raises InputError unless a folder is absent, empty, or a store that holds nothing else, and so is its shelf."""
    shelf = shelf_of(folder)
    try:
        if os.path.lexists(shelf):
            if shelf.is_symlink() or not shelf.is_dir():
                raise InputError(f"{given}: needs the folder {shelf}, but something else is there; choose another name")
            if others := foreign_on_shelf(shelf):
                raise InputError(
                    f"{given}: needs the folder {shelf}, but {_named(others)} is in it; choose another name"
                )
        if not os.path.lexists(folder):
            return
        if not folder.is_dir() or folder.is_symlink() or (any(folder.iterdir()) and not is_store(folder)):
            raise InputError(f"{given}: is there already and is not a store; choose another name")
        others = _others(folder)
    except OSError as error:
        raise InputError(f"{given}: cannot be written ({error.strerror or error}); choose another name") from error
    if others:
        raise InputError(f"{given}: a store that also holds {_named(others)}, which would be lost; choose another name")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{given}: cannot be written (no permission to write to it); choose another name")


def _others(folder: Path) -> list[str]:
    """What in a store is not of it, as far as that can be told."""
    if others := foreign(folder):
        return others
    try:
        manifest = read_statement(folder)
    except InputError:  # damaged, or of another version
        if is_own_manifest(folder):
            tables = {*stated_tables(folder), *table_specs()}
            return [file for file in files_in(folder) if file.partition("/")[0] not in tables]
        return [file for file in files_in(folder) if not _is_table(folder / file)]
    parts = zip(manifest.inputs, manifest.parts, strict=True)
    return foreign(folder, {file_of(name, given.ordinal) for given, part in parts for name in part.tables})


def _is_table(file: Path) -> bool:
    """Whether it is a Parquet file that has the columns of the table after which its folder is called."""
    import pyarrow.parquet as pq

    spec = table_specs().get(file.parent.parent.name)
    try:
        columns: list[str] = pq.read_schema(file).names
        return spec is not None and columns == [name for name in spec.schema.names if name != "rank"]
    except (OSError, ValueError, pa.ArrowException):
        return False


def _check_url(url: str, inputs: Sequence[Place]) -> None:
    if {".", ".."} & set(url.partition("://")[2].split("/")):
        raise InputError(f"{shown_place(url)}: a URL with . or .. in it; name the place itself")
    folder = RemoteFolder(url)
    for given in inputs:
        other = url_of(given)
        if other is None or local_of(given) is not None:
            continue
        if folder.holds(other) or (RemoteFolder(other).holds(url) and is_store(other)):
            raise InputError(
                f"{shown_place(url)}: is the input {shown_place(other)}, holds it or lies in it; inputs are never written to, "
                "choose another name"
            )
    try:
        names = folder.names()
        tables = {*table_specs(), *(stated_tables(url) if MANIFEST in names else ())}
        others = [name for name in names if name not in (MANIFEST, PARTS) and name not in tables]
        others += [f"{PARTS}/{name}" for name in folder.within(PARTS).names() if not is_key(name)]
        for table in tables & set(names):
            others += [f"{table}/{name}" for name in folder.within(table).names() if not is_rank(name)]
    except OSError as error:
        raise InputError(
            f"{shown_place(url)}: cannot be written ({without_credentials(str(error))}); choose another place"
        ) from error
    if names and PARTS not in names and not is_store(url):
        raise InputError(f"{shown_place(url)}: is there already and is not a store; choose another name")
    if others:
        raise InputError(
            f"{shown_place(url)}: a store that also holds {_named(sorted(others))}, which would be lost; choose another name"
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
