"""A check of budgets as JUnit XML: one case an assertion. A broken one is a failure, one that could not be judged an error."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from traceanalyzer.render.comparing.check_parts import several, where
from traceanalyzer.render.junit import document
from traceanalyzer.render.lines import printable
from traceanalyzer.result.captures.check import Check, Held

NAME = "traceanalyzer check"


def render_check(check: Check) -> bytes:
    """UTF-8 XML, ending in a newline. What is wrong with a whole capture is a case of its own, so that no damaged one passes."""
    suite = ET.Element("testsuite", name=NAME)
    for one in check.captures:
        if why := one.unjudged or "; ".join(one.damage):
            _add(_case(suite, f"capture {one.place}"), "error", why, one.headline)
    for held in check.assertions:
        _held(check, held, _case(suite, held.text))
    return document(suite)


def _held(check: Check, held: Held, case: ET.Element) -> None:
    words = "; ".join(several(check, held))
    lines = [
        f"{name}: {value}"
        for name, value in (
            *(("expected", held.expected), ("found", held.actual), ("where", where(check, held)), ("captures", words)),
            *(("because", held.message), ("reason", held.reason), ("show", held.show), ("then open", held.look_at)),
            ("set in", held.place),
        )
        if value
    ]
    short = f"expected {held.expected}, found {held.actual}" if held.actual else held.reason or ""
    if held.outcome == "off":
        _add(case, "skipped", held.reason or "", "")
    elif held.outcome == "passed" or held.level == "warn":
        warned = "warning, " if held.outcome != "passed" else ""
        ET.SubElement(case, "system-out").text = (
            printable(f"{warned}{held.outcome.replace('_', ' ')}") + "\n" + _text(lines)
        )
    else:
        _add(case, "failure" if held.outcome == "failed" else "error", short, _text(lines))


def _case(suite: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=NAME, name=printable(name))


def _add(case: ET.Element, kind: str, message: str, text: str) -> None:
    ET.SubElement(case, kind, message=printable(message)).text = text


def _text(lines: list[str]) -> str:
    return "\n".join(map(printable, lines))
