from __future__ import annotations

import pyarrow as pa
import pytest

from traceanalyzer.derive.ledger.tables import GAPS, LEDGER
from traceanalyzer.engine.language.kinds import TEXT, number
from traceanalyzer.engine.language.message import compile_message
from traceanalyzer.engine.language.names import Names
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.engine.rows import TableRows, Windows

VALUES = {
    "lost": (number("ns"), pa.scalar(300_000_000)),
    "window": (number("ns"), pa.scalar(1_000_000_000)),
    "gaps": (number("count"), pa.scalar(1234)),
    "moved": (number("bytes"), pa.scalar(134_217_728)),
    "rank": (number(None), pa.scalar(12_345)),
    "kernel": (TEXT, pa.scalar("gemm<float>(int, float*)")),
    "cause": (TEXT, pa.scalar("host_work")),
    "story": (TEXT, pa.scalar("word " * 40)),
    "phase": (TEXT, pa.scalar("1. forward")),
    "nobody": (TEXT, pa.scalar(None, pa.string())),
}
NAMES = Names({}, {}, None, {name: kind for name, (kind, _) in VALUES.items()})
ROWS = TableRows(GAPS.empty(), Windows(LEDGER.empty()), {name: value for name, (_, value) in VALUES.items()})


def write(text: str) -> str:
    return compile_message(text, NAMES)(ROWS)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{lost} or {lost:duration}", "300 ms or 300 ms"),
        ("{lost / window} or {lost / window : percent}", "30% or 30%"),
        ("{gaps} gaps, {gaps / 7:count}", "1,234 gaps, 176"),
        ("{moved}", "128 MiB"),
        ("rank {rank}", "rank 12345"),
        ("{kernel}", "gemm<float>"),
        ("{nobody}", "unknown"),
        ('{coalesce(concat(" in ", nobody), "")}.', "."),
        ("a {{brace}} {gaps}", "a {brace} 1,234"),
        ('{if_else(gaps > 1, "{}", ":")}', "{}"),
        ("two\n  lines", "two lines"),
    ],
)
def test_writes(text: str, written: str) -> None:
    assert write(text) == written


def test_long_names_are_cut_but_sentences_are_not() -> None:
    assert write("{story}").endswith("…") and len(write("{story}")) == 80
    assert write("{story:text}") == ("word " * 40).strip()


def test_identifiers_as_words() -> None:
    assert write("{cause:words}") == "host work"


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("lost {lots}", 6, "did you mean 'lost'"),
        ("{lost:percent}", 6, "cannot write a time"),
        ("{lost:parsec}", 6, "is no format"),
        ("{kernel.__class__}", 1, "only params.x, window.x and program.x"),
        ("{kernel!r}", 7, "no expression"),
        ("{0}{lost", 3, "has no partner"),
        ("{}", 1, "no expression"),
    ],
)
def test_errors_point_into_the_message(text: str, column: int, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_message(text, NAMES)
    assert (caught.value.column, says in str(caught.value)) == (column, True), str(caught.value)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("It waits {lost}. Then it goes on.", "It waits 300 ms"),
        ("It waits in {phase}. Then it goes on.", "It waits in 1. forward"),
        ("It waits in {phase}.", "It waits in 1. forward"),
        ('It waits{if_else(gaps > 1, ". It does so often", "")}.', "It waits"),
        ("No stop", "No stop"),
    ],
)
def test_the_first_sentence_ends_where_its_author_ends_it(text: str, first: str) -> None:
    assert compile_message(text, NAMES).first_sentence(ROWS) == first
