"""What may be added from outside: modules of a folder of ours that declare something, and entry points of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any

from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass

FORMATS, EVIDENCE = "traceanalyzer.formats", "traceanalyzer.evidence"
KINDS = {FORMATS: "traceanalyzer.ingest.formats", EVIDENCE: "traceanalyzer.evidence"}
"""The folder of the kinds of files of each group of entry points."""


@dataclass(frozen=True)
class Offer:
    """An entry point of another package, not loaded yet: its name, and the package that offers it."""

    name: str
    package: str
    entry: EntryPoint

    def load(self) -> Any:
        """What it names. Raises InputError, which says whose it is, when that cannot be imported."""
        try:
            return self.entry.load()
        except Exception as error:  # whatever a stranger's module does
            why = f"{type(error).__name__}: {error}"
            raise InputError(
                f"{self.entry.group}: '{self.name}' of {self.package} cannot be loaded ({why}); update or uninstall {self.package}"
            ) from error


def modules_in(package: str) -> list[str]:
    """The full names of the modules and packages in a folder of ours, in alphabetical order. None is imported but the folder itself."""
    folder = import_module(package)
    return sorted(f"{package}.{module.name}" for module in iter_modules(folder.__path__))


def declared_in(package: str, attribute: str) -> Iterator[Any]:
    """What the modules in a folder of ours declare under that name; those that do not are passed over."""
    for name in modules_in(package):
        found = getattr(import_module(name), attribute, None)
        if found is not None:
            yield found


@cache
def kinds(group: str) -> tuple[tuple[str, Any], ...]:
    """(whose it is, object) of each kind of files of a group: of each folder of ours that has a `KIND`, then of each entry point."""
    own = [("this package", kind) for kind in declared_in(KINDS[group], "KIND")]
    return (*own, *((f"'{offer.name}' of {offer.package}", offer.load()) for offer in offers(group)))


def kind_names(group: str) -> list[str]:
    """What the kinds of files of a group are called: by their folders, and by the entry points of others. None is imported."""
    own = [module.name for module in iter_modules(import_module(KINDS[group]).__path__) if module.ispkg]
    return sorted({*own, *(offer.name for offer in offers(group))})


def offers(group: str) -> list[Offer]:
    """What other packages offer in a group, ordered by name and package. Nothing of theirs is imported."""
    found = [
        Offer(one.name, one.dist.name if one.dist else "a package", one) for one in _entry_points().select(group=group)
    ]
    return sorted(found, key=lambda one: (one.name, one.package))


@cache
def _entry_points() -> Any:
    """Those of all packages, which are looked through once; of what type depends on the release of Python."""
    return entry_points()
