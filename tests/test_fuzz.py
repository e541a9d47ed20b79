"""Flipped, cut and doubled bytes of real traces end in a result or in one line for the user, and in nothing else."""

from __future__ import annotations

import gzip
import random

import pytest

import traceanalyzer as ta
from tests.support.places import FIXTURES
from traceanalyzer.errors import TraceAnalyzerError

KINETO = gzip.decompress((FIXTURES / "kineto/small_grid.slow.pt.trace.json.gz").read_bytes())
NSYS = (FIXTURES / "nsys/h2d_pageable.slow.sqlite").read_bytes()


def damaged(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.randint(1, 12)):
        at, length = chance.randrange(len(broken)), chance.randint(1, 200)
        match chance.choice(("flip", "flip", "delete", "double", "cut")):
            case "flip":
                broken[at] = chance.randrange(256)
            case "delete":
                del broken[at : at + length]
            case "double":
                broken[at:at] = broken[at : at + length]
            case "cut" if chance.random() < 0.3:
                del broken[at + 1 :]
    return bytes(broken)


# A database whose pages moved is refused; a trace whose events moved is not.
@pytest.mark.parametrize(
    ("name", "data", "cases", "least"), [("t.json", KINETO, 80, 60), ("t.sqlite", NSYS, 40, 1)], ids=["kineto", "nsys"]
)
def test_damage(tmp_path, name, data, cases, least):
    judged = 0
    for seed in range(cases):
        (tmp_path / name).write_bytes(damaged(data, random.Random(seed)))
        try:
            result = ta.analyze(ta.load(tmp_path / name))
        except TraceAnalyzerError as error:
            assert name in str(error)
        else:
            judged += 1
            assert [rule for rule in result.rules if rule.outcome == "error"] == [], f"seed {seed}"
    assert judged >= least
