"""What is declared of tables: found by folder in this package, and by entry point in others, without importing what computes them.

A folder of `derive`, of `ranks` or of `evidence` says in its `tables` (or `…_tables`) which it makes: `DERIVED`, a sequence of Derived.
A kind of evidence says itself into which tables its files are read and, one from elsewhere, what is derived of them. What an entry
point of the group `traceanalyzer.derived` names is a module with a `DERIVED`, or the sequence itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pkgutil import ModuleInfo, iter_modules
from types import MappingProxyType, ModuleType
from typing import Any

from traceanalyzer.errors import ConfigError
from traceanalyzer.extensions import offers
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.kinds import EVIDENCE, kinds_of
from traceanalyzer.model.needs import EVENT_NEEDS
from traceanalyzer.model.schema import EVENT_TABLES, TableSpec

GROUP = "traceanalyzer.derived"
GIVEN = (
    "inputs",
    "input_patterns",
    "communication_patterns",
    "portions",
    "recorded_ops",
    "recorded_health",
    "placed_evidence",
)
"""What a catalog has of itself for a declaration's inputs: values, and the event tables that derived ones take the name of."""
_DERIVE = "traceanalyzer.derive"
_ROOMS = (_DERIVE, "traceanalyzer.ranks", "traceanalyzer.evidence")
_RENAMED = ("gpu_ops", "health")
"""Event tables that are read as derived: with what is known only when all of them are there."""

_late: dict[str, Derived] = {}


def declared() -> Mapping[str, Derived]:
    """Every declaration by name: those of this package by folder, those of others by the name of their entry point, then late ones.

    Raises ConfigError for two of one name, inputs that nobody declares, circles, and an entry point that gives no declarations.
    """
    return MappingProxyType({**_found(), **_late}) if _late else _found()


def declare(*more: Derived) -> None:
    """Add declarations to those that are found, for what runs from now on in this process. Raises ConfigError as `declared`."""
    known = dict(declared())
    for one in more:
        _add(known, one, "this process")
    _check(known)
    _late.update({one.name: one for one in more})
    rule_tables.cache_clear()
    needs.cache_clear()


@cache
def event_tables() -> Mapping[str, TableSpec]:
    """What files are read into: the tables of traces, then those of each kind of evidence."""
    evidence = (spec for kind in kinds_of(EVIDENCE) for spec in kind.tables)
    return MappingProxyType(EVENT_TABLES | {spec.name: spec for spec in evidence})


@cache
def function_of(path: str) -> Callable[..., Any]:
    """What "module:function" of a declaration names. Raises ConfigError where there is no such thing."""
    module, _, name = path.partition(":")
    try:
        function: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"a declaration of a table names {path}, which cannot be had: {error}") from error
    return function


def load_functions() -> None:
    """Import what makes the tables of one rank's trace, for who has time before there is one."""
    for one in declared().values():
        if one.made_by.startswith(f"{_DERIVE}."):
            function_of(one.made_by)


@cache
def rule_tables() -> Mapping[str, TableSpec]:
    """The tables that rules may read: event tables, then derived ones."""
    derived = {one.name: one.spec for one in declared().values() if one.spec and not one.internal}
    return MappingProxyType({**event_tables(), **derived})


@cache
def needs() -> Mapping[str, Needs]:
    """What tables need to say something about the program, by table."""
    return MappingProxyType(EVENT_NEEDS | {one.name: one.needs for one in declared().values() if one.needs})


@cache
def _found() -> Mapping[str, Derived]:
    known: dict[str, Derived] = {}
    for one in _own():
        _add(known, one, "this package", own=True)
    for kind in kinds_of(EVIDENCE):
        for one in kind.derived:
            if known.get(one.name) != one:
                _add(known, one, f"the kind of evidence '{kind.name}'")
    for name, more in _strangers():
        for one in more:
            _add(known, one, name)
    _check(known)
    return MappingProxyType(known)


def _own() -> Iterator[Derived]:
    for room in _ROOMS:
        for module in _modules(room):
            yield from getattr(module, "DERIVED", ())


def _modules(room: str) -> Iterator[ModuleType]:
    """The modules of a room that declare tables, by family and name."""
    for family in _within(import_module(room)):
        if family.ispkg:
            package = import_module(f"{room}.{family.name}")
            for one in _within(package):
                if one.name == "tables" or one.name.endswith("_tables"):
                    yield import_module(f"{package.__name__}.{one.name}")


def _within(package: ModuleType) -> list[ModuleInfo]:
    return sorted(iter_modules(package.__path__), key=lambda one: one.name)


def _strangers() -> Iterator[tuple[str, Iterable[Derived]]]:
    """What other packages declare, and what to call whose it is."""
    for offer in offers(GROUP):
        who = f"entry point '{offer.name}' ({offer.entry.value})"
        try:
            found: Any = offer.entry.load()
        except Exception as error:  # Whatever the code of a stranger raises.
            raise ConfigError(f"{who} of {GROUP} cannot be loaded: {error!r}") from error
        found = getattr(found, "DERIVED", found)
        found = tuple(found) if isinstance(found, Iterable) else (found,)
        if not all(isinstance(one, Derived) for one in found):
            raise ConfigError(f"{who} of {GROUP} is neither a sequence of Derived nor a module with one named DERIVED")
        yield who, found


def _add(known: dict[str, Derived], one: Derived, who: str, own: bool = False) -> None:
    if one.name in known or one.name in GIVEN or (one.name in event_tables() and not (own and one.name in _RENAMED)):
        raise ConfigError(f"{who} declares a table '{one.name}', and there is one of that name already")
    module, _, function = one.made_by.partition(":")
    if not (module and function):
        raise ConfigError(f"the table '{one.name}' of {who} is made by '{one.made_by}', which is not module:function")
    known[one.name] = one


def _behind(one: Derived, known: Mapping[str, Derived]) -> set[str]:
    """All that it is made from: its inputs, and what those are made from."""
    found: set[str] = set()
    waiting = [*one.inputs]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += known[name].inputs if name in known else ()
    return found


def _check(known: Mapping[str, Derived]) -> None:
    """That everything is made from what there is, and nothing from itself."""
    for one in known.values():
        for name in (*one.inputs, *((one.needs.table,) if one.needs else ())):
            if name not in known and name not in event_tables() and name not in GIVEN:
                raise ConfigError(f"the table '{one.name}' is made from '{name}', which nobody declares")
        if one.empty_without is not None and (one.spec is None or one.empty_without not in _behind(one, known)):
            raise ConfigError(
                f"'{one.name}' cannot be empty without '{one.empty_without}': a table can, without something that it is made from"
            )
    try:
        TopologicalSorter({one.name: one.inputs for one in known.values()}).prepare()
    except CycleError as error:
        raise ConfigError(f"tables are made from each other in a circle: {' from '.join(error.args[1])}") from None
