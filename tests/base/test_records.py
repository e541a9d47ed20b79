"""Records are what the standard library's dataclasses are."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any

import msgspec
import pytest

from traceanalyzer import records

Declare = Callable[..., Any]
THEIRS, OURS = dataclasses.dataclass, records.dataclass


def plain(declare: Declare) -> Any:
    @declare
    class Record:
        """Text."""

        a: int
        b: list[int] = field(default_factory=list)
        c: str = "c"

    return Record


def frozen(declare: Declare) -> Any:
    @declare(frozen=True)
    class Record:
        """Text."""

        a: int
        b: tuple[int, ...] = ()
        c: Any = field(default=None, compare=False, repr=False)

    return Record


def named(declare: Declare) -> Any:
    @declare(frozen=True, kw_only=True)
    class Record:
        """Text."""

        a: int = 1
        b: str = field(default="b", kw_only=False)

    return Record


def own(declare: Declare) -> Any:
    @declare(frozen=True)
    class Record:
        """Text."""

        a: int
        b: dict[str, int] = field(default_factory=dict, init=False)
        c: int = field(default=3, init=False)

        def __post_init__(self) -> None:
            self.b["a"] = self.a

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    return Record


def unlike(declare: Declare) -> Any:
    @declare(frozen=True, eq=False)
    class Record:
        """Text."""

        a: int
        b: Any = None

    return Record


def derived(declare: Declare) -> Any:
    @declare(frozen=True)
    class Base:
        """Text."""

        a: int

    @declare(frozen=True)
    class Record(Base):
        """Text."""

        b: str = "b"

    return Record


def empty(declare: Declare) -> Any:
    @declare(frozen=True)
    class Record:
        """Text."""

    return Record


KINDS = (plain, frozen, named, own, unlike, derived, empty)
ARGUMENTS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((1, (2,)), {}),
    ((), {"a": 1}),
    ((1,), {"b": "text"}),
    (("b",), {"a": 2}),
    ((1, 2, 3, 4), {}),
    ((), {"nothing": 1}),
)


def told(work: Callable[[], Any]) -> Any:
    """What comes of it, an error as its words."""
    try:
        return work()
    except (TypeError, FrozenInstanceError, AttributeError) as error:
        return type(error), str(error).replace(OURS.__module__, THEIRS.__module__)


def everything(kind: Callable[[Declare], Any], declare: Declare) -> list[Any]:
    """All that can be told of a record by using it."""
    record = kind(declare)
    found: list[Any] = [str(inspect.signature(record)), record.__match_args__, record.__init__.__annotations__]
    found += [[(one.name, one.type, one.init, one.repr, one.compare) for one in dataclasses.fields(record)]]
    made = [(told(lambda: record(*given, **names))) for given, names in ARGUMENTS]  # noqa: B023
    for one in made:
        if isinstance(one, tuple):
            found.append(one)
            continue
        values = dataclasses.asdict(one)
        is_equal = [one == other for other in made]
        hashed = told(lambda: hash(one))  # noqa: B023
        found += [repr(one), values, is_equal, hashed if "unlike" not in repr(kind) else None, msgspec.json.encode(one)]
        found.append(vars(copy.copy(one)))
        found.append(told(lambda: repr(dataclasses.replace(one, a=9))))  # noqa: B023
        twin = copy.copy(one)
        found.append(told(lambda: setattr(twin, "a", 5)))  # noqa: B023
        found.append(told(lambda: setattr(twin, "other", 5)))  # noqa: B023
        found.append(told(lambda: delattr(twin, "a")))  # noqa: B023
        found.append(vars(twin))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_what_the_library_makes_of_it(kind: Callable[[Declare], Any]) -> None:
    assert everything(kind, OURS) == everything(kind, THEIRS)


def test_a_class_of_the_library_may_build_on_a_record() -> None:
    @THEIRS(frozen=True)
    class More(Pickled):
        """Text."""

        b: int = 2

    assert repr(More(1)).endswith("More(a=1, b=2)")
    with pytest.raises(FrozenInstanceError):
        setattr(More(1), "a", 2)  # noqa: B010


@OURS(frozen=True)
class Pickled:
    """Text."""

    a: int


def test_records_travel_between_processes_and_stand_in_sets() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1))) == Pickled(1)
    assert {Pickled(1), Pickled(1), Pickled(2)} == {Pickled(2), Pickled(1)}


def test_a_subclass_of_a_record_may_have_attributes_of_its_own() -> None:
    class Free(Pickled):
        pass

    free = Free(1)
    setattr(free, "b", 2)  # noqa: B010
    assert vars(free) == {"a": 1, "b": 2}
    with pytest.raises(FrozenInstanceError):
        setattr(free, "a", 2)  # noqa: B010
