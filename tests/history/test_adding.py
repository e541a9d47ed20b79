"""From captures to entries: when they were recorded, and what stands for their content."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.captures import capture
from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from tests.support.results import result_of
from traceanalyzer.analysis.captures import Run
from traceanalyzer.errors import InputError
from traceanalyzer.history.adding import id_of, labelled, moment, since_ns
from traceanalyzer.history.documents import OF_DOCUMENT, is_document, run_of_document
from traceanalyzer.result.document import EvidenceInfo, Result
from traceanalyzer.result.history.entry import Entry
from traceanalyzer.result.history.verdicts import METHOD, verdict_on
from traceanalyzer.vocabulary.lines import LINES

TRACE = FIXTURES / "kineto" / "mask_sync.slow.pt.trace.json.xz"


@pytest.fixture
def result() -> Result:
    return result_of(TRACE)


@pytest.fixture
def document(tmp_path: Path, result: Result) -> Path:
    place = tmp_path / "result.json"
    place.write_bytes(result.to_json())
    return place


def entry(run: Run, **options: object) -> Entry:
    ((found, _),) = labelled(run, [], **options)  # type: ignore[arg-type]
    return found


def test_a_capture_was_recorded_when_the_user_says_then_the_trace_then_its_file(tmp_path: Path) -> None:
    place = tmp_path / "night.json"
    place.write_text("{}")
    os.utime(place, ns=(5, 1_700_000_000_123_456_789))
    told = Run(place, [capture()], None, 1_600_000_000 * 10**9)
    assert entry(told, time_ns=7).time_ns == 7
    assert entry(told).time_ns == 1_600_000_000 * 10**9
    assert entry(replace(told, recorded_ns=None)).time_ns == 1_700_000_000_123_456_789
    now = time.time_ns()
    assert abs(entry(Run("s3://bucket/night.json", [capture()])).time_ns - now) < 3600 * 10**9


def test_all_captures_of_a_baseline_have_entries() -> None:
    run = Run(Path("baseline.json"), [capture("one"), capture("two", steps=7)])
    found = [one for one, _ in labelled(run, ["config=x"], 1, "reports/r.html")]
    assert [one.name for one in found] == ["one", "two"]
    assert len({one.id for one in found}) == 2
    assert {(one.report, one.labels["config"]) for one in found} == {("reports/r.html", "x")}


def test_the_files_that_were_read_stand_for_a_capture(result: Result) -> None:
    one, other = capture("one"), capture("other", steps=9)
    assert id_of(one, result) == id_of(other, result)
    moved = replace(result, inputs=[replace(result.inputs[0], path="elsewhere.json")])
    assert id_of(one, moved) == id_of(one, result)
    changed = replace(result, inputs=[replace(result.inputs[0], sha256="0" * 64)])
    assert id_of(one, changed) != id_of(one, result)


def test_evidence_is_content_too(result: Result) -> None:
    log = EvidenceInfo("gpu_log", "smi.csv", "1" * 64, 9, "nvidia-smi", None, "name", None, None, None, 3)
    with_log = replace(result, evidence=[log])
    assert id_of(capture(), with_log) != id_of(capture(), result)
    assert id_of(capture(), replace(result, evidence=[replace(log, sha256="2" * 64)])) != id_of(capture(), with_log)


def test_the_order_of_files_is_no_content(result: Result) -> None:
    two = [result.inputs[0], replace(result.inputs[0], sha256="0" * 64)]
    assert id_of(capture(), replace(result, inputs=two)) == id_of(capture(), replace(result, inputs=two[::-1]))


def test_a_capture_without_files_stands_for_itself() -> None:
    assert id_of(capture("one"), None) == id_of(capture("one"), None)
    assert id_of(capture("one"), None) != id_of(capture("one", steps=9), None)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-11-30T02:00Z", 1_796_004_000 * 10**9),
        ("2026-11-30T02:00", 1_796_004_000 * 10**9),
        ("2026-11-30T03:00:00+01:00", 1_796_004_000 * 10**9),
        ("2026-11-30", 1_795_996_800 * 10**9),
        ("2026-11-30T02:00:00.000123Z", 1_796_004_000 * 10**9 + 123_000),
    ],
)
def test_moments(text: str, ns: int) -> None:
    assert moment(text) == ns


@pytest.mark.parametrize("text", ["", "yesterday", "1970-01-01", "02:00", "2026-13-01", "9" * 30])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write it as 2026-11-30T02:00Z"):
        moment(text)


def test_a_time_before_now() -> None:
    day = since_ns("24h")
    assert since_ns("1d") - day < 60 * 10**9
    assert time.time_ns() - day < 86_460 * 10**9
    assert since_ns("2026-11-30") == moment("2026-11-30")
    with pytest.raises(InputError, match="--since 7w: write it as"):
        since_ns("7w")


def test_a_result_document_is_known_by_how_it_begins(document: Path, tmp_path: Path) -> None:
    assert is_document(document)
    assert not is_document(TRACE)
    assert not is_document(tmp_path / "none.json")
    assert not is_document(tmp_path)
    baseline = tmp_path / "baseline.json"
    baseline.write_text('{"schema_version": "1.0", "tool": {"name": "traceanalyzer"}, "captures": []}')
    assert not is_document(baseline)


def test_an_entry_of_a_result_document(document: Path, result: Result) -> None:
    run = run_of_document(document)
    found = entry(run)
    assert (found.unit, found.unit_ns, found.deviation_ns) == ("step", result.steps[0].median_ns, None)
    assert found.method == f"annotation, {OF_DOCUMENT}"
    assert (found.name, found.gpus) == (TRACE.name, [result.devices[0].name])
    assert found.gpu_ns == sum(device.window_ns for device in result.devices)
    assert sum(found.lines.values()) == found.unit_ns
    share = result.devices[0].compute_ns / result.devices[0].window_ns
    assert found.lines["compute"] == pytest.approx(share * result.steps[0].median_ns, abs=1)
    assert set(found.lines) <= set(LINES)
    assert {one.rule for one in found.findings} == {one.rule for one in result.findings}
    for one in found.findings:
        saved = sum(f.saving.recoverable_ns or 0 for f in result.findings if f.rule == one.rule)
        assert one.ns is None or one.ns == pytest.approx(saved / found.gpu_ns * result.steps[0].median_ns, abs=1)
    assert (found.kernels, found.families) == ([], [])
    assert found.id == id_of(run.captures[0], result)


def test_a_result_document_of_several_gpus(tmp_path: Path, result: Result) -> None:
    """The mean of those that have steps."""
    first, step = result.devices[0], result.steps[0]
    second, third = (replace(first, device=at, window_ns=first.window_ns, name=first.name) for at in (1, 2))
    slower = replace(step, device=1, median_ns=2 * step.median_ns, count=2)
    place = tmp_path / "result.json"
    place.write_bytes(replace(result, devices=[first, second, third], steps=[step, slower]).to_json())
    found = entry(run_of_document(place))
    assert (found.unit_ns, found.unit_count, found.gpu_count) == (round(1.5 * step.median_ns), 2, 3)
    assert sum(found.lines.values()) == found.unit_ns


def test_a_result_document_without_steps_tells_no_time(tmp_path: Path, result: Result) -> None:
    place = tmp_path / "result.json"
    place.write_bytes(replace(result, steps=[]).to_json())
    found = entry(run_of_document(place))
    assert (found.unit_ns, found.unjudged, found.lines) == (None, "the result document tells no steps", {})


def test_documents_and_traces_in_one_series_are_another_method(document: Path) -> None:
    of_document = entry(run_of_document(document))
    of_trace = replace(of_document, method="annotation", unit_ns=round(1.1 * (of_document.unit_ns or 0)))
    assert verdict_on([of_trace] * 5, [of_document] * 5).kind == METHOD


@pytest.mark.parametrize(
    "change", [lambda body: body | {"devices": "none"}, lambda body: {**body, "findings": [{"rule": 1}]}]
)
def test_a_result_document_with_other_content_is_refused(document: Path, change) -> None:
    document.write_text(json.dumps(change(json.loads(document.read_bytes()))))
    with pytest.raises(InputError, match="a result document with a field that does not fit"):
        run_of_document(document)


def test_a_result_document_that_was_cut_short_is_refused(document: Path) -> None:
    document.write_bytes(document.read_bytes()[:-100])
    with pytest.raises(InputError, match="write it again with `traceanalyzer analyze"):
        run_of_document(document)


def test_a_trace_without_steps_makes_no_document_with_steps(tmp_path: Path) -> None:
    made = KinetoTrace()
    made.op(0, 10)
    place = tmp_path / "result.json"
    place.write_bytes(result_of(made.write(tmp_path / "trace.json")).to_json())
    assert entry(run_of_document(place)).unit is None
