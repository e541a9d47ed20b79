"""The page as text: complete, deterministic, closed to the network, and deaf to what names try to say."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

from report_sample import HOSTILE, Sample, sample

from traceanalyzer.report.assets import FIRST_SCRIPTS, FIRST_STYLES, LAST_SCRIPTS, LAST_STYLES
from traceanalyzer.report.html import render_html
from traceanalyzer.report.packing import inline_json
from traceanalyzer.report.registry import FOLDERS, sections_of
from traceanalyzer.report.sections.findings_view import EvidenceView, _evidence_view
from traceanalyzer.report.sections.ledger_bar import ledger_segments
from traceanalyzer.resources import data_folder
from traceanalyzer.result.document import Evidence, Saving, Scope, Verdict
from traceanalyzer.result.gpus import ledger_lines
from traceanalyzer.result.verdict import NOTHING_TO_JUDGE


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: bytes) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(page.decode())
    return parser.found


def test_same_input_same_bytes(page: bytes) -> None:
    assert render_html(*sample()) == page


def test_hostile_names_are_text(page: bytes) -> None:
    found = elements(page)
    assert not [tag for tag, _ in found if tag in {"img", "iframe", "object", "embed"}]
    assert not [attrs for _, attrs in found if any(name.startswith("on") or name == "style" for name in attrs)]
    assert HOSTILE.encode() not in page


def test_only_https_references_are_links(page: bytes) -> None:
    targets = [attrs["href"] or "" for tag, attrs in elements(page) if tag == "a"]
    assert all(target.startswith(("#", "https://")) for target in targets)
    assert b"javascript:alert(4)" in page  # shown, as text


def test_nothing_is_loaded(page: bytes) -> None:
    for tag, attrs in elements(page):
        assert "src" not in attrs
        assert tag != "link" or attrs["href"] == "data:,"
    style = re.search(rb"<style>(.*?)</style>", page, re.S)
    assert style is not None
    addresses = set(re.findall(rb"url\((.{6})", style[1]))
    assert addresses == {b'"data:'} and b"@import" not in style[1]


def test_policy_names_each_script_and_the_style(page: bytes) -> None:
    text = page.decode()
    (policy,) = [a["content"] or "" for t, a in elements(page) if t == "meta" and a.get("http-equiv")]
    blocks = [*re.findall(r"<script>(.*?)</script>", text, re.S), *re.findall(r"<style>(.*?)</style>", text, re.S)]
    assert 20 < len(blocks) <= len(every_script()) + 1
    for block in blocks:
        assert base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy


def test_scripts_share_one_scope_without_meeting() -> None:
    """Two classic scripts that declare one name stop the second of them, or change each other's functions."""
    declared = re.compile(r"^(?:async )?(?:function\*?|class|const|let|var) +(\w+)", re.M)
    names = [name for script in every_script() for name in declared.findall(_text_of(script))]
    assert len(names) > 100
    assert len(names) == len(set(names))


def every_script() -> list[str]:
    sections = [section for page in FOLDERS for section in sections_of(page)]
    return list(dict.fromkeys([*FIRST_SCRIPTS, *(name for one in sections for name in one.scripts), *LAST_SCRIPTS]))


def test_every_style_script_and_template_is_some_sections() -> None:
    shared = {"page", "head", "end", "hatches", "macros", "chart", "table-plain"}
    sections = [section for page in FOLDERS for section in sections_of(page)]
    used = {*every_script(), *FIRST_STYLES, *LAST_STYLES, *(f"{name}.html.j2" for name in shared)}
    used |= {name for one in sections for name in (*one.styles, one.template_name)}
    assert {file.name for file in data_folder("templates").iterdir() if file.is_file()} == used


def _text_of(script: str) -> str:
    return (data_folder("templates") / script).read_text(encoding="utf-8")


def test_paths_stay_out(page: bytes) -> None:
    assert b"resnet50.pt.trace.json.gz" in page
    assert b"secret" not in page and b"/home" not in page


