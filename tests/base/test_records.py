"""Our `dataclass` is that of the standard library in all that the program does with one."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property
from typing import Any

import pytest

from traceanalyzer import records


def _classes(dataclass: Any) -> tuple[Any, Any, Any]:
    @dataclass(frozen=True)
    class Base:
        number: int
        names: tuple[str, ...] = ()
        where: dict[str, int] = field(default_factory=dict, compare=False)
        long: str = field(default="long", repr=False)

        @cached_property
        def twice(self) -> int:
            return 2 * self.number

    @dataclass(frozen=True, kw_only=True)
    class More(Base):
        """One field more."""

        more: float = 0.5

    @dataclass
    class Loose:
        number: int
        rest: list[int] = field(default_factory=list)

    return Base, More, Loose


Base, More, Loose = _classes(records.dataclass)
for made in (Base, More, Loose):
    made.__qualname__ = made.__name__  # as pickle finds them


def test_says_and_holds_what_the_standard_one_does() -> None:
    for ours, theirs in zip(_classes(records.dataclass), _classes(dataclasses.dataclass), strict=True):
        assert [one.name for one in fields(ours)] == [one.name for one in fields(theirs)]
        assert ours.__match_args__ == theirs.__match_args__
        assert repr(ours(3)) == repr(theirs(3)).replace(theirs.__qualname__, ours.__qualname__)
        assert asdict(ours(3)) == asdict(theirs(3))
        assert ours(3) == replace(ours(4), number=3) != theirs(3)


def test_is_equal_by_what_is_compared() -> None:
    assert Base(1, where={"a": 1}) == Base(1) != Base(2)
    assert hash(Base(1, where={"a": 1})) == hash(Base(1))
    assert {Base(1), Base(1)} == {Base(1)}
    assert Base(1) != More(1)
    with pytest.raises(TypeError):
        hash(Loose(1))


def test_a_frozen_one_stays_as_it_is() -> None:
    one = Base(1)
    with pytest.raises(FrozenInstanceError):
        one.number = 2
    with pytest.raises(FrozenInstanceError):
        del one.number
    assert one.twice == 2
    loose = Loose(1)
    loose.number = 2
    assert loose == Loose(2)


def test_travels() -> None:
    for one in (Base(1, ("a",)), More(2, more=1.5), Loose(3, [4])):
        assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
