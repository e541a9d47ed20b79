"""What a stranger wrote never commands the terminal or the pipeline that shows it, in whichever verb and on whichever stream."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_cli import run
from tests.support.kineto import KinetoTrace
from traceanalyzer.terminal import line, page

PACKAGE = Path(__file__).parents[2] / "traceanalyzer"
NASTY = "::error::x \x1b[31m\x9b31m\r\u202e\u2028\u200b##[error]y [link=https://example.org]z[/link]"
_COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)

RULE = """
id: ACM001
slug: batch-made
title: "TITLE"
status: preview
category: host
why: "TITLE"
from: gpu_ops
where: kind == "kernel"
group_by: [rank, device]
metrics:
  worst: top(name, duration)
having: count() > 0
message: "TITLE {worst}"
recommend: [{any: "TITLE"}]
false_positives: ["TITLE"]
references: ["TITLE"]
tests:
  - {name: "TITLE", given: {gpu_ops: [{kind: kernel, name: "TITLE", duration: 75ms}]}, expect: WANTED}
"""


def harmless(text: str) -> bool:
    return not _COMMAND.search(text) and all(c.isprintable() for c in text.replace("\n", ""))


@given(st.text())
def test_a_line_is_one_line_and_no_command(text):
    assert harmless(line(text)) and "\n" not in line(text)
    assert harmless(page([text, NASTY])) and page([text, NASTY]).count("\n") == 2


def test_ordinary_text_stays_as_it_is():
    for text in ("at::native::add<float>()", "  a :: b", "50 µs – 2×, “ü” 漢字", "## [x]", "# [x]"):
        assert line(text) == text


@pytest.fixture(scope="module")
def nasty(tmp_path_factory) -> Path:
    """A trace whose names, and whose own name, are commands."""
    made = KinetoTrace()
    for step in range(6):
        t = step * 1000
        made.range(f"{NASTY} aten::item", t, t + 990)
        made.op(t + 1000, t + 1100, launch=(t + 992, t + 995), name=NASTY)
    return made.write(tmp_path_factory.mktemp("trace") / "::error::x \x1b[31m\u202e.json")


def rule_file(folder: Path, wanted: str) -> Path:
    escaped = NASTY.encode("unicode_escape").decode().replace("\\x1b", "\\e")
    file = folder / "rule.yaml"
    file.write_text(RULE.replace("TITLE", escaped).replace("WANTED", wanted).lstrip())
    return file


@pytest.mark.parametrize("verb", ["list", "show ACM001", "lint", "test"])
@pytest.mark.parametrize("wanted", ["fires", "clean"])
def test_rules_of_strangers(capsysbinary, tmp_path, verb, wanted):
    file = rule_file(tmp_path, wanted)
    code, out, err = run(capsysbinary, "rules", *verb.split(), *([] if verb in ("lint", "test") else ["--rules"]), file)
    assert code in (0, 1) and "fault" not in err
    assert harmless(out) and harmless(err)
    assert verb == "lint" or (verb == "test" and wanted == "fires") or "error" in out


@pytest.mark.parametrize(
    "command",
    [
        *(
            "analyze IT",
            "doctor IT",
            "compare IT IT",
            "check IT --assert idle_share<=1%",
            "check IT --assert ::error::x",
        ),
        *("analyze IT IT", "analyze IT.gone", "ingest IT -o OUT", "report IT -o OUT", "baseline save IT -o OUT"),
        *("export IT -o OUT", "analyze IT -o IT/x", "rules lint IT", "analyze IT --rules IT", "analyze IT --set ::x=1"),
    ],
)
def test_traces_of_strangers(capsysbinary, tmp_path, nasty, command):
    places = {
        "IT": str(nasty),
        "OUT": str(tmp_path / "::warning::\x1b[1mout"),
        "IT.gone": f"{nasty}.gone",
        "IT/x": f"{nasty}/x",
    }
    _, out, err = run(capsysbinary, *(places.get(word, word) for word in command.split()))
    assert (out or err) and harmless(out) and harmless(err)
    assert "this is a fault" not in err


def test_a_saved_baseline_of_strangers(capsysbinary, tmp_path, nasty):
    assert run(capsysbinary, "baseline", "save", nasty, "-o", tmp_path / "b.json")[0] in (0, 3)
    _, out, err = run(capsysbinary, "baseline", "show", tmp_path / "b.json")
    assert harmless(out) and harmless(err)


def test_text_leaves_for_the_terminal_in_one_place():
    """Nothing prints, echoes or writes to a standard stream but the module for it, results as bytes in `cli.common`, and a process of
    its own whose output is a file."""
    allowed = {"terminal.py": {"write"}, "cli/commands.py": {"echo"}, "cli/common.py": {"Console"}}
    allowed["evidence/kernel_counters/reading/report_child.py"] = {"write"}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of, streams = ast.unparse(node.func), ("sys.stderr.write", "sys.stdout.write")
            leaves = name in ("print", "echo", "secho", "Console", "print_exc") or of in streams
            known = allowed.get(file.relative_to(PACKAGE).as_posix(), set())
            assert not leaves or name in known, f"{file}:{node.lineno}: {of}"
            if name == "TextColumn":
                assert any(k.arg == "markup" and ast.unparse(k.value) == "False" for k in node.keywords), file
