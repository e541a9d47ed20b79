"""`dataclass` as the standard library has it, at a quarter of what it takes to make one.

That one writes up to six functions for each class and compiles them: for some hundred classes, a tenth of a second of every start.
Here it is `__init__` alone; the others are the same few functions for all classes.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, kw_only=False):
        """As `dataclasses.dataclass`. A field of a frozen one is set once."""
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq, kw_only=kw_only)
        return _made(cls, frozen, eq, kw_only)


def _made(cls: type, frozen: bool, eq: bool, kw_only: bool) -> type:
    if not cls.__doc__:
        cls.__doc__ = f"{cls.__name__}(...)"  # or its whole signature is looked for, to stand there
    own: dict[str, Any] = {"__repr__": _repr}
    if eq:
        own |= {"__eq__": _equal, "__hash__": _hash if frozen else None}
    if frozen:
        own |= {"__setattr__": _set_once, "__delattr__": _delete}
    dataclasses.dataclass(cls, repr=False, eq=False, kw_only=kw_only)
    for name, function in own.items():
        if name not in cls.__dict__:
            setattr(cls, name, function)
    return cls


def _values(one: Any) -> tuple[Any, ...]:
    """What two that are equal have the same."""
    return tuple([getattr(one, name) for name, field in one.__dataclass_fields__.items() if field.compare])


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _set_once(self: Any, name: str, value: object) -> None:
    if name in self.__dict__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field '{name}'")
    self.__dict__[name] = value


def _delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field '{name}'")
