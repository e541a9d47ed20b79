"""`dataclass` as the standard library has it, in a third of the time: hundreds of records are declared before a command does anything.

The library writes the source of six methods for each, and compiles them one by one. Here only `__init__` is compiled.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass

    Method = Callable[..., Any]
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, eq: bool = True, kw_only: bool = False, **more: Any
    ) -> Any:
        """One that builds on another, or asks for more than most, is left to the library."""

        def declared(cls: type) -> type:
            if more or any(map(dataclasses.is_dataclass, cls.__mro__[1:])):
                return dataclasses.dataclass(cls, frozen=frozen, eq=eq, kw_only=kw_only, **more)
            return _declared(cls, frozen, eq, kw_only)

        return declared if cls is None else declared(cls)


class _NotGiven:
    """In the place of a default that is made anew for each record."""

    def __repr__(self) -> str:
        return "<factory>"


_NOT_GIVEN = _NotGiven()


def _declared(cls: Any, frozen: bool, eq: bool, kw_only: bool) -> Any:
    own = set(cls.__dict__)
    dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=kw_only)
    fields = dataclasses.fields(cls)
    methods: dict[str, Method | None] = {
        "__init__": _init(cls, fields, frozen),
        "__repr__": _repr([one.name for one in fields if one.repr]),
    }
    if eq:
        methods["__eq__"] = _eq(_values([one.name for one in fields if one.compare]))
        hashed = [one.name for one in fields if (one.compare if one.hash is None else one.hash)]
        methods["__hash__"] = _hash(_values(hashed)) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refused(cls, frozenset(one.name for one in fields))
    for name, method in methods.items():
        if name not in own:
            if method is not None:
                method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
    told = cls.__dataclass_params__
    told.init, told.repr, told.eq, told.frozen = True, True, eq, frozen
    return cls


def _init(cls: Any, fields: Sequence[Field[Any]], frozen: bool) -> Method:
    names: dict[str, Any] = {"_set": object.__setattr__, "_not_given": _NOT_GIVEN}
    lines: list[str] = []
    given: dict[bool, list[str]] = {False: [], True: ["*"]}
    for one in fields:
        name, value, default = one.name, one.name, ""
        if one.default_factory is not MISSING:
            names[f"_of_{name}"], default = one.default_factory, "=_not_given"
            value = f"_of_{name}() if {name} is _not_given else {name}" if one.init else f"_of_{name}()"
        elif one.default is not MISSING:
            names[f"_of_{name}"], default = one.default, f"=_of_{name}"
        if one.init:
            given[bool(one.kw_only)].append(name + default)
        elif not value.startswith("_of_"):
            continue
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = ["self", *given[False], *(given[True] if len(given[True]) > 1 else ())]
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines or ["pass"]), names)
    made: Method = names["__init__"]
    made.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return made


def _repr(names: Sequence[str]) -> Method:
    @recursive_repr()
    def shown(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown


def _values(names: Sequence[str]) -> Method:
    """What gives the values of these fields, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _eq(values: Method) -> Method:
    def equal(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Method) -> Method:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _refused(cls: Any, names: frozenset[str]) -> tuple[Method, Method]:
    """What sets and deletes attributes of what is frozen."""

    def set_(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return set_, delete
