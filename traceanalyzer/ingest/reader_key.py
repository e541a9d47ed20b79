"""What the tables of a part depend on besides its input: the readers, all they are made of, and the libraries that decode for them.

What is imported is told from the text of the modules, without running any: so this is the same in every process, whatever it has
imported, and takes a few dozen milliseconds once.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path

from traceanalyzer.model.schema import SCHEMA_VERSION
from traceanalyzer.model.stores.parts import digest, key_of

PACKAGE = "traceanalyzer"
READERS = ("ingest", "evidence")
"""Rooms of the package all of which may take part in reading: formats and kinds of evidence are found by folder."""
LIBRARIES = ("adbc-driver-manager", "adbc-driver-sqlite", "msgspec", "numpy", "pyarrow")
PLUGINS = (f"{PACKAGE}.formats", f"{PACKAGE}.evidence")
"""Groups of entry points by which other packages add readers."""
# With the end of the line above: what begins with a byte is sought thrice as fast as what begins a line.
_IMPORT = re.compile(
    rb"\n[ \t]*(?:from[ \t]+(traceanalyzer[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+(traceanalyzer[\w.]*))"
)
_NAME = re.compile(rb"\w+")


@cache
def reader_key(tool_version: str) -> str:
    """A name for what reads: the program's version, and what it is made of, which may change without one. Raises OSError."""
    own = Path(__file__).parent.parent
    files = [(name, hashlib.sha256(text).hexdigest()) for name, text in sorted(modules_of_readers(own).items())]
    return key_of(tool_version, SCHEMA_VERSION, files, _plugins(), {name: _version(name) for name in LIBRARIES})


def modules_of_readers(package: Path) -> dict[str, bytes]:
    """The modules of the package in that folder that reading may run, and their texts: the READERS and all that they import of it."""
    files = _modules(package)
    rooms = tuple(f"{PACKAGE}.{room}" for room in READERS)
    waiting = [name for name in files if name.startswith(rooms)]
    found: dict[str, bytes] = {}
    while waiting:
        name = waiting.pop()
        # The package itself names what users may import, and imports none of it.
        if name in files and name not in found and name != PACKAGE:
            with open(f"{package}/{files[name]}", "rb", buffering=0) as stream:  # noqa: PTH123  hundreds of paths take their time
                found[name] = stream.read()
            waiting.append(name.rpartition(".")[0])
            waiting += _imported(found[name])
    return {files[name]: text for name, text in found.items()}


def _modules(package: Path) -> dict[str, str]:
    """The file of every module of the package, seen from its folder, by name."""
    found = {}
    for folder, _, names in os.walk(package):
        inside = folder[len(str(package)) + 1 :]
        for name in names:
            stem, _, suffix = name.rpartition(".")
            if suffix == "py":
                parts = [PACKAGE, *filter(None, inside.split(os.sep))]  # noqa: PTH206  as below
                found[".".join(parts if stem == "__init__" else [*parts, stem])] = os.path.join(inside, name)  # noqa: PTH118
    return found


def _imported(text: bytes) -> Iterator[str]:
    """The names of modules that a module imports, wherever in it, among others that are none."""
    for whole, names, plain in _IMPORT.findall(b"\n" + text):
        name = (whole or plain).decode()
        yield name
        yield from (f"{name}.{one.decode()}" for one in _NAME.findall(names))


def _plugins() -> list[tuple[str, str, str]]:
    """The files of other packages that add readers, each with its digest."""
    points = entry_points()
    tops = {point.module.partition(".")[0] for group in PLUGINS for point in points.select(group=group)} - {PACKAGE}
    return [(top, str(path.relative_to(folder)), digest(path)) for top in sorted(tops) for folder, path in _files(top)]


def _files(top: str) -> Iterator[tuple[Path, Path]]:
    spec = find_spec(top)
    folders: Collection[str] = (spec.submodule_search_locations or ()) if spec else ()
    for folder in map(Path, folders):
        yield from ((folder, path) for path in sorted(folder.rglob("*.py")))
    if spec and spec.origin and not folders:
        yield Path(spec.origin).parent, Path(spec.origin)


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
