"""docs/budgets.md: its tables are those of the code, and its examples are accepted."""

from __future__ import annotations

import re
from pathlib import Path

from tests.engine.test_rules_page import table
from traceanalyzer.budgets.assertions import assertions
from traceanalyzer.budgets.expression import compile_comparison
from traceanalyzer.budgets.files import budgets_in
from traceanalyzer.config import LEVELS
from traceanalyzer.engine.rules.library import shipped_ids
from traceanalyzer.result.captures.figure import Figure
from traceanalyzer.result.captures.metrics import FIGURES, RULE_FIGURES
from traceanalyzer.units import COUNT, NS, SHARE

PAGE = Path(__file__).parents[2] / "docs" / "budgets.md"
UNITS = {SHARE: "share", NS: "time", COUNT: "count"}


def renewed(page: str) -> str:
    """After an intended change run: python -m tests.budgets.test_check_page"""
    for name, figures in (("figures", FIGURES), ("rule figures", RULE_FIGURES)):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, rest = page.split(begin)
        page = before + begin + figure_table(figures, "." if figures is RULE_FIGURES else "") + end + rest.split(end)[1]
    return page


def figure_table(figures: dict[str, Figure], dot: str) -> str:
    rows = [(f"`{dot}{name}`", UNITS[one.unit], one.about) for name, one in figures.items()]
    return table(("figure", "unit", "what it is"), rows)


def test_the_tables_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page)
    assert all(f"| `{level}` |" in page for level in LEVELS)


def test_the_files_are_accepted_as_printed(tmp_path):
    rules = list(shipped_ids())
    for suffix in ("toml", "yaml"):
        (text,) = re.findall(rf"```{suffix}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        (tmp_path / f"budgets.{suffix}").write_text(text, encoding="utf-8")
        budgets = budgets_in(tmp_path / f"budgets.{suffix}")
        assert budgets.baseline is not None and budgets.baseline.is_relative_to(tmp_path)
        levels = {one.text: one.level for one in assertions(budgets, rules, "median")}
        assert levels["idle_share <= 20%"] == levels["INP001"] == "error"
    assert levels["KRN005"] == "warn"


def test_the_comparisons_are_accepted_as_printed():
    part = PAGE.read_text(encoding="utf-8").split("## Comparisons")[1].split("## Figures")[0]
    examples = re.findall(r"^    (.+)$", part, re.MULTILINE)
    assert len(examples) == 4
    for text in examples:
        compile_comparison(text, ["KRN001"])


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
