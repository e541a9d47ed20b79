"""The command line as a new user meets it: one clear line for what is wrong, results on stdout, all else on stderr."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.kineto import KinetoTrace
from tests.support.places import FIXTURES
from traceanalyzer.cli.app import main
from traceanalyzer.cli.command import own_commands
from traceanalyzer.cli.commands import program

HEAVY = ("pyarrow", "pandas", "numpy", "plotly", "duckdb", "dask", "rich", "pydantic", "yaml", "msgspec")
# What only other commands, other files and other formats need.
UNASKED = (
    *(
        "pandas",
        "plotly",
        "jinja2",
        "pydantic",
        "rich",
        "traceanalyzer.doctor",
        "traceanalyzer.budgets",
        "traceanalyzer.report",
    ),
    *("traceanalyzer.redaction", "traceanalyzer.result.comparing", "traceanalyzer.result.captures.capture"),
    *("traceanalyzer.result.recording.diagnosis", "traceanalyzer.ingest.formats.nsys.importer"),
)


def run(capsysbinary, *args: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call, in this process."""
    argv, sys.argv = sys.argv, ["traceanalyzer", *map(str, args)]
    try:
        main()
        code: int = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = argv
    out, err = capsysbinary.readouterr()
    return code, out.decode(), err.decode()


def refused(capsysbinary, *args: object) -> str:
    """The one line on stderr of a call that must fail with 2 and write nothing to stdout."""
    code, out, err = run(capsysbinary, *args)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    return err


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    """A run whose loader keeps the GPU waiting."""
    made = KinetoTrace()
    for step in range(4):
        t = step * 1000
        made.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 110, t + 990)
        made.op(t + 1000, t + 1100, launch=(t + 992, t + 995))
    return made.write(tmp_path_factory.mktemp("trace") / "run.pt.trace.json")


@pytest.fixture(scope="module")
def cpu_only(tmp_path_factory) -> Path:
    made = KinetoTrace().range("aten::add", 0, 10, category="cpu_op").range("aten::mul", 20, 30, category="cpu_op")
    return made.write(tmp_path_factory.mktemp("cpu") / "cpu.json")


def test_help_is_quick_and_plain():
    code = f"""
import sys
from traceanalyzer.cli.app import main
sys.argv = ["traceanalyzer", *sys.argv[1:]]
try:
    main()
finally:
    print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)
"""
    for args in (
        ["--help"],
        [],
        ["analyze", "-h"],
        ["report", "--help"],
        ["export", "-h"],
        ["ingest", "-h"],
        ["doctor", "-h"],
        ["rules", "-h"],
        ["check", "-h"],
        ["compare", "-h"],
        ["baseline", "save", "-h"],
        ["--version"],
    ):
        done = subprocess.run([sys.executable, "-c", code, *args], check=False, capture_output=True, text=True)
        assert done.stderr.endswith("[]\n"), args
        assert "traceanalyzer" in done.stdout + done.stderr
        assert not set("╭│\x1b") & set(done.stdout + done.stderr)


