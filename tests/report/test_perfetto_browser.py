"""The timeline handed over to Perfetto: only on a click, only to Perfetto, and the same slices that the page shows."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from browsing import IN_BROWSER, wait_until
from conftest import blob_of, decode
from playwright.sync_api import Page, Route
from report_sample import sample

sys.path.insert(0, str(Path(__file__).parents[2]))
import traceanalyzer as ta
from tests.support.chrome_trace import Track, tracks_of
from traceanalyzer.errors import InputError

pytestmark = IN_BROWSER

STAND_IN = """<!doctype html><title>stand-in</title><script>
window.got = [];
addEventListener("message", async (event) => {
  if (event.source !== opener) return;
  if (event.data === "PING") return event.source.postMessage("PONG", "*");
  const { buffer, title, fileName } = event.data.perfetto;
  got.push({ title, fileName, text: new TextDecoder().decode(buffer) });
});
</script>"""
SAYS = "document.querySelector('#trace-export output').textContent"


def ready(tab: Page) -> None:
    wait_until(tab, "!document.querySelector('[data-trace=open]').disabled")


def saved(tab: Page, path: Path) -> bytes:
    ready(tab)
    with tab.expect_download() as download:
        tab.click("[data-trace=save]")
    download.value.save_as(path)
    return path.read_bytes()


def slices(tracks: list[Track]) -> Counter[tuple[float, float, str]]:
    return Counter((start, end, event["name"]) for track in tracks for start, end, event in track.slices)


def test_the_saved_trace_holds_every_slice(tab: Page, page: bytes, tmp_path: Path, seen: dict[str, list[str]]) -> None:
    before = list(seen["requests"])
    tracks = tracks_of(saved(tab, tmp_path / "t.json"))
    _, rows = decode(blob_of(page))
    shown = Counter(
        (start, end, name)
        for row in rows
        if hasattr(row, "start")
        for start, end, name in zip(row.start.tolist(), row.end.tolist(), row.name.tolist(), strict=True)
    )
    found = [track for track in tracks if track.process == "traceanalyzer findings"]
    assert slices([track for track in tracks if track not in found]) == shown
    evidence = [item for finding in sample()[0].findings for item in finding.evidence]
    assert sum(len(track.slices) for track in found) == len(evidence)
    assert found[0].name == "INP001 The GPU waits for the data loader"
    assert [url for url in seen["requests"] if not url.startswith("blob:")] == before


def test_what_is_saved_is_not_taken_for_a_trace(tab: Page, tmp_path: Path) -> None:
    """It has no GPU operations as such, and what is short may be merged: figures of it would be wrong."""
    saved(tab, tmp_path / "t.json")
    with pytest.raises(InputError, match="saved from a page of traceanalyzer"):
        ta.load(tmp_path / "t.json")


def test_the_trace_goes_to_perfetto_once_and_on_a_click_only(tab: Page, seen: dict[str, list[str]]) -> None:
    asked: list[str] = []

    def stand_in(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=STAND_IN, content_type="text/html")

    tab.context.route("https://**", stand_in)
    ready(tab)
    assert asked == []
    with tab.expect_popup() as popup:
        tab.click("[data-trace=open]")
    wait_until(popup.value, "window.got?.length > 0")
    tab.wait_for_timeout(600)  # time for a second message, if there were one
    (got,) = popup.value.evaluate("got")
    assert tracks_of(got["text"].encode()) and got["fileName"].endswith(".trace.json")
    assert asked == ["https://ui.perfetto.dev/"] and "Handed over" in tab.evaluate(SAYS)


def test_a_blocked_tab_is_said(tab: Page) -> None:
    ready(tab)
    tab.evaluate("window.open = () => null")
    tab.click("[data-trace=open]")
    assert "blocked the new tab" in tab.evaluate(SAYS)


def test_another_site_gets_nothing(tab: Page) -> None:
    ready(tab)
    tab.evaluate("window.sent = []; window.open = () => ({ closed: false, postMessage: (...all) => sent.push(all) })")
    tab.click("[data-trace=open]")
    wait_until(tab, "sent.length > 1")
    tab.evaluate("postMessage('PONG', '*')")  # from this page, not from Perfetto's
    tab.wait_for_timeout(400)
    assert {json.dumps(message) for message in tab.evaluate("sent")} == {'["PING", "*"]'}
