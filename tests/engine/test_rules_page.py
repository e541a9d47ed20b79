"""docs/rules.md: its tutorial works as printed, and its lists are those of the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.places import FIXTURES
from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.cli.app import main
from traceanalyzer.engine.language.functions import AGGREGATES, ROW_FUNCTIONS
from traceanalyzer.engine.language.message import FORMATS, TEXT_FORMATS
from traceanalyzer.engine.rules.rule_schema import (
    ABSTAIN,
    EXPECT,
    PARAM,
    REQUIRED,
    REQUIRES,
    RULE,
    SAVING,
    SEVERITY,
    TEST,
)
from traceanalyzer.engine.rules.scenarios import named_scenarios
from traceanalyzer.units import SUFFIXES
from traceanalyzer.vocabulary.lines import LEDGER_LINES

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
PARTS = {
    "requires": REQUIRES,
    "requires.abstain": ABSTAIN,
    "params": PARAM,
    "severity": SEVERITY,
    "saving": SAVING,
    "tests": TEST,
}


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def blocks() -> dict[str, str]:
    """What stands between the marks of the page; after an intended change run: python -m tests.engine.test_rules_page"""
    keys = []
    for name, form in RULE.items():
        keys.append((f"`{name}`{'*' if name in REQUIRED else ''}", told(form)))
        for part, inner in PARTS.get(name, {}).items():
            keys.append((f"`{name}.{part}`", told(inner)))
            keys += [(f"`{name}.{part}.{key}`", told(one)) for key, one in PARTS.get(f"{name}.{part}", {}).items()]
    return {
        "keys": table(("key", "what it holds"), keys),
        "functions": ", ".join(f"`{function.usage}`" for function in ROW_FUNCTIONS.values()) + "\n",
        "aggregates": ", ".join(f"`{function.usage}`" for function in AGGREGATES.values()) + "\n",
        "lines": ", ".join(f"`{line}`" for line in LEDGER_LINES) + "\n",
        "scenarios": table(("scenario", "what one sees"), [(f"`{n}`", s.about) for n, s in named_scenarios().items()]),
        "tables": table(
            ("table", "a row is", "columns"),
            [(f"`{n}`", spec.rows, ", ".join(c.name for c in spec.columns)) for n, spec in rule_tables().items()],
        ),
    }


def told(form: dict[str, object]) -> str:
    allowed = form.get("enum")
    several = f": {', '.join(map(str, allowed))}" if isinstance(allowed, list) and len(allowed) < 20 else ""
    return f"{form.get('description', '')}{several}"


def renewed(page: str) -> str:
    for name, text in blocks().items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        before, rest = page.split(begin)
        page = before + begin + text + end + rest.split(end)[1]
    return page


def run(capsysbinary, monkeypatch, *args: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["traceanalyzer", *map(str, args)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsysbinary.readouterr()
    return int(end.value.code or 0), out.decode(), err.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rule of the tutorial, where the tutorial puts it."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (name,) = re.findall(r"Save this as `(.+?)`", PAGE.read_text(encoding="utf-8"))
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return tmp_path


def test_the_tutorial(capsysbinary, monkeypatch, folder):
    monkeypatch.chdir(folder)
    page = PAGE.read_text(encoding="utf-8")
    assert run(capsysbinary, monkeypatch, "rules", "lint", "perf/rules") == (0, "", "no problems\n")
    assert run(capsysbinary, monkeypatch, "rules", "test", "perf/rules") == (0, "", "3 passed, 0 failed\n")
    assert "$ traceanalyzer rules lint perf/rules\n    no problems" in page and "3 passed, 0 failed" in page
    trace = FIXTURES / "captured/feed_named.json.gz"
    code, out, _ = run(capsysbinary, monkeypatch, "analyze", trace, "--rules", "perf/rules")
    assert code == 0
    for line in ("1. Batches are sorted inside the step [ACM001, high]", "for get_batch: 3 waits of up to 371 ms."):
        assert line in out and line in page
    assert "ACM001 already accounts for this time." in out
    code, out, _ = run(capsysbinary, monkeypatch, "rules", "show", "ACM001", "--rules", "perf/rules")
    assert "it says (high, 300 ms to gain): GPU 0 waits 30% of the time for get_batch: 4 waits of up to 75 ms." in out


def test_the_lists_are_those_of_the_code():
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page)


def test_the_language_is_described_in_full():
    page = PAGE.read_text(encoding="utf-8")
    for name in (*SUFFIXES, *FORMATS, *TEXT_FORMATS, *EXPECT):
        assert f"`{name}`" in page, name


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