@pytest.mark.parametrize("options", [[], ["--format", "json", "--set", "LCH001.short=50us", "-o", "result.json"]])
def test_analyze_imports_what_it_needs(tmp_path: Path, trace: Path, options: list[str]) -> None:
    code = f"""
import sys
from traceanalyzer.cli.app import main
sys.argv = ["traceanalyzer", *sys.argv[1:]]
try:
    main()
finally:
    print([m for m in {UNASKED!r} if m in sys.modules], file=sys.stderr)
"""
    command = [sys.executable, "-c", code, "analyze", str(trace), *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == "[]\n"


def test_importing_the_package_is_quick():
    code = f"import sys, traceanalyzer; print([m for m in {(*HEAVY, 'typer')!r} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.json", b"", "is empty"),
        ("notes.txt", b"hello", "neither a PyTorch/Chrome trace (JSON) nor an Nsight Systems SQLite export"),
        ("garbage.bin", bytes(range(1, 256)), "neither a PyTorch"),
        ("run 1.nsys-rep", b"fake", "nsys export --type sqlite --include-blobs=true --output"),
        ("run.qdstrm", b"fake", "QdstrmImporter -i"),
        ("pointer.json", b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\n", "git lfs pull"),
        (
            "cut.json.gz",
            gzip.compress(b'{"traceEvents": [' + b'{"a": 1},' * 9000, mtime=0)[:15],
            "gzip data is cut short",
        ),
        ("other.json", b'{"foo": 1}', "traceEvents"),
        ("packed.xz", b"\xfd7zXZ\x00\x00", "xz data is cut short"),
        ("table.parquet", b"PAR1....", "name its folder"),
        (
            "result.json",
            b'{\n  "schema_version": "1.0",\n  "tool": {"name": "traceanalyzer"}}',
            "written by traceanalyzer",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else "content",
)
@pytest.mark.parametrize("verb", ["analyze", "report", "ingest"])
def test_what_is_no_trace_is_refused_in_one_line(capsysbinary, tmp_path, verb, name, content, words):
    path = tmp_path / "given" / name
    path.parent.mkdir()
    path.write_bytes(content)
    message = refused(capsysbinary, verb, path, "-o", tmp_path / "out")
    assert name in message and words in message
    assert [p.name for p in tmp_path.iterdir()] == ["given"]


def test_paths_that_are_no_files(capsysbinary, tmp_path):
    (tmp_path / "link.json").symlink_to("nowhere")
    (tmp_path / "empty").mkdir()
    assert "no such file" in refused(capsysbinary, "analyze", tmp_path / "missing.json")
    assert "nowhere" in refused(capsysbinary, "analyze", tmp_path / "link.json")
    assert "holds no trace files" in refused(capsysbinary, "analyze", tmp_path / "empty")
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("notes.txt", "x")
        archive.writestr("more.txt", "x")
    assert "without a trace" in refused(capsysbinary, "analyze", tmp_path / "t.zip")


def test_a_folder_of_unexported_reports_says_how_to_export(capsysbinary, tmp_path):
    (tmp_path / "a.nsys-rep").write_bytes(b"fake")
    assert "nsys export" in refused(capsysbinary, "analyze", tmp_path)


def test_standard_input_and_process_substitution(tmp_path, trace):
    (tmp_path / "t.gz").write_bytes(gzip.compress(trace.read_bytes()))
    analyze = f"{shlex.quote(sys.executable)} -m traceanalyzer analyze -f json"
    for command, name in (
        (f"{analyze} - < {trace}", "<stdin>"),
        (f"cat {tmp_path}/t.gz | {analyze} -", "<stdin>"),
        (f"{analyze} <(cat {tmp_path}/t.gz)", "/dev/fd/"),
    ):
        result = json.loads(subprocess.check_output(["bash", "-c", command]))
        assert result["inputs"][0]["path"].startswith(name) and result["devices"]


def test_the_size_limit_has_a_flag(capsysbinary, tmp_path, trace):
    for verb in ("analyze", "report", "ingest"):
        out = ("-o", tmp_path / verb)
        assert "--max-size raises the limit" in refused(capsysbinary, verb, trace, *out, "--max-size", "1KiB")
        assert "'7 apples' is not a size" in refused(capsysbinary, verb, trace, *out, "--max-size", "7 apples")
        assert run(capsysbinary, verb, trace, *out, "--max-size", "1GiB", "--")[0] == 0


def test_a_trace_given_twice_is_refused(capsysbinary, trace):
    assert "given twice" in refused(capsysbinary, "analyze", trace, trace.parent)


def test_results_beside_the_traces_are_passed_over(capsysbinary, tmp_path, trace):
    (tmp_path / trace.name).write_bytes(trace.read_bytes())
    assert run(capsysbinary, "analyze", tmp_path, "--format", "json", "-o", tmp_path / "result.json")[0] == 0
    assert run(capsysbinary, "ingest", tmp_path, "-o", tmp_path / "store")[0] == 0
    code, out, _ = run(capsysbinary, "analyze", tmp_path, "--format", "json")
    assert code == 0 and len(json.loads(out)["inputs"]) == 1


def test_results_go_to_stdout_and_the_rest_to_stderr(capsysbinary, trace):
    code, out, err = run(capsysbinary, "analyze", trace, "--format", "json")
    assert (code, err) == (0, "") and json.loads(out)["schema_version"] == "1.0"
    assert run(capsysbinary, "analyze", trace, "-f", "json", "-o", "-")[1] == out
    code, page, err = run(capsysbinary, "report", trace, "-o", "-")
    assert code == 0 and page.startswith("<!doctype html>") and "idle" in err and "report:" not in err


def test_fail_on(capsysbinary, trace, cpu_only):
    code, out, _ = run(capsysbinary, "analyze", trace, "-f", "json")
    assert code == 0 and json.loads(out)["findings"][0]["severity"] == "high"
    for level in ("info", "low", "medium", "high"):
        assert run(capsysbinary, "analyze", trace, "--fail-on", level)[0] == 1
    assert run(capsysbinary, "analyze", cpu_only, "--fail-on", "high")[0] == 3


def test_a_gate_is_not_passed_by_a_trace_that_is_cut_short(capsysbinary, tmp_path):
    """Without a gate it is judged as far as it goes."""
    whole = FIXTURES / "kineto" / "clean_infer.slow.pt.trace.json.gz"
    cut = tmp_path / "cut.json"
    cut.write_bytes(gzip.decompress(whole.read_bytes())[:-20_000])
    assert run(capsysbinary, "analyze", whole, "--fail-on", "high")[0] == 0
    assert run(capsysbinary, "analyze", cut)[0] == 0
    assert run(capsysbinary, "analyze", cut, "--fail-on", "high")[0] == 3


def test_what_cannot_be_judged_still_has_a_result(capsysbinary, tmp_path, cpu_only):
    code, out, _ = run(capsysbinary, "analyze", cpu_only)
    assert code == 3 and "Could not judge" in out and "ProfilerActivity.CUDA" in out and "bound by" not in out
    assert run(capsysbinary, "report", cpu_only, "-o", tmp_path / "r.html")[0] == 3
    assert "Could not judge" in (tmp_path / "r.html").read_text()


def test_outputs_that_cannot_be_are_refused_before_reading(capsysbinary, tmp_path, trace):
    (tmp_path / "notes.txt").write_text("x")
    missing = tmp_path / "missing.json"  # would be complained of first, had it been looked at
    assert "is a folder" in refused(capsysbinary, "analyze", missing, "-o", tmp_path)
    assert "is not a folder" in refused(capsysbinary, "report", missing, "-o", tmp_path / "notes.txt" / "r.html")
    assert "is not a folder" in refused(capsysbinary, "ingest", missing, "-o", tmp_path / "notes.txt" / "s")
    assert "is not a store" in refused(capsysbinary, "ingest", missing, "-o", tmp_path)
    assert "name a folder" in refused(capsysbinary, "ingest", missing, "-o", "-")
    assert "cannot be written" in refused(capsysbinary, "analyze", trace, "-o", "/proc/none/r.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folders_are_refused(capsysbinary, tmp_path, trace):
    tmp_path.chmod(0o555)
    try:
        assert "no permission" in refused(capsysbinary, "analyze", trace, "-o", tmp_path / "r.txt")
        assert "no permission" in refused(capsysbinary, "ingest", trace, "-o", tmp_path / "s")
    finally:
        tmp_path.chmod(0o755)


def test_inputs_are_never_written_to(capsysbinary, tmp_path, trace):
    path = tmp_path / "t.json"
    path.write_bytes(trace.read_bytes())
    before = hashlib.sha256(path.read_bytes()).digest()
    for verb in ("analyze", "report", "export", "ingest"):
        assert "is an input" in refused(capsysbinary, verb, path, "-o", path)
    assert run(capsysbinary, "ingest", path, "-o", tmp_path / "s")[0] == 0
    assert "is an input" in refused(capsysbinary, "ingest", tmp_path / "s", "-o", tmp_path / "s")
    assert "lies in the store" in refused(capsysbinary, "report", tmp_path / "s", "-o", tmp_path / "s" / "r.html")
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s", "t.json"]


def test_links_and_devices_stay_what_they_are(capsysbinary, tmp_path, trace):
    (tmp_path / "link.txt").symlink_to("target.txt")
    assert run(capsysbinary, "analyze", trace, "-o", tmp_path / "link.txt")[0] == 0
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "target.txt").read_text()
    assert run(capsysbinary, "analyze", trace, "-o", "/dev/null")[0] == 0
    assert Path("/dev/null").is_char_device()


def test_a_reader_that_has_enough_is_no_error(trace):
    for args in (
        ["report", trace, "-o", "-"],
        ["export", trace, "-o", "-"],
        ["analyze", trace, "-f", "json"],
        ["rules", "list"],
    ):
        command = [sys.executable, "-m", "traceanalyzer", *map(str, args)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout and process.stderr
            process.stdout.close()
            assert b"rror" not in process.stderr.read()
        assert process.returncode == 0


def test_usage_errors_are_plain(capsysbinary):
    for args, words in (
        (["--nope"], "No such option"),
        (["analyse", "x"], "analyze"),
        (["analyze"], "Missing argument"),
        (["ingest", "x"], "--output"),
        (["analyze", "x", "--fail-on", "bogus"], "'medium'"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "traceanalyzer", *args], check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr and "╭" not in done.stderr and "Traceback" not in done.stderr


def test_rules_are_listed_and_explained(capsysbinary):
    code, out, _ = run(capsysbinary, "rules", "list")
    assert code == 0 and "INP001" in out
    titles = {line.index("  ", line.index("  ") + 2) for line in out.splitlines() if "data-loader-stall" in line}
    assert len(titles) == 1
    code, out, _ = run(capsysbinary, "rules", "show", "inp001")
    assert code == 0 and "Fires when" in out and "What to do" in out
    assert "did you mean INP001?" in refused(capsysbinary, "rules", "show", "INP01")
    assert "did you mean data-loader-stall?" in refused(capsysbinary, "rules", "show", "data-loader")
    assert "the rules are INP001" in refused(capsysbinary, "rules", "show", "nonsense-xyz")


def test_a_fault_of_ours_is_one_line_and_can_be_looked_into(capsysbinary, monkeypatch, trace):
    def broken(*_):
        raise KeyError("phase\nsecond line")

    monkeypatch.setattr("traceanalyzer.ingest.registry.sources_behind", broken)
    message = refused(capsysbinary, "analyze", trace)
    assert "fault in traceanalyzer (KeyError" in message and "TRACEANALYZER_DEBUG=1" in message
    monkeypatch.setenv("TRACEANALYZER_DEBUG", "1")
    code, _, err = run(capsysbinary, "analyze", trace)
    assert code == 2 and "Traceback" in err and "in broken" in err


@pytest.mark.parametrize(("stop", "ends"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_a_library_that_fails_while_it_is_stopped_is_no_fault(capsysbinary, monkeypatch, trace, stop, ends):
    def stopped(*_):
        try:
            raise stop
        finally:
            raise RuntimeError("cannot close what is open")

    monkeypatch.setattr("traceanalyzer.ingest.registry.sources_behind", stopped)
    code, out, err = run(capsysbinary, "analyze", trace)
    assert (code, out, err) == (ends, "", "error: interrupted\n" if ends == 130 else "")


@pytest.mark.parametrize(
    ("verb", "output"), [("ingest", "store"), ("analyze", "text"), ("report", "report.html"), ("export", "x.json")]
)
def test_pandas_is_not_loaded_without_need(tmp_path, trace, verb, output):
    script = "import sys\nfrom traceanalyzer.cli.app import main\ntry:\n    main()\nfinally:\n    print('pandas' in sys.modules)"
    command = [sys.executable, "-c", script, verb, str(trace), "-o", str(tmp_path / output)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_store_is_not_ingested_again(capsysbinary, tmp_path, trace):
    store = tmp_path / "store"
    assert run(capsysbinary, "ingest", trace, "-o", store)[0] == 0
    for inputs in ([store], [trace, store]):
        assert f"{store}: a store, not a trace" in refused(capsysbinary, "ingest", *inputs, "-o", tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_a_read_that_is_interrupted_ends_with_130(capsysbinary, monkeypatch, trace):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("traceanalyzer.ingest.registry.sources_behind", interrupted)
    assert run(capsysbinary, "analyze", trace)[0] == 130


def test_a_failed_write_leaves_nothing(capsysbinary, monkeypatch, tmp_path, trace):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    message = refused(capsysbinary, "analyze", trace, "-o", tmp_path / "r.txt")
    assert "No space left" in message and list(tmp_path.iterdir()) == []


def test_a_report_is_shown_after_it_is_written(capsysbinary, monkeypatch, tmp_path, trace):
    page, shown = tmp_path / "a b.html", []
    monkeypatch.setattr("webbrowser.open", lambda address: shown.append((address, page.exists())) or True)
    assert run(capsysbinary, "report", trace, "-o", page, "--open", "--title", "Run 12")[0] == 0
    assert shown == [(page.as_uri(), True)] and "<title>Run 12" in page.read_text()
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    assert f"open {page.as_uri()} yourself" in run(capsysbinary, "report", trace, "-o", page, "--open")[2]
    assert "cannot be shown in a browser; name a file with -o" in refused(
        capsysbinary, "report", trace, "-o", "-", "--open"
    )


def test_a_report_keeps_its_limit_or_is_not_written(capsysbinary, tmp_path, trace):
    page = tmp_path / "r.html"
    message = refused(capsysbinary, "report", trace, "-o", page, "--limit-mb", 0.1)
    least = float(re.search(r"the smallest for this trace takes ([\d.]+) MB", message)[1])
    assert not page.exists()
    assert run(capsysbinary, "report", trace, "-o", page, "--limit-mb", least)[0] == 0
    assert page.stat().st_size <= least * 1e6


@pytest.mark.parametrize("limit", ["inf", "nan", "0", "-1"])
def test_a_limit_is_a_size(capsysbinary, tmp_path, trace, limit):
    code, _, err = run(capsysbinary, "report", trace, "-o", tmp_path / "r.html", "--limit-mb", limit)
    assert code == 2 and "Invalid value for '--limit-mb'" in err


def test_what_tells_of_a_person_is_kept_on_request_only(capsysbinary, tmp_path):
    made = KinetoTrace().op(100, 200, launch=(50, 60)).op(1000, 1100, launch=(950, 960))
    made.range("/home/zqperson/proj/train.py(3): step", 0, 1200, category="python_function")
    path = made.write(tmp_path / "t.json")
    for verb, name in (("report", "r.html"), ("export", "x.json")):
        for flags, kept in (([], False), (["--no-redact"], True)):
            run(capsysbinary, verb, path, "-o", tmp_path / name, *flags)
            assert (b"zqperson" in text_of(tmp_path / name)) is kept


def text_of(path: Path) -> bytes:
    """A file, with what lies packed in it unpacked."""
    content = path.read_bytes()
    blocks = re.findall(rb">(H4sI[\w+/=]+)<", content)
    return content + b"".join(gzip.decompress(base64.b64decode(block)) for block in blocks)


def test_an_exported_trace_is_packed_by_its_name(capsysbinary, tmp_path, trace):
    code, out, err = run(capsysbinary, "export", trace, "-o", tmp_path / "x.json.gz", "--format", "perfetto")
    assert (code, out) == (0, "") and "ui.perfetto.dev" in err
    plain = run(capsysbinary, "export", trace, "-o", "-")[1]
    assert gzip.decompress((tmp_path / "x.json.gz").read_bytes()).decode() == plain
    assert json.loads(plain)["traceEvents"]


def test_rules_lint_and_test_pass_on_what_is_shipped(capsysbinary):
    assert run(capsysbinary, "rules", "lint") == (0, "", "no problems\n")
    code, out, err = run(capsysbinary, "rules", "test")
    assert (code, out) == (0, "") and err.endswith(" passed, 0 failed\n")


def test_rules_lint_and_test_name_the_place_of_a_mistake(capsysbinary, tmp_path):
    shipped = Path(__file__).parents[2] / "rules/input/INP001-data-loader-stall.yaml"
    rule = tmp_path / "rules" / "mine.yaml"
    rule.parent.mkdir()
    rule.write_text(shipped.read_text().replace("sum(duration)", "sum(duraton)"))
    code, out, _ = run(capsysbinary, "rules", "lint", rule.parent)
    assert code == 1 and f"{rule}:" in out and "did you mean 'duration'?" in out
    rule.write_text(shipped.read_text().replace("expect: could_not_judge", "expect: clean"))
    code, out, err = run(capsysbinary, "rules", "test", rule)
    assert code == 1 and "expected clean, but the outcome is could_not_judge" in out and err.endswith(", 1 failed\n")
    assert "no rule file" in refused(capsysbinary, "rules", "lint", tmp_path / "nothing")


def test_own_rules_and_rules_that_are_switched_off(capsysbinary, tmp_path, monkeypatch, trace):
    shipped = Path(__file__).parents[2] / "rules/input/INP001-data-loader-stall.yaml"
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf" / "mine.yaml").write_text(shipped.read_text().replace("id: INP001", "id: ACM001"))
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyzer]\nrules = ["perf"]\ndisable = ["HST001"]\n')
    assert "[ACM001, high]" in run(capsysbinary, "analyze", trace, "--rules", tmp_path / "perf")[1]
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsysbinary, "analyze", trace, "-f", "json", "--disable", "GAP001")
    outcomes = {rule["rule"]: rule for rule in json.loads(out)["rules"]}
    assert code == 0 and outcomes["ACM001"]["outcome"] == "fired"
    assert outcomes["HST001"]["reason"] == "switched off in pyproject.toml"
    assert outcomes["GAP001"]["reason"] == "switched off by --disable"
    assert "did you mean 'GAP001'" in refused(capsysbinary, "analyze", trace, "--disable", "GAP01")
    listed = {rule["id"]: rule for rule in json.loads(run(capsysbinary, "rules", "list", "-f", "json")[1])}
    assert listed["HST001"]["switched_off"] and not listed["INP001"]["switched_off"]
    assert (listed["ACM001"]["family"], listed["INP001"]["claims"]) == ("perf", ["idle.input"])
    assert "switched off" in run(capsysbinary, "rules", "list")[1]
    assert "ACM001 data-loader-stall" in run(capsysbinary, "rules", "show", "ACM001")[1]
    (tmp_path / "perf" / "mine.yaml").write_text("id: ACM001\nslug: [\n")
    for command in (["analyze", trace], ["rules", "list"]):
        assert re.match(rf"error: {tmp_path}/perf/mine.yaml:\d+:\d+: no YAML", refused(capsysbinary, *command))


def test_scenarios_and_the_schema_are_written_out(capsysbinary):
    assert "\nlaunch_bound " in run(capsysbinary, "rules", "scenarios")[1]
    assert "INP001" not in run(capsysbinary, "rules", "schema")[1]
    assert json.loads(run(capsysbinary, "rules", "schema")[1])["$defs"]["table"]["enum"]


def test_set_changes_a_threshold(capsysbinary, trace):
    assert "INP001" in run(capsysbinary, "analyze", trace)[1]
    silenced = run(capsysbinary, "analyze", trace, "--set", "INP001.least=99%")[1]
    assert "[INP001" not in silenced and "INP001.least = 99% (default 5.0%)" in silenced
    assert "did you mean 'INP001'" in refused(capsysbinary, "analyze", trace, "--set", "INP01.least=5%")
    assert "INP001.least is a share" in refused(capsysbinary, "analyze", trace, "--set", "INP001.least=5ms")
    assert "write it as" in refused(capsysbinary, "analyze", trace, "--set", "INP001")


def test_the_help_lists_the_commands_as_they_are() -> None:
    for_help, to_run = (
        CliRunner().invoke(program(own_commands(), listed), ["--help"]).output for listed in (True, False)
    )
    assert for_help == to_run
    assert "analyze" in for_help
