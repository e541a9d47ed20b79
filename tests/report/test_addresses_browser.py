"""Links to a place of the page: they name findings by their rule, stay as they are, and what they ask for in vain is said."""

from __future__ import annotations

import json
from pathlib import Path

from browsing import IN_BROWSER, open_page, view, wait_until
from playwright.sync_api import Page
from report_sample import sample

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html

pytestmark = IN_BROWSER

ASKED = "document.getElementById('asked').textContent"
SCROLLED = "scrollY > 200"


def first_evidence(tab: Page, finding: int, item: int = 0) -> tuple[int, int]:
    origin = int(tab.evaluate("window.traceanalyzer.timeline.data.groups[0].origin"))
    evidence = sample()[0].findings[finding].evidence[item]
    return evidence.start_ns - origin, evidence.end_ns - origin


LINKS = [
    ("#finding=INP001", 0, 0),
    ("#finding=LCH001&e=1", 1, 1),
    ("#finding=inp001&e=2", 0, 2),
    ("#finding%3DINP001%26e%3D2", 0, 2),
    ("#e=2&finding=INP001", 0, 2),
    ("#finding=1", 1, 0),  # as links had it before
    ("#finding=0&e=2", 0, 2),
]


def test_links_show_findings_and_stay_as_they_are(tab: Page, page_path: str) -> None:
    for address, finding, item in LINKS:
        tab.evaluate("location.hash = ''")
        tab.evaluate("(hash) => { location.hash = hash; }", address)
        start, end = first_evidence(tab, finding, item)
        middle = "(window.traceanalyzer.view().start_ns + window.traceanalyzer.view().end_ns) / 2"
        wait_until(tab, f"Math.abs({middle} - {(start + end) / 2}) < 1")
        low, high = view(tab)
        assert low <= start and end <= high and high - low <= max(3 * (end - start), 3000)
        assert tab.evaluate("location.hash") == address and tab.evaluate(ASKED) == ""
    open_page(tab, page_path + LINKS[0][0])
    tab.wait_for_timeout(400)
    assert tab.evaluate("location.hash") == LINKS[0][0] and view(tab)[1] - view(tab)[0] < 4e7


IN_VAIN = [
    ("#finding=XYZ999", "no finding “XYZ999”; its findings are INP001, LCH001, TRC004."),
    ("#finding=", "no finding “”"),
    ("#finding=99", "no finding “99”"),
    ("#finding=__proto__", "no finding “__proto__”"),
    ("#finding=constructor", "no finding “constructor”"),
    ("#finding=INP001.7", "no finding “INP001.7”"),
    ("#finding=INP001&e=40", "and “40” is none of them"),
    ("#finding=INP001&e=x", "and “x” is none of them"),
    ("#finding=TRC004&e=0", "TRC004 has no evidence on the timeline"),
    ("#finding=INP001&t=1-2000", "not both"),
    ("#finding=INP001&zoom=3", "“zoom” is nothing that a link can ask for"),
    ("#t=5-3", "“5-3” is no stretch"),
    ("#t=1e3-2e3", "“1e3-2e3” is no stretch"),
    ("#t=", "“” is no stretch"),
    ("#t=99999999999999-999999999999999", "is no stretch of its timeline, which goes from 0 to "),
    ("#t=9" + "9" * 400 + "-1", "…” is no stretch"),
    ("#t=2000000-3000000&y=low", "“low” is not"),
    ("#e=2", "Without a finding"),
    ("#nowhere", "no part called “nowhere”"),
    ("#%E0%A4%A", "no part called “%E0%A4%A”"),
    ("#finding=<img src=x onerror=alert(1)>", "no finding “<img src=x onerror=alert(1)>”"),
    ("#finding=%E2%80%AEx%00%1B[31m", "no finding “�x��[31m”"),
]


