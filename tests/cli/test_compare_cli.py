"""`traceanalyzer compare` as a new user meets it."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from tests.cli.test_cli import refused, run
from tests.support.kineto import KinetoTrace, steady
from tests.support.places import FIXTURES
from traceanalyzer.cli import compare as verb
from traceanalyzer.render.output import output_names

SLOW = FIXTURES / "kineto" / "item_sync.slow.pt.trace.json.gz"
FIXED = FIXTURES / "kineto" / "item_sync.fixed.pt.trace.json.gz"


@pytest.fixture(scope="module")
def baseline(tmp_path_factory) -> Path:
    from traceanalyzer.analysis.baselines import baseline_of
    from traceanalyzer.analysis.captures import opened_run
    from traceanalyzer.config import Config
    from traceanalyzer.ingest.how import How
    from traceanalyzer.result.captures.baseline_file import baseline_bytes

    with opened_run(SLOW, Config(), How()) as found:
        content = baseline_bytes(baseline_of(found.captures))
    place = tmp_path_factory.mktemp("baseline") / "baseline.json"
    place.write_bytes(content)
    return place


def test_a_fix_is_faster_and_passes(capsysbinary):
    code, out, err = run(capsysbinary, "compare", SLOW, FIXED)
    assert (code, err) == (0, "")
    first = " ".join(out.split("\n\n")[0].split())
    assert "7.8%" in first and "10.8 ms a step instead of 11.7 ms" in first and "SYN001" in first
    assert "  fixed\n  · SYN001 The GPU waits for the host after a synchronization: 2.38 ms before" in out


def test_the_reverse_fails_as_far_as_it_may_not(capsysbinary):
    code, out, err = run(capsysbinary, "compare", FIXED, SLOW)
    assert code == 1 and out and err == "failed: +8.4% a step, and --fail-over allows +5.0%\n"
    assert run(capsysbinary, "compare", FIXED, SLOW, "--fail-over", "10%")[0] == 0
    assert run(capsysbinary, "compare", FIXED, SLOW, "--fail-over=0.1")[0] == 0
    code, _, err = run(capsysbinary, "compare", FIXED, SLOW, "--fail-over", "10%", "--fail-on-new", "low")
    assert code == 1 and "failed: new finding SYN001 (low)" in err


def test_a_trace_against_itself_is_no_change(capsysbinary):
    code, out, err = run(capsysbinary, "compare", SLOW, SLOW, "--fail-over", "0%", "--fail-on-new", "info")
    assert (code, err) == (0, "") and out.startswith("No change: 11.7 ms a step")


def test_a_baseline_file_stands_for_its_trace(capsysbinary, baseline, tmp_path):
    of_traces, of_file = (run(capsysbinary, "compare", base, FIXED)[1] for base in (SLOW, baseline))
    assert of_file == of_traces
    packed = tmp_path / "baseline.gz"
    packed.write_bytes(gzip.compress(baseline.read_bytes()))
    assert run(capsysbinary, "compare", packed, FIXED)[1] == of_traces
    assert run(capsysbinary, "compare", baseline, packed)[0] == 0


def test_all_formats_come_from_one_reading(capsysbinary, tmp_path):
    markdown, document = tmp_path / "comment.md", tmp_path / "compare.json"
    code, out, err = run(
        capsysbinary,
        "compare",
        FIXED,
        SLOW,
        "-f",
        "markdown",
        "-o",
        markdown,
        "--also",
        f"json={document}",
        "--title",
        "Run 12",
    )
    assert (code, out) == (1, "") and err.count("\n") == 2
    headline = json.loads(document.read_bytes())["headline"]
    assert err.startswith(headline) and markdown.read_text().startswith("### Run 12\n\n🔴 **")
    assert document.read_bytes() == run(capsysbinary, "compare", FIXED, SLOW, "-f", "json")[1].encode()


def test_the_page_has_the_events_of_both_sides(capsysbinary, monkeypatch, tmp_path, baseline):
    from traceanalyzer.report import comparison_page

    seen = []

    def page(comparison, *tables, base_result, new_result, **style) -> bytes:
        rows = [None if one is None else one.table("gpu_ops").num_rows for one in tables]
        seen.append((comparison.outcome, rows, base_result is None, new_result is None, style))
        return b"<html>"

    monkeypatch.setattr(comparison_page, "render_comparison_html", page)
    style = {"title": None, "limit": 10_000_000, "redact": True}
    assert run(capsysbinary, "compare", SLOW, FIXED, "-f", "html", "-o", tmp_path / "a.html")[0] == 0
    assert run(capsysbinary, "compare", baseline, FIXED, "--also", f"html={tmp_path / 'b.html'}")[0] == 0
    outcomes = [(outcome, [rows is not None for rows in both], *rest) for outcome, both, *rest in seen]
    assert outcomes == [
        ("faster", [True, True], False, False, style), ("faster", [False, True], True, False, style)
    ]  # fmt: skip
    assert (tmp_path / "a.html").read_bytes() == b"<html>"


def test_another_gpu_is_refused_with_the_reason(capsysbinary, tmp_path, baseline):
    document = json.loads(baseline.read_bytes())
    document["captures"][0]["gpus"] = ["NVIDIA A100-SXM4-80GB"]
    other = tmp_path / "a100.json"
    other.write_text(json.dumps(document))
    output = tmp_path / "out.txt"
    code, out, err = run(capsysbinary, "compare", other, FIXED, "-o", output, "--fail-on-new", "info")
    assert (code, out) == (3, "") and "A100" in err and "A100" in output.read_text().splitlines()[0]
    code, out, _ = run(capsysbinary, "compare", other, FIXED, "--anyway")
    assert code == 0 and "7.8%" in out.splitlines()[0] and "A100" in out


def test_more_captures_must_be_other_runs(capsysbinary):
    assert "is the same run as" in refused(capsysbinary, "compare", SLOW, FIXED, "--more-base", SLOW)
    assert "is the same run as" in refused(capsysbinary, "compare", SLOW, FIXED, "--more-new", FIXED)


def test_more_captures_make_the_noise_between_runs_known(capsysbinary):
    code, out, _ = run(capsysbinary, "compare", SLOW, SLOW, "--more-base", FIXED, "--more-new", FIXED, "-f", "json")
    document = json.loads(out)
    assert code == 0 and document["outcome"] == "no_change"
    assert (document["base"]["captures"], document["noise"]["source"]) == (2, "captures")


def test_no_gpu_work_is_not_compared(capsysbinary, tmp_path):
    cpu = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").write(tmp_path / "cpu.json")
    for sides in ((SLOW, cpu), (cpu, SLOW), (cpu, cpu)):
        code, out, _ = run(capsysbinary, "compare", *sides)
        assert code == 3 and out.startswith("Could not") and "no GPU work" in " ".join(out.split())


def test_damage_passes_no_gate(capsysbinary, tmp_path):
    whole = gzip.decompress(SLOW.read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(whole[: len(whole) * 9 // 10])
    code, out, err = run(capsysbinary, "compare", cut, SLOW, "--anyway")
    assert code == 3 and out and ("damaged" in err or out.startswith("Could not"))


@pytest.mark.parametrize("share", ["5", "-1%", "much", "5ms", "", "nan", "1e999%"])
def test_a_share_is_a_share(capsysbinary, share):
    assert f"--fail-over: '{share}' is not a share such as 5% or 0.05" in refused(
        capsysbinary, "compare", SLOW, FIXED, f"--fail-over={share}"
    )


def test_wrong_inputs_are_one_line(capsysbinary, tmp_path, baseline):
    empty, text, result = tmp_path / "empty.json", tmp_path / "notes.txt", tmp_path / "result.json"
    empty.write_bytes(b"")
    text.write_text("hello")
    result.write_text('{"schema_version": "1.0", "tool": {"name": "traceanalyzer"}, "findings": []}')
    assert "no such file" in refused(capsysbinary, "compare", SLOW, tmp_path / "nothing.json")
    assert "is empty" in refused(capsysbinary, "compare", empty, SLOW)
    assert "neither a PyTorch" in refused(capsysbinary, "compare", SLOW, text)
    assert "written by traceanalyzer" in refused(capsysbinary, "compare", result, SLOW)
    assert "is an input" in refused(capsysbinary, "compare", baseline, SLOW, "-o", baseline)
    assert "--also" in refused(capsysbinary, "compare", baseline, SLOW, "--also", "pdf=x.pdf")
    assert "ingest it first" in refused(capsysbinary, "compare", SLOW, FIXED, "--scheduler", "tcp://host:1")
    newer = tmp_path / "newer.json"
    newer.write_text(baseline.read_text().replace('"schema_version": "1.0"', '"schema_version": "9.0"'))
    assert "written by a newer traceanalyzer" in refused(capsysbinary, "compare", newer, SLOW)


def test_the_example_of_the_page_is_current(capsysbinary):
    out = run(capsysbinary, "compare", SLOW, FIXED)[1].splitlines()
    page = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    example = page[page.index("    NEW takes") :].split("\n\n**The first line**")[0].splitlines()
    lines = [line.removeprefix("    ") for line in example if line.strip() not in ("", "...")]
    assert len(lines) > 5
    assert [line for line in lines if line not in out] == []


def test_file_names_are_written_anywhere_and_tell_no_host(capsysbinary, tmp_path):
    odd = tmp_path / os.fsdecode(b"gpu17_1234.1700000000000.pt.trace.json.gz")
    odd.write_bytes(SLOW.read_bytes())
    assert json.loads(run(capsysbinary, "compare", odd, odd, "-f", "json")[1])["base"]["name"].startswith("host_1234.")
    odd = odd.rename(tmp_path / os.fsdecode(b"r\xff.json.gz"))
    assert json.loads(run(capsysbinary, "compare", odd, odd, "-f", "json")[1])["base"]["name"] == "r\ufffd.json.gz"
    assert run(capsysbinary, "baseline", "save", odd, "-o", "-")[0] == 0


def test_a_log_obeys_no_name(capsysbinary, tmp_path):
    """A pipeline obeys lines of its log that begin with two colons, and a terminal control characters."""
    trace = steady(60)
    trace.metadata["deviceProperties"][0]["name"] = "GPU\n::error::\x1b[31m"
    place = trace.write(tmp_path / "a\n::warning::b\x1b[31m.json")
    kept = tmp_path / "baseline.json"
    lines = [run(capsysbinary, "baseline", "save", place, "-o", kept)[2]]
    lines.append(run(capsysbinary, "compare", kept, tmp_path / "no\n::notice::\x1b.json")[2])
    lines.append(run(capsysbinary, "check", place, "--assert", "idle_share <= 1%", "-o", tmp_path / "check.txt")[2])
    for text in lines:
        assert text and "\x1b" not in text and not any(line.startswith("::") for line in text.splitlines())


def test_every_format_has_a_writer():
    assert set(verb.FORMATS) == set(verb.CompareFormat) == {*output_names("comparison"), "html"}