def test_inline_json_cannot_leave_its_element() -> None:
    assert inline_json(["</script>\u2028&"]) == '["\\u003c/script\\u003e\\u2028\\u0026"]'


def test_without_tables_there_is_no_timeline() -> None:
    page = render_html(sample()[0], None)
    assert b'id="timeline"' not in page and b"Show on timeline" not in page
    assert b"input wait before step 1" in page


def test_empty_result_is_calm() -> None:
    fine = Verdict("compute", "GPU 0 computes.")
    result = replace(sample()[0], findings=[], health=[], steps=[], rules=[], verdict=fine)
    text = render_html(result, Sample()).decode()
    assert "Nothing worth fixing found" in text and "No problems met in the trace" in text


def test_no_gpu_work_is_not_called_fine() -> None:
    nothing = Verdict("unknown", NOTHING_TO_JUDGE)
    result = replace(sample()[0], findings=[], health=[], devices=[], steps=[], rules=[], verdict=nothing)
    text = render_html(result, Sample()).decode()
    assert "Could not judge" in text and "ProfilerActivity.CUDA" in text
    assert "Nothing worth fixing" not in text and "No problems met" not in text and "bound by" not in text


def test_a_finding_on_many_gpus_is_one_card() -> None:
    result, tables = sample()
    first = result.findings[0]
    advice = [{"pytorch": "only there"}]
    others = [replace(first, scope=Scope(None, n), recommend=advice, message=f"on {n}: 12 us") for n in (1, 2, 3)]
    text = render_html(replace(result, findings=[first, *others]), tables).decode().partition("<script")[0]
    assert text.count('<article class="finding') == 1
    assert "The same on 3 more GPUs" in text
    keys = [first.rule, *(f"{first.rule}.{n}" for n in (2, 3, 4))]
    assert all(text.count(f'id="finding-{key}"') == 1 for key in keys)
    assert text.count("only there") == 1 and text.count("on 2: 12\N{NO-BREAK SPACE}µs") == 1
    buttons = set(re.findall(r'data-finding="(\d)"', text))
    assert buttons == {"0", "1", "2", "3"}


def test_a_duration_is_said_once() -> None:
    label = EvidenceView("297\N{NO-BREAK SPACE}ms idle", "", None)
    idle, copy, kind = (
        Evidence(0, 0, 0, end, said)
        for end, said in ((297_000_000, "297 ms idle"), (297_000_000, "a copy"), (0, "a kind"))
    )
    assert _evidence_view(idle, None) == label
    assert _evidence_view(copy, None).duration == "a stretch of 297 ms"
    assert _evidence_view(kind, None).duration == ""


def test_a_tiny_share_is_not_zero() -> None:
    result, tables = sample()
    device = result.devices[0]
    tiny = replace(device, exposed_memset_ns=1, idle_by_cause_ns=dict(device.idle_by_cause_ns))
    text = render_html(replace(result, devices=[tiny]), tables).decode()
    assert "&lt;0.1%" in text and ">0.0%<" not in text


def test_evidence_off_the_timeline_is_not_a_button() -> None:
    result, tables = sample()
    finding = replace(
        result.findings[0], evidence=[Evidence(None, 5, 1, 2, "elsewhere")], saving=Saving(0, 0.0, 1.0, None)
    )
    text = render_html(replace(result, findings=[finding]), tables).decode()
    assert "elsewhere" in text and "data-finding" not in text.split("<script>")[0]
    assert "no saving of its own" in text


def test_ledger_bar_is_exact() -> None:
    (device,) = sample()[0].devices
    segments = ledger_segments(ledger_lines(device), device.window_ns)
    assert sum(s.ns for s in segments) == device.window_ns
    assert segments[0].begins == 0
    assert abs(segments[-1].begins + segments[-1].share - 1) < 1e-12


def test_unknown_causes_are_unattributed() -> None:
    device = replace(sample()[0].devices[0], idle_by_cause_ns={"new_cause": 5, "unattributed": 2})
    assert {s.swatch.key: s.ns for s in ledger_segments(ledger_lines(device), device.window_ns)}[
        "idle.unattributed"
    ] == 7
