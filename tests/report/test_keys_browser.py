"""Keys: those of the whole page work wherever the reader is, none where a text is typed, and those that the page lists are there."""

from __future__ import annotations

import re

from browsing import IN_BROWSER, view, wait_until
from playwright.sync_api import Page

pytestmark = IN_BROWSER

TIMELINE = "window.traceanalyzer.timeline"
FOCUSED = "document.activeElement.id"
PIN = f"{TIMELINE}.goTo({{row: {TIMELINE}.data.rows.find((row) => row.lane.label === 'stream 7'), i: 5}})"
PLACES = [
    "body",
    "#main",
    "#lanes",
    '[data-act="in"]',
    "#theme",
    "nav a",
    "#ledger .term",
    "#findings summary",
    "#tables [role=tab]",
]


def focus(tab: Page, place: str) -> None:
    if place == "body":
        tab.evaluate("document.activeElement.blur()")
    else:
        tab.locator(place).first.focus()


def test_slash_and_question_mark_work_from_everywhere(tab: Page) -> None:
    for place in PLACES:
        focus(tab, place)
        tab.keyboard.press("/")
        assert tab.evaluate(FOCUSED) == "find" and tab.input_value("#find") == "", place
        focus(tab, place)
        tab.keyboard.press("?")
        assert tab.is_visible("#keys"), place
        tab.keyboard.press("?")
        assert not tab.is_visible("#keys"), place


def test_escape_lets_go_from_everywhere(tab: Page) -> None:
    for place in PLACES:
        tab.evaluate(PIN)
        focus(tab, place)
        tab.keyboard.press("Escape")
        if place == "#ledger .term":  # first the definition, then the slice
            assert tab.is_visible("#pinned")
            tab.keyboard.press("Escape")
        assert not tab.is_visible("#pinned"), place
        tab.evaluate(f"{TIMELINE}.selectView()")
        focus(tab, place)
        tab.keyboard.press("Escape")
        tab.keyboard.press("Escape")
        assert not tab.is_visible("#selection"), place


def test_focus_does_not_vanish_with_a_panel(tab: Page) -> None:
    tab.evaluate(PIN)
    tab.focus('#pinned [data-act="zoom-pinned"]')
    tab.keyboard.press("Escape")
    assert not tab.is_visible("#pinned") and tab.evaluate(FOCUSED) == "lanes"


def test_typed_text_is_text(tab: Page) -> None:
    tab.locator("#tables").scroll_into_view_if_needed()
    tab.click("#tab-gaps")
    wait_until(tab, "document.querySelector('#gaps table') !== null")
    home = view(tab)
    for field in ("#find", "#gaps input[type=search]"):
        tab.locator(field).focus()
        tab.keyboard.type("a/w?0m")
        assert tab.input_value(field) == "a/w?0m" and view(tab) == home
        assert not tab.is_visible("#keys") and not tab.is_visible("#selection")
        tab.keyboard.press("Escape")
        assert tab.input_value(field) == ""
        tab.keyboard.press("Escape")
        assert tab.evaluate(FOCUSED) == ("lanes" if field == "#find" else "")
    assert tab.inner_text("#found") == ""


def test_commands_of_the_browser_are_left_to_it(tab: Page) -> None:
    tab.focus("#lanes")
    taken = tab.evaluate(
        """() => ['ctrlKey', 'altKey', 'metaKey'].flatMap((modifier) => ['/', '?', 'Escape', 'w', '0', 'm'].filter((key) =>
            !document.activeElement.dispatchEvent(
                new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, [modifier]: true }))))"""
    )
    assert taken == [] and tab.evaluate(FOCUSED) == "lanes"


def test_altgr_types_what_the_keyboard_needs_it_for(tab: Page) -> None:
    tab.evaluate("""() => {
        const event = new KeyboardEvent('keydown', { key: '/', bubbles: true, ctrlKey: true, altKey: true, modifierAltGraph: true });
        document.body.dispatchEvent(event);
    }""")
    assert tab.evaluate(FOCUSED) == "find"


def test_a_dialog_has_the_keys_to_itself(tab: Page) -> None:
    tab.evaluate("document.body.append(element('dialog', { id: 'over' }, element('button', {}, 'x')))")
    tab.evaluate("document.getElementById('over').showModal()")
    tab.keyboard.press("/")
    assert tab.evaluate(FOCUSED) != "find"


def test_letters_work_on_every_control_of_the_timeline_and_nowhere_else(tab: Page) -> None:
    for place in ("#lanes", '[data-act="in"]', '[data-act="help"]'):
        tab.keyboard.press("Escape")
        focus(tab, place)
        home = view(tab)
        tab.keyboard.press("w")
        assert view(tab)[1] - view(tab)[0] < home[1] - home[0]
        tab.keyboard.press("0")
    home = view(tab)
    for place in ("body", "#theme", "#tables [role=tab]"):
        focus(tab, place)
        for key in "wsadm0f+-":
            tab.keyboard.press(key)
        assert view(tab) == home and not tab.is_visible("#selection")


KEYS = ["W", "S", "+", "−", "A", "D", "←", "→", "0", "F", "M", "[", "]", "/", "?", "Esc", "↑", "↓"]
NAMES = {"−": "-", "←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown", "Esc": "Escape"}
STATE = """() => {
    const { timeline } = window.traceanalyzer;
    const { from, to, selection, pinned, lanes } = timeline;
    const focus = document.activeElement.id;
    const help = document.getElementById('keys').hidden;
    return JSON.stringify([Math.round(from), Math.round(to), selection, pinned?.row.number, pinned?.i, lanes.scrollTop, focus, help]);
}"""


def test_every_key_that_the_page_lists_does_something(tab: Page) -> None:
    tab.set_viewport_size({"width": 1280, "height": 380})
    listed = " ".join(tab.evaluate("[...document.querySelectorAll('#keys dt')].map((dt) => dt.textContent)"))
    keys = [word for word in re.split(r"[\s,]+", listed) if word in KEYS]
    assert {*keys} == {*KEYS}
    for key in keys:
        tab.evaluate(
            f"{TIMELINE}.home(), {TIMELINE}.clearSelection(), {PIN}, {TIMELINE}.lanes.scrollTop = 60, {TIMELINE}.show(2e6, 3e7)"
        )
        tab.wait_for_timeout(60)
        tab.focus("#lanes")
        before = tab.evaluate(STATE)
        tab.keyboard.press(NAMES.get(key, key))
        tab.wait_for_timeout(60)
        assert tab.evaluate(STATE) != before, key
        if key == "?":
            tab.keyboard.press(key)
