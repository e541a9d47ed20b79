"""The targets of `make fuzz` on their seeds, and on all that fuzzing ever found."""

from __future__ import annotations

import random

import pytest

from fuzz import seeds
from fuzz.__main__ import TARGETS as NAMES
from fuzz.targets import TARGETS, check

INPUTS = [(target, name) for target, found in TARGETS.items() for name in found.seeds() | seeds.found(target)]


def data_of(target: str, name: str) -> bytes:
    return (TARGETS[target].seeds() | seeds.found(target))[name]


def test_every_target_can_be_named():
    assert tuple(TARGETS) == NAMES


@pytest.mark.parametrize(("target", "name"), INPUTS)
def test_a_seed(target, name):
    check(target, data_of(target, name))


@pytest.mark.parametrize(("target", "name"), INPUTS)
def test_a_damaged_seed(target, name):
    data = bytearray(data_of(target, name))
    chance = random.Random(name)
    for _ in range(3):
        data[chance.randrange(len(data) or 1) : chance.randrange(len(data) or 1)] = chance.choice(
            (b"\0", b"{", b"-1", b'"', b"")
        )
        check(target, bytes(data[: 1 << 16]))


@pytest.mark.xfail(
    strict=True, reason="what is lost of this damaged text depends on the size of the chunks it is read in"
)
def test_what_is_open():
    check("mender", (seeds.FOUND.parent / "open" / "mender-size-of-chunks").read_bytes())