def test_what_a_link_asks_for_in_vain_is_said(tab: Page) -> None:
    home = view(tab)
    for address, said in IN_VAIN:
        tab.evaluate("(hash) => { location.hash = hash; }", address)
        before = tab.evaluate("location.hash")
        wait_until(tab, f"{ASKED}.includes({json.dumps(said)})")
        words = tab.evaluate(ASKED)
        assert words.startswith("The link asks for what this page does not have.") and len(words) < 400
        assert tab.evaluate("location.hash") == before, address
    assert tab.is_visible("#asked") and tab.get_attribute("#asked", "role") == "status"
    assert tab.locator("#asked *").count() == 0 and view(tab) != home  # one of the links has a good part


def test_a_link_in_vain_is_said_when_the_page_opens(tab: Page, page_path: str) -> None:
    open_page(tab, f"{page_path}#finding=XYZ999")
    assert "no finding “XYZ999”" in tab.evaluate(ASKED)
    tab.wait_for_timeout(400)
    assert tab.evaluate("location.hash") == "#finding=XYZ999"


def test_a_finding_without_a_place_is_its_card_even_when_folded(tab: Page, page_path: str) -> None:
    open_page(tab, page_path + "#finding=TRC004")
    assert tab.evaluate(ASKED) == ""
    assert tab.evaluate("document.getElementById('finding-TRC004').getBoundingClientRect().top") < 200
    assert tab.is_visible("#finding-TRC004 .message")
    open_page(tab, page_path + "#finding-TRC004")
    assert tab.is_visible("#finding-TRC004 .message")
    open_page(tab, page_path + "#finding-2")  # as anchors were before
    assert tab.is_visible("#finding-TRC004 .message") and tab.evaluate(ASKED) == ""


def test_known_places_are_silent_and_the_next_address_takes_the_words_away(tab: Page, page_path: str) -> None:
    for place in ("", "#", "#top", "#findings", "#kernels", "#charts"):
        open_page(tab, page_path + place)
        assert tab.evaluate(ASKED) == ""
    tab.evaluate("location.hash = 'finding=XYZ999'")
    wait_until(tab, f"{ASKED} !== ''")
    tab.evaluate("location.hash = 'finding=INP001'")
    wait_until(tab, f"{ASKED} === ''")
    tab.evaluate("location.hash = 't=9-1'")
    wait_until(tab, f"{ASKED} !== ''")
    tab.evaluate("window.traceanalyzer.timeline.show(4e6, 5e6)")
    wait_until(tab, f"{ASKED} === '' && location.hash.startsWith('#t=4000000-')")


def test_back_and_forward_lead_through_what_was_clicked(tab: Page) -> None:
    home = view(tab)
    tab.click("button.show >> nth=0")
    first = tab.evaluate("location.hash")
    shown = view(tab)
    assert first == "#finding=INP001&e=0"
    tab.evaluate("window.traceanalyzer.timeline.address.goToEvidence(1, 0)")
    assert tab.evaluate("location.hash") == "#finding=LCH001&e=0"
    second = view(tab)
    tab.evaluate("history.back()")
    wait_until(tab, f"location.hash === '{first}'")
    wait_until(tab, f"window.traceanalyzer.view().start_ns === {shown[0]!r}")
    tab.evaluate("history.back()")
    wait_until(tab, "location.hash === ''")
    wait_until(tab, f"window.traceanalyzer.view().start_ns === {home[0]!r}")
    tab.evaluate("history.forward()")
    wait_until(tab, f"location.hash === '{first}'")
    tab.evaluate("history.forward()")
    wait_until(tab, f"window.traceanalyzer.view().start_ns === {second[0]!r}")


def test_a_page_without_a_timeline_follows_links_too(empty_tab: Page, tmp_path: Path) -> None:
    file = tmp_path / "job.html"
    file.write_bytes(render_html(job_result(4), None))
    rule = job_result(4).findings[0].rule
    empty_tab.goto(f"{file.as_uri()}#finding={rule}")
    wait_until(empty_tab, SCROLLED)
    assert empty_tab.evaluate(ASKED) == ""
    empty_tab.goto("about:blank")
    empty_tab.goto(f"{file.as_uri()}#t=1-2")
    wait_until(empty_tab, f"{ASKED}.includes('It has no timeline.')")
