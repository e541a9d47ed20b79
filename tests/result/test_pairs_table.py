"""docs/compare.md: what comparing the pairs of the corpus gives, against what the programs took without a profiler.

Renew the table with `python -m tests.result.test_pairs_table`.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.pairs import SAME, SLOWER, captured_of, corpus_pair, corpus_pairs, truth
from tests.support.places import needs_corpus
from traceanalyzer.result.comparing import compare
from traceanalyzer.result.comparing.comparison import Comparison

PAGE = Path(__file__).parents[2] / "docs" / "compare.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"


def row(kind: str, name: str) -> str:
    slow, fixed = map(captured_of, corpus_pair(kind, name))
    comparison, known = compare([slow], [fixed]), truth()[kind][name]
    check(name, comparison, compare([fixed], [slow]), known.get("fixed_never", []))
    told = sorted(one.rule for one in comparison.problems if one.state == "fixed" and one.base_severity != "info")
    outcome, unprofiled = comparison.outcome.replace("_", " "), f"{known['slow'] / known['fixed']:.2f}"
    return f"| {name} | {outcome} | {factor(comparison)} | {unprofiled} | {', '.join(told) or '–'} |"


def check(name: str, there: Comparison, back: Comparison, planted: list[str]) -> None:
    """What must hold of every pair; `planted` are the rules that a fixed trace must not fire."""
    both = ("no_change",) * 2 if name in SAME else ("slower", "faster") if name in SLOWER else ("faster", "slower")
    assert (there.outcome, back.outcome) == both, name
    for one in there.problems:
        assert one.rule not in planted or not one.base_ns or one.state == "fixed", (name, one)
    assert there.step is not None
    assert sum(line.change_ns for line in there.lines) == there.step.change_ns, name


def factor(comparison: Comparison) -> str:
    """How many times as fast, and the ends of its range."""
    step = comparison.step
    assert step and step.ratio and step.low and step.high
    return f"{1 / step.ratio:.2f} ({1 / step.high:.2f} to {1 / step.low:.2f})"


def table() -> str:
    head = ["| pair | slow to fixed | times as fast | unprofiled | fixed |", "| --- | --- | ---: | ---: | --- |"]
    return "\n".join([*head, *(row(*pair) for pair in corpus_pairs())]) + "\n"


@needs_corpus
def test_the_page_is_current_and_every_pair_is_told_apart():
    assert PAGE.read_text(encoding="utf-8").split(START)[1].split(END)[0] == table()


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.split(START)[0] + START + table() + END + text.split(END)[1], encoding="utf-8")
