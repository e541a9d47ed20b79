"""Advice is parted into words and code, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.report.sections.advice import advice


def coded(text: str) -> list[str]:
    return [part.text for part in advice(text).parts if part.code]


@given(st.text(st.sampled_from('ab_.(){}[]=",:; -nsys'), max_size=60) | st.text(max_size=40))
def test_nothing_is_lost(text: str) -> None:
    assert "".join(part.text for part in advice(text).parts) == text


def test_nothing_of_the_shipped_advice_is_lost() -> None:
    texts = [
        text for rule in load_rules(()) for entry in rule.recommend for key, text in entry.items() if key != "when"
    ]
    assert texts and all("".join(part.text for part in advice(text).parts) == text for text in texts)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Load the next batch while the GPU works (see above), e.g. in a thread.", []),
        ("See https://pytorch.org/memory_viz and N/A.", []),
        ("Let nsys end by itself", []),
        ("pin once: buf = torch.empty(n, pin_memory=True), then go on", ["buf = torch.empty(n, pin_memory=True)"]),
        ("no .item(), float(loss) or loss.cpu() here", [".item()", "float(loss)", "loss.cpu()"]),
        ("Wrap it: with torch.no_grad(): y = f(x); g(y)", ["with torch.no_grad(): y = f(x); g(y)"]),
        ("See NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH.", ["NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH"]),
        ("record: nsys profile --trace=cuda,nvtx python train.py", ["nsys profile --trace=cuda,nvtx python train.py"]),
        ("Set torch.backends.cudnn.benchmark = False for it", ["torch.backends.cudnn.benchmark = False"]),
        ('say f("a) b", (1, [2])) twice', ['f("a) b", (1, [2]))']),
    ],
)
def test_code_is_told_by_its_form(text: str, code: list[str]) -> None:
    assert coded(text) == code


def test_code_at_the_end_of_a_sentence_stands_on_its_own() -> None:
    found = advice("Load in parallel: DataLoader(data, num_workers=8, pin_memory=True). Or not: f(x).")
    assert [part.block for part in found.parts if part.code] == [True, False]
    assert found.code == "DataLoader(data, num_workers=8, pin_memory=True)\nf(x)"


def test_names_alone_are_not_worth_copying() -> None:
    assert advice("Use pin_memory and cudaHostAlloc, not backward().").code == ""
