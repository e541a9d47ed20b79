"""Advice is parted into words and code as its author marked it, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.render.md import marked
from traceanalyzer.report.sections.advice import advice
from traceanalyzer.result.advice import pieces, plain

SHIPPED = [text for rule in load_rules(()) for entry in rule.recommend for key, text in entry.items() if key != "when"]


@given(st.text(st.sampled_from("ab_.(`= `:"), max_size=60) | st.text(max_size=40))
def test_nothing_but_the_marks_is_lost(text: str) -> None:
    unclosed = text.count("`") % 2
    assert plain(text).replace("`", "") == text.replace("`", "")
    assert plain(text).count("`") == unclosed
    assert "".join(part.text for part in advice(text).parts) == plain(text)
    assert all("`" not in piece.text for piece in pieces(text) if piece.code)


def test_the_shipped_rules_mark_code() -> None:
    assert all(text.count("`") % 2 == 0 and "``" not in text for text in SHIPPED)
    assert sum("`" in text for text in SHIPPED) > 300


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Load the next batch while the GPU works (see above), e.g. in a thread.", []),
        ("No form makes code: f(x), a.b = 1, --option.", []),
        ("pin once: `buf = torch.empty(n)`, then go on", ["buf = torch.empty(n)"]),
        ("`a` and `b.c()`.", ["a", "b.c()"]),
        ("`a` is code, and this ` is a sign", ["a"]),
    ],
)
def test_code_stands_between_backticks(text: str, code: list[str]) -> None:
    assert [part.text for part in advice(text).parts if part.code] == code


def test_code_at_the_end_of_a_sentence_stands_on_its_own() -> None:
    found = advice("Load in parallel: `DataLoader(data, num_workers=8, pin_memory=True)`. Or not: `f(x)`.")
    assert [part.block for part in found.parts if part.code] == [True, False]
    assert found.code == "DataLoader(data, num_workers=8, pin_memory=True)\nf(x)"
    within = advice("Set `torch.backends.cudnn.benchmark = False` for it.")
    assert [part.block for part in within.parts if part.code] == [False]


def test_names_alone_are_not_worth_copying() -> None:
    assert advice("Use `pin_memory` and `cudaHostAlloc`, not `backward()`.").code == ""


def test_markdown_keeps_code_and_the_spaces_around_it() -> None:
    assert marked("Set `a_b = 1` or `c`, not *d*.") == ("Set <code>a_b = 1</code> or <code>c</code>, not &#42;d&#42;.")
